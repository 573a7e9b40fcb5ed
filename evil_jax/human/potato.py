"""Potato (https://github.com/davidjurgens/potato, version 2) runs a study: its configuration and items out, its
annotation output in.

An instance is one item. What is asked of the explanations is seen when the task question is answered. The rules about
ratings and shortcomings are not checked by Potato.
"""

import html
import json
import pathlib
from collections.abc import Callable, Iterator

from evil_jax import records
from evil_jax.data.sources import _files
from evil_jax.human import _boxed, _platform, responses
from evil_jax.human._platform import ASKED, RATE, TICK, Done
from evil_jax.human.form import RATING_LABELS, TICK_LABELS
from evil_jax.human.study import NO_EXPLANATION, Study

CONFIG, ITEMS, OUTPUT, MEDIA, STATE = 'config.yaml', 'items.jsonl', 'annotation_output', 'media', 'user_state.json'
LABELS = 'instance_id_to_label_to_value'
_TIMES = 'instance_id_to_behavioral_data'
_NOT_CHOSEN = (False, None, '', 'false', 'False', 0, '0')  # values that Potato stores of what was unticked


def export(study: Study, folder, image_url: str = '', pictures=None) -> list[pathlib.Path]:
    """Writes config.yaml and items.jsonl. To start it: `cd FOLDER && potato start config.yaml -p 8000`.

    Args:
      study: what is asked.
      folder: gets the files.
      image_url: address of the folder with the pictures; not needed with `pictures`.
      pictures: the study's images/. They are copied to media/, which Potato itself gives out, with the boxes of objects
        drawn in.

    Returns:
      The two files.

    Raises:
      ValueError: neither an address nor a folder of pictures, a picture that is not there, or items with different
        numbers of explanations.
    """
    folder, number = pathlib.Path(folder), _platform.explanations(study)
    names = None if pictures is None else _boxed.write(study, pictures, folder / MEDIA)
    urls = _platform.pictures(study, image_url or (f'/{MEDIA}/' if names else ''), names, paths=True)
    # Potato puts all of an item into its page as it is, where a "</script>" would begin to run: our texts are HTML.
    lines = []
    for page in study.pages:
        for item in study.of(page):
            row = {
                'id': item.id,
                'picture': urls.get(item.id, ''),
                'text': html.escape(item.text),
                'answers': '<br>'.join(f'{_letter(i)}) {html.escape(text)}' for i, text in enumerate(item.choices)),
                'offered': [_platform.choice(i) for i in range(len(item.choices))],
            }
            texts = [html.escape(shown.text or NO_EXPLANATION) for shown in item.explanations]
            row |= {f'explanation_{e}': text for e, text in enumerate(texts, 1)}
            lines.append(json.dumps(row, ensure_ascii=False) + '\n')
    with records.atomic_files(folder / CONFIG, folder / ITEMS) as (config_file, items_file):
        config_file.write((json.dumps(_config(study, number), ensure_ascii=False, indent=2) + '\n').encode())
        items_file.write(''.join(lines).encode())
    return [folder / CONFIG, folder / ITEMS]


def _letter(number: int) -> str:
    return chr(ord('a') + number)


def _config(study: Study, number: int) -> dict:
    """JSON is YAML, and quotes whatever is in it."""
    choices = max(len(item.choices) for item in study.items.values())
    field = lambda key, kind, label: {'key': key, 'type': kind, 'label': label}
    shown = [
        field('picture', 'image', 'Picture'),
        field('text', 'html', study.kind.capitalize()),
        field('answers', 'html', 'Answers'),
        *(field(f'explanation_{e}', 'html', f'Explanation {e}') for e in range(1, number + 1)),
    ]
    required = {'label_requirement': {'required': True}}
    answered = {'display_logic': {'show_when': [{'schema': 'answer', 'operator': 'not_empty'}]}}
    schemes = [
        {
            'annotation_type': 'radio',
            'name': 'answer',
            'description': ASKED[study.kind],
            'labels': [{'name': _platform.choice(i), 'displayed_label': _letter(i)} for i in range(choices)],
            'dynamic_options': True,
            'dynamic_options_field': 'offered',
        }
        | required
    ]
    for e in range(1, number + 1):
        ratings = [{'name': word, 'displayed_label': label} for word, label in RATING_LABELS.items()]
        ticks = [{'name': tick, 'displayed_label': label} for tick, label in TICK_LABELS.items()]
        for name, kind, asked, labels in ((f'e{e}', 'radio', RATE, ratings), (f'f{e}', 'multiselect', TICK, ticks)):
            scheme = {
                'annotation_type': kind,
                'name': name,
                'description': f'Explanation {e}: {asked}',
                'labels': labels,
            }
            schemes.append(scheme | required | answered)
    return {
        'annotation_task_name': 'Explanations of answers',
        'task_dir': '.',
        'data_files': [ITEMS],
        'item_properties': {'id_key': 'id', 'text_key': 'id'},
        'output_annotation_dir': OUTPUT,
        'media_directory': MEDIA,
        'user_config': {'allow_all_users': True},
        'assignment_strategy': 'fixed_order',
        'num_annotators_per_item': study.raters,
        'instance_display': {'layout': {'direction': 'vertical', 'gap': '16px'}, 'fields': shown},
        'annotation_schemes': schemes,
    }


def read(path, study: Study, *, rater: Callable[[str], str] = _platform.hashed) -> list[responses.Response]:
    """The ratings of all raters, or of one.

    Args:
      path: annotation_output/, which has a folder for each rater, or the user_state.json of one.
      study: whose items these were.
      rater: user name -> id in the tidy table.

    Raises:
      ValueError: not such a folder or file, or another study's; file and item are named.
    """
    path = pathlib.Path(path)
    states = sorted(path.glob(f'**/{STATE}')) if path.is_dir() else [path]
    if not states:
        raise ValueError(f'{path}: no {STATE} in it or below')
    done = [one for state in states for one in _annotated(state)]
    if not done:
        raise ValueError(f'{path}: no annotations in it')
    return _platform.rows(study, done, rater)


def _annotated(path) -> Iterator[Done]:
    state = _files.checked(_files.read_json(path), dict, f'{path}: the document')
    person = _files.filled(state, 'user_id', str(path))
    times = state.get(_TIMES)
    for item, labels in _files.field(state, LABELS, dict, str(path)).items():
        where = f'{path}: item {item}'
        fields: dict[str, list[str]] = {}
        for scheme, name, value in _labels(labels, where):
            if value not in _NOT_CHOSEN:
                fields.setdefault(scheme, []).append(name)
        spent = times.get(item) if isinstance(times, dict) else None
        milliseconds = spent.get('total_time_ms') if isinstance(spent, dict) else None
        known = isinstance(milliseconds, int | float) and milliseconds > 0  # 0: not recorded
        yield Done(item, person, fields, milliseconds / 1000 if known else None, where)


def _labels(labels, where: str) -> Iterator[tuple[str, str, object]]:
    """(scheme, label, value) of [[{"schema", "name"}, value], ...] or {scheme: {label: value}}."""
    if isinstance(labels, dict):
        for scheme, values in labels.items():
            for name, value in _files.checked(values, dict, where).items():
                yield scheme, name, value
        return
    for pair in _files.checked(labels, list, where):
        if not isinstance(pair, list) or len(pair) != 2:
            raise ValueError(f'{where}: a label is {_files.shown(pair)}, wanted [{{"schema", "name"}}, value]')
        label = _files.checked(pair[0], dict, where)
        yield _files.field(label, 'schema', str, where), _files.field(label, 'name', str, where), pair[1]
