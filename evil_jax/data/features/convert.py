"""Makes a feature store from any containers: `convert(sources, store_dir)`.

Shards are written under a temporary name, synced and renamed, and store.json comes last: a reader never sees half a
store, and a conversion that was killed goes on after its last finished shard. The same input gives the same bytes.
"""

import contextlib
import errno
import hashlib
import json
import os
import pathlib
import shutil
import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import tqdm

from evil_jax.data.differences import different
from evil_jax.data.features import open_features
from evil_jax.data.features.regions import WIDTH, RegionReader, Regions, check, split_name, writable
from evil_jax.data.features.store import (
    ARRAYS,
    UNFINISHED,
    VERSION,
    check_meta,
    read_json,
    read_manifest,
    sha256,
    verify_shard,
)
from evil_jax.records import atomic_write, locked, write_json

_MAX_FP16 = 65504.0
_OVERHEAD = 8192  # bytes of a shard that do not grow with it: headers of the arrays, manifest


def convert(
    sources: Sequence[Any],
    store_dir,
    *,
    shard_mib: float = 1024,
    image_ids: Iterable | None = None,
    threshold: float = 0.0,
    min_regions: int = 1,
    max_regions: int = 100,
    class_names: Sequence[str] = (),
    progress: bool = True,
    replace: bool = False,
) -> dict[str, int]:
    """Writes (or finishes) a feature store.

    Args:
      sources: paths that `open_features` takes, or readers. No image may be in two of them.
      store_dir: folder of the store. An unfinished conversion of the same input in it is continued.
      shard_mib: largest size of a shard folder; an image that is larger has a shard of its own.
      image_ids: only these pictures, as ids that `reader.resolve` takes; None = all.
      threshold: of a picture's regions those with more than this confidence are kept, the others left out,
      min_regions: but at least so many, as far as the picture has them (a picture without any is an error, unless
        this is 0),
      max_regions: and at most so many. They are always the most confident ones, in their order, so that
        n = min(max_regions, max(min_regions, number of regions with conf > threshold)), as UNITER counts
        [UNITER data/data.py]. Where a container knows no confidence, it is 1 everywhere and the first regions stay.
        A grid is kept whole or refused.
      class_names: names of the detector's classes, recorded in the store.
      progress: show a progress bar, if there is a terminal.
      replace: remove a store of other settings or input from the folder, instead of refusing it.

    Returns:
      Counts: images, regions, shards, kept_shards (found finished), cut_images (that lost regions), without_conf (1 if
      every confidence is 1, so that the first regions stayed), bytes.

    Raises:
      ValueError: bad, missing or repeated images (named), a picture that two ids share although they name different
        ones, a grid that would be cut, another store in this folder, another process at work.
      OSError: no permission, or disk full; says what to do. Finished shards stay.
    """
    if not 0 <= min_regions <= max_regions or max_regions < 1:
        raise ValueError(f'min_regions {min_regions} and max_regions {max_regions}: wanted 0 <= min <= max, max >= 1')
    if not 0 <= threshold < 1:
        raise ValueError(f'build.threshold is {threshold}, wanted a confidence: at least 0 and less than 1')
    if shard_mib <= 0:
        raise ValueError(f'shard_mib is {shard_mib}, wanted more than 0')
    readers = [s if isinstance(s, RegionReader) else open_features(s) for s in sources]
    plan = _plan(readers, None if image_ids is None else list(image_ids))
    settings = {
        'version': VERSION,
        'width': WIDTH,
        'dtype': 'float16',
        'count': len(plan),
        'provenance': {
            'sources': [reader.provenance() for reader in readers],
            'images_sha256': hashlib.sha256('\n'.join(image_id for _, image_id in plan).encode()).hexdigest(),
            'thresholds': {'conf': float(threshold), 'min_regions': min_regions, 'max_regions': max_regions},
            'class_names': list(class_names),
        },
        'shard_mib': float(shard_mib),
    }
    store_dir = pathlib.Path(store_dir).absolute()
    _make_folder(store_dir)
    shards: list[dict[str, Any]] = []
    try:
        message = f'{store_dir}: another process is converting into this folder right now; wait for it to end'
        with locked(store_dir / '.lock', message):
            return _write(store_dir, plan, settings, shards, progress, replace)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise OSError(
            error.errno,
            f'disk full while writing a feature store; {len(shards)} finished shards are kept: free some space '
            'and run the same command again',
            str(store_dir),
        ) from error


def _write(store_dir, plan, settings, shards, progress, replace) -> dict[str, int]:
    """Fills `shards` with the entries of store.json, first with those found finished."""
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()
    if done := _check_settings(store_dir, settings, replace):
        try:
            check_meta(read_json(store_dir / 'store.json'), store_dir / 'store.json')
            summary = _summary(store_dir, done, kept=len(done))
        except ValueError as error:
            warnings.warn(f'repairing a finished store: {error}', stacklevel=3)
            (store_dir / 'store.json').unlink()
        else:
            (store_dir / UNFINISHED).unlink(missing_ok=True)  # killed between the last two steps
            return summary
    shards += _finished(store_dir, digest)
    kept = len(shards)
    write_json(store_dir / UNFINISHED, settings)
    position = sum(shard['images'] for shard in shards)
    with tqdm.tqdm(
        total=len(plan), initial=position, unit='image', desc='features', disable=None if progress else True
    ) as bar:
        outside = []
        for reader in dict.fromkeys(reader for reader, _ in plan[position:]):
            reader.expect([image_id for owner, image_id in plan[position:] if owner is reader])
        with contextlib.closing(_regions(plan[position:], settings, bar, outside)) as regions:
            waiting = next(regions, None)
            while waiting:
                shard = _Shard(store_dir, len(shards), settings['shard_mib'] * 2**20)
                try:
                    while waiting and shard.add(*waiting):
                        waiting = next(regions, None)
                    shards.append(shard.finish(digest))
                finally:
                    shard.discard()
    if outside:
        warnings.warn(
            f'boxes of {len(outside)} pictures reach out of the picture (are width and height exchanged?), '
            f'for example {outside[0]}',
            stacklevel=3,
        )
    write_json(store_dir / 'store.json', settings | {'shards': shards})
    (store_dir / UNFINISHED).unlink()
    return _summary(store_dir, shards, kept)


def _plan(readers, image_ids) -> list[tuple[RegionReader, str]]:
    """(reader, its image id) of every picture to write: source after source, each in its own order."""
    if not readers:
        raise ValueError('no sources of region features')
    plan, owner, found = [], {}, {}
    for reader in readers:
        if image_ids is None:
            wanted = None
        else:
            here = {str(i): reader.resolve(i) for i in image_ids if i in reader}
            _check_distinct(reader, here)
            if twice := found.keys() & here.keys():
                raise _in_both(min(twice), found[min(twice)], reader)
            wanted = set(here.values())
            found |= dict.fromkeys(here, reader)
        for image_id in reader.ids():
            if wanted is not None and image_id not in wanted:
                continue
            if image_id in owner:
                raise _in_both(image_id, owner[image_id], reader)
            owner[image_id] = reader
            plan.append((reader, image_id))
    if image_ids is not None:
        absent = [i for i in dict.fromkeys(map(str, image_ids)) if i not in found]
        if absent:
            raise ValueError(
                f'{len(absent)} images have no regions in {", ".join(str(r.path) for r in readers)}: '
                f'{", ".join(absent[:10])}{", ..." if len(absent) > 10 else ""}'
            )
    if not plan:
        raise ValueError('no images to convert')
    return plan


def _in_both(image_id, first, second) -> ValueError:
    return ValueError(
        f'image {image_id!r} is both in {first.path} and in {second.path}; list only one of them in data.features'
    )


def _check_distinct(reader, here) -> None:
    """Raises ValueError where ids with different prefixes, which never are one picture, have the same regions."""
    first = {}
    for asked, image_id in here.items():
        if prefix := split_name(asked)[0]:
            other = first.setdefault(image_id, asked)
            if split_name(other)[0] != prefix:
                raise ValueError(
                    f'{reader.path}: image {image_id!r} would be both {other!r} and {asked!r}, which are different '
                    'pictures; the ids of the file must tell them apart'
                )


def _regions(plan, settings, bar, outside) -> Iterator[tuple[str, Regions, bool]]:
    """(id, regions ready to be written, whether some were cut off) of each picture, checked. Fills `outside` with where
    boxes reach out of the picture.
    """
    limits = settings['provenance']['thresholds']
    for reader, image_id in plan:
        regions = reader[image_id]
        where = f'{reader.path}: image {image_id!r}'
        check(regions, where, settings['width'])
        if not len(regions) and limits['min_regions']:
            raise ValueError(f'{where}: no regions; build.min_regions=0 allows that')
        confident = int(np.sum(regions.conf > np.float32(limits['conf'])))
        count = min(limits['max_regions'], max(limits['min_regions'], confident))
        cut = len(regions) > count
        regions = regions.best(count, where)
        if regions.outside:
            outside.append(f'{where}, {regions.size[0]} wide and {regions.size[1]} high')
        if regions.features.dtype != np.float16 and (largest := np.abs(regions.features).max(initial=0)) > _MAX_FP16:
            raise ValueError(f'{where}: a feature has size {largest:g}, more than float16 can hold ({_MAX_FP16:g})')
        yield image_id, regions, cut
        bar.update()


def _summary(store_dir, shards, kept) -> dict[str, int]:
    manifests = [read_manifest(store_dir / shard['name'], shard['manifest_sha256']) for shard in shards]
    return {
        'images': sum(shard['images'] for shard in shards),
        'regions': sum(shard['regions'] for shard in shards),
        'shards': len(shards),
        'kept_shards': kept,
        'cut_images': sum(manifest['cut_images'] for manifest in manifests),
        'without_conf': int(all(_without_conf(store_dir / shard['name']) for shard in shards)),
        'bytes': sum(file['bytes'] for manifest in manifests for file in manifest['files'].values()),
    }


def _without_conf(folder) -> bool:
    return bool((np.load(folder / 'conf.npy', allow_pickle=False) == 1).all())


def _make_folder(store_dir) -> None:
    try:
        store_dir.mkdir(parents=True, exist_ok=True)
    except PermissionError as error:
        raise PermissionError(
            errno.EACCES, 'no permission to make the folder of the feature store', str(store_dir)
        ) from error
    except (FileExistsError, NotADirectoryError) as error:
        raise ValueError(f'{store_dir}: wanted a folder for the feature store, but there is a file') from error
    if not writable(store_dir):
        raise PermissionError(errno.EACCES, 'no permission to write a feature store into this folder', str(store_dir))


def _check_settings(store_dir, settings, replace) -> list[dict[str, Any]]:
    """Shards of the finished store that has just these settings, [] if there is none; refuses (or empties) others."""
    for name in ('store.json', UNFINISHED):
        if not (store_dir / name).is_file():
            continue
        old = read_json(store_dir / name)
        shards = old.pop('shards', [])
        if differing := different(old, settings):
            if replace:
                (store_dir / name).unlink()
                for path in store_dir.glob('*shard-*'):
                    shutil.rmtree(path)
                continue
            raise ValueError(
                f'{store_dir} holds a{"" if shards else "n unfinished"} feature store with other settings: '
                f'{"; ".join(differing)}. Delete that folder or choose another'
            )
        if shards:
            return shards
    return []


def _finished(store_dir, digest) -> list[dict[str, Any]]:
    """Store entries of the undamaged shards that an earlier run finished; whatever else it left is removed."""
    shards = []
    while (folder := store_dir / _shard_name(len(shards))).is_dir():
        try:
            manifest = read_manifest(folder)
            if manifest.get('settings_sha256') != digest:
                raise ValueError(f'{folder}: made with other settings')
            verify_shard(folder, manifest)
        except ValueError as error:
            warnings.warn(f'doing a shard anew: {error}', stacklevel=4)
            break
        shards.append(_entry(folder, manifest))
    good = {shard['name'] for shard in shards}
    for path in store_dir.glob('*shard-*'):
        if path.name not in good and path.is_dir():
            shutil.rmtree(path)
    return shards


def _shard_name(number: int) -> str:
    return f'shard-{number:05d}'


def _entry(folder, manifest) -> dict[str, Any]:
    return {
        'name': folder.name,
        'images': manifest['images'],
        'regions': manifest['regions'],
        'manifest_sha256': sha256(folder / 'manifest.json'),
    }


class _Shard:
    """One shard in the making. Features go straight to the disk; the rest of an image is 24 bytes a region."""

    def __init__(self, store_dir, number, limit):
        self._final = store_dir / _shard_name(number)
        self._folder = store_dir / f'.tmp-{_shard_name(number)}'
        self._folder.mkdir()
        self._limit, self._bytes, self._cut = limit, _OVERHEAD, 0
        self._ids, self._offsets, self._sizes = [], [0], []
        self._small = {'boxes': [], 'conf': [], 'classes': []}
        with contextlib.ExitStack() as stack:
            self._features = stack.enter_context(open(self._folder / 'features.npy', 'wb'))
            self._open = stack.pop_all()  # closed by finish or discard
        self._header = self._write_header()

    def _write_header(self) -> int:
        # The number of rows is known at the end only. numpy pads the header so that the first axis can grow in place.
        self._features.seek(0)
        np.lib.format.write_array_header_1_0(
            self._features, {'descr': '<f2', 'fortran_order': False, 'shape': (self._offsets[-1], WIDTH)}
        )
        return self._features.tell()

    def add(self, image_id: str, regions: Regions, cut: bool) -> bool:
        """False, and nothing is added, when the shard is full."""
        n = len(regions)
        size = n * (2 * WIDTH + 16 + 4 + 4) + 8 + 8 + len(json.dumps(image_id)) + 1
        if self._ids and self._bytes + size > self._limit:
            return False
        self._features.write(np.ascontiguousarray(regions.features, ARRAYS['features']).data)
        for name, rows in self._small.items():
            rows.append(np.asarray(getattr(regions, name), ARRAYS[name]))
        self._ids.append(image_id)
        self._sizes.append(regions.size)
        self._cut += cut
        self._offsets.append(self._offsets[-1] + n)
        self._bytes += size
        return True

    def finish(self, digest: str) -> dict[str, Any]:
        """Completes the files, syncs them, and gives the shard its name. Returns its entry of store.json."""
        if self._write_header() != self._header:
            raise AssertionError('the header of features.npy changed its length')
        self._open.close()
        arrays = {name: np.concatenate(rows) for name, rows in self._small.items()}
        arrays |= {'sizes': np.array(self._sizes), 'offsets': np.array(self._offsets)}
        for name, array in arrays.items():
            np.save(self._folder / f'{name}.npy', array.astype(ARRAYS[name]), allow_pickle=False)
        (self._folder / 'ids.json').write_text(json.dumps(self._ids, separators=(',', ':')), encoding='utf-8')
        files = {}
        for path in sorted(self._folder.iterdir()):
            with open(path, 'rb') as file:
                os.fsync(file.fileno())
            files[path.name] = {'bytes': path.stat().st_size, 'sha256': sha256(path)}
        manifest = {
            'version': VERSION,
            'images': len(self._ids),
            'regions': self._offsets[-1],
            'cut_images': self._cut,
            'settings_sha256': digest,
            'files': files,
        }
        atomic_write(self._folder / 'manifest.json', json.dumps(manifest, indent=1) + '\n')
        os.rename(self._folder, self._final)
        return _entry(self._final, manifest)

    def discard(self) -> None:
        """Removes what is not finished; nothing after `finish`."""
        with contextlib.suppress(OSError):  # closing writes the rest, for which the disk may be too full
            self._open.close()
        shutil.rmtree(self._folder, ignore_errors=True)
