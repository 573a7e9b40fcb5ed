"""What signatures say: which examples, which parts, which tokeniser, how choices were told apart."""

import numpy as np
from scored_worlds import class_world, equal_class

from evil_jax.metrics import base, evil, resources
from evil_jax.records import Example, Prediction


def test_signatures_say_which_examples_were_scored():
    predictions, examples, _truth = class_world(n=12)
    options = dict(judge=equal_class, bootstrap=0)
    signature = lambda rows, total: evil.evaluate(predictions[rows], examples[rows], total=total, **options)['all']
    whole = signature(slice(12), 0)
    first, last = signature(slice(3), 12), signature(slice(3, 6), 12)
    for name in ('s_t', 'bleu1', 's_e_fast', 's_e_auto'):
        assert '|scored:12/12|' in whole[name].signature and '|ids:' not in whole[name].signature
        assert '|scored:3/12|ids:' in first[name].signature
        assert first[name].signature != last[name].signature, 'as many, but others'


def test_signatures_of_combined_scores_depend_on_those_of_their_parts():
    predictions, examples, _truth = class_world()
    options = dict(judge=equal_class, bootstrap=0, protocol='coco')
    java = lambda texts: ([text.lower() for text in texts], 'ptb-java')
    one, other = (evil.evaluate(predictions, examples, tokenise=t, **options)['all'] for t in (None, java))
    for name in ('s_e_fast', 's_o_fast'):
        assert '|tok:ptb-like' in one[name].signature and '|tok:ptb-java|' in other[name].signature
        assert '|parts:' in one[name].signature and '|parts:' not in one['bleu1'].signature
    meteor = lambda data: (
        lambda p, r: base.mean_table(sorted(p), 'meteor', np.ones(len(p)), f'metric:meteor|data:{data}')
    )
    first, last = (
        evil.evaluate(
            predictions, examples, metrics={'rouge': 'rouge', 'cider': 'cider', 'meteor': meteor(d)}, **options
        )
        for d in 'ab'
    )
    name = 's_e_auto_without_spice_bertscore'
    assert (
        first['all'][name].value == last['all'][name].value
        and first['all'][name].signature != last['all'][name].signature
    )
    for name in ('s_e_auto', 'ngram'):
        assert f'metric:{name}|' in first['all'][name].signature


def test_an_absent_metric_is_no_combination():
    predictions, examples, _truth = class_world(n=12)

    def lacking(predictions, references):
        raise resources.Unavailable('needs a jar')

    scores = evil.evaluate(predictions, examples, judge=equal_class, metrics={'spice': lacking}, bootstrap=0)
    assert 'is:' not in scores['all']['spice'].signature and scores['all']['spice'].reason == 'needs a jar'


def test_signatures():
    predictions, examples, truth = class_world(n=12)
    scores = evil.evaluate(predictions, examples, judge=equal_class, truth=truth, bootstrap=10, seed=3)
    for subset, part in (('all', 'all'), ('correct', 'correct'), ('class=neutral', 'all')):
        for name, score in scores[subset].items():
            keys = [p.split(':')[0] for p in score.signature.split('|')]
            assert keys[0] == 'metric' and keys[-1] == 'version', score.signature
            assert len(set(keys)) == len(keys), score.signature
            assert score.signature.startswith(f'metric:{name}|')
            assert '|protocol:evil|correct:equality' in score.signature
            assert '|bs:10|seed:3|cluster:image' in score.signature
            assert ('|subset:class=neutral|' in score.signature) == (subset == 'class=neutral')
            if name not in ('s_t', 'accuracy'):
                assert '|cond:predicted' in score.signature
                of = 'correct' if name.startswith(('s_e', 's_o')) else part
                assert f'|set:{of}|' in score.signature
    for p in predictions[:5]:
        p.condition = 'gold'
    scores = evil.evaluate(predictions, examples, judge=equal_class, bootstrap=0)
    assert '|cond:gold+predicted' in scores['all']['bleu1'].signature
    assert '|bs:' not in scores['all']['bleu1'].signature


def test_signatures_say_what_tells_repeated_choices_apart():
    """By words a twin of the right choice counts as right: 2 of 2 instead of 1 of 2."""
    examples = [Example(f'q{i}', f'i{i}', 't', choices=['a', 'b', 'a', 'c'], label=0) for i in range(2)]
    for given, by, value in (((0, 2), 'index', 0.5), ((None, None), 'words', 1.0), ((0, None), 'mixed', 1.0)):
        predictions = [Prediction(e.id, 'a', answer_index=n) for e, n in zip(examples, given)]
        score = evil.evaluate(predictions, examples, judge=lambda a, e: float(a == e.choices[e.label]), bootstrap=0)
        assert score['all']['s_t'].value == value
        assert f'|choice:{by}|' in score['all']['s_t'].signature
