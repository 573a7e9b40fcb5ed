"""RVT (Marasovic et al. 2020, with BERT as in Kayser et al. 2021): the picture is read as the names of its objects.

    python -m evil_jax.main --config=rvt:shapes_ve               the built-in world, on a laptop: minutes
    python -m evil_jax.main --config=rvt:shapes_vqa
    python -m evil_jax.main --config=rvt:shapes_vcr
    python -m evil_jax.main --config=rvt:vqax --config.data.manual_dir=... --config.data.features='("...tsv",)'
    python -m evil_jax.main --config=rvt:vcr --config.data.manual_dir=... --config.data.features='("...",)'

BERT answers from the question and the names, GPT-2 explains from names, question and answer. Names are those of the
regions' classes, the most confident first: objects_vocab.txt (Visual Genome) or cocoontology.json (COCO) has to lie
beside the features when they are built. On VCR they are the annotators' objects. 'person' is left out everywhere. The
data folder also serves `eug` (--config=eug:vqax --config.data.dir=data/vqax-objects).

`size=tiny` shrinks any data set's model to 1 M parameters; `size=base` is the paper's (110 M + 117 M);
--config.model.task.size=distilbert. `qa_gpt2` is the same without names.
Expected: s_t 0.73 on `shapes_ve` (seed 0; qa_gpt2: 0.33), in about 5 minutes of processor time. Names do not tell sizes
and places, so that some 0.91 is the most that a model can reach that reads them.
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
    config.data.dir += '-objects'  # its vocabularies and counts include the names
    config.data.objects = 'annotated' if config.data.choices else 'detected'
    config.model.task.update(name='bert', size=arg.size or ('tiny' if world else 'base'))
    config.model.expl.update(size=config.model.task.size, image='tags')
    config.train.choice_loss = 'softmax'  # BertForMultipleChoice
    if world:
        # Four things at most, two words each.
        config.data.max_objects = 12
        config.data.max_text += 10
        # As for eug.py: from scratch, in float32, without dropout.
        config.model.dtype, config.model.dropout = 'float32', 0.0
        config.optim.update(lr=8e-4, warmup=0.1, b2=0.98, eps=1e-8, weight_decay=0.05)
        steps = {'shapes_ve': 800, 'shapes_vqa': 800, 'shapes_vcr': 400}[arg.data]
        config.train.update(steps=steps, batch=64, eval_every=steps // 2, eval_examples=300, save_every=steps // 2)
        config.decode.batch = 200
    else:
        # 30 word pieces of names, as many as the decoder reads.
        config.data.max_text += 30
    return config_lib.shrink(config) if arg.shrink else config
