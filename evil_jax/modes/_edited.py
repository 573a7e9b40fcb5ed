"""The questions of --mode=counterfactual, and their edits in <workdir>/counterfactual/."""

import dataclasses
import json
import pathlib
from collections.abc import Sequence
from typing import Any

import evil_jax
from evil_jax import records
from evil_jax.counterfactual import (
    baselines,
    colours,
    coverage,
    edits,
    exchange,
    expectations,
    families,
    oracles,
    tagging,
)
from evil_jax.counterfactual.lexicon import Lexicon
from evil_jax.data import load, references
from evil_jax.data.shapes.scene import SHAPES
from evil_jax.data.sources import _files, visual_genome
from evil_jax.modes import _systems
from evil_jax.records import Example

COVERAGE = 'coverage.json'
RESULTS = ('predictions.jsonl', 'rules.json')  # what belongs to the edits of a folder
_SETTINGS = ('families', 'sense', 'metric', 'names')  # of the config, that take the preset's value where empty
_WORLD = 'shapes_'


@dataclasses.dataclass(frozen=True)
class Source:
    """Where questions come from.

    Attributes:
      examples: the questions, with unique ids.
      name: of the source, in words.
      split: of the data folder; '' where the questions are from files.
      made_from: what tells them from others, JSON.
    """

    examples: Sequence[Example]
    name: str
    split: str
    made_from: dict[str, Any]


def source(config) -> Source:
    """The questions that the config names.

    Raises:
      ValueError: no such files, data folder or split, a malformed record, repeated ids, no questions.
    """
    section = config.counterfactual
    if section.questions:
        paths = _systems.paths(section.questions)
        found = references.read(paths, config.data.builder, labels=config.data.labels, tag_base=config.data.tag_base)
        found = found[: section.limit or len(found)]
        if not any(example.text.strip() for example in found):
            raise ValueError(f'{section.questions}: none of its {len(found):,} records has a question')
        made_from = {'questions': [records.file_hash(path) for path in paths], 'limit': section.limit}
        return Source(found, section.questions, '', made_from)
    if not pathlib.Path(config.data.dir, 'build.json').is_file():
        raise ValueError(
            f'counterfactual.questions names no file, and there is no data set in {config.data.dir}: build.json is '
            'missing (--mode=build makes it)'
        )
    split = section.split or config.decode.split or config.data.test
    found = load.load_examples(config, split)
    found = [found[i] for i in range(min(section.limit or len(found), len(found)))]
    return Source(
        found, f'{split} split of {config.data.dir}', split, {'split': split, **load.heeded(config), 'n': len(found)}
    )


def settings(config) -> edits.Settings:
    """How they are edited. ValueError where a value is none."""
    section = config.counterfactual
    changes = {name: value for name in _SETTINGS if (value := section[name])}
    changes |= {name: section[name] for name in ('repair', 'familiar') if section[name] is not None}
    siblings = section.siblings or ((SHAPES,) if config.data.builder.startswith(_WORLD) else ())
    return edits.Settings.of(
        section.preset, siblings=siblings, seed=config.seed, **changes,
        **{name: section[name] for name in ('nearest', 'min_uses', 'min_quality', 'max_edits', 'all_positions', 'scope',
                                            'tagger')},
    )  # fmt: skip


def oracle(config, lexicon: Lexicon, examples: Sequence[Example]):
    """Who knows what is in the pictures (oracles.py): the scene graphs of the config, the built-in world, or None.

    Raises:
      ValueError: malformed scene graphs, or none of any picture that is asked about.
    """
    if path := config.counterfactual.scene_graphs:
        images = {example.image_id for example in examples}
        graphs = visual_genome.scene_graphs(path, images)
        if not graphs:
            raise ValueError(
                f'{path}: has none of the {len(images):,} pictures of the questions: {_files.some_ids(sorted(images))}'
            )
        return oracles.SceneGraphs(graphs, lexicon)
    return oracles.World() if config.data.builder.startswith(_WORLD) else None


def asked(config, folder: pathlib.Path, questions: Source, lexicon: Lexicon) -> tuple[exchange.Asked, dict]:
    """The folder of edits, written unless it is there already, and its coverage as JSON.

    Raises:
      ValueError: no question has an edit, a family below `counterfactual.min_coverage`; other edits there, to which
        answers or results belong, or files there that were changed.
    """
    section, how = config.counterfactual, settings(config)
    about = {
        'version': evil_jax.__version__,
        **questions.made_from,
        'edits': how.to_json(),
        'baselines': list(section.baselines),
        'scene_graphs': section.scene_graphs and records.file_hash(section.scene_graphs),
        'wordnet': lexicon.signature,
    }
    about = json.loads(json.dumps(about))
    if (folder / exchange.MANIFEST).is_file():
        found = exchange.Asked.open(folder)
        same = found.about == about
        if same and (folder / COVERAGE).is_file():
            covered = _covered(folder / COVERAGE)
            coverage.require(covered['table'], section.min_coverage)
            return found, covered
        if not same and (section.answers or any((folder / name).is_file() for name in RESULTS)):
            raise ValueError(
                f'{folder} has edits of other questions or settings, to which answers belong: '
                f'{_different(found.about, about)}. Take those settings, or another --workdir'
            )
    tagger = tagging.make_tagger(how.tagger, lexicon)
    texts = [example.text for example in questions.examples if len(example.text) <= how.max_length]
    editor = families.Editor(lexicon, how, colours.uses(texts, tagger))
    knows = oracle(config, lexicon, questions.examples)
    words = baselines.Words(texts, tagger)
    beside = baselines.Maker(section.baselines, words, tagger, seed=config.seed)
    edit = lambda example: [expectations.expect(edit, example, knows) for edit in editor.edits(example)]

    def all_of_them():
        yield from questions.examples
        coverage.require(editor.coverage.table(), section.min_coverage)  # before anything is written for good

    (folder / COVERAGE).unlink(missing_ok=True)
    found = exchange.write(folder, all_of_them(), edit, beside, about)
    covered = {'table': editor.coverage.table(), 'oracle': knows.why if knows else ''}
    records.write_json(folder / COVERAGE, covered)
    return found, covered


def _covered(path: pathlib.Path) -> dict[str, Any]:
    found = _files.checked(_files.read_json(path), dict, f'{path}: the document')
    return {name: _files.field(found, name, kind, str(path)) for name, kind in (('table', list), ('oracle', str))}


def _different(before: dict, now: dict) -> str:
    flat = lambda tree: {k: v for k, v in tree.items() if k != 'edits'} | tree.get('edits', {})
    old, new = flat(before), flat(now)
    return '; '.join(f'{k}: {old.get(k)!r}, now {new.get(k)!r}' for k in {**old, **new} if old.get(k) != new.get(k))
