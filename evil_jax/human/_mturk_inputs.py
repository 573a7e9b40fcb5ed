"""What a row of MTurk's results was about: the page of our study, or one made of the inputs in the row.

Layouts of inputs, told apart by their columns:

* ours: `page`, and `1_ques_id`, ... are ids of items;
* e-ViL's: `impath_k`, `question_k`, `explanation_k_i`, `explanation_k_j`, `gt_k`, `k_gt_idx`, `k_ques_id` (k from 1)
  and, of questions, `answer_k_a`, ...: the gold explanation is the first (k_gt_idx = 0) or the second (1);
* OFA-X's: `id_n`, `question_n` or `statement_n`, `answer_n`, `other_answer1_n`, `output_explanation_n`, `explanation_n`
  (n from 0): the second explanation is the gold one. Of VCR `answer_n` is one of answer0, ..., answer3, whose texts are
  `answer0_n`, ....
"""

import itertools
import string
import urllib.parse
from collections.abc import Iterator, Mapping

from evil_jax.data.sources import _files as sources
from evil_jax.human import _files
from evil_jax.human.study import GOLD, RELATIONS, Item, Page, Shown, Study

PAGE = 'page'
_FIRST = string.ascii_lowercase.index('i')  # of the letters of explanations


def page(inputs: Mapping[str, str], study: Study | None, system: str | None, dataset: str | None) -> tuple[Study, Page]:
    """The page that was shown, and its study, which for other people's layouts has this page only.

    Args:
      inputs: values of the columns Input.*, by their names without that.
      study: ours, where the inputs are.
      system: who wrote the generated explanations, of other people's layouts.
      dataset: None = as the inputs look.

    Raises:
      ValueError: another layout, a value that it cannot have, or a page that is not in the study.
    """
    if PAGE in inputs:
        return _ours(inputs, study)
    if '1_ques_id' in inputs:
        items, found = list(_evil(inputs, system or 'model')), _evil_dataset(inputs)
    elif 'output_explanation_0' in inputs:
        items, found = list(_ofax(inputs, system or 'ofax')), _ofax_dataset(inputs)
    else:
        wanted = 'page (ours), 1_ques_id (as e-ViL) or output_explanation_0 (as OFA-X)'
        raise ValueError(f'inputs are {", ".join(sources.keys(inputs)) or "none"}, wanted {wanted}')
    if not items:
        raise ValueError('no task in the inputs')
    only = Page('1', tuple(item.id for item in items))
    made = Study(
        dataset=dataset or found, kind='question', items={item.id: item for item in items}, pages=(only,), raters=1,
        wrong_limit=len(items), yes_limit=2 * len(items), s_t={}, settings={}, made_from={},
    )  # fmt: skip
    return made, only


def _ours(inputs, study) -> tuple[Study, Page]:
    if study is None:
        raise ValueError('the inputs were made from a study: its study.json says what was rated')
    found = next((page for page in study.pages if page.id == inputs[PAGE]), None)
    if found is None:
        raise ValueError(f'page {inputs[PAGE]!r} is not in the study, which has {len(study.pages)}')
    names = tuple(inputs.get(f'{k}_ques_id', '') for k in range(1, len(found.items) + 1))
    if names != found.items:
        raise ValueError(f'page {found.id} has items {", ".join(names)}, in the study {", ".join(found.items)}')
    return study, found


def _evil(inputs, system) -> Iterator[Item]:
    for k in itertools.count(1):
        name = inputs.get(f'{k}_ques_id', '').strip()
        if not name or name == 'BUGFIX':  # a filler behind the last task of the published pages
            return
        choices = tuple(
            inputs[f'answer_{k}_{letter}'].strip()
            for letter in string.ascii_lowercase
            if inputs.get(f'answer_{k}_{letter}', '').strip()
        )
        choices = choices or RELATIONS
        gold, place = _needed(inputs, f'gt_{k}'), _needed(inputs, f'{k}_gt_idx')
        if gold not in map(str, range(len(choices))):
            raise ValueError(f'gt_{k} is {gold!r}, wanted a number from 0 to {len(choices) - 1}')
        if place not in ('0', '1'):
            raise ValueError(f'{k}_gt_idx is {place!r}, wanted 0 or 1')
        texts = [_needed(inputs, f'explanation_{k}_{string.ascii_lowercase[_FIRST + e]}', '') for e in range(2)]
        image = inputs.get(f'impath_{k}', '').strip()
        yield Item(
            id=str(k), example=name, image='', text=inputs.get(f'question_{k}', ''), choices=choices, gold=int(gold),
            explanations=tuple(Shown(GOLD if e == int(place) else system, text) for e, text in enumerate(texts)),
            image_id=_picture(image) if image else '',
        )  # fmt: skip


def _evil_dataset(inputs) -> str:
    if 'answer_1_a' not in inputs:
        return 'esnlive'
    return 'vcr' if 'metadata_1' in inputs else 'vqax'


def _ofax(inputs, system) -> Iterator[Item]:
    for n in itertools.count():
        name = inputs.get(f'id_{n}', '').strip()
        if not name:
            return
        answer = _needed(inputs, f'answer_{n}')
        texts = {f'answer{i}': inputs[f'answer{i}_{n}'].strip() for i in range(4) if f'answer{i}_{n}' in inputs}
        if texts and answer not in texts:
            raise ValueError(f'Input.answer_{n} is {answer[:80]!r}, wanted one of {", ".join(texts)}')
        others = (inputs.get(f'other_answer{i}_{n}', '').strip() for i in (1, 2))
        choices = tuple(texts.values()) or tuple(dict.fromkeys(filter(None, (answer, *others))))
        gold = list(texts).index(answer) if texts else 0
        shown = (
            Shown(system, inputs.get(f'output_explanation_{n}', '')),
            Shown(GOLD, inputs.get(f'explanation_{n}', '')),
        )
        text = inputs.get(f'statement_{n}', inputs.get(f'question_{n}', ''))
        image = inputs.get(f'img_name_{n}', '').strip()
        known = name.isdigit() or '#' in name or not image
        image_id = _files.picture(name) if known else _picture(image)
        yield Item(str(n), name, '', text, choices, gold, shown, image_id)


def _ofax_dataset(inputs) -> str:
    if 'statement_0' in inputs:
        return 'esnlive'
    return 'vqax' if inputs['id_0'].strip().isdigit() else 'vcr'


def _needed(inputs, name, unset: str | None = None) -> str:
    if name not in inputs:
        raise ValueError(f'no column Input.{name}')
    value = inputs[name].strip()
    if not value and unset is None:
        raise ValueError(f'Input.{name} is empty')
    return value


def _picture(address: str) -> str:
    return sources.picture_name(urllib.parse.unquote(urllib.parse.urlsplit(address).path) or address, 'picture')
