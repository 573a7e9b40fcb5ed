"""What a reader calls a score and a data set, and the order to read scores in."""

import re

NAMES = {
    's_t': 'S_T answers right',
    's_e_human': 'S_E explanations, rated',
    's_o_human': 'S_O both (rated)',
    's_e_true': 'S_E explanations true',
    's_o_true': 'S_O both (true)',
    's_e_auto': 'S_E explanations, automatic',
    's_o_auto': 'S_O both (automatic)',
    's_e_fast': 'S_E explanations, ROUGE-L and CIDEr',
    's_o_fast': 'S_O both (ROUGE-L and CIDEr)',
    'accuracy': 'accuracy',
    'vqa_accuracy': 'VQA accuracy, official',
    'vqa_soft': 'VQA soft score',
    'bleu1': 'BLEU-1',
    'bleu2': 'BLEU-2',
    'bleu3': 'BLEU-3',
    'bleu4': 'BLEU-4',
    'meteor': 'METEOR',
    'rouge_l': 'ROUGE-L',
    'cider': 'CIDEr-D',
    'spice': 'SPICE',
    'chrf': 'chrF',
    'bertscore': 'BERTScore F1',
    'bleurt': 'BLEURT',
    'ngram': 'NGRAMScore',
}
DATA_SETS = {'esnlive': 'e-SNLI-VE', 'vqax': 'VQA-X', 'vcr': 'VCR'}


def data_set(name: str) -> str:
    """What a reader calls a data set."""
    return DATA_SETS.get(name, name)


def name(metric: str) -> str:
    """What a reader calls a metric; of a score that lacks parts ('ngram_without_spice'), also which."""
    whole, _, missing = metric.partition('_without_')
    if missing and whole in NAMES:
        parts = [part for part in NAMES if re.search(rf'(^|_){part}(_|$)', missing)]
        return f'{NAMES[whole]} without {", ".join(NAMES[part] for part in parts)}'
    return NAMES.get(metric, metric.replace('_', ' '))
