"""CIDEr as coco-caption computes it, which is CIDEr-D (Vedantam et al., 2015, eq. 4 and section 8). Native scale 0..10.

For n = 1..4 a text is the vector of its n-gram counts times idf, idf = log(number of examples) - log(max(1, number of
examples whose references have the n-gram)). Similarity of candidate h and reference r:
sum(min(h, r) * r) / (|h| |r|) * exp(-(delta^2) / (2 * 6^2)), where delta is the difference in the number of *bigrams*
(a quirk of the code). Means over n and over references, times 10; the corpus score is the mean over examples.

The idf comes from the references of the scored set, so a subset has its own, and a single example scores 0. A stored
document frequency (`document_frequency`, `DocumentFrequency.save`) makes scores comparable across sets.

Since min(h, r) * r of an n-gram is idf^2 times a product of counts, the counts are taken once and each document
frequency costs one sparse product.
"""

import dataclasses
import hashlib
import json
import warnings

import numpy as np
import scipy.sparse

from evil_jax import records, text
from evil_jax.metrics import base
from evil_jax.records import Score

NAMES = ('cider',)
ORDERS = 4
SIGMA = 6.0
SCALE = 10.0


@dataclasses.dataclass(frozen=True)
class DocumentFrequency:
    """In how many of `documents` examples an n-gram occurs in some reference. Keys are tokens joined by blanks."""

    documents: int
    counts: dict[str, int]

    def __post_init__(self):
        most = max(self.counts.values(), default=0)
        if self.documents < 1 or most > self.documents:
            raise ValueError(f'document frequency: {most} examples have an n-gram, but there are {self.documents}')

    def save(self, path) -> None:
        """Writes JSON, atomically."""
        records.write_json(path, dataclasses.asdict(self))

    @classmethod
    def load(cls, path) -> 'DocumentFrequency':
        """Reads what `save` wrote. Raises ValueError naming the file."""
        with open(path, encoding='utf-8') as file:
            try:
                return cls(**json.load(file))
            except (ValueError, TypeError, AttributeError) as error:
                raise ValueError(f'{path}: wanted {{"documents": n, "counts": {{n-gram: n}}}}: {error}') from error

    def digest(self) -> str:
        """8 hex digits that tell two tables apart."""
        items = json.dumps([self.documents, sorted(self.counts.items())])
        return hashlib.sha256(items.encode()).hexdigest()[:8]


def document_frequency(references: base.References) -> DocumentFrequency:
    """Document frequency of the references of a set."""
    counts: dict[str, int] = {}
    for texts in references.values():
        for ngram in {ngram for reference in texts for ngram in _ngrams(text.words(reference))}:
            counts[ngram] = counts.get(ngram, 0) + 1
    return DocumentFrequency(len(references), counts)


def table(
    predictions: base.Predictions, references: base.References, df: DocumentFrequency | None = None
) -> base.Table:
    """One row an example: its CIDEr. `df`: a stored document frequency, used for every subset too."""
    ids, candidates, reference_lists = base.join(predictions, references)
    return _table(_Counts(ids, candidates, reference_lists), np.arange(len(ids)), df)


def score(
    predictions: base.Predictions, references: base.References, df: DocumentFrequency | None = None
) -> dict[str, Score]:
    """{'cider': Score}. Raises ValueError as `base.join` does; warns where one example alone makes every score 0."""
    return table(predictions, references, df).scores()


def _table(counts: '_Counts', rows: np.ndarray, df: DocumentFrequency | None) -> base.Table:
    if len(rows) == 1 and df is None:
        warnings.warn(
            'CIDEr of a single example is 0: its document frequency is log(1). Score more examples, or pass df',
            stacklevel=2,
        )
    documents = len(rows) if df is None else df.documents
    signature = base.signature(
        NAMES[0], variant='cider-d', tok='none(blanks)', case='mixed',
        nrefs=base.nrefs([counts.reference_lists[i] for i in rows]), n=ORDERS, sigma=f'{SIGMA:g}',
        df=f'references({documents})' if df is None else f'given({documents},{df.digest()})', scale='0..10',
    )  # fmt: skip
    return base.mean_table(
        [counts.ids[i] for i in rows],
        NAMES[0],
        counts.score(rows, df),
        signature,
        select=lambda picked: _table(counts, rows[picked], df),
    )


class _Counts:
    """n-gram counts of N candidates and M references over a vocabulary of V n-grams, as sparse matrices."""

    def __init__(self, ids, candidates, reference_lists):
        self.ids = ids
        self.reference_lists = reference_lists
        self.owner_M = np.array([i for i, texts in enumerate(reference_lists) for _ in texts], np.int64)
        vocabulary: dict[str, int] = {}
        h_NV, h_length_N = _count(candidates, vocabulary)
        r_MV, r_length_M = _count([t for texts in reference_lists for t in texts], vocabulary)
        h_NV.resize(len(ids), len(vocabulary))
        h_MV = h_NV[self.owner_M]
        self.vocabulary = list(vocabulary)
        self.order_V = np.array([ngram.count(' ') for ngram in vocabulary], np.int64)
        self.hh_NV = h_NV.power(2)
        self.rr_MV = r_MV.power(2)
        self.hr_MV = h_MV.minimum(r_MV).multiply(r_MV).tocsr()
        # coco-caption's length of a text is its number of bigrams.
        delta_M = np.maximum(h_length_N[self.owner_M] - 1, 0) - np.maximum(r_length_M - 1, 0)
        self.gauss_M = np.exp(-(delta_M**2) / (2 * SIGMA**2))
        # Which n-grams the references of each example have, for document frequencies of subsets.
        owner_NM = scipy.sparse.csr_array(
            (np.ones(len(self.owner_M)), (self.owner_M, np.arange(len(self.owner_M)))), (len(ids), len(self.owner_M))
        )
        self.present_NV = (owner_NM @ r_MV > 0).astype(np.float64)

    def score(self, rows: np.ndarray, df: DocumentFrequency | None) -> np.ndarray:
        """CIDEr of the given rows, with the document frequency of these rows unless `df` is given."""
        if not len(rows):
            return np.zeros(0)
        if df is None:
            documents = len(rows)
            count_V = self.present_NV[rows].sum(0)
        else:
            documents = df.documents
            count_V = np.array([df.counts.get(ngram, 0) for ngram in self.vocabulary], np.float64)
        idf_V = np.log(documents) - np.log(np.maximum(1.0, count_V))
        # Squared idf in the column of the n-gram's order: one product gives the sums of all four orders.
        idf2_V4 = np.zeros((len(idf_V), ORDERS))
        idf2_V4[np.arange(len(idf_V)), self.order_V] = idf_V**2
        inside = np.isin(self.owner_M, rows)
        owner = self.owner_M[inside]
        norms = np.sqrt((self.hh_NV @ idf2_V4)[owner] * (self.rr_MV[inside] @ idf2_V4))
        # A zero norm leaves the numerator, which is then 0 too.
        similarity = (self.hr_MV[inside] @ idf2_V4) / np.where(norms > 0, norms, 1.0)
        per_reference = similarity.mean(1) * self.gauss_M[inside]
        size = len(self.ids)
        totals = np.bincount(owner, per_reference, size) / np.maximum(np.bincount(owner, minlength=size), 1)
        return SCALE * totals[rows]


def _count(texts: list[str], vocabulary: dict[str, int]):
    """Counts [texts, V] (CSR) and numbers of tokens; new n-grams are appended to the vocabulary."""
    columns, starts, lengths = [], [0], []
    for line in texts:
        tokens = text.words(line)
        columns.extend(vocabulary.setdefault(ngram, len(vocabulary)) for ngram in _ngrams(tokens))
        starts.append(len(columns))
        lengths.append(len(tokens))
    matrix = scipy.sparse.csr_array(
        (np.ones(len(columns)), np.array(columns, np.int64), np.array(starts, np.int64)),
        shape=(len(texts), len(vocabulary)),
    )
    matrix.sum_duplicates()
    return matrix, np.array(lengths, np.float64)


def _ngrams(tokens: list[str]) -> list[str]:
    """All n-grams, n = 1..4, tokens joined by blanks (tokens have none inside)."""
    return [
        ' '.join(tokens[i : i + n]) if n > 1 else tokens[i]
        for n in range(1, ORDERS + 1)
        for i in range(len(tokens) - n + 1)
    ]
