"""What becomes of a row while sources are joined: a pair, or dropped with a reason; and what is wrong with files."""

import collections
import re
from collections.abc import Callable, Mapping

from evil_jax.construction import _pair_files
from evil_jax.construction._explanation_index import Index
from evil_jax.construction.pairs import Pair
from evil_jax.data.sources import _files, esnli, snli

REASONS = (
    'no_label', 'visual_genome', 'duplicate', 'no_split', 'no_explanation', 'text_mismatch', 'label_mismatch',
)  # fmt: skip
_CAPTION = re.compile(r'#(\d{1,3})r', re.ASCII)  # number of the caption in a pairID
_NO_WORD = re.compile(r'[\W_]+')
_SHOWN = 10  # ids in a message


class Joining:
    """Decides row by row. `check` at the end tells what is wrong with the files.

    Attributes:
      counts: {(split, class): pairs}.
      dropped: {(reason, split): rows}.
      pooled: {split: rows of SNLI and SNLI-VE before they need an explanation}, what SNLI-VE's authors count.
      brought: {picture: captions} that rows bring.
      without_captions: pairs of each picture that has no captions, when checked.
      unused: rows of e-SNLI without a pair, when checked.
    """

    def __init__(
        self,
        index: Index,
        splits: Mapping[str, str],
        captions: Mapping[str, list[str]],
        keep: Callable[[Pair], object],
        drop: Callable[[Pair, str, str], object],
    ):
        """Args:
        index: empty.
        splits: {picture: split}; empty = rows and names of files say it.
        captions: {picture: texts} of the captions' file.
        keep, drop: get each row, dropped ones with reason and detail.
        """
        self._index, self._splits, self._captions, self._keep = index, splits, captions, keep
        self._write_dropped = drop
        self._explained = False
        self._repeated = {'pairs': [], 'explanations': []}
        self._first_repeat = {}
        self._joined, self._examples = 0, []
        self._pictures = collections.Counter()
        self._brought_at: dict[str, str] = {}
        self.counts, self.dropped, self.pooled = (collections.Counter() for _ in range(3))
        self.brought: dict[str, list[str]] = {}
        self.without_captions, self.unused = collections.Counter(), (0, [])

    def explain(self, row: esnli.Row) -> None:
        """Takes a row of e-SNLI; all of them come before the pairs."""
        self._explained = True
        if before := self._index.add(row):
            self._repeat('explanations', row.id, row.where, before)
            texts = row.premise, row.hypothesis
            pair = Pair(row.id, '', *texts, row.label, '', row.explanations, row.marked, '', row.where)
            self._drop(pair, 'duplicate', f'explanations of this pairID are already at {before}')

    def add(self, found: _pair_files.Found, kind: str, file_split: str) -> None:
        """Takes a row of pairs.

        Args:
          kind: of its file.
          file_split: what the file's name says, for rows that do not.

        Raises:
          ValueError: nothing tells its split; other captions of its picture than another row's.
        """
        pair = found.pair
        pair.split = self._split(pair, kind, file_split)
        if found.genome:
            self._index.see(pair.id, pair.where)  # e-SNLI has it too
            return self._drop(pair, 'visual_genome', "its premise is a caption of Visual Genome, not of Flickr30k's")
        if pair.label == snli.UNLABELLED:
            return self._drop(pair, 'no_label', 'the annotators did not agree on a label')
        if before := self._index.see(pair.id, pair.where):
            self._repeat('pairs', pair.id, pair.where, before)
            return self._drop(pair, 'duplicate', f'this pairID is already at {before}')
        if not pair.split:
            if not self._splits:
                raise ValueError(
                    f'{pair.where}: nothing tells the split of {pair.id!r}: wanted a column split, or one of train, '
                    'dev, test in the name of the file, or lists of pictures in construct.splits'
                )
            return self._drop(pair, 'no_split', f'picture {pair.image_id} is in no list of construct.splits')
        if kind in (_pair_files.SNLI, _pair_files.SNLI_VE):
            self.pooled[pair.split] += 1
        if not pair.explanations and (self._explained or kind == _pair_files.LINES):
            row = self._index.find(pair.id)
            if row is None or not row.explanations:
                what = 'no file of explanations has this pairID' if row is None else f'none is at {row.where}'
                return self._drop(pair, 'no_explanation', what)
            pair.explanations, pair.marked = row.explanations, row.marked
            self._joined += 1
            if mismatch := _mismatch(pair, row):
                self._examples = [*self._examples, mismatch[1]][:2]
                return self._drop(pair, *mismatch)
        if found.captions:
            self._bring(pair, found.captions)
        pair.premise = pair.premise or self._caption(pair)
        self._pictures[pair.image_id] += 1
        self.counts[pair.split, pair.label] += 1
        self._keep(pair)

    def check(self, allow, max_mismatch: float) -> None:
        """Raises:
        ValueError: repeated pairIDs or pictures without captions where `allow` lacks 'duplicates' or 'captions', more
          than max_mismatch pairs that the files contradict, or no pair at all.
        """
        self.unused = self._index.unused(_SHOWN)
        for role, repeats in self._repeated.items():
            if repeats and 'duplicates' not in allow:
                where, before = self._first_repeat[role]
                raise ValueError(
                    f'construct.{role}: pairIDs stand there more than once, {_files.some_ids(repeats, _SHOWN)}; '
                    f"the first one at {where} was already at {before}. construct.allow with 'duplicates' takes the "
                    'first of each'
                )
        bad = sum(n for (reason, _), n in self.dropped.items() if reason in ('text_mismatch', 'label_mismatch'))
        if bad > max_mismatch * self._joined:
            raise ValueError(
                f'{bad:,} of {self._joined:,} pairs ({bad / self._joined:.1%}) are not the same in construct.pairs and '
                'construct.explanations: a file is shifted or of another version. For example: '
                f'{"; ".join(self._examples)}. construct.max_mismatch={max_mismatch:g} allows that share of them'
            )
        if not self.counts:
            why = ', '.join(f'{reason} {n:,}' for reason, n in self.by_reason().items()) or 'the files have no rows'
            raise ValueError(f'construct.pairs: no pair is left after merging ({why})')
        known = self._captions.keys() | self.brought.keys()
        self.without_captions = collections.Counter({p: n for p, n in self._pictures.items() if p not in known})
        missing = [picture for picture in self.without_captions if picture]
        if known and missing and 'captions' not in allow:
            raise ValueError(
                f'construct.captions: pictures of {self.without_captions.total():,} pairs have no captions, '
                f"{_files.some_ids(missing, _SHOWN)}. construct.allow with 'captions' lets their pairs pass the "
                'filters that ask for captions'
            )

    def by_reason(self) -> dict[str, int]:
        """Rows dropped for each reason."""
        sums = collections.Counter()
        for (reason, _), n in self.dropped.items():
            sums[reason] += n
        return {reason: sums[reason] for reason in REASONS if reason in sums}

    def _drop(self, pair, reason, detail):
        self.dropped[reason, pair.split] += 1
        self._write_dropped(pair, reason, detail)

    def _repeat(self, role, pair_id, where, before):
        self._repeated[role].append(pair_id)
        self._first_repeat.setdefault(role, (where, before))

    def _split(self, pair, kind, file_split) -> str:
        if kind == _pair_files.SNLI:
            return self._splits.get(pair.image_id, '')
        return pair.split or file_split or self._splits.get(pair.image_id, '')

    def _bring(self, pair, captions):
        before = self.brought.setdefault(pair.image_id, captions)
        at = self._brought_at.setdefault(pair.image_id, pair.where)
        if before != captions or self._captions.get(pair.image_id, captions) != captions:
            other = 'construct.captions' if before == captions else at
            raise ValueError(f'{pair.where}: picture {pair.image_id!r} has other captions than in {other}')

    def _caption(self, pair) -> str:
        """The caption that the pairID names, or ''."""
        texts = self._captions.get(pair.image_id) or self.brought.get(pair.image_id) or ()
        match = _CAPTION.search(pair.id)
        return texts[int(match[1])] if match and int(match[1]) < len(texts) else ''


def _mismatch(pair, row) -> tuple[str, str] | None:
    """(reason, detail) where SNLI and e-SNLI do not say the same."""
    for name, ours, theirs in (
        ('premise', pair.premise, row.premise),
        ('hypothesis', pair.hypothesis, row.hypothesis),
    ):
        # Pairs of one's own may lack the premise.
        if ours != theirs and (ours or name == 'hypothesis') and normalised(ours) != normalised(theirs):
            ours, theirs = ours[:80], theirs[:80]
            return 'text_mismatch', f'{pair.id}: {name} at {pair.where} is {ours!r}, at {row.where} {theirs!r}'
    if pair.label != row.label:
        return 'label_mismatch', f'{pair.id}: label at {pair.where} is {pair.label}, at {row.where} {row.label}'
    return None


def normalised(text: str) -> str:
    """Letters and digits: case, blanks and marks, with or without blanks around them, make no difference."""
    return _NO_WORD.sub('', text.casefold())
