"""Is a downloaded folder's vocabulary the one that a data set was built with? Rows of a word table mean nothing else.

Files without a vocabulary beside them tell of theirs only by its size.
"""

import pathlib

from absl import logging

from evil_jax.data import tokenizers
from evil_jax.interop import weights

_SHOWN = 3


def word_faults(path: pathlib.Path, word: tokenizers.WordTokenizer) -> list[str]:
    """What differs between the word pieces of a folder (vocab.txt or tokenizer.json) and the data set's.

    The folder is `weights.folder_of(path)`; one without them gives []. Another treatment of case is warned of: e-UG
    reads a cased vocabulary lower-cased.
    """
    folder = weights.folder_of(path)
    if folder is None:
        return []
    if (folder / 'vocab.txt').is_file():
        there = tokenizers.WordTokenizer.load(folder)
        if there.lowercase != word.lowercase:
            sides = {True: 'lower-cases text', False: 'keeps the case of text'}
            logging.warning('%s %s, the data set %s', folder, sides[there.lowercase], sides[word.lowercase])
        found = {token: n for n, token in enumerate(there.vocabulary)}
    elif (model := _model(folder, 'WordPiece')) is not None:
        found = model['vocab']
    else:
        return []
    ours = {token: n for n, token in enumerate(word.vocabulary)}
    return _faults(found, ours, f'{folder}: its word pieces', 'data.word_vocab')


def expl_faults(path: pathlib.Path, expl: tokenizers.ExplTokenizer) -> list[str]:
    """The same for GPT-2's tokens: vocab.json and merges.txt (also under OpenAI's names) or tokenizer.json.

    Markers may be among them, where they have our ids; what has higher ids is no token of ours.
    """
    folder = weights.folder_of(path)
    if folder is None:
        return []
    if any((folder / name).is_file() for name in ('vocab.json', 'encoder.json')):
        found, merges = _read_pair(folder)
    elif (model := _model(folder, 'BPE')) is not None:
        found = model['vocab']
        merges = [tuple(m.split(' ')) if isinstance(m, str) else tuple(m) for m in model['merges']]
    else:
        return []
    ours = dict(expl.vocabulary)
    markers = {token: expl.id(token) for token in tokenizers.SPECIALS}
    if any(token in found for token in markers):
        ours |= markers
    found = {token: n for token, n in found.items() if n < max(len(ours), expl.size)}
    faults = _faults(found, ours, f'{folder}: its tokens', 'data.expl_vocab')
    if not faults and tuple(merges) != tuple(expl.merges):
        faults.append(
            f'{folder}: the same tokens as in data.expl_vocab, but other merges: texts are cut in another way'
        )
    return faults


def _read_pair(folder):
    names = next(n for n in (('vocab.json', 'merges.txt'), ('encoder.json', 'vocab.bpe')) if (folder / n[0]).is_file())
    vocabulary, merges = (folder / name for name in names)
    if not merges.is_file():
        raise ValueError(f'{vocabulary} has no {merges.name} beside it')
    lines = merges.read_text(encoding='utf-8').split('\n')
    lines = lines[1:] if lines[0].startswith('#version') else lines
    return _ids(weights.read_json(vocabulary), vocabulary), [tuple(line.split(' ')) for line in lines if line]


def _model(folder, kind):
    """`model` of a tokenizer.json, with the added tokens among its `vocab`; None where there is none."""
    path = folder / 'tokenizer.json'
    if not path.is_file():
        return None
    found = weights.read_json(path)
    try:
        model = found['model']
        added = {token['content']: token['id'] for token in found.get('added_tokens') or ()}
        vocabulary = _ids(model['vocab'] | added, path)
        merges = [m if isinstance(m, str) else tuple(m) for m in model.get('merges', ())]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f'{path}: no tokenizer of the tokenizers library: {type(error).__name__}: {error}') from error
    if (named := model.get('type', kind)) != kind:
        raise ValueError(f'{path}: its model is {named}, wanted {kind}')
    return {'vocab': vocabulary, 'merges': merges}


def _ids(vocabulary, path):
    wrong = next((t for t, n in vocabulary.items() if not isinstance(n, int) or isinstance(n, bool)), None)
    if wrong is not None:
        raise ValueError(f'{path}: entry {wrong!r} has id {vocabulary[wrong]!r}, wanted an integer')
    return vocabulary


def _faults(found, ours, what, setting) -> list[str]:
    if found == ours:
        return []
    moved = sorted((n, token) for token, n in found.items() if ours.get(token) != n)
    lost = sorted((n, token) for token, n in ours.items() if found.get(token) != n)
    examples = ', '.join(f'{token!r} is {n}' for n, token in moved[:_SHOWN] or lost[:_SHOWN])
    side = 'there' if moved else 'here'
    return [
        f'{what} are {len(found)}, those of the data set ({setting}) {len(ours)}; '
        f'{len(moved or lost)} differ: {examples} {side}'
    ]
