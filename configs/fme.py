"""FME (Wu and Mooney 2019) as Kayser et al. 2021 compare it, without its losses of faithfulness: Up-Down VQA answers,
and a captioner of two LSTMs explains, which looks at the picture again at each word.

    python -m evil_jax.main --config=fme:shapes_ve               the built-in world, on a laptop: minutes
    python -m evil_jax.main --config=fme:shapes_vqa
    python -m evil_jax.main --config=fme:shapes_vcr              four choices about tagged objects
    python -m evil_jax.main --config=fme:shapes_ve,gate=relu     weight-normalised ReLU instead of gated tanh
    python -m evil_jax.main --config=fme:vqax --config.data.manual_dir=... --config.data.features='("...tsv",)'
    python -m evil_jax.main --config=fme:esnlive,grid --config.data.manual_dir=... --config.data.images=... \\
        --config.build.backbone=resnet --config.build.backbone_init=hf:FOLDER

The picture is a set of regions, as Up-Down was published. With `grid` it is a grid of ResNet's cells, 14 x 14 on real
data, which Kayser et al. gave it instead: files like PJ-X's, or what --mode=build computes with build.backbone; the
built-in world has 3 x 3 cells of its own. The data folder then ends in -grid.

`size=tiny` shrinks any data set's model to 1 M parameters; `size=base` has the published widths.
Expected: s_t >= 0.85 and s_e_true >= 0.70 on `shapes_ve`, on two cores in less than ten minutes. On real data Kayser et
al. report s_t 0.755 on VQA-X, 0.737 on e-SNLI-VE and 0.489 on VCR.
"""

from evil_jax import config as config_lib


def get_config(arg=None):
    """Arguments: data set, size=tiny|base, gate=tanh|relu, grid, shrink."""
    arg = config_lib.parse_arg(arg, data='shapes_ve', size='', gate='tanh', grid=False, shrink=False)
    if arg.data not in config_lib.DATA_SETS:
        raise ValueError(f'no data set {arg.data!r}; there are: {", ".join(config_lib.DATA_SETS)}')
    world = arg.data.startswith('shapes_')

    config = config_lib.base()
    config.data.update(config_lib.DATA_SETS[arg.data])
    if arg.grid:
        config.data.dir += '-grid'
        config.data.max_regions = config.build.max_regions = 9 if world else 196
        config.data.tag_regions = False  # a word of VCR stands for no cell
        if world:
            config.data.world_container = 'grid'
    size = arg.size or ('tiny' if world else 'base')
    config.model.task.update(name='updown', size=size, gate=arg.gate)
    config.model.expl.update(name='lstm_decoder', size=size, attend='word')
    if world:
        # 1 M parameters from scratch: a laptop's CPU computes float32 faster than bfloat16.
        config.model.dtype, config.model.dropout = 'float32', 0.0
        config.optim.update(lr=2e-3, warmup=0.05, b2=0.98, eps=1e-8, weight_decay=0.01)
        steps = 1_500
        config.train.update(steps=steps, batch=64, eval_every=steps // 2, eval_examples=300, save_every=steps // 2)
        config.decode.batch = 200
    else:
        # Up-Down's code has Adamax at 2e-3, gradients clipped to 0.25, large batches and dropout of 0.2 to 0.5.
        config.model.dropout = 0.3
        config.optim.update(lr=1e-3, warmup=0.02, eps=1e-8, weight_decay=0.0, clip=0.25)
        config.train.update(steps=20_000, batch=256)
    return config_lib.shrink(config) if arg.shrink else config
