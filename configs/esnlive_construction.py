"""e-SNLI-VE from its sources (Kayser et al. 2021, section 3): SNLI or SNLI-VE, e-SNLI, Flickr30k's captions, a model
that tells entailment from contradiction; or the same cleaning of pairs of your own.

    python -m evil_jax.main --mode=construct --config=esnlive_construction --workdir=runs/esnlive \\
        --config.construct.pairs=snli_1.0_train.jsonl,snli_1.0_dev.jsonl,snli_1.0_test.jsonl \\
        --config.construct.explanations=esnli_train_1.csv,esnli_train_2.csv,esnli_dev.csv,esnli_test.csv \\
        --config.construct.captions=results_20130124.token \\
        --config.construct.splits=trainval=flickr30k_train_val.lst,test=flickr30k_test.lst \\
        --config.construct.nli.model=ROBERTA_LARGE_MNLI
    python -m evil_jax.main --config=eug:esnlive --config.data.manual_dir=runs/esnlive/construct/esnlive ...

Argument: `quick` leaves out the two filters that need a model. The published train split has 401,717 pairs of 529,527,
dev 14,339 of 17,858, test 14,740 of 17,901; the paper does not give all settings, so these numbers are to be compared
with, not to be met.
"""

from evil_jax import config as config_lib


def get_config(arg=None):
    """Arguments: data set, quick."""
    parsed, config = config_lib.without_model(arg, data='esnlive', quick=False)
    if parsed.quick:
        config.construct.filters = ('keywords', 'similarity')
    return config
