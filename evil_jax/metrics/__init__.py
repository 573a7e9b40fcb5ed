"""Scores of answers and explanations: strings in, `Score` out. Nothing here imports JAX.

Each metric is a file with `NAMES` (of its scores), `table(predictions, references, ...) -> base.Table` and
`score(predictions, references, ...) -> dict[str, Score]`, keyed by example id; encoders are passed in.
`protocol.py` says what a metric gets to see and which answers are right; `evil.py` puts everything together.

    from evil_jax.metrics import meteor
    meteor.score({'1': 'a dog runs'}, {'1': ['the dog is running']})['meteor'].value
"""
