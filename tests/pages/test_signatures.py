from evil_jax.pages import signatures


def system(name, df, metrics=('s_t', 'bleu1', 'bleu2', 'cider')):
    own = {
        's_t': 'metric:s_t|judge:x|protocol:evil|seed:0|version:a-1',
        'bleu1': 'metric:bleu1|tok:none|protocol:evil|set:correct|seed:0|version:a-1+b-2',
        'bleu2': 'metric:bleu2|tok:none|protocol:evil|set:correct|seed:0|version:a-1+b-2',
        'cider': f'metric:cider|tok:none|df:{df}|protocol:evil|set:correct|seed:0|version:a-1',
    }
    return {m: f'{own[m]}|predictions:{name}' for m in metrics}


def test_each_field_is_told_once():
    told = signatures.told({'A': system('aa', 3), 'B': system('bb', 4)})
    assert told == [
        ('all scores', 'protocol:evil|seed:0|version:a-1'),
        ('scores of explanations', 'tok:none|set:correct'),
        ('s_t', 'judge:x'),
        ('bleu1, bleu2', 'b-2'),
        ('A', 'predictions:aa|df:3 (cider)'),
        ('B', 'predictions:bb|df:4 (cider)'),
    ]


def test_nothing_is_lost():
    """The fields of the lines about a number are those of its signature."""
    given = {'A': system('aa', 3), 'B': system('bb', 4, ('s_t', 'cider')), 'C': system('aa', 3, ('bleu1',))}
    told = signatures.told(given)
    for label, lines in given.items():
        for metric, line in lines.items():
            found = []
            for whose, fields in told:
                if whose in ('all scores', label) or metric in whose.split(', '):
                    found += [f for f in fields.split('|') if '(' not in f or metric in f]
                elif whose == 'scores of explanations' and metric != 's_t':
                    found += fields.split('|')
            wanted = line.replace('+', '|').split('|')[1:]
            assert sorted(f.partition(' (')[0] for f in found) == sorted(wanted), (label, metric)


def test_few_or_no_signatures():
    assert signatures.told({}) == signatures.told({'A': {'cider': ''}}) == []
    assert signatures.told({'A': {'cider': 'metric:cider|n:4'}, 'B': {}}) == [('all scores', 'n:4')]
