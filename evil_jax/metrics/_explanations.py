"""Explanations as a protocol wants them, and the tables that metrics make of them."""

import dataclasses
import re
from collections.abc import Mapping

import numpy as np

from evil_jax import lookup
from evil_jax.metrics import base, judging, ptb, resources
from evil_jax.metrics import protocol as protocols


def _python_words(texts):
    return [' '.join(ptb.words(line)) for line in texts], ptb.PYTHON


def tables(
    rows: judging.Rows,
    correct: np.ndarray,
    metrics,
    protocol: protocols.Protocol,
    tags: str,
    tokenise,
    reasons: dict,
    open_answers: bool,
) -> tuple[list[tuple[base.Table, str]], dict[str, str]]:
    """[(Table, part)] over all explained examples and over the correct ones among them; {score: why it is absent}.

    Args:
      rows: (prediction, example) pairs.
      correct: [N] booleans.
      metrics, tags, tokenise: as for `evil.sheet`.
      protocol: prepares the texts.
      reasons: gets why a part has no scores.
      open_answers: as for `evil.sheet`.
    """
    with_gold = [i for i, (_, e) in enumerate(rows) if e.explanations]
    chosen = [i for i in with_gold if rows[i][0].explanation is not None]
    if not with_gold:
        reasons['all'] = reasons['correct'] = 'no example has a gold explanation'
    elif not any((p.explanation or '').strip() for p, _ in rows):
        reasons['all'] = reasons['correct'] = 'no prediction has an explanation'
    else:
        if len(chosen) < len(with_gold):
            n = len(with_gold) - len(chosen)
            reasons['all'] = f'{n} of {len(with_gold)} predictions come without an explanation'
        if reasons['task']:
            reasons['correct'] = reasons['task']
        elif not correct[with_gold].any():
            reasons['correct'] = 'no example with a gold explanation was answered correctly'
        elif n := int(correct[with_gold].sum() - correct[chosen].sum()):
            reasons['correct'] = f'{n} correctly answered predictions come without an explanation'
    scored = {part for part in ('all', 'correct') if not reasons[part]}
    chosen = chosen if scored else []
    texts = _texts([rows[i] for i in chosen], protocol, tags, open_answers)
    words, tokeniser = _tokenised(texts, tokenise or _python_words) if protocol.words else (texts, '')
    right = {rows[i][1].id for i in chosen if correct[i]}
    result, absent = [], {}
    named = metrics.items() if isinstance(metrics, Mapping) else [(getattr(m, '__name__', m), m) for m in metrics]
    for name, metric in named:
        split = name in protocols.TOKENISED
        function, names = _metric(name, metric)
        try:
            table = function(*(words if split else texts))
            picked = table.take(np.flatnonzero([i in right for i in table.ids]))
        except resources.Unavailable as error:
            absent[names[0]] = str(error)
            continue
        for part, of in (('all', table), ('correct', picked)):
            # Without rows the columns would be empty: they are there to be named.
            of = of if part in scored else of.take(np.zeros(0, int))
            result.append((_resigned(of, tokeniser) if split and tokeniser else of, part))
    return result, absent


def _texts(rows, protocol, tags, open_answers):
    """({id: prediction}, {id: references}) as the protocol wants them."""
    clean = lambda line, tags: protocol.clean(protocols.without_tags(line, tags))
    predictions = {e.id: clean(p.explanation, 'all') for p, e in rows}
    references = {e.id: [clean(line, tags) for line in protocol.references(e, open_answers)] for _, e in rows}
    return predictions, references


def _tokenised(texts, tokenise):
    """The same texts as words joined by blanks, and the tokeniser's name. It is called once: it may be a program."""
    predictions, references = texts
    flat = [*predictions.values(), *[line for lines in references.values() for line in lines]]
    different = list(dict.fromkeys(flat))
    lines, name = tokenise(different)
    words = dict(zip(different, lines, strict=True))
    return (
        {i: words[line] for i, line in predictions.items()},
        {i: [words[line] for line in lines] for i, lines in references.items()},
    ), name


def _resigned(table, tokeniser):
    """A metric that got words joined by blanks knows of blanks only: its signature has to tell of the words."""

    def told(signature):
        signature = signature.replace('|case:mixed', '|case:lower')
        if '|tok:none' in signature:
            return re.sub(r'\|tok:none[^|]*', f'|tok:{tokeniser}', signature)
        return signature.replace('|version:', f'|input:{tokeniser}|version:')  # it splits words in its own way, too

    return dataclasses.replace(table, signatures={name: told(line) for name, line in table.signatures.items()})


def _metric(name, metric):
    """(function, score names) of a metric."""
    if not isinstance(metric, str):
        module = lookup.module('metrics', name) if name in lookup.names('metrics') else None
        return metric, getattr(module, 'NAMES', (name,))
    module = lookup.module('metrics', metric)
    if not hasattr(module, 'table'):
        raise ValueError(f'{metric!r} is not a metric of explanations')
    return module.table, getattr(module, 'NAMES', (metric,))
