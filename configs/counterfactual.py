"""What does a system answer when a word of the question is exchanged? For anybody's system: a file of questions, a file
of its answers; no model, no data folder, no accelerator.

    python -m evil_jax.main --mode=counterfactual --config=counterfactual:vqav2 --workdir=runs/mine \\
        --config.counterfactual.questions=questions.jsonl
    # ... your system answers runs/mine/counterfactual/asked.jsonl (or asked.csv): {"id": ..., "answer": ...} a line
    python -m evil_jax.main --mode=counterfactual --config=counterfactual:vqav2 --workdir=runs/mine \\
        --config.counterfactual.questions=questions.jsonl --config.counterfactual.answers=answers.jsonl

The argument is the data set, whose forms of questions are read (JSON lines of ours are read for each; `vqav2` also
reads Visual Genome's). A model of ours answers by itself: `--config=eug:vqax --mode=counterfactual`. WordNet's files:
`pip install 'evil_jax[counterfactual]'`. `counterfactual:vqav2,preset=stoikou2023` edits as the paper does.
"""

from evil_jax import config as config_lib


def get_config(arg=None):
    """Arguments: data set, preset=default|stoikou2023."""
    parsed, config = config_lib.without_model(arg, data='vqav2', preset='default')
    config.counterfactual.preset = parsed.preset
    return config
