"""Numbers that papers report, to stand beside ours: published.json, with a source and a protocol for each row.

A published number is comparable with one of ours under the same protocol at best (metrics/protocol.py), and only if its
authors did what they say. Values are on our scale: shares instead of percent, CIDEr 1.106 instead of 110.6. Scores that
people gave are named s_e_human and s_o_human.
"""

import dataclasses
import json
import pathlib
from collections.abc import Mapping

PATH = pathlib.Path(__file__).with_name('published.json')
DATA_SETS = ('vqax', 'esnlive', 'vcr')


@dataclasses.dataclass(frozen=True)
class Published:
    """One system in one table.

    Attributes:
      system: as the source calls it; 'ground truth' = the gold explanations, rated.
      data_set: 'vqax', 'esnlive' or 'vcr'.
      protocol: one of ours, 'ofax' (a human study of its own) or 'unknown'.
      set: whose explanations were scored: of 'correct' answers, 'all', or 'unknown'. s_t and accuracy are over all.
      metrics: score name -> value.
      source: authors, venue, year, where to find it, table.
      verified: the numbers were read in the source, or in a paper that repeats it.
      unverified: of a verified row, the metrics that were not.
      note: what else a reader must know.
    """

    system: str
    data_set: str
    protocol: str
    set: str
    metrics: Mapping[str, float]
    source: str
    verified: bool
    unverified: tuple[str, ...] = ()
    note: str = ''


@dataclasses.dataclass(frozen=True)
class Correlation:
    """Spearman's rho of a metric with human ratings; `data_set` 'all' = the three together.

    significant: False where the source says that it is not.
    """

    metric: str
    data_set: str
    rho: float
    source: str
    significant: bool = True


@dataclasses.dataclass(frozen=True)
class Shares:
    """How often raters said what; `data_set` 'all' = the three together.

    shares: words of `human.study` -> share of the ratings.
    """

    system: str
    data_set: str
    shares: Mapping[str, float]
    source: str


def read(data_set: str) -> list[Published]:
    """The rows of a data set, in the order of the file; of one that no paper reports, none."""
    document = _document()
    return [_row(row, document['papers']) for row in document['rows'] if row['data_set'] == data_set]


def correlations(data_set: str | None = None) -> list[Correlation]:
    """How published metrics agree with people (e-ViL, Table 6); None = every data set."""
    document = _document()
    rows = [_sourced(row, document['papers']) for row in document['correlations']]
    return [Correlation(**row) for row in rows if data_set in (None, row['data_set'])]


def ratings() -> list[Shares]:
    """The four ratings of gold explanations (e-ViL, Table 2); the shares of a data set sum to 1."""
    return _shares('ratings')


def shortcomings() -> list[Shares]:
    """What raters found wanting (e-ViL, Table 5); several may be said of one explanation."""
    return _shares('shortcomings')


def protocols() -> dict[str, str]:
    """What each protocol of the published rows means, in a sentence."""
    return _document()['protocols']


def _shares(kind):
    document = _document()
    return [Shares(**_sourced(row, document['papers'])) for row in document[kind]]


def _document():
    return json.loads(PATH.read_text(encoding='utf-8'))


def _row(row, papers):
    row = _sourced(row, papers)
    return Published(**row | {'unverified': tuple(row.get('unverified', ()))})


def _sourced(row, papers):
    """Puts the paper's name where its key was."""
    row = dict(row)
    paper, table = papers[row.pop('paper')], row.pop('table')
    venue = f'{paper["venue"]} {paper.get("year", "")}'.strip()
    parts = [paper['authors'], venue, paper['where'], f'Table {table}' if table else '']
    return row | {'source': ', '.join(part for part in parts if part)}
