"""Rules in plain words."""

# Family -> (what is edited, what takes its place: in an edit, in each of several ones, in several on average).
_FAMILIES = {
    'synonym_verb': ('a verb', 'a synonym', 'any synonym', 'synonyms'),
    'synonym_adjective': ('an adjective', 'a synonym', 'any synonym', 'synonyms'),
    'hypernym': ('a noun', 'a more general word', 'any more general word', 'more general words'),
    'hyponym': ('a noun', 'a more specific word', 'any more specific word', 'more specific words'),
    'sibling': ('a noun', 'another of its kind', 'any other of its kind', 'others of its kind'),
    'colour_max': ('a colour', 'a distant colour', 'any distant colour', 'distant colours'),
    'colour_min': ('a colour', 'a near colour', 'any near colour', 'near colours'),
}
_CONDITIONS = {
    ('asks', 'colour'): 'In questions for a colour, where {}',
    ('asks', 'count'): 'In questions for a number, where {}',
    ('asks', 'yes/no'): 'In yes/no questions, where {}',
    ('asks', 'statement'): 'In statements, where {}',
    ('role', 'head'): 'Where {} that stands for itself',
    ('role', 'modifier'): 'Where {} before another noun',
    ('role', 'determiner'): 'Where {} that counts, portions or depicts another one',
    ('role', 'of'): 'Where {} that says what another noun is of',
    ('twin', 'noun'): 'Where {} that is a noun as well',
    ('senses', 'one'): 'Where {} of one sense',
    ('senses', 'few'): 'Where {} of two to four senses',
    ('senses', 'many'): 'Where {} of five senses or more',
}
_SHOULD = {'INV': ' that should keep it', 'CHANGE': ' that should change it', 'FREE': ''}
_SHOWN = 3  # members of a class


def sentence(rule) -> str:
    """What a rule says, its numbers, and how sure they are."""
    blank = rule.family == 'blank'
    said = 'With a blank picture' if blank else f'{_where(rule)} {_done(rule)}'
    outcome = 'changes' if rule.kind == 'SENSITIVE' or (not rule.kind and rule.expectation == 'INV') else 'is kept'
    parts = [
        f'{said}, the answer {outcome}{": " if rule.kind else " in "}{rule.k} of {rule.n}'
        f'{"" if blank else _SHOULD[rule.expectation]}, 95 % interval {_decimal(rule.low)} to {_decimal(rule.high)}, '
        f'{rule.images} picture{"s" * (rule.images != 1)}.'
    ]
    if blank and rule.kind == 'STABLE':
        parts.append('The picture hardly matters.')
    if rule.exceptions and rule.kind:
        parts.append(f'Not so: {", ".join(rule.exceptions[:_SHOWN])}{", ..." * (len(rule.exceptions) > _SHOWN)}.')
    if rule.kind and rule.confirmation:
        k, n = rule.confirmation
        parts.append(f'On the half of the pictures that confirms: {k} of {n}.')
    return ' '.join(parts)


def _where(rule):
    word = _FAMILIES.get(rule.family, ('a noun' if rule.family == 'delete' else 'a word',))[0]
    if rule.condition:
        known = 'In questions that ask ' + rule.condition[1] + ', where {}'
        return _CONDITIONS.get(rule.condition, known).format(word)
    if rule.synset:
        name = rule.synset.rsplit('.', 2)[0].replace('_', ' ')
        some = ', '.join(rule.members[:_SHOWN]) + ', ...' * (len(rule.members) > _SHOWN)
        return f'Where a kind of {name} ({some})'
    return f'Where {rule.source or word}'


def _done(rule):
    if rule.family == 'delete':
        return 'is deleted'
    if rule.target:
        return f'is replaced by {rule.target}'
    _, one, every, several = _FAMILIES.get(rule.family, ('', 'another word', 'any other word', 'other words'))
    if rule.any_target:
        return f'is replaced by {every}'
    if rule.level == 'source' and rule.targets > 1:
        return f'is replaced by {several} on average'
    return f'is replaced by {one}'


def _decimal(share):
    """'.94', and '1.00'."""
    return f'{share:.2f}'.removeprefix('0')
