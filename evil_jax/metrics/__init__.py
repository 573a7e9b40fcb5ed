"""Scores of answers and explanations: strings in, `Score` out. Nothing here imports JAX.

Each metric is a file with `table(predictions, references) -> base.Table` and
`score(predictions, references) -> dict[str, Score]`, keyed by example id; `evil.py` puts them together.
"""
