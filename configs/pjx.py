"""PJ-X (Park et al. 2018) as Kayser et al. 2021 compare it: a question finds cells of a picture's grid and is answered,
the question and the answer find cells once more, and two LSTMs explain from those.

    python -m evil_jax.main --config=pjx:shapes_ve               the built-in world, on a laptop: minutes
    python -m evil_jax.main --config=pjx:shapes_vqa
    python -m evil_jax.main --config=pjx:shapes_vcr              four choices about tagged objects
    python -m evil_jax.main --config=pjx:shapes_ve,fusion=product
    python -m evil_jax.main --config=pjx:vqax --config.data.manual_dir=... --config.data.features='("PJX-NPZ-FOLDER",)'
    python -m evil_jax.main --config=pjx:esnlive --config.data.manual_dir=... --config.data.images=... \
        --config.build.backbone=resnet --config.build.backbone_init=hf:FOLDER

The picture is a grid of ResNet's cells, 14 x 14 on real data: PJ-X's own files (res5c in an .npz a picture), or what
--mode=build computes from the pictures with build.backbone. The built-in world has 3 x 3 cells of its own.

`fusion=mcb` is multimodal compact bilinear pooling (Fukui et al. 2016), which the papers describe; `fusion=product` is
what PJ-X's released code computes. `size=tiny` shrinks any data set's model to 1 M parameters; `size=base` has PJ-X's
and MCB's widths. PJ-X freezes an answering half that was trained before: --config.train.regime=expl with
--config.model.task.init=RUN.
Expected: s_t >= 0.85 and s_e_true >= 0.70 on `shapes_ve`, on two cores in less than ten minutes. On real data Kayser et
al. report s_t 0.764 on VQA-X, 0.692 on e-SNLI-VE and 0.390 on VCR, of models trained jointly.
"""

from evil_jax import config as config_lib


def get_config(arg=None):
    """Arguments: data set, size=tiny|base, fusion=mcb|product, shrink."""
    arg = config_lib.parse_arg(arg, data='shapes_ve', size='', fusion='mcb', shrink=False)
    if arg.data not in config_lib.DATA_SETS:
        raise ValueError(f'no data set {arg.data!r}; there are: {", ".join(config_lib.DATA_SETS)}')
    world = arg.data.startswith('shapes_')

    config = config_lib.base()
    config.data.update(config_lib.DATA_SETS[arg.data])
    config.data.dir += '-grid'
    config.data.max_regions = config.build.max_regions = 9 if world else 196
    config.data.tag_regions = False  # a word of VCR stands for no cell
    size = arg.size or ('tiny' if world else 'base')
    config.model.task.update(name='mcb', size=size, fusion=arg.fusion)
    config.model.expl.update(name='lstm_decoder', size=size, attend='answer')
    if world:
        config.data.world_container = 'grid'
        # Half a million parameters from scratch; a small net that sees each example a few times needs no dropout. The
        # wide sketches want small steps, the decoder large ones.
        config.model.dtype, config.model.dropout = 'float32', 0.0
        config.optim.update(lr=1e-3, warmup=0.1, b2=0.98, eps=1e-8, weight_decay=0.01)
        config.optim.lr_mult = ((r'expl/.*', 2.5), (r'.*', 1.0))
        steps = 1_500
        config.train.update(steps=steps, batch=64, eval_every=steps // 2, eval_examples=300, save_every=steps // 2)
        config.decode.batch = 200
    else:
        # PJ-X's Adam (batch 64, 50,000 steps); the gradient is clipped as Kayser et al. do.
        config.model.dropout = 0.3
        config.optim.update(lr=7e-4, warmup=0.01, eps=1e-8, weight_decay=0.0)
        config.train.steps = 50_000
    return config_lib.shrink(config) if arg.shrink else config
