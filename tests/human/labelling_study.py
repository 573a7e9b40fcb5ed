"""A small study in which people label, and pages of it filled in."""

from served_study import PIXEL

from evil_jax.human import label_form, labelling
from evil_jax.human.labelling import Asked

TEXTS = ('A man\'s dog runs & "plays".', '<b>Two</b> people are cooking rice .', '=1+1 is 2 - because', 'A cat sleeps.')


def asked(number=6, texts=TEXTS):
    """Two items about each picture."""
    return [Asked(f'{i // 2}.jpg#0r{i}n', str(i // 2), texts[i % len(texts)], 'neutral') for i in range(number)]


def trusted(number=2):
    return [Asked(f'known{i}', f'k{i}', 'A bird flies over the sea.', 'contradiction') for i in range(number)]


def make(folder, number=6, known=2, picture=True, texts=TEXTS, **options):
    """The study in a folder, which has a picture for all but the trusted items."""
    (folder / 'a.png').write_bytes(PIXEL)

    class Images:
        def __getitem__(self, name):
            return folder / 'a.png' if picture and name.isdigit() else None

    values = dict(images=Images(), trusted=trusted(known), page_items=4, raters=3, seed=1)
    return labelling.make(asked(number, texts), folder, **values | options)


def fields(study, page, choice=None, fail=False) -> dict[str, list[str]]:
    """A page that can be taken. `choice` is the number of the label, None = as the data have it."""
    found = {}
    for k, item in enumerate(study.of(page), 1):
        words = label_form.words(item.text)
        numbers = [i for i, word in enumerate(words) if label_form.pieces(word)][-2:]
        label = item.gold if item.trusted or choice is None else choice
        found[f'c{k}'] = [str((label + (fail and item.trusted)) % 3)]
        found[f'{k}-w'] = [str(number) for number in numbers]
        found[f'{k}-x'] = [f'It is so | <i>because</i> {words[numbers[0]]}']
    return found
