"""BERT as a classifier of movie reviews (ERASER): the model whose attributions Chefer et al. 2021 hold against the
words that people marked.

    python -m evil_jax.main --config=bert_movies --config.data.manual_dir=.../movies \\
        --config.data.word_vocab=.../bert-base-uncased --config.model.task.init=hf:.../bert-base-uncased
    python -m evil_jax.main --config=bert_movies:movies,size=tiny ...     1 M parameters from scratch, words of its own

`data.manual_dir` holds train.jsonl, val.jsonl, test.jsonl and docs/ (evil_jax/data/builders/eraser.py).

As in the paper: bert-base-uncased, the first 512 word pieces of a review, Adam with a learning rate of 1e-5, batches of
10, ten epochs of the 1,600 reviews, of which the best by the dev split counts, gradients clipped to a norm of 1. Not as
there: the learning rate falls to 0 in the end, so there is no stopping before it.
"""

from evil_jax import config as config_lib

DATA_SETS = {'movies': dict(builder='eraser', dir='data/movies', max_text=512)}
_REVIEWS = 1_600  # of the training split


def get_config(arg=None):
    """Arguments: data set, size=base|distilbert|tiny, shrink."""
    arg = config_lib.parse_arg(arg, data='movies', size='base', shrink=False)
    if arg.data not in DATA_SETS:
        raise ValueError(f'no data set {arg.data!r}; there are: {", ".join(DATA_SETS)}')

    config = config_lib.base()
    config.data.update(task='classify', **DATA_SETS[arg.data])
    config.model.task.update(name='bert', size=arg.size)
    config.model.expl.name = ''
    config.model.dtype = 'float32'
    config.optim.update(lr=1e-5, warmup=0.0, weight_decay=0.0, clip=1.0)
    epoch = _REVIEWS // 10
    config.train.update(steps=10 * epoch, batch=10, eval_every=epoch, eval_examples=200, save_every=epoch, select='s_t')
    config.decode.batch = 10
    config.evaluate.metrics = ()  # there are no explanations
    if arg.shrink:
        config = config_lib.shrink(config)
    if config.model.task.size == 'tiny':
        config.data.max_text = 128  # its positions
        config.optim.lr = 1e-3
    return config
