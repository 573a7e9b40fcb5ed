"""QA-only (Marasovic et al. 2020; Kayser et al. 2021): RVT that sees nothing of the picture, to show what words alone
give away.

    python -m evil_jax.main --config=qa_gpt2:shapes_ve           the built-in world, on a laptop: minutes
    python -m evil_jax.main --config=qa_gpt2:shapes_vqa
    python -m evil_jax.main --config=qa_gpt2:shapes_vcr
    python -m evil_jax.main --config=qa_gpt2:vqax --config.data.manual_dir=... --config.data.features='("...",)'

BERT answers from the question, GPT-2 explains from question and answer. The data folder is that of `eug`; RVT's serves
as well (--config.data.dir=data/vqax-objects).

`size=tiny` shrinks any data set's model to 1 M parameters; `size=base` is the paper's (110 M + 117 M).
Expected: s_t 0.33 on `shapes_ve` (seed 0), the share of the most frequent class; less than 2 minutes of processor time.
"""

from evil_jax import config as config_lib


def get_config(arg=None):
    """Arguments: data set, size=tiny|base, shrink."""
    arg = config_lib.parse_arg(arg, data='shapes_ve', size='', shrink=False)
    if arg.data not in config_lib.DATA_SETS:
        raise ValueError(f'no data set {arg.data!r}; there are: {", ".join(config_lib.DATA_SETS)}')
    world = arg.data.startswith('shapes_')

    config = config_lib.base()
    config.data.update(config_lib.DATA_SETS[arg.data])
    config.model.task.update(name='bert', size=arg.size or ('tiny' if world else 'base'))
    config.model.expl.update(size=config.model.task.size, image='none')
    config.train.choice_loss = 'softmax'  # BertForMultipleChoice
    if world:
        # As for eug.py: from scratch, in float32, without dropout. RVT's steps: only the names make a difference.
        config.model.dtype, config.model.dropout = 'float32', 0.0
        config.optim.update(lr=8e-4, warmup=0.1, b2=0.98, eps=1e-8, weight_decay=0.05)
        steps = {'shapes_ve': 800, 'shapes_vqa': 800, 'shapes_vcr': 400}[arg.data]
        config.train.update(steps=steps, batch=64, eval_every=steps // 2, eval_examples=300, save_every=steps // 2)
        config.decode.batch = 200
    return config_lib.shrink(config) if arg.shrink else config
