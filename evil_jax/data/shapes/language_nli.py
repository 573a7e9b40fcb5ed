"""What e-SNLI has of a pair in this world: explanations by the premise, and the words that decide."""

from evil_jax.data.shapes.queries import ENTAILMENT, NEUTRAL, Query

_DULL = frozenset(('there', 'is', 'a', 'the', 'that', 'of', 'colour'))


def explain(query: Query, label: str) -> list[str]:
    """Three explanations of a label by the premise; of what exists, colours and sizes."""
    noun = ' '.join(filter(None, (query.noun.colour, query.noun.shape)))
    if label == NEUTRAL:
        exists = query.kind == 'exists'
        open_question = f'whether there is a {noun}' if exists else f'the {query.kind} of the {noun}'
        return [f'Nobody tells {open_question}.', f'We cannot know {open_question}.', f'It is open {open_question}.']
    claim = f'there is a {noun}' if query.kind == 'exists' else f'the {noun} is {query.value}'
    if label == ENTAILMENT:
        return [f'It is told that {claim}.', f'We know that {claim}.', f'As {claim}, this holds.']
    return [f'It cannot be that {claim}.', f'What is told excludes that {claim}.', f'It is not so that {claim}.']


def about_text(hypothesis: str) -> str:
    """An explanation that tells of the sentence, as e-SNLI has some, and nothing of what is seen."""
    return f'"{hypothesis.rstrip(".")}" is another way to say what the first sentence says.'


def marked(sentence: str, hypothesis: str) -> tuple[str, str]:
    """(a sentence whose decisive words, those of the hypothesis, stand between *, their indices as e-SNLI has them)."""
    decisive = set(hypothesis.lower().rstrip('.').split()) - _DULL
    words, indices = sentence.split(), []
    for i, word in enumerate(words):
        bare = word.rstrip('.,')
        if bare.lower() in decisive:
            words[i] = f'*{bare}*{word.removeprefix(bare)}'
            indices.append(str(i))
    return ' '.join(words), ','.join(indices) or '{}'
