"""What the PyTorch classes of an export (interop/pytorch/modeling_evil.py) are made of: numbers of a model, as JSON."""

import dataclasses

from evil_jax.data import tokenizers, transforms

# Of an encoding: what is for training, and for models of pictures, which have no PyTorch class.
_NOT_READ = ('explanation', 'pixels', 'resize', 'shift')
_INITIAL = ('std', 'word_std')  # of a size; of no use to weights that are there


def describe(config, model, shapes, assets: tokenizers.Assets) -> dict[str, object]:
    """'task', 'expl', 'encoding' and 'answers' of config.json.

    Args:
      config: of the run.
      model: `models.vlnle.Vlnle`; its leaves may be shapes.
      shapes: {our path: something with a shape}.
      assets: vocabularies and answers.

    Raises:
      ValueError: a model that has no PyTorch class.
    """
    encoding = dataclasses.asdict(transforms.Encoding.of(config))
    for name in _NOT_READ:
        del encoding[name]
    return {
        'task': {'name': config.model.task.name, **_task(config, model.task, shapes)},
        'expl': None if model.expl is None else
        {'name': config.model.expl.name, **_expl(config, model.expl, assets)},
        'encoding': encoding,
        'answers': list(assets.answers),
    }  # fmt: skip


def _size(size) -> dict[str, object]:
    return {name: value for name, value in dataclasses.asdict(size).items() if name not in _INITIAL}


def _task(config, task, shapes):
    name = config.model.task.name
    if name not in ('uniter', 'bert', 'mcb', 'updown'):
        raise ValueError(f'config.model.task.name is {name!r}, which --mode=export cannot write yet')
    rows = lambda path: shapes[f'task/{path}'].shape[-1 if path.endswith('bias') else 0]
    head = {'choices': task.choices, 'answers': 0 if task.choices else rows('head/answer/bias')}
    common = {**_size(task.size), **head}
    match name:
        case 'uniter':
            found = {'words': rows('text/word/embedding'), 'types': rows('text/type/embedding')}
            return common | found | {'pad_regions': task.pad_regions, 'read_padding': task.read_padding}
        case 'bert':
            return common | {'words': rows('text/word/embedding')}
        case 'mcb':
            found = {'words': rows('question/word/embedding'), 'fusion': config.model.task.fusion}
            return common | found | {'glimpses': task.glimpses}
        case 'updown':
            return common | {'words': rows('word/embedding'), 'gate': config.model.task.gate}


def _expl(config, expl, assets):
    name = config.model.expl.name
    ids = {'tokens': assets.expl.size, 'b_rtnl': assets.expl.id('<|b_rtnl|>'), 'e_rtnl': assets.expl.id('<|e_rtnl|>')}
    match name:
        case 'gpt2':
            markers = {'b_img': expl.markers.b_img, 'e_img': expl.markers.e_img, 'types': list(expl.markers.types)}
            return {
                **_size(expl.size),
                **ids,
                **markers,
                'rows': expl.rows,
                'late': expl.late,
                'image': config.model.expl.image,
            }
        case 'lstm_decoder':
            return {
                **_size(expl.size),
                **ids,
                'memory': expl.memory,
                'rows': expl.rows,
                'attend': config.model.expl.attend,
            }
    raise ValueError(f'config.model.expl.name is {name!r}, which --mode=export cannot write yet')
