"""What is in a data set: examples, classes, lengths, vocabularies. Counted once by --mode=build, kept in build.json."""

import collections
import dataclasses
import functools
import heapq
import re
from collections.abc import Callable, Iterable, Mapping

from evil_jax.data import answers as answers_lib
from evil_jax.data import objects, tags, text_lengths, tokenizers, transforms
from evil_jax.data.features.regions import Regions
from evil_jax.records import Example
from evil_jax.text import TAG

LONGEST = 5  # texts of each kind that are kept to be shown
FREQUENT = 20  # words or answers
PICTURES = 64  # whose regions are kept at hand: questions about a picture stand near each other

_WORD = re.compile(r'\w+')


@dataclasses.dataclass
class Counts:
    """What a build counted; split -> number, unless said otherwise.

    Attributes:
      explained: examples with at least one reference.
      labels: split -> class -> examples; of examples with choices the position of the right one, 'choice 1' ...
      missing: examples without region features.
      outside: examples whose gold answers are all outside the vocabulary.
      shared: pictures that the training split has, too.
      tags, linked: object tags in what the encoder reads of examples; those that stand for a region of the store.
      answers: size of the answer vocabulary.
      store: what the conversion of the features counted.
      lengths: kind of text (`text_lengths.lengths`) -> number of tokens -> texts; 'regions' -> number -> pictures.
      answer_types: split -> type -> examples.
      words: kind of text -> number of words -> texts.
      longest: kind of text -> the longest ones, {'tokens', 'split', 'id', 'text'}.
      coverage: 'word' and 'expl' -> what its vocabulary makes of the words (see `coverage`).
      gold: 'inside' and 'outside' -> gold answers that the answer vocabulary has, has not; over all examples.
      outside_answers: the most frequent gold answers that it has not.
      missing_shown: (split, example, picture) of the first examples without features.
    """

    examples: dict[str, int]
    images: dict[str, int]
    references: dict[str, int]
    explained: dict[str, int]
    unanswered: dict[str, int]
    labels: dict[str, dict[str, int]]
    missing: dict[str, int]
    outside: dict[str, int]
    answers: int
    store: dict[str, int]
    lengths: dict[str, dict[str, int]]
    answer_types: dict[str, dict[str, int]] = dataclasses.field(default_factory=dict)
    words: dict[str, dict[str, int]] = dataclasses.field(default_factory=dict)
    longest: dict[str, list[dict[str, object]]] = dataclasses.field(default_factory=dict)
    coverage: dict[str, dict[str, object]] = dataclasses.field(default_factory=dict)
    gold: dict[str, int] = dataclasses.field(default_factory=dict)
    outside_answers: list[tuple[str, int]] = dataclasses.field(default_factory=list)
    missing_shown: list[tuple[str, str, str]] = dataclasses.field(default_factory=list)
    shared: dict[str, int] = dataclasses.field(default_factory=dict)
    tags: dict[str, int] = dataclasses.field(default_factory=dict)
    linked: dict[str, int] = dataclasses.field(default_factory=dict)


def count(
    splits: Mapping[str, Iterable[Example]],
    assets: tokenizers.Assets,
    encoding: transforms.Encoding,
    region_counts: Iterable[int],
    regions_of: Callable[[str], Regions] | None = None,
    inputs: str = 'regions',
) -> tuple[Counts, list[tuple[str, str, str]]]:
    """Goes through all examples once.

    Args:
      splits: the examples of each split; each is iterated over once, in this order.
      assets: the vocabularies.
      encoding: how examples are encoded; its limits do not matter.
      region_counts: number of regions of each picture.
      regions_of: regions of a picture; needed where examples have tags and boxes, and for names of detected objects.
      inputs: of the builder. Only texts that a model reads are counted: of 'text' that of the encoder, of 'pictures'
        none.

    Returns:
      The counts (`missing` and `store` are for the caller to fill in), and (split, id, gold answers) of the examples
      with no gold answer inside the vocabulary.
    """
    counter = _Counter(assets, encoding, regions_of, inputs)
    for split, examples in splits.items():
        counter.split(split, examples)
    return counter.counts(list(splits), region_counts), counter.outside


class _Counter:
    def __init__(self, assets, encoding, regions_of=None, inputs='regions'):
        self.assets, self.encoding, self.inputs = assets, encoding, inputs
        self.vocabulary = answers_lib.index(assets.answers)
        self.total = collections.defaultdict(collections.Counter)  # name -> split -> number
        self.classes = collections.defaultdict(collections.Counter)
        self.types = collections.defaultdict(collections.Counter)
        self.lengths = collections.defaultdict(collections.Counter)
        self.words = collections.defaultdict(collections.Counter)
        self.longest = collections.defaultdict(list)
        self.read, self.written = collections.Counter(), collections.Counter()  # words of the two modules
        self.gold, self.outside_answers, self.outside = collections.Counter(), collections.Counter(), []
        self.number = 0
        self.train = set()  # pictures
        self.regions_of = regions_of and functools.lru_cache(PICTURES)(regions_of)
        self.length = functools.lru_cache(100_000)(lambda kind, words: text_lengths.length(kind, words, assets))
        for answer in assets.answers if inputs == 'regions' else ():
            self.lengths['answer'][self.length('answer', answer)] += 1
            self.words['answer'][len(answer.split())] += 1

    def split(self, split, examples):
        pictures = set()
        for example in examples:
            pictures.add(example.image_id)
            self.total['examples'][split] += 1
            self.total['references'][split] += len(example.explanations)
            self.total['explained'][split] += bool(example.explanations)
            self._answers(split, example)
            self._lengths(split, example)
            self._tags(split, example)
            if example.answer_type is not None:
                self.types[split][example.answer_type] += 1
        self.total['images'][split] = len(pictures)
        if split == 'train':
            self.train = pictures
        else:
            self.total['shared'][split] = len(pictures & self.train)

    def _answers(self, split, example):
        if example.choices is not None:
            if isinstance(example.label, int):
                self.classes[split][f'choice {example.label + 1}'] += 1
            self.total['unanswered'][split] += example.label is None
            return
        is_class = isinstance(example.label, str)
        gold = [example.label] if is_class else [a for a, s in (example.answers or {}).items() if s > 0]
        if is_class:
            self.classes[split][example.label] += 1
        self.total['unanswered'][split] += not gold and example.label is None
        unknown = [answer for answer in gold if answer not in self.vocabulary]
        self.gold['inside'] += len(gold) - len(unknown)
        self.gold['outside'] += len(unknown)
        self.outside_answers.update(unknown)
        if gold and len(unknown) == len(gold):
            self.outside.append((split, example.id, ' | '.join(gold)))
            self.total['outside'][split] += 1

    def _names(self, example) -> list[str]:
        how = self.encoding.objects
        found = self.regions_of(example.image_id) if how == 'detected' and self.regions_of is not None else None
        return objects.names(example, found, how)

    def _lengths(self, split, example):
        if self.inputs == 'pictures':
            return
        most, names = {}, self._names(example)
        if self.inputs == 'text':
            lengths = [('text', self.length('text', example.text))]
        else:
            lengths = text_lengths.lengths(example, self.encoding, self.length, names)
        for kind, tokens in lengths:
            self.lengths[kind][tokens] += 1
            most[kind] = max(tokens, most.get(kind, 0))
        choices, references = example.choices or [], example.explanations
        for kind, tokens in most.items():
            heap = self.longest[kind]
            if len(heap) < LONGEST or tokens > heap[0][0]:
                self.number += 1
                line = max(references, key=len) if kind == 'explanation' else example.text
                if kind == 'objects':
                    line = ' '.join(names)
                elif kind != 'question' and kind != 'explanation' and choices:
                    line = ' | '.join(([] if kind == 'answer' else [example.text]) + choices)
                if kind == 'text_objects':
                    line += f' | {" ".join(names)}'
                row = {'tokens': tokens, 'split': split, 'id': example.id, 'text': line}
                # Of equal lengths the first stays; the number also keeps rows from being compared.
                (heapq.heapreplace if len(heap) == LONGEST else heapq.heappush)(heap, (tokens, -self.number, row))
        for kind, lines in (('text', [example.text]), ('answer', choices), ('explanation', references)):
            self.words[kind].update(len(line.split()) for line in lines)
        for line in (example.text, *choices, *names):
            self.read.update(_WORD.findall(tags.spoken(line, example.objects, 'names')))
        for line in (example.text, *choices, *names, *references) if self.inputs == 'regions' else ():
            self.written.update(_WORD.findall(TAG.sub(' ', line)))

    def _tags(self, split, example):
        numbers = [int(number) for line in (example.text, *(example.choices or ())) for number in TAG.findall(line)]
        if not numbers:
            return
        self.total['tags'][split] += len(numbers)
        if self.regions_of is not None and example.extra.get('boxes'):
            links = tags.regions_of(example, self.regions_of(example.image_id))
            self.total['linked'][split] += sum(bool(links[n - 1] >= 0) for n in numbers if 0 < n <= len(links))

    def counts(self, splits, region_counts) -> Counts:
        self.lengths['regions'].update(int(n) for n in region_counts)
        names = ('examples', 'images', 'references', 'explained', 'unanswered', 'outside', 'shared', 'tags', 'linked')
        sizes = lambda table: {
            kind: {str(n): counter[n] for n in sorted(counter)} for kind, counter in table.items() if counter
        }
        shares = lambda table: {split: dict(sorted(counter.items())) for split, counter in table.items()}
        word = self.assets.word
        return Counts(
            **{name: {split: self.total[name][split] for split in splits} for name in names},
            labels=shares(self.classes),
            missing={},
            answers=len(self.vocabulary),
            store={},
            lengths=sizes(self.lengths),
            answer_types=shares(self.types),
            words=sizes(self.words),
            longest={k: [row for _, _, row in sorted(heap, reverse=True)] for k, heap in self.longest.items()},
            coverage={
                'word': coverage(self.read, word.encode, word.unk),
                'expl': coverage(self.written, functools.partial(_inside, self.assets.expl)),
            },
            gold={'inside': self.gold['inside'], 'outside': self.gold['outside']},
            outside_answers=_most(self.outside_answers),
        )


def _inside(expl: tokenizers.ExplTokenizer, word: str) -> list[int]:
    """Pieces of a word that follows another one. A text's first word, which `encode` would take it for, is rarer."""
    return expl.encode(f'. {word}')[len(expl.encode('.')) :]


def coverage(words: Mapping[str, int], encode, unknown: int | None = None) -> dict[str, object]:
    """How well a vocabulary covers words.

    Args:
      words: word -> how often it occurs.
      encode: word -> ids of its pieces.
      unknown: id of the piece that stands for what cannot be written, if there is one.

    Returns:
      'occurrences' and 'distinct' words; of both those that are 'split' (more than one piece) and 'unknown':
      'split_occurrences', ...; 'most_split' and 'most_unknown', the most frequent ones.
    """
    split, lost = {}, {}
    for word, number in words.items():
        ids = encode(word)
        if unknown is not None and unknown in ids:
            lost[word] = number
        elif len(ids) > 1:
            split[word] = number
    found = {'occurrences': sum(words.values()), 'distinct': len(words)}
    for name, table in (('split', split), ('unknown', lost)):
        found |= {f'{name}_occurrences': sum(table.values()), f'{name}_distinct': len(table)}
        found[f'most_{name}'] = _most(table)
    return found


def _most(table: Mapping[str, int]) -> list[tuple[str, int]]:
    """The most frequent entries, ties in alphabetical order."""
    return [(name, table[name]) for name in heapq.nsmallest(FREQUENT, table, key=lambda name: (-table[name], name))]
