"""The regions of the world's pictures in the containers that real data sets are published with.

Each function opens one container in a folder and gives `add(names, image, found)`, which appends what was detected in a
picture (or, of a grid, what is in its cells); it is finished when its `with` block ends. The same calls give the same
bytes.
"""

import base64
import contextlib
import json
import pathlib
import zlib
from typing import NamedTuple

import numpy as np

from evil_jax.data.shapes.regions import Detections, cell_features
from evil_jax.data.shapes.scene import CELL, PICTURE
from evil_jax.records import write_json

_SETTINGS = 'th0.2_max100_min10'  # in the names of UNITER's files
_OUTPUTS = 1601  # of the detector: background, 1,600 classes
_PER_COMMIT = 500  # pictures


class Names(NamedTuple):
    """What a picture is called in the containers."""

    image_id: str
    short: str  # in bottom-up-attention's files
    npz: str  # in UNITER's files


@contextlib.contextmanager
def lxmert(folder: pathlib.Path, pictures: int):
    """regions.tsv, LXMERT's obj36: see `tsv_row`."""
    with open(folder / 'regions.tsv', 'wb') as file:
        yield lambda names, image, found: file.write(tsv_row(names.image_id, image.size, found))


def tsv_row(name: str, size: tuple[int, int], found: Detections) -> bytes:
    """One line of LXMERT's obj36 files: height before width, base64 columns, CRLF."""
    width, height = size
    arrays = (found.class_ids, found.class_conf, found.attribute_ids, found.attribute_conf, found.boxes, found.features)
    *ids, boxes, features = map(_base64, arrays)
    head = [name.encode(), b'%d' % height, b'%d' % width]
    return b'\t'.join([*head, *ids, b'%d' % len(found.boxes), boxes, features]) + b'\r\n'


@contextlib.contextmanager
def butd(folder: pathlib.Path, pictures: int):
    """regions_butd.tsv, bottom-up-attention's six columns: width before height, neither classes nor confidences."""
    with open(folder / 'regions_butd.tsv', 'wb') as file:

        def add(names, image, found):
            cells = [names.short.encode(), *(b'%d' % n for n in (*image.size, len(found.boxes)))]
            file.write(b'\t'.join([*cells, _base64(found.boxes), _base64(found.features)]) + b'\n')

        yield add


def _base64(array) -> bytes:
    return base64.b64encode(np.ascontiguousarray(array).tobytes())


@contextlib.contextmanager
def lmdb(folder: pathlib.Path, pictures: int):
    """feat_th0.2_max100_min10/data.mdb and nbb_th0.2_max100_min10.json, UNITER's image files.

    Values are msgpack with msgpack-numpy's arrays, all float16. Rows stand in another order than their confidences, as
    they do where the detector's proposals were kept in their order.
    """
    import lmdb as database  # imported here, as msgpack: most worlds do without
    import msgpack

    counts, waiting = {}, []
    # The size is address space only, of which a picture takes up to 36 KiB: the file holds what was written.
    env = database.open(
        str(folder / f'feat_{_SETTINGS}'), map_size=(pictures << 16) + (1 << 24), lock=False, sync=False, metasync=False
    )

    def flush():
        with env.begin(write=True) as transaction:
            for key, value in waiting:
                transaction.put(key, value)
        waiting.clear()

    def add(names, image, found):
        arrays = _arrays(names, image.size, found)
        arrays = {name: _packed(arrays[name].astype('<f2')) for name in ('norm_bb', 'features', 'conf', 'soft_labels')}
        waiting.append((names.npz.encode(), msgpack.packb(arrays, use_bin_type=True)))
        counts[names.npz] = len(found.boxes)
        if len(waiting) == _PER_COMMIT:
            flush()

    with contextlib.closing(env):
        yield add
        waiting.append((b'__keys__', json.dumps(list(counts)).encode()))
        flush()
        env.sync(True)
    write_json(folder / f'nbb_{_SETTINGS}.json', counts)


def _packed(array: np.ndarray) -> dict[bytes, object]:
    """An array as msgpack-numpy writes it."""
    return {
        b'nd': True,
        b'type': array.dtype.str,
        b'kind': b'',
        b'shape': array.shape,
        b'data': np.ascontiguousarray(array).tobytes(),
    }


@contextlib.contextmanager
def npz(folder: pathlib.Path, pictures: int):
    """regions_npz/<name>.npz: features, bbox (pixels), norm_bb, conf, soft_labels in float32, image_w, image_h."""
    (folder / 'regions_npz').mkdir()

    def add(names, image, found):
        arrays = _arrays(names, image.size, found)
        head = {'image_w': image.width, 'image_h': image.height, 'num_boxes': len(found.boxes)}
        np.savez(folder / 'regions_npz' / names.npz, **head, **arrays)

    yield add


@contextlib.contextmanager
def grid(folder: pathlib.Path, pictures: int):
    """grid_npz/<name>.npz, PJ-X's form: x [2048, 3, 3] float32, one vector a cell of the scenes' own grid."""
    (folder / 'grid_npz').mkdir()

    def add(names, image, found):
        x = cell_features(image, PICTURE // CELL, PICTURE // CELL)
        np.savez(folder / 'grid_npz' / names.npz, x=np.ascontiguousarray(np.moveaxis(x, -1, 0)))

    yield add


def _arrays(names, size, found: Detections) -> dict[str, np.ndarray]:
    """What UNITER's files hold of a picture, and the boxes in pixels, in float32; rows shuffled."""
    order = _order(names.npz, len(found.boxes))
    boxes, (width, height) = found.boxes[order], size
    corners = boxes / np.float32([width, height, width, height])
    confidence = found.class_conf[order]
    labels = np.zeros((len(order), _OUTPUTS), np.float32)
    labels[:, 0] = 1 - confidence
    labels[np.arange(len(order)), found.class_ids[order] + 1] = confidence
    return {
        'features': found.features[order],
        'bbox': boxes,
        'norm_bb': np.concatenate([corners, corners[:, 2:] - corners[:, :2]], axis=1),
        'conf': confidence[:, None],
        'soft_labels': labels,
    }


def _order(name: str, n: int) -> np.ndarray:
    """A random order of n rows in which confidences, which fall from the first to the last, do not fall."""
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    order = rng.permutation(n)
    while n > 1 and (order == np.arange(n)).all():
        order = rng.permutation(n)
    return order


_OPEN = {'lxmert': lxmert, 'butd': butd, 'lmdb': lmdb, 'npz': npz, 'grid': grid}
CONTAINERS = tuple(_OPEN)


def open_container(container: str, folder: pathlib.Path, pictures: int):
    """The function of a container, called: `with open_container(...) as add`.

    Args:
      container: one of CONTAINERS.
      folder: exists; gets the files.
      pictures: how many there will be at most.
    """
    return _OPEN[container](folder, pictures)
