"""README.md and LICENSE.md of an exported model: Markdown with YAML front matter, as model hubs show it.

Everything that comes from a run (names, settings, signatures) is text of unknown content: it is escaped for YAML, and
for Markdown and the HTML in it.
"""

import json
from collections.abc import Iterable, Mapping

# Whose terms hold for what was learnt from a data set, as far as evil_jax knows it: (name, sources).
SOURCES = {
    'esnlive': ('e-SNLI-VE', 'SNLI-VE, SNLI and e-SNLI annotations; Flickr30k pictures'),
    'vqax': ('VQA-X', 'VQA v2 and VQA-X annotations; COCO pictures'),
    'vqav2': ('VQA v2', 'VQA v2 annotations; COCO pictures'),
    'vcr': ('VCR', 'VCR annotations and pictures (movie clips)'),
    'shapes_ve': ('shapes_ve', ''),
    'shapes_vqa': ('shapes_vqa', ''),
    'shapes_vcr': ('shapes_vcr', ''),
}
_MARKDOWN = '\\`*_[]<>&|#~$'


def yaml(value) -> str:
    """A value in YAML's flow style. Its strings are double-quoted with escapes, so that nothing in them is syntax."""
    if isinstance(value, str):
        escape = lambda c: c if c.isprintable() else f'\\U{ord(c):08x}'
        return '"' + ''.join({'"': '\\"', '\\': '\\\\'}.get(c, escape(c)) for c in value) + '"'
    if isinstance(value, Mapping):
        return '{' + ', '.join(f'{yaml(str(k))}: {yaml(v)}' for k, v in value.items()) + '}'
    if isinstance(value, (list, tuple)):
        return '[' + ', '.join(map(yaml, value)) + ']'
    return json.dumps(value, allow_nan=False)


def plain(text: str) -> str:
    """Text in Markdown, on one line, that is nothing but text."""
    return ''.join(f'&#{ord(c)};' if c in _MARKDOWN else c for c in ' '.join(str(text).split()))


def block(lines: Iterable[str], language: str = '') -> list[str]:
    """Lines of text of unknown content that are shown as they are."""
    safe = lambda line: ''.join(c if c.isprintable() else ' ' for c in line.replace('`', "'"))
    return [f'```{language}', *map(safe, lines), '```']


def readme(document: Mapping, scores: Mapping | None) -> str:
    """The model card.

    Args:
      document: content of config.json; its 'scored' says which split was decoded how, its 'task_run' of which run M_T
        is, where that is another one.
      scores: content of scores.json, or None.
    """
    task, expl = document['task'], document['expl']
    learnt = _learnt(document)
    data, (name, _) = next(iter(learnt.items()))
    sources = any(sources for _, sources in learnt.values())
    pair = f'{task["name"]} + {expl["name"]}' if expl else task['name']
    title = f'{pair} on {" and ".join(name for name, _ in learnt.values())}'
    front = {
        'language': ['en'],
        'library_name': 'transformers',
        'license': 'other' if sources else 'apache-2.0',
        **({'license_name': 'see-license-file', 'license_link': 'LICENSE.md'} if sources else {}),
        'pipeline_tag': 'visual-question-answering',
        'tags': ['evil_jax', 'custom_code', 'visual-question-answering', 'natural-language-explanations', *learnt],
    }
    scored = document.get('scored', {})
    if results := list(_results(scores, scored, data, name)):
        front['model-index'] = [{'name': title, 'results': results}]
    explains = 'and explains the answer in words' if expl else 'and does not explain the answer'
    asked = 'questions with choices' if document['encoding']['choices'] else 'questions'
    lines = [
        '---', *(f'{key}: {yaml(value)}' for key, value in front.items()), '---', '',
        f'# {plain(title)}', '',
        f'Answers {asked} about the regions of a picture {explains}. Trained with evil_jax, a toolkit in JAX; these '
        'files need PyTorch and transformers alone.',
        '', *_usage(document), '', '## Scores', '', *_scores(scores, scored), '', '## Settings of the training', '',
        *_settings(document), '', '## Limits', '',
        'Texts are English. What it was not trained for it answers as well, and explains just as fluently: an '
        'explanation is the words that the model finds likely, not a record of how it came to the answer.',
        *_precision(document),
        '', '## Licence', '', 'See LICENSE.md.', '',
    ]  # fmt: skip
    return '\n'.join(lines)


def licence(document: Mapping) -> str:
    """LICENSE.md: what is whose."""
    learnt = _learnt(document).values()
    names = ' and '.join(plain(name) + (f' ({sources})' if sources else '') for name, sources in learnt)
    if any(sources for _, sources in learnt):
        weights = (
            f'The weights were learnt from {names}, and may have begun with published ones (UNITER, '
            'BERT, GPT-2, ...), whose vocabularies are in task/ and expl/. Before you pass them on, see to it that the '
            'terms of all of these allow it, and name them here. evil_jax grants no rights in them.'
        )
    else:
        weights = (
            f'The weights and vocabularies were learnt from {names}, the built-in world of evil_jax, unless they '
            'began with published ones, whose terms then hold as well. Apache License 2.0 otherwise.'
        )
    return '\n'.join(
        [
            '# Licence', '', 'The Python files (`*_evil.py`) are part of evil_jax: Apache License 2.0, '
            'https://www.apache.org/licenses/LICENSE-2.0', '', weights, '',
        ]
    )  # fmt: skip


def _of_runs(document):
    """The run that the model comes from, and where M_T is of another one, that."""
    return [document, *([document['task_run']] if 'task_run' in document else [])]


def _learnt(document):
    """The data sets of the runs: {data.builder: (name, sources)}."""
    names = (str(run['trained'].get('data.builder', 'unknown')) for run in _of_runs(document))
    return {name: SOURCES.get(name, (name, plain(name))) for name in names}


def _settings(document):
    runs = _of_runs(document)
    told = ['The half that explains:', 'The half that answers, which comes from another run:'] if runs[1:] else ['']
    for n, (words, run) in enumerate(zip(told, runs, strict=True)):
        known = {key: run['trained'][key] for key in sorted(run['trained'])}
        known |= {key: run[key] for key in ('step', 'data') if run.get(key) is not None}
        yield from ([''] if n else []) + ([words, ''] if words else [])
        yield from block(f'{key} = {json.dumps(value)}' for key, value in known.items())


def _precision(document):
    if any(run['trained'].get('model.dtype') == 'bfloat16' for run in _of_runs(document)):
        yield from ('', 'Trained and scored in bfloat16. In float32, as PyTorch loads it, some words may differ.')


def _usage(document):
    choices, objects = document['encoding']['choices'], document['encoding'].get('objects')
    more = ', choices=[...]' if choices else ''
    more += ', objects=[...]' if objects == 'annotated' else ', names=[...], confidence=[...]' if objects else ''
    lines = [
        'from transformers import AutoModel, AutoTokenizer, GPT2LMHeadModel',
        '',
        'model = AutoModel.from_pretrained(FOLDER, trust_remote_code=True)',
        '# features [n, 2048] and boxes [n, 4] (x1, y1, x2, y2 in pixels) of a detector; size of the picture',
        f'batch = model.encode(QUESTION, features, boxes, (width, height){more})',
        'model(**batch).logits       # of the answers',
        'model.explain(batch)        # answer, probability and explanation',
        '',
        "AutoTokenizer.from_pretrained(FOLDER, subfolder='task')     # 'expl': of the explanations",
    ]
    if document['expl'] and document['expl']['name'] == 'gpt2':
        lines.append("GPT2LMHeadModel.from_pretrained(FOLDER, subfolder='expl')   # the explaining half alone")
    else:
        lines[0] = lines[0].removesuffix(', GPT2LMHeadModel')
    if document['task']['name'] == 'bert':
        kind = 'MultipleChoice' if choices else 'SequenceClassification'
        lines[0] += f', AutoModelFor{kind}'
        lines.append(f"AutoModelFor{kind}.from_pretrained(FOLDER, subfolder='task')   # the answering half alone")
    return block(lines, 'python')


def _metrics(scores):
    """(protocol, subset, metric, score) of all that have a value."""
    for protocol, subsets in (scores or {}).items():
        if isinstance(subsets, Mapping):
            for subset, found in subsets.items():
                if subset.startswith('question_type='):  # of VQA there are 65
                    continue
                for metric, score in found.items():
                    if score['value'] is not None:
                        yield protocol, subset, metric, score


def _results(scores, scored, data, name):
    metrics = [
        {'type': metric, 'name': f'{metric} ({protocol}, {subset})', 'value': score['value']}
        for protocol, subset, metric, score in _metrics(scores)
        if subset in ('all', 'correct') and protocol == 'evil'
    ]
    if metrics:
        yield {
            'task': {'type': 'visual-question-answering'},
            'dataset': {'type': data, 'name': name} | ({'split': scored['split']} if 'split' in scored else {}),
            'metrics': metrics,
        }


def _scores(scores, scored):
    found = list(_metrics(scores))
    if not found:
        return ['There are no scores of this checkpoint: it was exported before `--mode=decode,evaluate` scored it.']
    lines = ['| protocol | subset | metric | value | 95 % | n |', '|---|---|---|---:|---|---:|']
    for protocol, subset, metric, score in found:
        interval = ' to '.join(f'{x:.4f}' for x in score.get('ci95') or ())
        row = [plain(protocol), plain(subset), plain(metric), f'{score["value"]:.4f}', interval, str(score['n'])]
        lines.append(f'| {" | ".join(row)} |')
    signatures = (f'{p} {s} {m}: {score["signature"]}' for p, s, m, score in found)
    return [*_scored(scored), *lines, '', 'Signatures:', '', *block(signatures)]


def _scored(scored):
    """Of what the scores are."""
    if scored:
        split, count = (plain(scored.get(key, 'unknown')) for key in ('split', 'examples'))
        how = ', '.join(f'{key} = {json.dumps(value)}' for key, value in sorted(scored.get('decode', {}).items()))
        yield from (f'Split {split}, {count} examples. Decoded with {plain(how) or "unknown settings"}.', '')
