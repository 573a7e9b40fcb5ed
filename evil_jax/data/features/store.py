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
import pathlib
from typing import Any

import numpy as np

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
            raise ValueError(f'{self.path}/store.json: version {self.meta.get("version")!r}, this code reads {VERSION}')
        self.width = self.meta['width']
        self._shards, self._starts, self._manifests = [], [], []
        ids = []
        for shard in self.meta['shards']:
            folder = self.path / shard['name']
            self._manifests.append(read_manifest(folder, shard['manifest_sha256']))
            self._starts.append(len(ids))
            ids += read_json(folder / 'ids.json')
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
            try:
                # An empty array cannot be mapped; the small ones are not worth a map.
                mode = None if name in ('sizes', 'offsets') or not regions else 'r'
                array = np.load(path, mmap_mode=mode, allow_pickle=False)
            except (ValueError, EOFError) as error:
                raise ValueError(f'{path}: not a readable array: {error}') from error
            if array.dtype != dtype or array.shape != shapes[name]:
                raise ValueError(f'{path}: {array.dtype} {array.shape}, wanted {dtype} {shapes[name]}')
            shard[name] = array.view(np.ndarray)  # slices of np.memmap are slow
        self._shards[number] = shard
        return shard


def sha256(path) -> str:
    with open(path, 'rb') as file:
        return hashlib.file_digest(file, 'sha256').hexdigest()


def read_json(path) -> Any:
    """Raises ValueError naming the file if it is missing or not JSON."""
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise ValueError(f'{path}: missing or damaged: {error}') from error


def read_manifest(folder, digest: str | None = None) -> dict[str, Any]:
    """Manifest of a shard, after a check that its files are there with their sizes (and that it has this sha256)."""
    path = folder / 'manifest.json'
    manifest = read_json(path)
    if digest is not None and (found := sha256(path)) != digest:
        raise ValueError(f'{path}: sha256 {found}, store.json says {digest}')
    if set(manifest['files']) != _FILES:
        raise ValueError(f'{path}: lists {sorted(manifest["files"])}, wanted {sorted(_FILES)}')
    for name, wanted in manifest['files'].items():
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
