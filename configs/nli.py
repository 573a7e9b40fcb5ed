"""BERT as a model of natural language inference: is a hypothesis entailed by a premise, contradicted, or neither.

    python -m evil_jax.main --config=nli              captions of the built-in world: minutes on two CPU cores
    python -m evil_jax.main --config=nli --mode=export
    python -m evil_jax.main --config=nli:snli --config.data.manual_dir=.../snli_1.0 \\
        --config.data.word_vocab=.../bert-base-uncased --config.model.task.init=hf:.../bert-base-uncased

`<workdir>/export/task` is then a Hugging Face folder: --config.construct.nli.model of esnlive_construction, or
transformers' AutoModelForSequenceClassification, reads it. `data.manual_dir` of SNLI holds snli_1.0_train.jsonl and the
like.

SNLI's settings are those that Devlin et al. 2019 (appendix A.3) fine-tune with: batches of 32, three epochs, a learning
rate of 2e-5; BERT-base is known to reach about 90 % accuracy there.
"""

from evil_jax import config as config_lib

DATA_SETS = {
    'shapes_nli': dict(
        builder='shapes_nli', dir='data/shapes_nli', max_text=26, world_train=8_000, world_dev=600, world_test=1_200
    ),
    'snli': dict(builder='snli', dir='data/snli', max_text=128),
}
_PAIRS = 549_367  # of SNLI's training split, with a label


def get_config(arg=None):
    """Arguments: data set, size=base|distilbert|tiny ('' = what suits the data set), shrink."""
    arg = config_lib.parse_arg(arg, data='shapes_nli', size='', shrink=False)
    if arg.data not in DATA_SETS:
        raise ValueError(f'no data set {arg.data!r}; there are: {", ".join(DATA_SETS)}')
    world = arg.data == 'shapes_nli'

    config = config_lib.base()
    config.data.update(task='classify', **DATA_SETS[arg.data])
    config.model.task.update(name='bert', size=arg.size or ('tiny' if world else 'base'))
    config.model.expl.name = ''
    config.model.dtype = 'float32' if world else 'bfloat16'
    config.evaluate.metrics = ()  # there are no explanations
    if world:
        config.optim.lr = 1e-3
        config.model.dropout = 0.0
        config.train.update(steps=600, batch=64, eval_every=200, eval_examples=600, save_every=200)
    else:
        config.optim.lr = 2e-5
        config.train.update(steps=3 * _PAIRS // 32, batch=32, eval_every=5_000, eval_examples=2_000, save_every=5_000)
    config.train.select = 's_t'
    return config_lib.shrink(config) if arg.shrink else config
