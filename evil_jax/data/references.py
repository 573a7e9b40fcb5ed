"""Examples and gold explanations from files that a user names, without a data folder.

Which form a file has shows in its content:

- JSON lines of ours (records.Example), also as short as `{"id": ..., "explanations": [...]}`;
- whatever the readers of the data sets read: VQA-X (NLX-GPT's, LXMERT's), VQA v2's questions and annotations (with
  VQA-X's original explanations), e-SNLI-VE (CSV and JSON), VCR (official, e-UG's), NLX-GPT's e-SNLI-VE and VCR, Visual
  Genome's question_answers.json;
- e-ViL's `gen_test.json`, which repeats the references beside the predictions;
- explanations alone: `{id: [text, ...]}`, or COCO's caption annotations `{"images": [{"id"}], "annotations":
  [{"image_id", "caption"}]}`.

Explanations alone, or of any further file, replace those of the examples: letter case and full stops of references
differ between copies of one data set, and so do the scores.
"""

import collections
from collections.abc import Callable, Iterator, Sequence

from evil_jax.data.sources import _files, _references, esnlive, nlxgpt, vcr, visual_genome, vqav2, vqax
from evil_jax.records import Example

# Forms that are read as they are; the others are taken together (below).
_READERS: dict[str, Callable[..., Iterator[Example]]] = {
    'jsonl': lambda path, options: _references.read_jsonl(path),
    'gen_test': lambda path, options: _references.read_gen_test(path),
    'vqax': lambda path, options: vqax.read(path),
    'esnlive': lambda path, options: esnlive.read(path, options['labels']),
    'vcr': lambda path, options: vcr.read(path, tag_base=options['tag_base']),
    'nlxgpt_esnlive': lambda path, options: nlxgpt.read_esnlive(path),
    'nlxgpt_vcr': lambda path, options: nlxgpt.read_vcr(path),
    'visual_genome': lambda path, options: visual_genome.read(path),
    'coco': lambda path, options: _references.read_coco(path),
    'explanations': lambda path, options: _references.read_explanations(path),
}
_ONLY_EXPLANATIONS = ('coco', 'explanations')


def read(paths: Sequence, builder: str = '', *, labels: str = 'gold', tag_base: int = 1) -> list[Example]:
    """The examples of one or more files, in the order of the first.

    Args:
      paths: files. The explanations of a later one replace those of the examples; its ids must be the same.
      builder: `data.builder`. It matters where a file does not name the pictures: ids of VQA-X, VQA v2 and e-SNLI-VE
        tell them, and questions about one picture are no independent examples.
      labels: e-SNLI-VE's, as `data.labels`.
      tag_base: e-UG's VCR, as `data.tag_base`.

    Returns:
      Examples with unique ids. Of files with explanations alone they have neither answers nor text. Where a file does
      not tell the picture, `image_id` is the id.

    Raises:
      ValueError: a malformed record, a repeated id, no example, a file of unknown form, files that do not agree.
    """
    if not paths:
        raise ValueError('no file of references')
    forms = {path: _references.form(path) for path in paths}
    joined = [path for path, form in forms.items() if form in ('questions', 'annotations')]
    rest = [path for path in paths if path not in joined]
    options = {'labels': labels, 'tag_base': tag_base}
    if joined:
        base, rest = _joined(forms, rest)
    else:
        base, rest = _READERS[forms[rest[0]]](rest[0], options), rest[1:]
        if forms[paths[0]] in _ONLY_EXPLANATIONS:
            for path in rest:
                if forms[path] not in _ONLY_EXPLANATIONS:
                    raise ValueError(f'{path} has more than the explanations of {paths[0]}: name it first')
    examples = _unique(base, paths[0])
    _references.name_pictures(examples, builder)
    if builder == 'esnlive' and labels != 'gold' and 'esnlive' not in forms.values():
        raise ValueError(f"{paths[0]}: data.labels={labels!r} needs e-SNLI-VE's own CSV or JSON file")
    for path in rest:
        _replace(examples, _unique(_READERS[forms[path]](path, options), path), paths[0], path)
    return examples


def marks(paths: Sequence, labels: str = 'gold') -> dict[str, str]:
    """What beside the files decides what is right, for signatures: where the labels of e-SNLI-VE come from."""
    for path in paths:
        found = _references.form(path)
        if found in ('esnlive', 'nlxgpt_esnlive'):
            return {'labels': esnlive.label_source(path, labels) if found == 'esnlive' else 'gold'}
    return {}


def _joined(forms, rest) -> tuple[Iterator[Example], list]:
    """(examples of VQA v2's files, what is left of the other files)."""
    questions, annotations = ([p for p, form in forms.items() if form == kind] for kind in ('questions', 'annotations'))
    if not questions:
        raise ValueError(f"{annotations[0]}: holds answers only: VQA v2's questions file with their ids is wanted, too")
    if rest and forms[rest[0]] == 'explanations':
        return vqax.read(rest[0], questions, annotations), rest[1:]
    return _vqav2(questions, annotations), rest


def _vqav2(questions, annotations) -> Iterator[Example]:
    examples = {example.id: example for file in questions for example in vqav2.read_questions(file)}
    for file in annotations:
        found = vqav2.read_annotations(file)
        known = [identifier for identifier in found if identifier in examples]
        if not known:
            asked = ', '.join(map(str, questions))
            raise ValueError(f'{file}: answers none of the questions in {asked}, but {_files.some_ids(list(found))}')
        for identifier in known:
            vqav2.annotate(examples[identifier], found[identifier], file)
    yield from examples.values()


def _unique(examples, path) -> list[Example]:
    examples = list(examples)
    if not examples:
        raise ValueError(f'{path}: holds no examples')
    repeated = [i for i, n in collections.Counter(e.id for e in examples).items() if n > 1]
    if repeated:
        raise ValueError(f'{path}: repeats {_files.some_ids(repeated)}')
    return examples


def _replace(examples, others, path, other_path) -> None:
    """Puts the explanations of `others` into `examples`."""
    texts = {other.id: other.explanations for other in others}
    missing, extra = [e.id for e in examples if e.id not in texts], texts.keys() - {e.id for e in examples}
    if missing or extra:
        parts = [(missing, 'not there'), (sorted(extra), 'only there')]
        raise ValueError(
            f'{other_path}: its {len(texts):,} ids are not those of the {len(examples):,} examples of {path}: '
            + '; '.join(f'{what} {_files.some_ids(ids)}' for ids, what in parts if ids)
        )
    for example in examples:
        example.explanations = texts[example.id]
