"""Quirks of the published e-UG code, on request: `--config.compat=original`, or some, `--config.compat=1,3`.

Published numbers and checkpoints of e-UG depend on them. The default, 'fixed', does the right thing. What else is odd
in the published code are plain bugs (crashes, constants instead of scores); those are not reproduced.
"""

# Number (that of the facts sheet the list was made from) -> what the original does.
QUIRKS = {
    1: 'the context overwrites the end-of-image and the begin-of-question marker in GPT-2: it starts one slot late',
    2: "GPT-2's token types are the embeddings of the first four words of its vocabulary",
    3: 'every picture of a batch has as many regions as the largest one; the zero vectors among them are attended to',
    4: "the encoder's outputs at text padding are part of what GPT-2 reads",
    5: 'the text for the encoder is lower-cased although its word vocabulary is cased',
    6: "a region's location: pixels, y before x, for VQA; elsewhere relative, with width and height swapped",
    7: 'with optim.accum = k only the last micro-batch of a step trains, with 1/k of its gradient',
    8: 'the optimiser is BertAdam: no bias correction, norms and biases decay too, the first update has rate 0',
    12: 'in VCR references only the tags 0 to 9 become numbers; in generated explanations all do',
    14: 'coco, choosing checkpoints: a VQA answer is right if any annotator gave it; fixed: if no answer scores higher',
    17: 'BLEU, ROUGE-L and CIDEr split texts at blanks (protocol evil); fixed: that, and beside it coco, on words',
}
FIXED, ORIGINAL = 'fixed', 'original'


def parse(value: str) -> frozenset[int]:
    """Quirks that a value of `config.compat` asks for.

    Raises:
      ValueError: neither 'fixed', 'original' nor numbers of quirks.
    """
    if value in (FIXED, ORIGINAL):
        return frozenset(QUIRKS if value == ORIGINAL else ())
    parts = [part.strip() for part in value.split(',')]
    wrong = [part for part in parts if not part.isdecimal() or int(part) not in QUIRKS]
    if wrong:
        raise ValueError(
            f"config.compat is {value!r}: {wrong[0]!r} is no quirk; wanted 'fixed', 'original' or some of "
            f'{", ".join(map(str, QUIRKS))}'
        )
    return frozenset(map(int, parts))


def has(config, quirk: int) -> bool:
    """Whether a config asks for a quirk."""
    if quirk not in QUIRKS:
        raise AssertionError(f'{quirk} is no quirk')
    return quirk in parse(config.compat)


def lowercase(config) -> bool | None:
    """What `data.lowercase` means for M_T's text; None: as the vocabulary was made (WordTokenizer.load).

    'yes' and 'no' are what they say; with 'auto' quirk 5 lower-cases whatever the vocabulary.
    """
    if config.data.lowercase != 'auto':
        return config.data.lowercase == 'yes'
    return True if has(config, 5) else None


def attention_dropout(config) -> float:
    """Rate of dropout on attention probabilities: `model.dropout` under 'original', else 0.

    BERT and GPT-2 drop them in training, and so does e-UG. It takes the probabilities as an array, which the fast
    attention never makes; dropout of each branch's output, which is always there, regularises too. It is no numbered
    quirk, because nothing that was published depends on it once training is over.
    """
    return config.model.dropout if config.compat == ORIGINAL else 0.0


def cut_pairs(config) -> bool:
    """Whether a pair of question and choice (VCR) that is too long loses its end, and with it even the mark between.

    No numbered quirk either: 'original' cuts so, otherwise the question gives way.
    """
    return config.compat == ORIGINAL


def locations(config) -> str:
    """The convention of location features (data/features/locations.py) that `data.locations` means.

    A convention is what it says; 'auto' is UNITER's, or with quirk 6 that of e-UG's code for the data set.
    """
    if config.data.locations != 'auto':
        return config.data.locations
    if not has(config, 6):
        return 'uniter'
    return 'evil_vqax' if config.data.builder in ('vqav2', 'vqax', 'shapes_vqa') else 'evil_lmdb'
