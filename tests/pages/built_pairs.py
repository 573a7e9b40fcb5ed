"""A report of a construction, for tests to show: two filters, three splits, hand-checked pairs."""

CLASSES = ('contradiction', 'neutral', 'entailment')


def counts(*numbers):
    return dict(zip(CLASSES, numbers))


def share(value):
    return [value, max(0.0, value - 0.1), min(1.0, value + 0.1)]


def measures(**more):
    found = {name: share(0.8) for name in ('precision', 'recall', 'f1', 'before', 'after')}
    return found | {'n': 40, 'errors': 20, 'removed': 20, 'right': 16} | more


def sample(**more):
    captions = [{'text': 'A dog runs.', 'scores': [0.01, 0.04, 0.95]}, {'text': 'A hound.', 'scores': None}]
    return {
        'id': '7.jpg#0r1n', 'split': 'train', 'label': 'neutral', 'premise': 'A dog runs.',
        'hypothesis': 'A dog moves.',
        'explanation': 'This SENTENCE is a synonym.', 'value': 2.51, 'detail': 'all captions agree',
        'captions': captions,
    } | more  # fmt: skip


def condition(name='false_neutral', **more):
    points = [(1.0, 0.5, 0.1), (2.0, 0.9, 0.2), (3.0, 1.0, 0.3)]
    curve = [
        {'threshold': at, 'in_use': at == 2, 'kept': kept, 'error': e, 'low': e / 2, 'high': 2 * e, 'bad': None,
         'bad_low': None, 'bad_high': None}
        for at, kept, e in points
    ]  # fmt: skip
    return {
        'name': name, 'source': 'e-ViL 4.1', 'threshold': 2.0, 'settings': {}, 'splits': ['train'],
        'classes': ['neutral'], 'seen': {'train': counts(0, 1000, 0)}, 'removed': {'train': counts(0, 250, 0)},
        'alone': {'train': counts(0, 240, 0)}, 'first': {'train': counts(0, 250, 0)}, 'unmeasured': 5,
        'histogram': {'edges': [0.0, 1.0, 2.0, 3.0], 'counts': {'neutral': [700, 49, 1], 'entailment': [0, 0, 0]}},
        'curve': curve, 'samples': [sample()],
        'checked': {'wrong_label': measures(by_class={'neutral': measures(n=30)}), 'bad_explanation': {'n': 0}},
    } | more  # fmt: skip


def keywords(**more):
    given = dict(threshold=None, settings={'words': ['synonym', 'sentence']}, splits=[], classes=[], histogram=None)
    gone = {'train': counts(1, 20, 3), 'dev': counts(2, 0, 0)}
    looked = {'train': counts(900, 1000, 800), 'dev': counts(50, 40, 30)}
    given |= dict(seen=looked, removed=gone, alone=gone, first={'train': counts(1, 10, 3), 'dev': counts(2, 0, 0)})
    return condition('keywords', curve=None, checked=None, unmeasured=0, **given | more)


def report(**more):
    table = {'instances': 2446, 'images': 29, 'shares': counts(36.7, 30.3, 32.55), 'hypothesis': [7.41, 7],
             'explanation': [12.4, 11.5]}  # fmt: skip
    return {
        'title': 'e-SNLI-VE, built', 'command': 'python -m evil_jax.main --mode=construct',
        'versions': {'evil_jax': '0.9'},
        'files': [{'role': 'pairs', 'path': '/secret/place/snli_1.0_dev.jsonl', 'hash': 'abc123', 'rows': 10_000}],
        'merged': {
            'counts': {'train': counts(900, 1000, 800), 'dev': counts(50, 40, 30)},
            'dropped': {'no_label': {'': 7}, 'no_explanation': {'train': 2, 'dev': 1}, 'duplicate': {}},
            'published': {'train': {'ours': 529_527, 'paper': 529_527}, 'dev': {'ours': 17_000, 'paper': 17_858}},
            'without_captions': 12,
        },
        'before': {'train': counts(900, 1000, 800), 'dev': counts(50, 40, 30)},
        'kept': {'train': counts(899, 740, 797), 'dev': counts(48, 40, 30)},
        'filters': [condition(), keywords()],
        'table1': {'train': table}, 'table1_paper': {'train': table | {'instances': 401_717, 'images': 29_783}},
        'errors': {'before': share(0.39), 'after': share(0.24),
                   'by_class': {'neutral': {'before': share(0.6), 'after': None}, 'entailment': {'before': None}}},
        'checked': {'n': 535, 'blank': 3, 'repeated': 0, 'missing': "1 id: 'x'"},
        'relabelled': {'pairs': 90, 'changed': 30, 'share': [0.35, 0.25, 0.45], 'changed_to': counts(20, 0, 10),
                       'by_class': {'neutral': {'pairs': 90, 'changed': 30}}, 'no_majority': 4,
                       'raters': [{'rater': 'w77', 'labels': 80, 'changed': 0.4, 'with_majority': None}],
                       'not_met': ['a', 'b'], 'relevance': {'mean': [0.5, 0.4, 0.6]}},
        'nli': {'model': 'roberta', 'digest': 'ff00'},
    } | more  # fmt: skip
