"""Signatures of the scores of a sheet: what they have in common, and what combined scores are combinations of."""

import re

from evil_jax.metrics import _sheet, base, judging


class Signer:
    """What all signatures of a sheet have in common.

    Args:
      total: number of examples where only some are scored; 0 = all are.
    """

    def __init__(self, rows, total, protocol, rule, tags, judge):
        self.judge = getattr(judge, '__qualname__', type(judge).__name__)
        self.task = {'protocol': protocol.name, 'correct': rule}
        if total:
            self.task['partial'] = f'{len(rows)}/{total}'
        if by := judging.chosen_by(rows):
            self.task['choice'] = by
        self.explained = self.task | {'cond': '+'.join(sorted({p.condition for p, _ in rows}))}
        if any('<|det' in line for p, e in rows for line in (p.explanation or '', *e.explanations)):
            self.explained['det'] = tags
        if protocol.texts:
            self.explained['texts'] = protocol.texts

    def own(self, name, **options) -> str:
        return base.signature(name, judge=self.judge, **(self.task | options))

    def full(self, name, column, options) -> str:
        if column is not None and column.table.signatures[name]:
            own, _, version = column.table.signatures[name].partition('|version:')
            parts = [own] + [f'{k}:{v}' for k, v in options.items() if f'|{k}:' not in own]
            return '|'.join(parts) + f'|version:{version}'
        return base.signature(name, judge=self.judge, **({'is': _made_of(name)} | options))


def _made_of(name):
    """What a combined score is a combination of."""
    if name.startswith('s_o_'):
        return f's_t*s_e_{name.removeprefix("s_o_")}'
    if name == 's_e_fast':
        return '+'.join(_sheet.FAST)
    if name == 's_e_true':
        return 'share of true explanations'
    missing = name.partition('_without_')[2]
    there = [n for n in _sheet.NGRAM if not re.search(rf'(^|_){n}(_|$)', missing)]
    if name.startswith('ngram'):
        return '+'.join(there)
    return f'harmonic({"+".join(there)})' + f'+{_sheet.BERTSCORE}' * (_sheet.BERTSCORE not in missing)
