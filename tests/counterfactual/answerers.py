"""Simulated pictures, questions about them, and answerers whose biases are known, for tests of the whole pipeline.

A picture has a room, a piece of furniture, an animal, a vehicle, a garment and a person, most of them coloured, and is
asked about two of them: what is on the grey table? An answerer understands an edited question by the record of its
edit, and answers as before if it still means what is in the picture: a more general word does, a more special one does
or not by a coin that the picture keeps, another kind of thing does not; a colour does if people would call the thing
that; of a question without its noun a coin decides whether it is guessed. Otherwise it says "nothing", "no" or "0".
That is `sound`. The others are biased:

    grey    calls grey things by any colour
    rooms   takes every room for the one in the picture
    text    gives the same answer to all questions of a kind, without looking

All of them err: in some pictures always, and elsewhere now and then.
"""

import functools
import hashlib
import json

import numpy as np

from evil_jax.counterfactual import (
    baselines,
    colours,
    edits,
    exchange,
    expectations,
    families,
    judging,
    rules,
    tagging,
)
from evil_jax.records import Example

BIASES = ('sound', 'grey', 'rooms', 'text')
COLOURS = ('grey', 'red', 'green', 'blue', 'yellow', 'brown', 'white')
THINGS = {
    'room': ('bedroom', 'kitchen', 'bathroom', 'living room'),
    'furniture': ('table', 'chair', 'sofa', 'shelf'),
    'animal': ('dog', 'cat', 'horse', 'sheep'),
    'vehicle': ('bus', 'truck', 'bicycle', 'boat'),
    'garment': ('shirt', 'jacket', 'hat', 'coat'),
    'person': ('man', 'woman'),
}
# Kind of question -> (text, what is asked for). {colour} is that of the first thing that stands in braces behind it.
QUESTIONS = (
    ('What is on the {colour} {furniture}?', 'what'),
    ('Where is the {colour} {vehicle}?', 'where'),
    ('Who is wearing the {colour} {garment}?', 'who'),
    ('Is the {furniture} {colour}?', 'yes/no'),
    ('Is the {vehicle} {colour}?', 'yes/no'),
    ('What is hanging in the {room}?', 'what'),
    ('What is standing in the {room}?', 'what'),
    ('How many people are in the {room}?', 'count'),
    ('What did the {person} see behind the {animal}?', 'what'),
    ('Where is the small {animal}?', 'where'),
)
ANSWERS = {
    'what': ('book', 'cup', 'lamp', 'plate', 'clock', 'plant', 'phone', 'candle', 'basket', 'mirror'),
    'where': ('street', 'field', 'beach', 'garden', 'park', 'forest', 'bridge', 'hill'),
    'who': ('nurse', 'student', 'farmer', 'player', 'waiter', 'child', 'driver'),
    'count': tuple(map(str, range(2, 12))),
    'yes/no': ('yes', 'no'),
}
NONE = {'yes/no': 'no', 'count': '0'}
PICTURE_NOISE, NOISE = 0.015, 0.01  # share of pictures that are not understood, and of answers that slip


class World:
    """Pictures and questions of a seed.

    Attributes:
      examples: the questions.
    """

    def __init__(self, lexicon, seed: int, pictures: int = 800, each: int = 2):
        self._lexicon, self._seed = lexicon, seed
        self._colours, self._edits, self.examples = {}, {}, []
        generator = np.random.default_rng(seed)
        draw = lambda values, p=None: values[generator.choice(len(values), p=p)]
        often = np.array([3] + [1] * (len(COLOURS) - 1)) / (len(COLOURS) + 2)
        for number in range(pictures):
            image = f'{number:04}'
            words = {kind: draw(known) for kind, known in THINGS.items()}
            seen = {kind: draw(COLOURS, often) for kind in THINGS}
            for place in generator.permutation(len(QUESTIONS))[:each]:
                form, asks = QUESTIONS[place]
                kind = next((kind for kind in THINGS if f'{{{kind}}}' in form and '{colour}' in form), None)
                answer = draw(ANSWERS[asks])
                colour = seen.get(kind)
                if answer == 'no':
                    colour = draw([other for other in COLOURS if other != colour])
                example = Example(f'{image}-{place}', image, form.format(colour=colour, **words), answers={answer: 1.0})
                self._colours[example.id] = seen.get(kind)
                self.examples.append(example)

    def add(self, edit: edits.Edit) -> edits.Edit:
        """Remembers what a text means that will be asked."""
        self._edits[edit.example_id, edit.text] = edit
        return edit

    def right(self, example: Example, text: str) -> str:
        """The oracle: the right answer to a text."""
        return self._look(example, self._edits.get((example.id, text)), 'sound')

    def answer(self, row: dict, example: Example, bias: str) -> str:
        """What an answerer says to a row of what is asked."""
        asks = _kind(example)
        if bias == 'text':
            answer = ANSWERS[asks][0]
        elif row.get('image') == 'blank':
            answer = NONE.get(asks, 'nothing')
        else:
            answer = self._look(example, self._edits.get((example.id, row['text'])), bias)
        image = example.image_id
        lost = self._share('lost', image) < PICTURE_NOISE
        if lost or self._share('slip', bias, row['id']) < NOISE:
            every = [one for known in ANSWERS.values() for one in known]
            answer = every[int(self._share('error', bias, image, row['text'], '' if lost else row['id']) * len(every))]
        return answer

    def _look(self, example, edit, bias):
        (answer,) = example.answers
        asks, seen = _kind(example), self._colours[example.id]
        if edit is None:
            return answer
        if edit.family.startswith('colour'):
            blind = bias == 'grey' and seen == 'grey'
            if answer == 'no':  # of another colour than the thing is
                return 'yes' if colours.basics(edit.target_lemma) & colours.basics(seen) and not blind else 'no'
            means = blind or colours.basics(edit.target_lemma) & colours.basics(seen)
        elif edit.family.startswith('synonym'):
            means = True
        elif edit.family == 'delete':
            means = self._share('guess', example.id, edit.text) < 0.5
        else:
            means = self._means(example, edit, bias)
        return answer if means else NONE.get(asks, 'nothing')

    def _means(self, example, edit, bias):
        old, new = (_up(self._lexicon, synset) for synset in (edit.source_synset, edit.target_synset))
        if bias == 'rooms' and 'room.n.01' in old & new:
            return True
        if edit.target_synset in old:
            return True
        return edit.source_synset in new and self._share('special', example.image_id, edit.target_synset) < 0.5

    def _share(self, *key):
        """A number in [0, 1) that is always the same for a key."""
        digest = hashlib.blake2b('\n'.join(map(str, (self._seed, *key))).encode(), digest_size=6).digest()
        return int.from_bytes(digest) / 2**48


def _kind(example):
    return QUESTIONS[int(example.id.partition('-')[2])][1]


@functools.cache
def _up(lexicon, synset):
    return frozenset([synset, *(name for name, _ in lexicon.ancestors(synset))])


def planted(bias: str, oracle: bool) -> set[tuple[str, str, str, str]]:
    """(family, kind, level, word or class) of the rules that are true of an answerer.

    Without an oracle, nothing is expected of siblings, hyponyms and deletions: whole families are then no rules.
    """
    if bias == 'grey':
        return {(family, 'STABLE', 'source', 'grey') for family in ('colour_max', 'colour_min')}
    if bias == 'rooms':
        return {(family, 'STABLE', 'class', 'room.n.01') for family in ('sibling', 'hyponym')}
    if bias == 'text':
        known = ('sibling', 'hyponym', 'colour_min', 'delete') * oracle
        return {(family, 'STABLE', 'family', '') for family in ('blank', 'colour_max', *known)}
    return set()


def told(found: rules.Found) -> set[tuple[str, str, str, str]]:
    """The same of the rules that were found."""
    return {(rule.family, rule.kind, rule.level, _about(rule)) for rule in found.rules}


def _about(rule):
    if rule.level == 'target':
        return f'{rule.source} > {rule.target}'
    return ': '.join(rule.condition) if rule.condition else rule.source or rule.synset


def run(folder, lexicon, seed: int, oracle: bool, of=edits.FAMILIES, **size) -> dict[str, rules.Found]:
    """The rules of each answerer, by the files that a user would handle, from edits of some families."""
    world = World(lexicon, seed, **size)
    tagger = tagging.make_tagger('heuristic', lexicon)
    texts = [example.text for example in world.examples]
    editor = families.Editor(lexicon, edits.Settings(families=of), colours.uses(texts, tagger))
    knows = world.right if oracle else None
    edit = lambda example: [expectations.expect(world.add(one), example, knows) for one in editor.edits(example)]
    beside = baselines.Maker(('blank',), baselines.Words(texts, tagger), tagger)
    asked = exchange.write(folder, world.examples, edit, beside)
    examples = {example.id: example for example in world.examples}
    found = {}
    for bias in BIASES:
        path = folder / f'{bias}.jsonl'
        with open(path, 'w', encoding='utf-8') as file:
            for row in asked.rows():
                answer = world.answer(row, examples[row['id'].partition('#')[0]], bias)
                file.write(json.dumps({'id': row['id'], 'answer': answer}) + '\n')
        table = judging.judge(asked, exchange.read_answers(path, asked), examples)
        found[bias] = rules.find(table, lexicon, rules.Settings(seed=seed))
    return found
