"""Feature store (a folder with store.json): what --mode=build makes; memory-mapped, float16, checksummed.

    store.json       version, width, dtype, count, provenance, and the shards with the hash of their manifests
    shard-00000/     manifest.json (size and sha256 of every file), ids.json,
                     features.npy [total, width] float16   boxes.npy [total, 4] float32   conf.npy [total] float32
                     classes.npy [total] int32             sizes.npy [n, 2] int32 (width, height)
                     offsets.npy [n + 1] int64: regions of image i are rows offsets[i] to offsets[i + 1]

Written by convert.py. Nothing in it is pickled.
"""

import bisect
import hashlib
import json
import math
import pathlib
import re
from typing import Any

import numpy as np

from evil_jax.data.features._arrays import npy_header
from evil_jax.data.features.regions import RegionReader, Regions

VERSION = 1
UNFINISHED = 'build.json'  # settings of a conversion that has not come to its end
ARRAYS = {
    'features': np.dtype('<f2'), 'boxes': np.dtype('<f4'), 'conf': np.dtype('<f4'), 'classes': np.dtype('<i4'),
    'sizes': np.dtype('<i4'), 'offsets': np.dtype('<i8'),
}  # fmt: skip
_FILES = {'ids.json', *(f'{name}.npy' for name in ARRAYS)}


def matches(path: pathlib.Path) -> bool:
    return (path / 'store.json').is_file() or (path / UNFINISHED).is_file()


def provenance(path: pathlib.Path) -> dict[str, Any]:
    # store.json has the hashes of the manifests, and they of all files: its hash stands for the whole content.
    return {'format': 'store', 'name': path.name, 'sha256': sha256(path / 'store.json')}


class Reader(RegionReader):
    """Random access to a store; each read copies the rows of one image and nothing else.

    Opening checks that every file is there and has its size; `verify()` checks every byte. Arrays are mapped when an
    image of their shard is first asked for, and again in each process that the reader is sent to.

    Raises:
      ValueError: unfinished or damaged store, naming the file.
    """

    def __init__(self, path):
        self.path = pathlib.Path(path).absolute()
        if not (self.path / 'store.json').is_file():
            raise ValueError(f'{self.path}: unfinished feature store; run the build again, it goes on where it stopped')
        self.meta = read_json(self.path / 'store.json')
        if self.meta.get('version') != VERSION:
            found = str(self.meta.get('version'))[:80]
            raise ValueError(f'{self.path}/store.json: version {found}, this code reads {VERSION}')
        check_meta(self.meta, self.path / 'store.json')
        self.width = self.meta['width']
        self._shards, self._starts, self._manifests = [], [], []
        ids = []
        for shard in self.meta['shards']:
            folder = self.path / shard['name']
            manifest = read_manifest(folder, shard['manifest_sha256'])
            names = _read_ids(folder / 'ids.json', manifest['images'])
            self._manifests.append(manifest)
            self._starts.append(len(ids))
            ids += names
        self._index = {image_id: position for position, image_id in enumerate(ids)}
        if not len(self._index) == len(ids) == self.meta['count']:
            raise ValueError(
                f'{self.path}: {len(ids)} ids in the shards, {len(self._index)} of them different, '
                f'but store.json says {self.meta["count"]}'
            )
        self._shards = [None] * len(self._starts)

    def __reduce__(self):
        return Reader, (self.path,)

    @property
    def class_names(self) -> list[str]:
        """Names of the detector's classes; empty when the sources did not give them."""
        return self.meta['provenance']['class_names']

    def provenance(self) -> dict[str, Any]:
        return provenance(self.path)

    def region_counts(self) -> np.ndarray:
        """Number of regions of each picture, int64 [n], in the order of `ids()`."""
        shards = [shard or self._map(number) for number, shard in enumerate(self._shards)]
        return np.concatenate([np.diff(shard['offsets']) for shard in shards])

    def verify(self) -> None:
        """Reads everything. Raises ValueError naming the first file whose sha256 is not the recorded one."""
        for shard, manifest in zip(self.meta['shards'], self._manifests):
            verify_shard(self.path / shard['name'], manifest)

    def _read(self, image_id: str, position: int) -> Regions:
        number = bisect.bisect_right(self._starts, position) - 1
        shard = self._shards[number] or self._map(number)
        row = position - self._starts[number]
        start, end = shard['offsets'][row : row + 2].tolist()
        return Regions(
            features=shard['features'][start:end].copy(),
            boxes=shard['boxes'][start:end].copy(),
            size=tuple(shard['sizes'][row].tolist()),
            conf=shard['conf'][start:end].copy(),
            classes=shard['classes'][start:end].copy(),
            names=self.class_names,
        )

    def _map(self, number: int) -> dict[str, np.ndarray]:
        manifest, folder = self._manifests[number], self.path / self.meta['shards'][number]['name']
        images, regions = manifest['images'], manifest['regions']
        shapes = {
            'features': (regions, self.width), 'boxes': (regions, 4), 'conf': (regions,), 'classes': (regions,),
            'sizes': (images, 2), 'offsets': (images + 1,),
        }  # fmt: skip
        shard = {}
        for name, dtype in ARRAYS.items():
            path = folder / f'{name}.npy'
            # An empty array cannot be mapped; the small ones are not worth a map.
            mapped = name not in ('sizes', 'offsets') and regions
            shard[name] = _array(path, dtype, shapes[name], manifest['files'][path.name]['bytes'], mapped)
        steps = np.diff(shard['offsets'])
        if shard['offsets'][0] != 0 or shard['offsets'][-1] != regions or (steps < 0).any():
            raise ValueError(f'{folder / "offsets.npy"}: damaged: not the numbers from 0 to {regions} in rising order')
        if (shard['sizes'] < 1).any():
            raise ValueError(f'{folder / "sizes.npy"}: damaged: a picture has no size')
        self._shards[number] = shard
        return shard


def _array(path, dtype, shape, size, mapped) -> np.ndarray:
    """The array of a shard's file, which must be just what the manifest implies."""
    with open(path, 'rb') as file:
        found, fortran, found_shape, offset = npy_header(file.read(4096), str(path))
    if np.dtype(dtype).str != found or found_shape != shape or (fortran and len(shape) > 1):
        raise ValueError(f'{path}: {found} {found_shape}, wanted {np.dtype(dtype).str} {shape}')
    if (wanted := offset + math.prod(shape) * dtype.itemsize) != size:
        raise ValueError(f'{path}: {size} bytes, wanted {wanted} for {found} {shape}')
    if mapped:
        return np.memmap(path, dtype, 'r', offset, shape).view(np.ndarray)  # slices of np.memmap are slow
    return np.fromfile(path, dtype, math.prod(shape), offset=offset).reshape(shape)


def check_meta(meta, path) -> None:
    """Raises ValueError unless what a reader uses of store.json has the types that it must have."""
    shards, provenance = meta.get('shards'), meta.get('provenance')
    for name in ('width', 'count'):
        if type(meta.get(name)) is not int or meta[name] < 1:
            raise ValueError(f'{path}: {name} is {str(meta.get(name))[:80]!r}, wanted a whole number from 1')
    if not isinstance(shards, list) or not shards:
        raise ValueError(f'{path}: no list of shards')
    for shard in shards:
        entry = shard if isinstance(shard, dict) else {}
        types = {key: type(entry.get(key)) for key in ('name', 'manifest_sha256', 'images', 'regions')}
        # A name with a slash could lead out of the store.
        if [*types.values()] != [str, str, int, int] or not re.fullmatch(r'shard-[0-9]+', entry['name']):
            raise ValueError(f'{path}: {str(shard)[:200]} does not describe a shard')
    if not isinstance(provenance, dict) or not isinstance(provenance.get('class_names'), list):
        raise ValueError(f'{path}: provenance without class_names')


def _read_ids(path, images) -> list[str]:
    ids = read_json(path, list)
    if len(ids) != images or not all(isinstance(image_id, str) for image_id in ids):
        raise ValueError(f'{path}: {len(ids)} entries, wanted {images} image ids')
    return ids


def sha256(path) -> str:
    with open(path, 'rb') as file:
        return hashlib.file_digest(file, 'sha256').hexdigest()


def read_json(path, wanted: type = dict) -> Any:
    """Raises ValueError naming the file if it is missing, not JSON, or JSON of another type."""
    try:
        document = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise ValueError(f'{path}: missing or damaged: {error}') from error
    if not isinstance(document, wanted):
        raise ValueError(f'{path}: a JSON {type(document).__name__}, wanted a {wanted.__name__}')
    return document


def read_manifest(folder, digest: str | None = None) -> dict[str, Any]:
    """Manifest of a shard, after a check that its files are there with their sizes (and that it has this sha256)."""
    path = folder / 'manifest.json'
    manifest = read_json(path)
    if digest is not None and (found := sha256(path)) != digest:
        raise ValueError(f'{path}: sha256 {found}, store.json says {digest}')
    for name in ('images', 'regions', 'cut_images'):
        if type(manifest.get(name)) is not int or manifest[name] < 0:
            raise ValueError(f'{path}: {name} is {str(manifest.get(name))[:80]!r}, wanted a whole number')
    files = manifest.get('files')
    if not isinstance(files, dict) or set(files) != _FILES:
        found = sorted(files) if isinstance(files, dict) else files
        raise ValueError(f'{path}: lists {str(found)[:300]}, wanted {sorted(_FILES)}')
    for name, wanted in files.items():
        if not isinstance(wanted, dict) or not {'bytes', 'sha256'} <= wanted.keys():
            raise ValueError(f'{path}: {name} has {str(wanted)[:80]}, wanted bytes and sha256')
        try:
            size = (folder / name).stat().st_size
        except FileNotFoundError:
            raise ValueError(f'{folder / name}: missing, the manifest lists it') from None
        if size != wanted['bytes']:
            raise ValueError(f'{folder / name}: {size} bytes, the manifest says {wanted["bytes"]}')
    return manifest


def verify_shard(folder, manifest) -> None:
    """Raises ValueError naming the first file of a shard whose sha256 is not the recorded one."""
    for name, wanted in manifest['files'].items():
        if (found := sha256(folder / name)) != wanted['sha256']:
            raise ValueError(f'{folder / name}: sha256 {found}, the manifest says {wanted["sha256"]}')
