"""Signatures of the scores of a sheet: what they have in common, and what combined scores are combinations of."""

import hashlib
import re
from collections.abc import Mapping

from evil_jax.metrics import _sheet, base, judging, protocol

_COMBINED = re.compile(r'ngram|s_[eo]_')


class Signer:
    """What all signatures of a sheet have in common.

    Args:
      rows: (prediction, example) pairs.
      total: number of examples of the references, of which these are all or some.
      preset: the protocol.
      rule: which answers are correct.
      tags: which object tags became numbers.
      judge: of answers; its name is told.
    """

    def __init__(self, rows: judging.Rows, total: int, preset: protocol.Protocol, rule: str, tags: str, judge):
        self.judge = getattr(judge, '__qualname__', type(judge).__name__)
        self.task = {'protocol': preset.name, 'correct': rule, 'scored': f'{len(rows)}/{total}'}
        if len(rows) < total:  # which ones: two systems may lack as many, and others
            self.task['ids'] = _digest(example.id for _, example in rows)
        if by := judging.chosen_by(rows):
            self.task['choice'] = by
        self.explained = self.task | {'cond': '+'.join(sorted({p.condition for p, _ in rows}))}
        if any('<|det' in line for p, e in rows for line in (p.explanation or '', *e.explanations)):
            self.explained['det'] = tags
        if preset.texts:
            self.explained['texts'] = preset.texts

    def own(self, name: str) -> str:
        """Of a score of answers."""
        return base.signature(name, judge=self.judge, **self.task)

    def full(self, name: str, own: str, options: Mapping[str, object], parts: Mapping[str, str]) -> str:
        """Of a score of a subset.

        Args:
          name: of the score.
          own: what the metric says itself; '' = it is a combination, or absent.
          options: `task` or `explained`, and what was added for the subset.
          parts: signatures of all metrics; a combination has a digest of those it is made of, and their words.
        """
        if own:
            own, _, version = own.partition('|version:')
            return (
                '|'.join([own, *[f'{k}:{v}' for k, v in options.items() if f'|{k}:' not in own]])
                + f'|version:{version}'
            )
        made = {}
        if _COMBINED.match(name):
            made['is'], of = _made_of(name)
            if of and all(part in parts for part in of):
                words = re.search(r'\|tok:([^|]*)', parts[of[-1]] if of[-1] != _sheet.BERTSCORE else parts[of[0]])
                made |= {'tok': words[1]} if words else {}
                made['parts'] = _digest(parts[part] for part in of)
        return base.signature(name, judge=self.judge, **(made | dict(options)))


def _digest(lines) -> str:
    return hashlib.sha256('\n'.join(lines).encode()).hexdigest()[:8]


def _made_of(name) -> tuple[str, list[str]]:
    """What a combined score is a combination of: in words, and the metrics."""
    if name.endswith('_true'):
        return ('s_t*' if name.startswith('s_o_') else '') + 'share of true explanations', []
    if name.startswith('s_o_'):
        of_s_e = f's_e_{name.removeprefix("s_o_")}'
        return f's_t*{of_s_e}', _made_of(of_s_e)[1]
    if name == 's_e_fast':
        return '+'.join(_sheet.FAST), list(_sheet.FAST)
    missing = name.partition('_without_')[2]
    there = [n for n in _sheet.NGRAM if not re.search(rf'(^|_){n}(_|$)', missing)]
    if name.startswith('ngram') or _sheet.BERTSCORE in missing:
        return '+'.join(there), there
    return f'harmonic({"+".join(there)})+{_sheet.BERTSCORE}', [*there, _sheet.BERTSCORE]
