import itertools

import numpy as np
import pytest

from evil_jax.construction import label_order
from evil_jax.construction.pairs import CLASSES


def _said(n=300, noise=0.3):
    generator = np.random.default_rng(0)
    labels = generator.integers(0, 3, n)
    said = np.where(generator.random(n) < noise, generator.integers(0, 3, n), labels)
    return np.eye(3)[said], [CLASSES[label] for label in labels]


@pytest.mark.parametrize('order', list(itertools.permutations(range(3))))
def test_a_wrong_order_of_the_classes_is_found_and_said(order):
    """The model's output i is truly CLASSES[i]; its config calls it CLASSES[order[i]]."""
    true, labels = _said()
    stated = true[:, np.argsort(order)]
    agreement, best, best_agreement = label_order.best(stated, labels)
    np.testing.assert_array_equal(stated[:, best], true)
    assert best_agreement == pytest.approx(0.8, abs=0.05)
    id2label = [CLASSES[i] for i in order]
    if order == (0, 1, 2):
        assert agreement == best_agreement
        label_order.check(stated, labels, id2label)
        return
    right = r'id2label should be \{"0": "contradiction", "1": "neutral", "2": "entailment"\}'
    with pytest.raises(ValueError, match=rf'agrees with \d+\.\d% .* and with 8\d\.\d% .*what it calls .*{right}'):
        label_order.check(stated, labels, id2label)


def test_what_says_nothing_of_the_order():
    true, labels = _said()
    wrong = true[:, [2, 1, 0]]
    label_order.check(wrong[:99], labels[:99])
    entailed = [i for i, label in enumerate(labels) if label == 'entailment'] * 2
    label_order.check(wrong[entailed], [labels[i] for i in entailed])  # of one class: any order could be right
    always = np.tile([0.0, 0.0, 1.0], (300, 1))
    label_order.check(always, ['contradiction'] * 250 + labels[:50])
    with pytest.raises(ValueError, match='Correct id2label'):
        label_order.check(wrong, labels)


def test_chance_says_nothing_of_the_order():
    """Of ten contradictions and ten entailments, more are called the other than what they are."""
    labels = ['contradiction'] * 10 + ['neutral'] * 279 + ['entailment'] * 10
    said = [0] * 2 + [1] * 3 + [2] * 5 + [0, 1, 2] * 93 + [0] * 5 + [1] * 4 + [2]
    stated = np.eye(3)[said]
    agreement, order, best = label_order.best(stated, labels)
    assert best - agreement == pytest.approx((0.5 + 0.5 - 0.2 - 0.1) / 3) and order == (2, 1, 0)
    label_order.check(stated, labels)
    said[:10], said[-10:] = [2] * 10, [0] * 10  # this is not by chance
    with pytest.raises(ValueError, match='what it calls entailment is contradiction'):
        label_order.check(np.eye(3)[said], labels)
