"""Sources of e-SNLI-VE joined to pairs of picture and hypothesis with explanations (Kayser et al. 2021, section 3).

Pairs come from SNLI, which becomes SNLI-VE here as its authors made it (Xie et al. 2019: rows without a label and of
Visual Genome are left out, all files are pooled and split by picture), from SNLI-VE, from lines of e-SNLI, or they are
your own (_own_pairs.py tells their form). Explanations are joined by pairID; pairs whose texts or labels differ between
the files are left out. Where no explanations are named, pairs need none.

In the folder: merged.jsonl (`pairs.read`), dropped.jsonl (the same fields, with reason and detail), captions.jsonl
(those that rows bring) and merged.json. Everything streams; the join is on the disk.
"""

import collections
import dataclasses
import itertools
import json
import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from evil_jax import records
from evil_jax.construction import _explanation_index, _joining, _pair_files, _split_lists, pairs
from evil_jax.data.sources import _files, esnli, flickr30k

MERGED, DROPPED, CAPTIONS, SUMMARY = 'merged.jsonl', 'dropped.jsonl', 'captions.jsonl', 'merged.json'
PUBLISHED = {'train': 529_527, 'dev': 17_858, 'test': 17_901}  # SNLI-VE's pairs, Xie et al. 2019, table 1
ALLOW = ('duplicates', 'captions')
_FORM = 1  # of the files that are written
_BYTES_A_SECOND = 15 << 20  # of sources, on one core
_EVERY = 100_000  # rows between two messages


@dataclasses.dataclass(frozen=True, slots=True)
class Sources:
    """The files.

    Attributes:
      pairs: SNLI, SNLI-VE, lines of e-SNLI (esnli_s1.SPLIT), or own pairs.
      explanations: e-SNLI's CSV files.
      captions: Flickr30k's captions; '' = none.
      splits: lists of pictures, of `parse_splits`.
    """

    pairs: Sequence[pathlib.Path]
    explanations: Sequence[pathlib.Path] = ()
    captions: pathlib.Path | str = ''
    splits: Mapping[str, pathlib.Path] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(slots=True)
class Merged:
    """What merging gave.

    Attributes:
      counts: {split: {class: pairs}}.
      dropped: {reason: {split: rows}}; split '' = it has none.
      published: {split: {'ours', 'paper'}}: pairs of SNLI-VE before they need an explanation; {} without SNLI.
      without_captions: pairs whose picture has no captions.
      explanations_without_pair: rows of e-SNLI that belong to no pair.
      files: {'role', 'path', 'size', 'mtime_ns', 'hash', 'rows'} of each file; rows is None for captions and lists.
    """

    counts: dict[str, dict[str, int]]
    dropped: dict[str, dict[str, int]]
    published: dict[str, dict[str, int]]
    without_captions: int
    explanations_without_pair: int
    files: list[dict[str, Any]]

    @property
    def total(self) -> int:
        return sum(sum(classes.values()) for classes in self.counts.values())

    def to_json(self) -> dict[str, Any]:
        return dataclasses.asdict(self)


parse_splits = _split_lists.parse


def merge(
    sources: Sources,
    out: pathlib.Path,
    *,
    allow: Sequence[str] = (),
    max_mismatch: float = 0.01,
    dev_images: int = 1_000,
    tell: Callable[[str], object] = print,
) -> Merged:
    """Joins the sources into files of `out`; nothing is done where merged.json says that the same ones made it.

    Args:
      sources: the files.
      out: folder, which is made. The caller sees to it that no other process works there.
      allow: what is no error, of ALLOW: 'duplicates' (the first row of a pairID counts), 'captions' (pictures without).
      max_mismatch: largest share of the joined pairs whose texts or labels may differ between the files.
      dev_images: pictures of dev, the last ones of the list trainval.
      tell: gets each message.

    Raises:
      ValueError: malformed, missing or contradicting files; what was written before stays, nothing new is.
    """
    if unknown := set(allow) - set(ALLOW):
        raise ValueError(f'construct.allow has {min(unknown)!r}, wanted some of {", ".join(ALLOW)}')
    out = pathlib.Path(out)
    out.mkdir(parents=True, exist_ok=True)
    kinds = [(pathlib.Path(path), _pair_files.kind(path)) for path in sources.pairs]
    if any(kind == _pair_files.SNLI for _, kind in kinds) and not sources.splits:
        raise ValueError(
            'construct.splits is empty: SNLI is split anew by picture, so name the lists, '
            "'trainval=flickr30k_train_val.lst,test=flickr30k_test.lst'"
        )
    files = _files_of(sources, kinds)
    settings = {'allow': sorted(set(allow)), 'max_mismatch': max_mismatch, 'dev_images': dev_images}
    paths = [out / name for name in (MERGED, DROPPED, CAPTIONS, SUMMARY)]
    if before := _done(paths, files, settings):
        tell(f'merged before, from the same files: {before.total:,} pairs in {out / MERGED}')
        return before
    size = sum(file['size'] for file in files)
    tell(f'merging {len(files)} files of {size / 1e6:,.0f} MB: about {max(1, round(size / _BYTES_A_SECOND)):,} s')
    for file in files:
        file['hash'] = records.file_hash(file['path'])
    splits = _split_lists.read(sources.splits, dev_images)
    captions = flickr30k.captions(sources.captions) if sources.captions else {}
    records.remove_leftovers(*paths)
    with records.atomic_files(*paths) as written, _explanation_index.opened(out) as index:
        keep, drop = written[0], written[1]
        joining = _joining.Joining(
            index, splits, captions, lambda pair: keep.write(pairs.line(pair)), lambda *row: drop.write(_dropped(*row))
        )
        rows = _read(sources, kinds, joining, tell)
        joining.check(allow, max_mismatch)
        for picture, texts in joining.brought.items():
            written[2].write(_line({'image_id': picture, 'captions': texts}))
        for file in files:
            file['rows'] = rows.get(file['path'])
        merged = _merged(joining, files)
        sizes = {path.name: file.tell() for path, file in zip(paths[:3], written)}
        report = {'form': _FORM, 'settings': settings, 'written': sizes, **merged.to_json()}
        written[3].write(json.dumps(report, indent=1, ensure_ascii=False).encode() + b'\n')
        # A run that is killed between two of the renames is done again.
        paths[3].unlink(missing_ok=True)
    _tell(merged, joining, tell)
    return merged


def captions(sources: Sources, out: pathlib.Path) -> dict[str, list[str]]:
    """{picture: its captions}: those of the file, and those that rows brought to `merge`."""
    found = flickr30k.captions(sources.captions) if sources.captions else {}
    return found | {row['image_id']: row['captions'] for _, row in _files.iter_json(pathlib.Path(out) / CAPTIONS)}


def _files_of(sources, kinds) -> list[dict]:
    roles = [('pairs', path) for source, kind in kinds for path in _pair_files.files(source, kind)]
    roles += [('explanations', path) for path in sources.explanations]
    roles += [('captions', sources.captions)] if sources.captions else []
    roles += [(f'splits: {name}', path) for name, path in sources.splits.items()]
    found = []
    for role, path in roles:
        stat = pathlib.Path(path).stat()
        found.append({'role': role, 'path': str(path), 'size': stat.st_size, 'mtime_ns': stat.st_mtime_ns})
    return found


def _done(paths, files, settings) -> Merged | None:
    """What merged.json says, if the same files and settings made all that is there."""
    *written, summary = paths
    try:
        report = json.loads(summary.read_text(encoding='utf-8'))
        fields = {field.name: report[field.name] for field in dataclasses.fields(Merged)}
        same = (report['form'], report['settings']) == (_FORM, settings)
        same = same and report['written'] == {path.name: path.stat().st_size for path in written}
        same = same and len(report['files']) == len(files) and all(map(_same, report['files'], files))
    except (OSError, ValueError, KeyError, TypeError):  # none, or not ours: it is made again
        return None
    return Merged(**fields) if same else None


def _same(before, now) -> bool:
    if any(before[name] != now[name] for name in ('role', 'path', 'size')):
        return False
    return before['mtime_ns'] == now['mtime_ns'] or before['hash'] == records.file_hash(now['path'])


def _read(sources, kinds, joining, tell) -> dict[str, int]:
    """Gives all rows to `joining`; returns how many each file has."""
    rows, total = collections.Counter(), itertools.count(1)

    def count(path, what):
        rows[str(path)] += 1
        if (n := next(total)) % _EVERY == 0:
            tell(f'{n:,} rows read, {what}')

    for path in sources.explanations:
        for row in esnli.read(path):
            joining.explain(row)
            count(path, 'explanations')
    for path, kind in kinds:
        split = _pair_files.split_of_name(path)
        for found in _pair_files.read(path, kind):
            joining.add(found, kind, split)
            count(path, 'pairs')
    return dict(rows)


def _dropped(pair, reason, detail) -> bytes:
    return _line(pair.to_json() | {'reason': reason, 'detail': detail})


def _line(row) -> bytes:
    return json.dumps(row, ensure_ascii=False).encode() + b'\n'


def _merged(joining, files) -> Merged:
    counts = {
        split: {label: joining.counts[split, label] for label in pairs.CLASSES}
        for split in pairs.SPLITS
        if any(joining.counts[split, label] for label in pairs.CLASSES)
    }
    of = lambda reason: {split: joining.dropped[reason, split] for split in ('', *pairs.SPLITS)}
    dropped = {reason: {split: n for split, n in of(reason).items() if n} for reason in joining.by_reason()}
    published = {split: {'ours': joining.pooled[split], 'paper': n} for split, n in PUBLISHED.items()}
    published = published if joining.pooled else {}
    return Merged(counts, dropped, published, joining.without_captions.total(), joining.unused[0], files)


def _tell(merged, joining, tell) -> None:
    tell(f'{merged.total:,} pairs: ' + ', '.join(f'{split} {sum(n.values()):,}' for split, n in merged.counts.items()))
    for split, both in merged.published.items():
        gap = both['ours'] - both['paper']
        told = 'as published' if not gap else f'published are {both["paper"]:,} ({gap:+,})'
        tell(f'SNLI-VE {split}: {both["ours"]:,}, {told}')
    for reason, n in joining.by_reason().items():
        tell(f'dropped, {reason}: {n:,}')
    if merged.explanations_without_pair:
        some = ', '.join(map(repr, joining.unused[1]))
        tell(f'rows of e-SNLI without a pair: {merged.explanations_without_pair:,}, the first are {some}')
    if merged.without_captions:
        tell(f'pairs whose picture has no captions: {merged.without_captions:,}')
