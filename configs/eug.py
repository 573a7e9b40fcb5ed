"""e-UG (Kayser et al. 2021): UNITER answers, GPT-2 explains from UNITER's contextual words and regions.

    python -m evil_jax.main --config=eug:shapes_ve               the built-in world, on a laptop: minutes
    python -m evil_jax.main --config=eug:shapes_vqa
    python -m evil_jax.main --config=eug:shapes_vcr              four choices about tagged objects
    python -m evil_jax.main --config=eug:shapes_ve,text_only     the same without the picture: a baseline
    python -m evil_jax.main --config=eug:vqax --config.data.manual_dir=... --config.data.features='("...tsv",)'
    python -m evil_jax.main --config=eug:vcr --config.data.manual_dir=... --config.data.features='("...",)'
    python -m evil_jax.main --config=eug:vcr,compat=original     as the published code did it (evil_jax/compat.py)

`size=tiny` shrinks any data set's model to 1 M parameters; `size=base` is the paper's (110 M + 117 M).
`compat=original` sets `config.compat` and the published code's settings: a checkpoint of it (eug:FILE.pth in
decode.checkpoint or train.init) then says what it said there. Object tags are characters, and stand for no region.
Single quirks: --config.compat=1,3.
Expected: s_t >= 0.90 and s_e_true >= 0.80 on `shapes_ve` (text only: s_t <= 0.60), s_t >= 0.85 on the other two.
"""

from evil_jax import compat
from evil_jax import config as config_lib


def get_config(arg=None):
    """Arguments: data set, size=tiny|base, text_only, compat=fixed|original."""
    arg = config_lib.parse_arg(arg, data='shapes_ve', size='', text_only=False, compat=compat.FIXED, shrink=False)
    if arg.data not in config_lib.DATA_SETS:
        raise ValueError(f'no data set {arg.data!r}; there are: {", ".join(config_lib.DATA_SETS)}')
    world = arg.data.startswith('shapes_')

    config = config_lib.base()
    config.data.update(config_lib.DATA_SETS[arg.data])
    config.compat = arg.compat
    config.model.task.size = config.model.expl.size = arg.size or ('tiny' if world else 'base')
    if arg.text_only:
        config.data.regions = 'zero'
    if world:
        # 1 M parameters from scratch: a laptop's CPU computes float32 faster than bfloat16, and a small net that sees
        # each example a few times needs no dropout. With 2e-3 the encoder never learns which word means which region.
        config.model.dtype, config.model.dropout = 'float32', 0.0
        config.optim.update(lr=8e-4, warmup=0.1, b2=0.98, eps=1e-8, weight_decay=0.05)
        # A step of shapes_vcr, with five encoder rows an example, takes two and a half times as long.
        steps = {'shapes_ve': 1_500, 'shapes_vqa': 1_200, 'shapes_vcr': 600}[arg.data]
        config.train.update(steps=steps, batch=64, eval_every=steps // 2, eval_examples=300, save_every=steps // 2)
        config.decode.batch = 200
        if arg.text_only:  # its dev scores stop rising before that
            config.train.update(steps=300, eval_every=150, save_every=300)
    if arg.compat == compat.ORIGINAL:
        _as_published(config, world)
    return config_lib.shrink(config) if arg.shrink else config


def _as_published(config, world):
    """Settings of the published code that are no quirks (facts 1.3 to 1.8 of Kayser et al.'s repository)."""
    config.data.update(tags='det', tag_regions=False, explanation='first')
    if world:
        if config.data.choices:
            config.data.max_text = 40  # a tag is half a dozen word pieces
        return
    config.data.max_text = 50 if config.data.choices else 20
    config.model.dtype = 'float32'
    config.optim.update(lr=2e-5, warmup=0.1, weight_decay=0.01, clip=5.0, b2=0.999, eps=1e-6)
    config.train.batch = config.decode.batch = 32  # padding, and so outputs, depend on it
    if config.data.max_regions == 100:  # files of UNITER's regions
        config.build.update(threshold=0.2, min_regions=10, max_regions=100)
