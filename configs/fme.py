"""FME."""

from evil_jax import config as config_lib


def get_config(arg=None):
    """Arguments: data set, size=tiny|base, gate=tanh|relu, grid."""
    arg = config_lib.parse_arg(arg, data='shapes_ve', size='', gate='tanh', grid=False, shrink=False)
    if arg.data not in config_lib.DATA_SETS:
        raise ValueError(f'no data set {arg.data!r}; there are: {", ".join(config_lib.DATA_SETS)}')
    world = arg.data.startswith('shapes_')

    config = config_lib.base()
    config.data.update(config_lib.DATA_SETS[arg.data])
    config.model.task.update(name='updown', size=arg.size or ('tiny' if world else 'base'), gate=arg.gate)
    config.model.expl.update(name='lstm_decoder', size=arg.size or ('tiny' if world else 'base'), attend='word')
    if world:
        config.model.dtype, config.model.dropout = 'float32', 0.0
        config.optim.update(lr=2e-3, warmup=0.05, b2=0.98, eps=1e-8, weight_decay=0.01)
        steps = {'shapes_ve': 1_500, 'shapes_vqa': 1_200, 'shapes_vcr': 600}[arg.data]
        config.train.update(steps=steps, batch=64, eval_every=steps // 2, eval_examples=300, save_every=steps // 2)
        config.decode.batch = 200
    return config_lib.shrink(config) if arg.shrink else config
