"""How much relevance arrives: a rule set that loses or makes relevance on its way says less about the input.

No rule set conserves it exactly: biases, norms and softmax see to that. What is lost or made on the way shows how far a
heat map is to be trusted; the original rules can make hundreds of times as much.

Legend: B batch, K rows of the encoder, L layers, S positions, D width, A answers.
"""

import jax
import jax.numpy as jnp

from evil_jax.attribution import _encoders
from evil_jax.models import rows
from evil_jax.nn import ops


def shares(model, batch, target_B, rules: str):
    """Relevance of an answer that is left in front of each layer, per example, as a share of what it began with.

    Args:
      model: of three steps (see models/steps.py).
      target_B: the answers, classes or choices.
      rules: see nn/rules.py. It began with 1 under 'chefer2020' and 'lrp', else with the logit.

    Returns:
      shares_LB [layers + 1, B]: row l is the input of layer l, the last row what the last layer says.

    Raises:
      ValueError: rules that there are not.
    """
    model = _encoders.under(model, rules)
    x_KSD, length_K, spans = model.embed(batch)

    def run(moved):
        x, seen = x_KSD, []
        for number, m in enumerate(moved):
            seen.append(x)
            x = x + m
            if number < len(model.layers):
                x, _ = model.layers[number](x, length_K)
        return model.finish(x, length_K, spans, batch)[0], seen

    logits_BA, pull, seen = jax.vjp(run, [jnp.zeros_like(x_KSD)] * (len(model.layers) + 1), has_aux=True)
    seed_BA = jax.nn.one_hot(target_B, logits_BA.shape[-1], dtype=logits_BA.dtype)
    found = [ops.relevance(rules, x, moved).sum((1, 2)) for x, moved in zip(seen, pull(seed_BA)[0])]
    left_LB = jnp.stack([rows.split(r_K, model.choices).reshape(len(logits_BA), -1).sum(-1) for r_K in found])
    began_B = jnp.ones(len(logits_BA)) if rules in ('chefer2020', 'lrp') else (seed_BA * logits_BA).sum(-1)
    return left_LB / began_B
