"""Vision Transformer (Dosovitskiy et al. 2021) that classifies pictures: what attributions of pictures are tried on.

    python -m evil_jax.main --config=vit:digits              1,797 handwritten digits, on a laptop: about a minute
    python -m evil_jax.main --config=vit:imagenet --mode=build,attribute --config.data.manual_dir=... \\
        --config.model.task.init=hf:FOLDER --config.attribute.checkpoint=init
    python -m evil_jax.main --config=vit:imagenet_seg ...    the same on gtsegs_ijcv.mat, with masks of the objects

`digits` needs scikit-learn (pip install 'evil_jax[attribution]'), which carries them. Folders and lists of ImageNet's
pictures: evil_jax/data/builders/imagenet.py. `imagenet_seg` shows 445 synsets, not all of them among the 1,000 classes
of a published classifier: --config.data.answers=FILE is a JSON list of these, synsets in their order.

Published classifiers (google/vit-base-patch16-224: hf:FOLDER) read pictures that are squashed to 224 x 224, as in
Chefer et al. 2021; resize=crop cuts the middle out.
Expected: s_t >= 0.97 on `digits`.
"""

from evil_jax import config as config_lib

DATA_SETS = {
    'digits': dict(builder='digits', dir='data/digits', pixels=24, shift=3),
    'imagenet': dict(builder='imagenet', dir='data/imagenet', dev='dev', test='dev'),
    'imagenet_seg': dict(builder='imagenet_seg', dir='data/imagenet_seg', dev='test'),
}


def get_config(arg=None):
    """Arguments: data set, size=digits|base|large|tiny, resize=squash|crop, shrink."""
    arg = config_lib.parse_arg(arg, data='digits', size='', resize='squash', shrink=False)
    if arg.data not in DATA_SETS:
        raise ValueError(f'no data set {arg.data!r}; there are: {", ".join(DATA_SETS)}')

    config = config_lib.base()
    config.data.update(task='classify', resize=arg.resize, **DATA_SETS[arg.data])
    config.model.task.update(name='vit', size=arg.size or ('digits' if arg.data == 'digits' else 'base'))
    config.model.expl.name = ''
    config.train.select = 's_t'
    config.evaluate.metrics = ()  # there are no explanations
    # In float32: a laptop's CPU computes it faster than bfloat16, and relevance is a matter of small differences.
    config.model.dtype = 'float32'
    if arg.data == 'digits':
        # No dropout: pictures that move, and weight decay, are what 1,200 of them need.
        config.model.dropout = 0.0
        config.optim.update(lr=3e-3, warmup=0.1, b2=0.98, eps=1e-8, weight_decay=0.1)
        config.train.update(steps=900, batch=64, eval_every=300, eval_examples=197, save_every=300)
        config.decode.batch = 200
    if arg.shrink:
        config = config_lib.shrink(config)
        config.data.pixels = 32
    return config
