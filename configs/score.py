"""Scores for anybody's predictions: a file of them and a file of references is all it takes; no model, no data folder.

    python -m evil_jax.main --mode=evaluate --config=score:vqax --workdir=runs/mine \\
        --config.evaluate.predictions=predictions.jsonl --config.evaluate.references=references.jsonl
    python -m evil_jax.main --mode=evaluate --config=score:vqax --workdir=runs/nlxgpt \\
        --config.evaluate.predictions=vqaX_p_full_unfiltered.json --config.evaluate.predictions_format=nlxgpt_full \\
        --config.evaluate.references=vqaX_test.json --config.evaluate.protocols=nlxgpt,nlxgpt_any,evil
    python -m evil_jax.main --mode=evaluate --config=score:vqax --config.evaluate.check=True   # what runs here

The argument is the data set, whose forms of references are read (JSON lines of ours are read for each). More systems,
side by side and with tests: --config.evaluate.systems="('theirs=coco:theirs.json', 'ours=ours.jsonl')".
Expected: 7 s for 2,000 examples under three protocols on two cores; METEOR's index, made once, takes 10 s more.
"""

from evil_jax import config as config_lib


def get_config(arg=None):
    """Argument: data set."""
    return config_lib.without_model(arg, data='vqax')[1]
