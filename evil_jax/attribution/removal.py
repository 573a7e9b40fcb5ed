"""How evidence is taken away from what a model reads, and what the model then answers.

    how = Removal('region', 'slice')
    predict = predictor(model, batch, how)
    logits_BA = predict(keep_BN)  # True: the item stays

Of pictures (ViT) the items are pixels or patches, of texts tokens, of detected regions regions. Kinds of removal:

    fill   pixels, patches. The colour is stated in RGB of [0, 1], before normalisation, and goes into all channels.
           Chefer et al. (CVPR 2021, arXiv 2012.09838) fill pixels black.
    slice  The rest moves together and the row is shorter (Chefer et al., ICCV 2021, arXiv 2103.15679): kept tokens keep
           their order and get positions from 0 on; kept regions take features and boxes along, and a word that stands
           for a region (VCR) still stands for the same one, or for none.
    zero   A region's features and box are 0, a token is [MASK]; both are still there to be attended to.
    mask   What is taken away is seen by nothing, and the rest keeps its positions: everything is embedded, then the
           encoder's inputs are compacted, since a length is all the mask that our attention has.

For ViT slice and mask are the same function. A patch gets its position, its place in the picture, before anything could
be sliced, and attention does not depend on the order of its keys: a patch that is left out and one that is hidden as a
key from all others differ in nothing but its own outputs, which nobody reads. For regions of UNITER, which have no
positions, they are the same as well; for tokens they differ.

The class token, [SEP] and padding are never removed. Under e-UG's quirk 3 (`pad_regions`) the model fills up rows with
zero vectors again, so that slicing a region is zeroing it. PJ-X divides features by the norm of all cells that it gets.

Everything is pure and of static shapes: rows stay as long as they were, with padding behind what is kept.

Legend: B batch, K rows of the encoder (see `models.rows`), N items, H, W rows and columns of pixels, P patches, Q
tokens, R regions, S positions of a row, D width, A answers.
"""

import dataclasses
import math

import jax
import jax.numpy as jnp

from evil_jax.models import rows
from evil_jax.nn import transformer

# By unit; the first one is the default.
KINDS = {
    'pixel': ('fill',),
    'patch': ('fill', 'slice', 'mask'),
    'token': ('slice', 'zero', 'mask'),
    'region': ('slice', 'zero', 'mask'),
}
_COLOURS = {'black': 0.0, 'grey': 0.5, 'white': 1.0}
FILLS = (*_COLOURS, 'mean')
_MEAN, _STD = 0.5, 0.5  # of ViT's normalisation
_SPANS = {'pixel': 'patches', 'patch': 'patches', 'token': 'text', 'region': 'regions'}
_ARRAYS = {'pixel': 'images', 'patch': 'images', 'token': 'text', 'region': 'features'}


@dataclasses.dataclass(frozen=True)
class Removal:
    """What is taken away, and how.

    Attributes:
      unit: 'pixel', 'patch', 'token' or 'region'.
      kind: see the module.
      fill: colour for kind 'fill': 'black', 'white', 'grey', or 'mean' (of the picture, channel by channel).
      mask_id: id of [MASK], for kind 'zero' of tokens.
      special: ids of tokens that are never removed, wherever they stand ([SEP] between two texts).

    Raises:
      ValueError: an unknown unit, a kind that the unit does not have, an unknown colour, a mask_id that is missing.
    """

    unit: str
    kind: str
    fill: str = 'black'
    mask_id: int | None = None
    special: tuple[int, ...] = ()

    def __post_init__(self):
        if self.unit not in KINDS:
            raise ValueError(f'unit {self.unit!r}: wanted one of {", ".join(KINDS)}')
        if self.kind not in KINDS[self.unit]:
            raise ValueError(f'removal {self.kind!r} of a {self.unit}: wanted one of {", ".join(KINDS[self.unit])}')
        if self.fill not in FILLS:
            raise ValueError(f'fill {self.fill!r}: wanted one of {", ".join(FILLS)}')
        if (self.unit, self.kind) == ('token', 'zero') and self.mask_id is None:
            raise ValueError("removal 'zero' of a token puts [MASK] in its place: mask_id is missing")


def removable(batch, removal: Removal):
    """Which items of each example may be removed: bool BN; None for pictures, of which everything may."""
    if removal.unit == 'region':
        return jnp.arange(batch['features'].shape[1]) < batch['region_length'][:, None]
    if removal.unit == 'token':
        text_BQ, place_Q = batch['text'], jnp.arange(batch['text'].shape[1])
        inside_BQ = (place_Q > 0) & (place_Q < batch['text_length'][:, None] - 1)
        return inside_BQ & ~jnp.isin(text_BQ, jnp.asarray(removal.special, text_BQ.dtype))
    return None


def predictor(model, batch, removal: Removal):
    """`predict(keep_BN) -> logits_BA`: what the model answers when it gets the kept items only.

    Args:
      model: a task module or classifier; `model(batch)` is (logits_BA, ...). Kind 'mask', and 'slice' of patches, need
        its three steps `embed`, `layers` and `finish`.
      batch: what it reads.

    Raises:
      ValueError: a unit or kind that the model does not have, tokens of a model whose examples have choices of their
        own; from `predict`: another number of items than the batch has.
    """
    _check(model, batch, removal)
    valid_BN = removable(batch, removal)

    def predict(keep_BN):
        _same_number(batch, keep_BN, removal.unit)
        if valid_BN is not None:
            keep_BN = keep_BN | ~valid_BN
        if _behind_embedding(removal):
            return _hidden(model, batch, keep_BN, removal.unit)
        change = {'fill': _filled, 'slice': _sliced, 'zero': _zeroed}[removal.kind]
        return model(batch | change(batch, keep_BN, removal))[0]

    return predict


def picture_values(values, pixels: int, unit: str = 'pixel'):
    """Relevance of each item of a picture: BN.

    Args:
      values: BP on a square grid of patches, or a map BHW. For pixels a grid is upsampled bilinearly with half-pixel
        centres, as PyTorch does with align_corners=False.
      pixels: of a side of the picture.

    Raises:
      ValueError: a map of another size than the picture, or patches that are no square grid or do not divide it.
    """
    if values.ndim == 3:
        if values.shape[1:] != (pixels, pixels) or unit != 'pixel':
            wanted = f'{pixels} x {pixels} pixels' if unit == 'pixel' else 'one number a patch'
            raise ValueError(f'a map of {" x ".join(map(str, values.shape[1:]))}, wanted {wanted}')
        return values.reshape(len(values), -1)
    cells = _cells(values.shape[1], pixels)
    if unit == 'patch':
        return values
    grid = values.astype(jnp.promote_types(values.dtype, jnp.float32)).reshape(-1, cells, cells)
    return jax.image.resize(grid, (len(grid), pixels, pixels), 'bilinear').reshape(len(grid), -1)


def span_values(values_BS, span, size: int):
    """Relevance of each item of a span of encoder positions: BN.

    Args:
      values_BS: over the positions.
      span: (start_B, length_B), where it is.
      size: N, the items that the batch has room for; beyond a row's own there is 0.
    """
    start_B, length_B = (jnp.broadcast_to(jnp.asarray(x), len(values_BS)) for x in span)
    place_N = jnp.arange(size)
    index_BN = jnp.minimum(start_B[:, None] + place_N, values_BS.shape[1] - 1)
    return jnp.where(place_N < length_B[:, None], jnp.take_along_axis(values_BS, index_BN, axis=1), 0)


def _check(model, batch, removal):
    unit, name = removal.unit, type(model).__name__
    if _ARRAYS[unit] not in batch:
        raise ValueError(f'unit {unit!r}: the batch has no {_ARRAYS[unit]!r}, only {", ".join(sorted(batch))}')
    choices = getattr(model, 'choices', 0)
    if unit == 'token' and choices:
        raise ValueError(
            f"unit 'token': an example of {name} has {choices} choices and its question stands in a row with each of "
            "them, so that no one relevance is that of its tokens; wanted 'region'"
        )
    if hasattr(model, 'finish'):
        spans = jax.eval_shape(model.embed, batch)[2]
        if _SPANS[unit] not in spans:
            raise ValueError(f'unit {unit!r}: {name} reads {", ".join(sorted(spans))} only')
    elif _behind_embedding(removal):
        others = ', '.join(kind for kind in KINDS[unit] if kind not in ('mask', removal.kind))
        raise ValueError(f'removal {removal.kind!r}: {name} is no transformer that answers; wanted {others}')


def _behind_embedding(removal):
    return removal.kind == 'mask' or (removal.unit, removal.kind) == ('patch', 'slice')


def _same_number(batch, keep_BN, unit):
    found = keep_BN.shape[1]
    if unit == 'patch':
        return _cells(found, batch['images'].shape[1])
    shape = batch[_ARRAYS[unit]].shape
    wanted = math.prod(shape[1:3]) if unit == 'pixel' else shape[1]
    if found != wanted:
        raise ValueError(f'{found} {unit}s to keep or remove, but the batch has {wanted}')


def _cells(patches: int, pixels: int) -> int:
    """Patches of a side of the picture."""
    cells = math.isqrt(patches)
    if cells * cells != patches or not patches or pixels % cells:
        raise ValueError(f'{patches} patches are no square grid on a picture of {pixels} x {pixels} pixels')
    return cells


def _filled(batch, keep_BN, removal):
    images_BHW3 = batch['images']
    batch_size, pixels = images_BHW3.shape[:2]
    if removal.unit == 'pixel':
        keep_BHW = keep_BN.reshape(images_BHW3.shape[:3])
    else:
        cells = _cells(keep_BN.shape[1], pixels)
        keep_BHW = keep_BN.reshape(batch_size, cells, cells)
        for axis in (1, 2):
            keep_BHW = jnp.repeat(keep_BHW, pixels // cells, axis)
    if removal.fill == 'mean':
        colour = images_BHW3.mean((1, 2), keepdims=True)
    else:
        colour = (_COLOURS[removal.fill] - _MEAN) / _STD
    return {'images': jnp.where(keep_BHW[..., None], images_BHW3, colour)}


def _zeroed(batch, keep_BN, removal):
    if removal.unit == 'token':
        return {'text': jnp.where(keep_BN, batch['text'], removal.mask_id)}
    return {name: jnp.where(keep_BN[..., None], batch[name], 0) for name in ('features', 'locations')}


def _sliced(batch, keep_BN, removal):
    if removal.unit == 'token':
        arrays, length = {'text': 0, 'text_type': 0, 'text_tags': -1}, 'text_length'
    else:
        arrays, length = {'features': 0, 'locations': 0}, 'region_length'
    order_BN, length_B = _order(keep_BN, batch[length])
    inside_BN = jnp.arange(keep_BN.shape[1]) < length_B[:, None]
    changed = {length: length_B}
    for name, padding in arrays.items():
        if name in batch:
            changed[name] = _pick(batch[name], order_BN, inside_BN, padding)
    if removal.unit == 'region':
        changed |= _relinked(batch, keep_BN, jnp.cumsum(keep_BN, axis=1) - 1)
    return changed


def _order(keep_BN, length_B):
    """(order_BN, number of kept items): kept ones below `length_B` first, in their order."""
    keep_BN = keep_BN & (jnp.arange(keep_BN.shape[1]) < length_B[:, None])
    return jnp.argsort(~keep_BN, axis=1, stable=True), keep_BN.sum(1, dtype=length_B.dtype)


def _pick(x_BN, order_BN, inside_BN, padding):
    spread = lambda y_BN: y_BN.reshape(*y_BN.shape, *[1] * (x_BN.ndim - 2))
    picked_BN = jnp.take_along_axis(x_BN, spread(order_BN), axis=1)
    return jnp.where(spread(inside_BN), picked_BN, jnp.asarray(padding, x_BN.dtype))


def _relinked(batch, keep_BR, number_BR):
    """Tags of words, which are numbers of regions: `number_BR` of a kept one, -1 for one that is gone."""
    linked_BR = jnp.where(keep_BR, number_BR, -1)
    changed = {}
    for name in ('text_tags', 'choices_tags'):
        if name in batch:
            tags = batch[name].reshape(len(keep_BR), -1)
            moved = jnp.take_along_axis(linked_BR, jnp.maximum(tags, 0), axis=1)
            changed[name] = jnp.where(tags >= 0, moved, -1).astype(tags.dtype).reshape(batch[name].shape)
    return changed


def _hidden(model, batch, keep_BN, unit):
    """Logits with encoder inputs compacted: kept positions only, which carry the positions that they were given."""
    if unit == 'region':  # nor does a word tell what its region looks like
        batch = batch | _relinked(batch, keep_BN, jnp.arange(keep_BN.shape[1]))
    x_KSD, length_K, spans = model.embed(batch)
    number, size = x_KSD.shape[:2]
    vector = lambda x: jnp.broadcast_to(jnp.asarray(x, jnp.int32), number)
    length_K = vector(size if length_K is None else length_K)
    spans = {name: tuple(map(vector, span)) for name, span in spans.items()}
    keep_KN = rows.repeat(keep_BN, getattr(model, 'choices', 0))
    if unit == 'patch' and keep_KN.shape[1] != size - 1:
        raise ValueError(f'{keep_KN.shape[1]} patches to keep or remove, but {type(model).__name__} reads {size - 1}')
    position_S = jnp.arange(size)
    within = lambda start_K, count_K: (position_S >= start_K[:, None]) & (position_S < (start_K + count_K)[:, None])
    start_K, count_K = spans[_SPANS[unit]]
    item_KS = jnp.clip(position_S - start_K[:, None], 0, keep_KN.shape[1] - 1)
    keep_KS = jnp.take_along_axis(keep_KN, item_KS, axis=1) | ~within(start_K, count_K)
    order_KS, kept_K = _order(keep_KS, length_K)
    x_KSD = _pick(x_KSD, order_KS, position_S < kept_K[:, None], 0)
    spans = {
        name: (
            (keep_KS & (position_S < start_K[:, None])).sum(1, dtype=jnp.int32),
            (keep_KS & within(start_K, count_K)).sum(1, dtype=jnp.int32),
        )
        for name, (start_K, count_K) in spans.items()
    }
    x_KSD, _ = transformer.run(model.layers, x_KSD, kept_K, remat=False)
    return model.finish(x_KSD, kept_K, spans, batch)[0]
