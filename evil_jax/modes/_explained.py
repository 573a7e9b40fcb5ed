"""What --mode=attribute reads and writes: the model, attributions.npz, the page, pictures.

attributions.npz, N examples with up to K targets each:

    id [N]                     of the examples
    kind, target [N, K]        'answer', 'token' or 'explanation' ('' where an example has fewer), and its text
    index int32 [N, K]         of the answer, or the token's position; -1
    <span> float32 [N, K, L]   relevance of words ('text'), 'regions' or 'patches', and of what M_E reads ('question',
                               'answer', 'explanation'); 0 behind <span>_length
    <span>_length int32 [N, K]
    text_tokens [N, L]         word pieces behind 'text', where a text is read
"""

import dataclasses
import io
import math
import pathlib
import re

import numpy as np
from rich.markup import escape

from evil_jax import records
from evil_jax.attribution import render
from evil_jax.data import load, pictures, transforms, words
from evil_jax.modes import _explainer, _predictions, _terminal, _untrained, decode
from evil_jax.pages import attribution as page

_UNSAFE = re.compile(r'[^A-Za-z0-9._-]+')
_SHEET, _CELL, _LEAST = 6, 112, 224  # examples in methods.png, pixels of a cell; of an overlay


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
        return decoder, params, {'init': [config.model.task.init, config.model.expl.init, config.train.init]}
    folder = decode.find_checkpoint(workdir, config.decode.checkpoint)
    decoder, params = decode.load_trained(config, workdir, folder)
    return decoder, params, _predictions.identity(folder)


def write(folder, config, decoder, found, reader, title: str) -> None:
    """Writes all numbers, the page and pictures, and says where.

    Args:
      found: method -> explained examples. Of several methods the page shows the maps for the answer side by side.
    """
    folder, names = pathlib.Path(folder), list(found)
    done = found[names[0]]
    for path in [*folder.glob('attributions*'), *folder.glob('methods.png'), *folder.glob('overlays/*.png')]:
        path.unlink()  # of an earlier run: of other examples or methods
    for name in names:
        stem = 'attributions' if len(names) == 1 else f'attributions-{name}'
        _write_npz(folder / f'{stem}.npz', decoder.task, found[name])
    if len(names) > 1:
        done = [_together(names, ones) for ones in zip(*found.values())]
    images = load.images(config) if load.inputs(config) == 'regions' else None
    items = [_item(config, decoder.task, one, reader, images) for one in done[: config.attribute.page_examples]]
    settings = {name: config.attribute[name] for name in ('target', 'rules', 'start_layer', 'row_norm')}
    page.write_attributions(
        folder / 'attributions.html', items, title=title, settings=settings, method=', '.join(names), total=len(done)
    )
    print(f'{len(done)} examples: {folder / "attributions.html"}, and as numbers beside it (.npz)')
    drawn = [(number, item, _drawn(item)) for number, item in enumerate(items)]
    for number, item, pictures_ in drawn:
        if len(names) == 1 and pictures_:
            path = folder / 'overlays' / f'{number:04}-{_UNSAFE.sub("-", item.id)}.png'
            records.atomic_write(path, render.png(pictures_[1]))
    rows = [pictures_ for _, _, pictures_ in drawn if pictures_][:_SHEET]
    if len(names) > 1 and rows:
        records.atomic_write(folder / 'methods.png', render.png(render.sheet(rows, ['picture', *names], cell=_CELL)))


def _together(names, ones) -> _explainer.Attributed:
    """One example with a target a method: its map for the answer."""
    targets = [dataclasses.replace(one.targets[0], text=name) for name, one in zip(names, ones)]
    return dataclasses.replace(ones[0], targets=targets)


def tell(one: _explainer.Attributed) -> None:
    """Prints one example: the answer, and what spoke most for it."""
    console = _terminal.console()
    console.print(f'answer: [bold]{escape(str(one.prediction.answer))}[/]')
    if one.prediction.explanation:
        console.print(f'because: {escape(one.prediction.explanation)}')


def _write_npz(path, task, done) -> None:
    targets = max(len(one.targets) for one in done)
    names = list(dict.fromkeys(name for one in done for target in one.targets for name in target.values))
    fill = lambda values, default: values + [default] * (targets - len(values))
    arrays = {
        'id': np.array([one.example.id for one in done]),
        'kind': np.array([fill([t.kind for t in one.targets], '') for one in done]),
        'target': np.array([fill([t.text for t in one.targets], '') for one in done]),
        'index': np.array([fill([t.index for t in one.targets], -1) for one in done], np.int32),
    }
    length = lambda target, name: len(target.values.get(name, ()))
    for name in names:
        longest = max(length(target, name) for one in done for target in one.targets)
        values = np.zeros((len(done), targets, longest), np.float32)
        counts = np.zeros((len(done), targets), np.int32)
        for n, one in enumerate(done):
            for k, target in enumerate(one.targets):
                counts[n, k] = length(target, name)
                values[n, k, : counts[n, k]] = target.values.get(name, ())
        arrays |= {name: values, f'{name}_length': counts}
    if 'text' in names:
        arrays['text_tokens'] = np.array(
            [task.assets.word.tokens(_text_ids(one, one.targets[0]).tolist()) for one in done]
        )
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    records.atomic_write(path, buffer.getvalue())


def _text_ids(one, target):
    """Ids of the row of words that a target was read from."""
    if 'choices' in one.row and target.kind == 'answer':
        return one.row['choices'][target.index]
    return one.row['text']


def _item(config, task, one, reader, images) -> page.Item:
    reads, answer = load.inputs(config), one.targets[0]
    shared = dict(
        id=one.example.id,
        answer=one.prediction.answer,
        probability=one.prediction.answer_scores.get(one.prediction.answer),
        gold=[text] if (text := _gold(task, one)) else (),
    )
    if reads == 'pictures':
        picture = pictures.resized(reader[one.example.image_id], config.data.pixels, config.data.resize)
        side = math.isqrt(len(answer.values['patches']))
        targets = [page.Target(t.text, patches=t.values['patches'].reshape(side, side)) for t in one.targets]
        return page.Item(targets=targets, picture=picture, **shared)
    if reads == 'text':
        return _text_item(config, task, one, shared)
    found = transforms.fitting(reader[one.example.image_id], task.encoding, one.example.image_id)
    path = images[one.example.image_id]
    rows, targets = _rows(task, one), []
    for target in one.targets:
        values = {name: target.values[name] for name in ('question', 'answer', 'explanation') if name in target.values}
        seen = {'M_E: ' + name: v for name, v in values.items() if len(v) == len(rows.get('M_E: ' + name, ()))}
        if 'text' in target.values:
            key, _, joined = _words(task, one, target)
            seen[key] = joined
        at = ('explanation', target.index) if target.kind == 'token' else None
        regions = target.values.get('regions')
        targets.append(page.Target(target.text, regions=regions, words=seen, at=at))
    return page.Item(
        targets=targets, words=rows, picture=path, boxes=found.boxes, size=found.size, names=_names(found),
        problem='' if path else 'no picture: set data.images', **shared,
    )  # fmt: skip


def _text_item(config, task, one, shared):
    text = one.example.text.split()
    word_Q, cut = words.pieces(one.example.text, task.assets.word, config.data.max_text)
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


def _rows(task, one) -> dict[str, list[str]]:
    """Rows of words of the page."""
    rows, expl = {}, task.assets.expl
    for target in one.targets:
        if 'text' in target.values:
            key, texts, _ = _words(task, one, target)
            rows.setdefault(key, texts)
    tokens = [_explainer.spelled(expl, token) for token in one.prediction.explanation_ids or ()]
    if tokens:
        rows['explanation'] = tokens
    for name in ('question', 'answer', 'explanation'):
        lengths = {len(t.values[name]) for t in one.targets if name in t.values}
        if not lengths:
            continue
        if name == 'question':
            ids = one.row['question'][: max(lengths)].tolist()
        elif name == 'answer':
            index = one.targets[0].index
            table = one.row['answers'] if 'answers' in one.row else task.answer_table[0]
            ids = table[index][: max(lengths)].tolist()
        else:
            ids = [expl.id('<|b_rtnl|>'), *(one.prediction.explanation_ids or ()), expl.id('<|e_rtnl|>')][
                : max(lengths)
            ]
        rows[f'M_E: {name}'] = [_explainer.spelled(expl, token) for token in ids]
    return rows


def _words(task, one, target):
    """(name of the row, its words, their relevance) of what M_T read; pieces of a word are put together."""
    values = target.values['text']
    tokens = task.assets.word.tokens(_text_ids(one, target)[: len(values)].tolist())
    word_P = np.cumsum([not token.startswith('##') for token in tokens]) - 1
    texts = [''] * (int(word_P[-1]) + 1 if len(word_P) else 0)
    for token, word in zip(tokens, word_P):
        texts[word] += token.removeprefix('##') if texts[word] else token
    name = 'question and choice' if 'choices' in one.row and target.kind == 'answer' else 'question'
    return name, texts, by_word(values, word_P, len(texts))


def _gold(task, one) -> str:
    gold = int(one.row.get('gold', -1))
    return task.answer_text(gold, one.example) if gold >= 0 else ''


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
