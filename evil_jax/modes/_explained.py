"""What --mode=attribute reads and writes: the model, the page, pictures; numbers are in _maps.py."""

import dataclasses
import math
import pathlib
import re

import numpy as np
from rich.markup import escape

from evil_jax import records
from evil_jax.attribution import render
from evil_jax.data import load, pictures, transforms, words
from evil_jax.modes import _explainer, _maps, _pairing, _predictions, _terminal, _untrained, decode
from evil_jax.pages import attribution as page

_UNSAFE = re.compile(r'[^A-Za-z0-9._-]+')
_SHEET, _CELL, _LEAST = 6, 112, 224  # examples in methods.png, pixels of a cell; of an overlay
_TITLE = 80  # characters
_OURS = ('attributions.npz', 'attributions-*.npz', 'methods.png', 'overlays/*.png')
_SAID, _INSIDE = 'explanation', ' (as the explanation module reads it)'
_READ_BY_EXPL = ('question', 'answer', 'explanation', 'objects')


class Given:
    """The reader of one picture, or of its regions, that is at hand."""

    def __init__(self, image_id, found):
        self.image_id, self.found = image_id, found

    def __getitem__(self, image_id):
        if image_id != self.image_id or self.found is None:
            raise KeyError(image_id)
        return self.found


def open_model(config, workdir):
    """(decoder, params, what the model is, as JSON).

    `attribute.checkpoint` 'init' is the model with the weights that `model.task.init` and its like name, untrained.

    Raises:
      ValueError: no checkpoint, or one of other settings.
    """
    if config.decode.checkpoint == 'init':
        decoder, params = _untrained.load(config)
        return decoder, params, {'init': _untrained.identity(config)}
    folder, other = decode.find_checkpoint(workdir, config.decode.checkpoint), _pairing.find_task(config)
    decoder, params = decode.load_trained(config, workdir, folder)
    return decoder, params, _predictions.identity(folder) | ({'task': _predictions.identity(other)} if other else {})


def write(folder, config, decoder, found, reader, title: str) -> None:
    """Writes all numbers, the page and pictures, and says where; then removes what an earlier run left.

    Args:
      found: method -> explained examples. Of several methods the page shows the maps for the answer side by side.
    """
    folder, names, task = pathlib.Path(folder), list(found), decoder.task
    old = {path for pattern in _OURS for path in folder.glob(pattern)}
    reads, new = load.inputs(config), []
    regions = (
        (lambda image_id: transforms.fitting(reader[image_id], task.encoding, image_id)) if reads == 'regions' else None
    )
    for name in names:
        new.append(folder / ('attributions.npz' if len(names) == 1 else f'attributions-{name}.npz'))
        _maps.write(new[-1], config, task, name, found[name], regions)
    done = [_together(names, ones) for ones in zip(*found.values())] if len(names) > 1 else found[names[0]]
    images = load.images(config) if reads == 'regions' else None
    items = [_item(config, task, one, reader, images) for one in done[: config.attribute.page_examples]]
    settings = {name: config.attribute[name] for name in ('target', 'rules', 'start_layer', 'row_norm')}
    page.write_attributions(
        folder / 'attributions.html', items, title=title if len(title) <= _TITLE else f'{title[:_TITLE]} ...',
        settings=settings, method=', '.join(names), total=len(done),
    )  # fmt: skip
    drawn = [(number, item, _drawn(item)) for number, item in enumerate(items)]
    rows = [seen for _, _, seen in drawn if seen]
    if len(names) > 1 and rows:
        new.append(folder / 'methods.png')
        records.atomic_write(new[-1], render.png(render.sheet(rows[:_SHEET], ['picture', *names], cell=_CELL)))
    elif rows:
        for number, item, seen in drawn:
            if seen:
                new.append(folder / 'overlays' / f'{number:04}-{_UNSAFE.sub("-", item.id)}.png')
                records.atomic_write(new[-1], render.png(seen[1]))
    for path in old.difference(new):
        path.unlink(missing_ok=True)
    print(f'{len(done)} examples: {folder / "attributions.html"}, and as numbers beside it (.npz)')
    targets = [target for ones in found.values() for one in ones for target in one.targets]
    if nothing := sum(not any(values.any() for values in target.values.values()) for target in targets):
        print(f'warning: {nothing} of {len(targets)} maps are 0 everywhere')


def _together(names, ones) -> _explainer.Attributed:
    """One example with a target a method: its map for the answer."""
    by = lambda one, name: dataclasses.replace(one.targets[0], text=f'{one.targets[0].text}, by {name}')
    return dataclasses.replace(ones[0], targets=[by(one, name) for name, one in zip(names, ones)])


def tell(one: _explainer.Attributed) -> None:
    """Prints what the model said of one example."""
    console, said = _terminal.console(), one.prediction
    console.print(f'answer: [bold]{escape(str(said.answer))}[/] ({said.answer_scores[said.answer]:.1%})')
    if said.explanation:
        console.print(f'because: {escape(said.explanation)}')


def _item(config, task, one, reader, images) -> page.Item:
    reads, said = load.inputs(config), one.prediction
    right = _maps.gold(task, one)
    shared = dict(
        id=one.example.id, answer=said.answer, probability=said.answer_scores.get(said.answer),
        gold=[right] if right else (),
    )  # fmt: skip
    if reads == 'pictures':
        picture = pictures.resized(reader[one.example.image_id], config.data.pixels, config.data.resize)
        side = math.isqrt(len(one.targets[0].values['patches']))
        targets = [page.Target(t.text, patches=t.values['patches'].reshape(side, side)) for t in one.targets]
        return page.Item(targets=targets, picture=picture, **shared)
    if reads == 'text':
        return _text_item(config, task, one, shared)
    found = transforms.fitting(reader[one.example.image_id], task.encoding, one.example.image_id)
    path, rows, targets = images[one.example.image_id], {}, []
    for target in one.targets:
        values, texts = _words(task, one, target)
        rows |= {name: texts[name] for name in texts if name not in rows}
        at = (_SAID, target.index) if target.kind == 'token' else None
        targets.append(page.Target(target.text, regions=target.values.get('regions'), words=values, at=at))
    if any(target.kind == 'token' for target in one.targets):
        own = [_explainer.spelled(task.assets.expl, token) for token in said.explanation_ids or ()]
        first = [name for name in rows if not name.endswith(_INSIDE)]  # behind what M_T read
        rows = {name: rows[name] for name in first} | {_SAID: own} | rows
    return page.Item(
        targets=targets, words=rows, picture=path, boxes=found.boxes, size=found.size, names=_names(found),
        problem='' if path else 'no picture: set data.images', **shared,
    )  # fmt: skip


def _words(task, one, target):
    """({row: relevance of its words}, {row: its words}) of a target. Pieces of a word of M_T's are put together."""
    values, texts = {}, {}
    if 'text' in target.values:
        tokens = _maps.tokens(task, one, target, 'text')
        word_P = np.cumsum([not token.startswith('##') for token in tokens]) - 1
        joined = [''] * (int(word_P[-1]) + 1 if len(word_P) else 0)
        for token, word in zip(tokens, word_P):
            joined[word] += token.removeprefix('##') if joined[word] else token
        name = 'question and choice' if 'choices' in one.row and target.kind == 'answer' else 'question'
        texts[name], values[name] = joined, by_word(target.values['text'], word_P, len(joined))
    for span in _READ_BY_EXPL:
        if span in target.values and len(target.values[span]):
            texts[f'{span}{_INSIDE}'] = _maps.tokens(task, one, target, span)
            values[f'{span}{_INSIDE}'] = target.values[span]
    return values, texts


def _text_item(config, task, one, shared):
    text = one.example.text.split()
    word_Q, cut = words.pieces(one.example.text, task.assets.word, config.data.max_text, task.pairs)
    targets = [page.Target(t.text, words={'text': by_word(t.values['text'], word_Q, len(text))}) for t in one.targets]
    marked = {p for start, end in one.example.extra.get('evidence', ()) for p in range(start, end)}
    read = {'text': int(word_Q.max(initial=-1)) + 1} if cut else {}
    evidence = {'text': sorted(marked)} if marked else {}
    return page.Item(targets=targets, words={'text': text}, evidence=evidence, read=read, **shared)


def by_word(values_P, word_Q, count: int) -> np.ndarray:
    """Relevance of words from that of their pieces, the one of largest size; 0 for words that were cut."""
    found = np.zeros(count, np.float32)
    for value, word in zip(values_P, word_Q[: len(values_P)]):
        if word >= 0 and abs(value) > abs(found[word]):
            found[word] = value
    return found


def _names(found) -> list[str]:
    if not len(found.names):
        return []
    return [found.names[c] if 0 <= c < len(found.names) else f'region {n + 1}' for n, c in enumerate(found.classes)]


def _drawn(item: page.Item) -> list[np.ndarray]:
    """The picture, and the picture under the heat of each target; [] where there is none."""
    if item.picture is None or all(t.patches is None and t.regions is None for t in item.targets):
        return []
    picture = item.picture if isinstance(item.picture, np.ndarray) else pictures.read(item.picture)
    drawn = [render.enlarged(picture, _LEAST)]
    for target in item.targets:
        if target.patches is not None:
            drawn.append(render.patches(picture, target.patches))
        else:
            drawn.append(render.regions(picture, target.regions, item.boxes, size=item.size))
    return drawn
