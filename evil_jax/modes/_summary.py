"""What a finished build holds, told at the terminal and on a page (build.html)."""

import dataclasses

import numpy as np

from evil_jax.data import load, text_lengths
from evil_jax.data.counts import Counts
from evil_jax.modes import _cards
from evil_jax.pages import build as page
from evil_jax.tasks._fields import gold_answer

_CARDS = 24  # examples on the page
_CLASSES = 20  # whose shares are printed


def tell(config, root, counts: Counts) -> dict[str, float]:
    """Prints what was counted, writes it for people, and returns it as numbers."""
    numbers = _print_counts(config, root, counts)
    if config.build.page:
        path = root / 'build.html'
        try:
            written = _write_page(config, path, counts)
        except OSError as error:  # a finished folder may be read-only, and its page is not what it is there for
            print(f'{path} was not written: {error}')
        else:
            print(f'{path}{"" if written else " is up to date"}')
    return numbers


def _write_page(config, path, counts) -> bool:
    """The page, from what is built; raw files are not needed, but for the pictures."""
    document = load.built(config)
    return page.write_page(
        path,
        title=' in '.join(dict.fromkeys((config.data.builder, path.absolute().parent.name))),
        counts=dataclasses.asdict(counts),
        limits={kind: config.data[key] for kind, key in _limits(config).items()},
        examples=_sample(config, list(counts.examples)),
        inputs=load.inputs(config),
        provenance=document['settings'] | document['sources'],
    )


def _limits(config) -> dict[str, str]:
    """Kind of text, or 'regions' -> the setting that cuts it, of what this model reads."""
    if (inputs := load.inputs(config)) != 'regions':
        return {'text': text_lengths.limit('text')} if inputs == 'text' else {}
    names = ('text_objects', 'objects') if config.data.objects else ()
    return {kind: text_lengths.limit(kind) for kind in ('text', *names, 'question', 'answer', 'explanation', 'regions')}


def _sample(config, splits) -> list[dict[str, object]]:
    """Some examples of each split; always the same ones, whatever the seed and the limit of the run."""
    reader = load.open_store(config) if load.inputs(config) == 'regions' else None
    images, class_names = load.images(config), reader.class_names if reader else ()
    rows = []
    for split in splits:
        examples = load.Examples(load.folder(config), split)
        count = min(_CARDS // len(splits), len(examples))
        chosen = np.random.default_rng(0).choice(len(examples), count, replace=False)
        for example in (examples[int(i)] for i in sorted(chosen)):
            gold = gold_answer(example)
            rows.append(
                _cards.picture(example, images, reader, class_names)
                | {
                    'split': split,
                    'id': example.id,
                    'text': _cards.shown(example.text, example),
                    'choices': _cards.choices(example),
                    'gold': example.answers or ([] if gold is None else [gold]),
                    'references': [_cards.shown(reference, example) for reference in example.explanations],
                }
            )
    return rows


def _print_counts(config, root, counts: Counts) -> dict[str, float]:
    """Prints the counts and returns them as numbers."""
    inputs, images = load.inputs(config), counts.store['images']
    numbers = {'answers': counts.answers}
    if inputs == 'regions':
        numbers |= {'store_images': images, 'cut_images': counts.store['cut_images']}
    what = {'regions': f', features of {images} pictures', 'pictures': f', {images} pictures', 'text': ''}[inputs]
    print(f'{root}: {counts.answers} {"answers" if inputs == "regions" else "classes"}{what}')
    if cut := numbers.get('cut_images'):
        stayed = 'the first' if counts.store.get('without_conf') else 'the most confident'
        print(f'  warning: {cut:,} pictures have more regions than the store keeps; {stayed} ones stayed')
    for split in counts.examples:
        for name in ('examples', 'images', 'references', 'explained', 'unanswered', 'outside', 'missing'):
            numbers[f'{name}_{split}'] = getattr(counts, name)[split]
        line = f'  {split:5} {counts.examples[split]:,} examples'
        if inputs != 'text':
            line += f', {counts.images[split]:,} pictures'
        if inputs == 'regions' or counts.references[split]:
            line += f', {counts.references[split]:,} explanations of {counts.explained[split]:,} examples'
        for name, meaning in (
            ('unanswered', 'without an answer'),
            ('outside', 'with no answer inside the vocabulary'),
            ('missing', f'left out for missing {"features" if inputs == "regions" else "pictures"}'),
        ):
            if number := getattr(counts, name)[split]:
                line += f', {number:,} {meaning}'
        if tagged := counts.tags.get(split):
            line += f', {100 * counts.linked[split] / tagged:.0f} % of {tagged:,} object tags stand for a region'
        if labels := counts.labels.get(split):
            shares = [f'{k} {100 * n / counts.examples[split]:.0f} %' for k, n in sorted(labels.items())]
            line += '; ' + (', '.join(shares) if len(shares) <= _CLASSES else f'{len(shares)} classes')
            numbers[f'majority_{split}'] = max(labels.values()) / counts.examples[split]
        print(line)
        if shared := counts.shared.get(split):
            things = 'texts' if inputs == 'text' else 'pictures'
            print(f'  warning: {shared:,} of the {things} of {split} are in train, too')
    limits = _limits(config)
    for kind, histogram in counts.lengths.items():
        if kind not in limits:  # names of objects, which another model reads
            continue
        sizes = {int(n): texts for n, texts in histogram.items()}
        limit, texts = config.data[limits[kind]], sum(sizes.values())
        mean, long = sum(n * k for n, k in sizes.items()) / texts, sum(k for n, k in sizes.items() if n > limit)
        numbers[f'mean_{kind}'], numbers[f'long_{kind}'] = mean, long
        unit, things = ('per picture', 'pictures') if kind == 'regions' else ('tokens', f'{kind} texts')
        print(f'  {kind}: {mean:.1f} {unit} on average, at most {max(sizes)} (limit data.{limits[kind]} {limit})')
        if long:
            print(f'  warning: {long:,} of {texts:,} {things} ({100 * long / texts:.1f} %) have more and get cut')
    return {name: float(value) for name, value in numbers.items()}
