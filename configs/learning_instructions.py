"""Do explanations teach the task? Table 4 of Kayser et al. 2021: M_T trained alone against M_T and M_E trained jointly.

    python -m evil_jax.main --config=learning_instructions --mode=sweep
    python -m evil_jax.main --config=learning_instructions:shapes_ve,model=eug --mode=sweep
    python -m evil_jax.main --config=learning_instructions:vqax,model=pjx --mode=sweep --config.data.manual_dir=... ...

The config of the model, trained once in each regime with each of three seeds: the same data, steps, batch and rate. S_T
on the test split is printed, and stands in <workdir>/sweep.html, as

    model | task only, mean ± sd (n) | joint, mean ± sd (n) | difference, mean ± sd (n)

in which the difference is taken seed by seed. Regimes are compared, no setting is chosen, so the test split is the one
to look at. To have several models in one table run each, and name their sweep.json files in the report of any model:
--config.evaluate.compare="('FME=runs/.../sweep.json', 'e-UG=runs/.../sweep.json')" (launch/zoo.sh does).

On the built-in world, two cores: about ten minutes (nine minutes of processor time). Expected with FME after 900 steps:
task only 0.860 ± 0.042, joint 0.932 ± 0.013, difference +0.072 ± 0.030 (three seeds). Other data takes the model's own
number of steps (`steps=`), six times its training.

In the paper only FME gained: S_T 71.4 alone and 73.7 jointly on e-SNLI-VE, 35.7 and 48.9 on VCR; e-UG had 79.4 and
79.5, PJ-X 69.7 and 69.2 on e-SNLI-VE.
"""

import importlib.util
import pathlib

from evil_jax import config as config_lib
from evil_jax import lookup


def get_config(arg=None):
    """Arguments: data set, model (a config of this folder), size=tiny|base, seeds, steps (0: those below), shrink."""
    arg = config_lib.parse_arg(arg, data='shapes_ve', model='fme', size='', seeds=3, steps=0, shrink=False)
    if arg.seeds < 1:
        raise ValueError(f'seeds={arg.seeds}, wanted at least 1')
    config = _model(arg.model)(','.join(part for part in (arg.data, arg.size and f'size={arg.size}') if part))
    if arg.data.startswith('shapes_'):
        config.train.steps = arg.steps or 900
        config.train.save_every = config.train.steps  # minutes; longer runs are saved as often as the model says
    else:
        config.train.steps = arg.steps or config.train.steps
    # S_T is compared; the last parameters are, since the best by a score of explanations would favour one regime.
    config.train.select = 's_t'
    config.train.eval_every = 0
    config.evaluate.report = False
    if arg.shrink:
        config_lib.shrink(config)
        config.train.eval_every = 0
        config.train.steps = arg.steps or config.train.steps
    config.sweep.update(
        grid=(('train.regime', ('task', 'joint')), ('seed', tuple(range(arg.seeds)))),
        over=('seed',),
        select='s_t',
        split=config.data.test,
    )
    return config


def _model(name):
    """`get_config` of another config of this folder."""
    folder = pathlib.Path(__file__).parent
    names = sorted({path.stem for path in folder.glob('*.py')} - {pathlib.Path(__file__).stem, '__init__'})
    if name not in names:
        raise ValueError(f'no model {name!r}.{lookup.nearest(name, names)} There are: {", ".join(names)}')
    spec = importlib.util.spec_from_file_location(f'_config_{name}', folder / f'{name}.py')
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.get_config
