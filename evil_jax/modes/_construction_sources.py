"""What --mode=construct works on: files that the user names, merged, with the labels that people gave."""

import functools
import pathlib
from collections.abc import Callable, Iterator

from evil_jax import records
from evil_jax.construction import checked, filters, merge, relabel, relevance
from evil_jax.construction import pairs as pairs_lib
from evil_jax.data.sources import _files
from evil_jax.modes import _systems


class Sources:
    """Everything that is read. What is wrong with settings and small files is told when it is made.

    Attributes:
      filters: those of the config, in order.
      asking: whether one of them asks the NLI model.
      checked: pairs checked by hand, or None.
      merged: what merging counted, when loaded.
      captions: {image_id: texts}, when loaded.

    Raises:
      ValueError: no pairs, an unknown filter, malformed small files, sources that the run would replace.
    """

    def __init__(self, config, folder: pathlib.Path):
        section = config.construct
        self._config, self._folder = config, folder
        self.filters = filters.make(section)
        self.asking = any(each.needs_scores for each in self.filters)
        if not section.pairs:
            raise ValueError(
                'construct.pairs is empty: name the files of SNLI or SNLI-VE (jsonl), or of pairs of your own '
                '(JSON lines or CSV: id, image_id, hypothesis, label)'
            )
        if section.captions and not pathlib.Path(section.captions).is_file():
            raise ValueError(f'construct.captions: {section.captions}: there is no such file')
        self.checked = checked.read(section.annotated) if section.annotated else None
        self._labels = relabel.read(section.relabelled) if section.relabelled else None
        self._attributes = relevance.read(section.attributes) if section.attributes else None
        self._files = merge.Sources(
            pairs=_systems.paths(section.pairs),
            explanations=_systems.paths(section.explanations) if section.explanations else [],
            captions=section.captions,
            splits=merge.parse_splits(section.splits),
        )
        for path in map(pathlib.Path, (*self._files.pairs, *self._files.explanations, self._files.captions)):
            if folder.resolve() in path.resolve().parents:
                raise ValueError(f'{path}: is in {folder}, which this run writes anew: take another --workdir')
        self.merged, self.captions = {}, {}
        self._relabelling = None

    def merge(self) -> None:
        """Joins the files, where that is not done already; in the first of several processes."""
        section = self._config.construct
        merge.merge(
            self._files, self._folder, allow=tuple(section.allow), max_mismatch=section.max_mismatch,
            dev_images=section.dev_images, tell=functools.partial(print, flush=True),
        )  # fmt: skip

    def load(self) -> None:
        """Reads what `merge` made."""
        self.merged = _files.read_json(self._folder / merge.SUMMARY)
        self.captions = merge.captions(self._files, self._folder)

    def open(self) -> None:
        """As `load`, for the filters.

        Raises:
          ValueError: a filter asks for captions and no picture has any; a small file is about other pairs.
        """
        self.load()
        if self.asking and not self.captions:
            asking = ', '.join(each.name for each in self.filters if each.needs_scores)
            raise ValueError(
                f'construct.captions is empty, and no row brings captions: {asking} ask the NLI model about those of a '
                'picture. Name the file, or leave them out of construct.filters'
            )
        for name, about in self._about().items():
            if about and not any(pair.id in about for pair in self.merged_pairs()):
                raise ValueError(
                    f'construct.{name}: {self._config.construct[name]}: none of its pairs is in construct.pairs, '
                    f'{_files.some_ids(list(about), 3)}: it belongs to other data'
                )

    @property
    def splits(self) -> tuple[str, ...]:
        """Those that have pairs."""
        return tuple(self.merged['counts'])

    def merged_pairs(self) -> Iterator[pairs_lib.Pair]:
        """All pairs as they are in the sources."""
        return pairs_lib.read(self._folder / merge.MERGED)

    def pairs(self, drop: Callable[[pairs_lib.Pair, str, str], None] | None = None) -> Iterator[pairs_lib.Pair]:
        """All pairs, with the labels that people gave.

        Args:
          drop: gets pairs on whose label people do not agree, the reason and a sentence; it is this pass that
            `relabelled` tells of.
        """
        if self._labels is None:
            return self.merged_pairs()
        relabelling = relabel.Relabelling(self._labels, self._attributes)
        if drop:
            self._relabelling = relabelling
        return relabelling.merge(self.merged_pairs(), drop or (lambda *row: None))

    def asked_pairs(self) -> Iterator[pairs_lib.Pair]:
        """Those of `pairs` that the NLI model is asked about."""
        asking = [each for each in self.filters if each.needs_scores]
        return (pair for pair in self.pairs() if any(each.applies(pair) for each in asking))

    def cache_path(self, model) -> pathlib.Path:
        """Where it is kept what a model says."""
        return pathlib.Path(self._config.construct.nli.cache or self._folder / f'nli-{model.digest}.sqlite')

    def relabelled(self) -> dict | None:
        """What the labels of people changed, when all `pairs` have passed."""
        return self._relabelling.summary() if self._relabelling else None

    def relevance(self) -> dict | None:
        """Of the first explanations of all pairs, relabelled or not, whose required attributes are known."""
        if self._attributes is None:
            return None
        known = ((pair, self._attributes.get(pair.id)) for pair in self.pairs() if pair.explanations)
        return relevance.summary(
            [relevance.score(pair.explanations[0], wanted) for pair, wanted in known if wanted],
            resamples=self._config.evaluate.bootstrap, seed=self._config.seed,
        )  # fmt: skip

    def files(self) -> list[dict]:
        """Every file that was read: role, path, hash, rows."""
        section = self._config.construct
        small = {name: section[name] for name in ('relabelled', 'annotated', 'attributes') if section[name]}
        merged = [{key: file[key] for key in ('role', 'path', 'hash', 'rows')} for file in self.merged['files']]
        return merged + [
            {'role': role, 'path': path, 'hash': records.file_hash(path), 'rows': None} for role, path in small.items()
        ]

    def _about(self) -> dict:
        """{setting: what its file says, by pairID} of the small files."""
        return {
            'relabelled': self._labels and self._labels.votes,
            'annotated': self.checked and self.checked.verdicts,
            'attributes': self._attributes,
        }
