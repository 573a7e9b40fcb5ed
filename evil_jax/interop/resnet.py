"""Weights of a ResNet under the names of torchvision and timm, or of Hugging Face.

    --config.build.backbone_init=torch:resnet101-cd907fc2.pth     torchvision's, or a checkpoint of timm
    --config.build.backbone_init=hf:FOLDER                        microsoft/resnet-101, or timm/resnet101.a1h_in1k

Names tell the layout. torchvision and timm share all of them. The classifier is not read.
"""

from collections.abc import Mapping

from evil_jax.interop import bert, table, weights

_NORM = (
    ('scale', 'weight', table.SAME),
    ('bias', 'bias', table.SAME),
    ('mean', 'running_mean', table.SAME),
    ('var', 'running_var', table.SAME),
)
_CONV = (('kernel', 'weight', table.CONV),)
_BLOCK = r'stages/(\d+)/(\d+)'


def _torchvision():
    """Our stage s is their layer s + 1: a row a stage, for a template cannot count."""
    for stage in range(4):
        block, theirs = rf'stages/{stage}/(\d+)', rf'layer{stage + 1}.\1'
        for number, name in enumerate(('reduce', 'middle', 'expand'), 1):
            yield f'{block}/{name}', f'{theirs}.conv{number}', _CONV
            yield f'{block}/{name}_norm', f'{theirs}.bn{number}', _NORM
        yield f'{block}/shortcut', f'{theirs}.downsample.0', _CONV
        yield f'{block}/shortcut_norm', f'{theirs}.downsample.1', _NORM


def _huggingface():
    theirs = r'encoder.stages.\1.layers.\2'
    for number, name in enumerate(('reduce', 'middle', 'expand')):
        yield f'{_BLOCK}/{name}', f'{theirs}.layer.{number}.convolution', _CONV
        yield f'{_BLOCK}/{name}_norm', f'{theirs}.layer.{number}.normalization', _NORM
    yield f'{_BLOCK}/shortcut', f'{theirs}.shortcut.convolution', _CONV
    yield f'{_BLOCK}/shortcut_norm', f'{theirs}.shortcut.normalization', _NORM


TORCHVISION = table.rows(('stem', 'conv1', _CONV), ('stem_norm', 'bn1', _NORM), *_torchvision())
HUGGINGFACE = table.prefixed(
    table.rows(
        ('stem', 'embedder.embedder.convolution', _CONV),
        ('stem_norm', 'embedder.embedder.normalization', _NORM),
        *_huggingface(),
    ),
    theirs='resnet.',
)
IGNORED = (r'.*\.num_batches_tracked', r'fc\.(weight|bias)', r'classifier\.1\.(weight|bias)')
# Of config.json: what changes the results without changing a shape.
_WANTED = {'layer_type': 'bottleneck', 'downsample_in_bottleneck': False, 'downsample_in_first_stage': False,
           'hidden_act': 'relu', 'num_channels': 3}  # fmt: skip


def load(path, shapes: Mapping) -> dict:
    """Parameters of a net (models/resnet.py) from a file or folder.

    Args:
      path: see `weights.read`.
      shapes: {our path: something with a shape}, of the whole net.

    Returns:
      {our path: array}, float32.

    Raises:
      ValueError: not such a file, or names, shapes or the net's config differ: all that do are in the message.
    """
    there = weights.read(path)
    if any(name.startswith(('resnet.', 'embedder.')) for name in there):
        rows, faults = HUGGINGFACE, _config_faults(path)
        if not any(name.startswith('resnet.') for name in there):  # of ResNetModel, without a classifier
            there = {f'resnet.{name}': array for name, array in there.items()}
    else:
        rows, faults = TORCHVISION, []
    return table.load(rows, there, shapes, ignored=IGNORED, differing=faults, advice=_advice(there, shapes), where=path)


def _config_faults(path) -> list[str]:
    """What a folder's config.json says beside the shapes."""
    return bert.compared(weights.find_config(path) or {}, _WANTED)


def _advice(there, shapes) -> str:
    """The depths, where they differ."""
    split = lambda names: [name.replace('/', '.').removeprefix('resnet.').split('.') for name in names]
    ours = {(int(s), int(b)) for _, s, b, *_ in (p for p in split(shapes) if p[0] == 'stages')}
    theirs = set()
    for parts in split(there):
        if parts[0].startswith('layer') and parts[0][5:].isdigit() and parts[1:2] and parts[1].isdigit():
            theirs.add((int(parts[0][5:]) - 1, int(parts[1])))
        elif parts[:2] == ['encoder', 'stages'] and len(parts) > 4:
            theirs.add((int(parts[2]), int(parts[4])))
    counted = [[sum(stage == s for s, _ in blocks) for stage in range(4)] for blocks in (theirs, ours)]
    if not theirs or counted[0] == counted[1]:
        return ''
    return (
        f'\n  It has {", ".join(map(str, counted[0]))} blocks in its stages, the model '
        f'{", ".join(map(str, counted[1]))}: set build.backbone_size (50: 3, 4, 6, 3; 101: 3, 4, 23, 3; '
        '152: 3, 8, 36, 3)'
    )
