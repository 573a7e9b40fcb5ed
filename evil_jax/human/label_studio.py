"""Label Studio (https://labelstud.io) runs a study: its labelling interface and tasks out, its exported JSON in.

A task is one item. The explanations are seen when the task question is answered. The rules about ratings and
shortcomings are not checked by Label Studio. How many people do a task is set there.
"""

import json
import pathlib
from collections.abc import Callable, Iterator
from xml.etree import ElementTree

from evil_jax import records
from evil_jax.data.sources import _files
from evil_jax.human import _boxed, _platform, responses
from evil_jax.human._platform import ASKED, RATE, TICK, Done
from evil_jax.human.form import RATING_LABELS, TICK_LABELS
from evil_jax.human.study import IMAGES, NO_EXPLANATION, Study

CONFIG, TASKS = 'config.xml', 'tasks.json'
# Label Studio shows an error where a picture has no address: a single clear pixel.
_NO_PICTURE = 'data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7'


def export(study: Study, folder, image_url: str = '', pictures=None) -> list[pathlib.Path]:
    """Writes config.xml (Settings > Labeling interface > Code) and tasks.json (Import).

    Args:
      study: what is asked.
      folder: gets the files.
      image_url: address of the folder with the pictures (of the study's or, given `pictures`, of the one made here),
        such as /data/local-files/?d=FOLDER of Label Studio itself.
      pictures: the study's images/. They are copied to images/ with the boxes of objects drawn in.

    Returns:
      The two files.

    Raises:
      ValueError: no address for the pictures, a picture that is not there, or items with different numbers of
        explanations.
    """
    folder, number = pathlib.Path(folder), _platform.explanations(study)
    urls = _platform.pictures(study, image_url, paths=True)
    if pictures is not None:
        urls = _platform.pictures(study, image_url, _boxed.write(study, pictures, folder / IMAGES), paths=True)
    tasks = []
    for page in study.pages:
        for item in study.of(page):
            data = {
                'item': item.id,
                'page': page.id,
                'picture': urls.get(item.id, _NO_PICTURE),
                'text': item.text,
                'choices': [{'value': c, 'alias': _platform.choice(i)} for i, c in enumerate(item.choices)],
            }
            data |= {f'explanation_{e}': shown.text or NO_EXPLANATION for e, shown in enumerate(item.explanations, 1)}
            tasks.append({'data': data})
    with records.atomic_files(folder / CONFIG, folder / TASKS) as (config_file, tasks_file):
        config_file.write(_config(study.kind, number).encode())
        tasks_file.write(json.dumps(tasks, ensure_ascii=False, indent=1).encode())
    return [folder / CONFIG, folder / TASKS]


def _config(kind: str, number: int) -> str:
    view = ElementTree.Element('View')
    ElementTree.SubElement(view, 'Image', name='picture', value='$picture', zoom='true')
    ElementTree.SubElement(view, 'Header', value=kind.capitalize())
    ElementTree.SubElement(view, 'Text', name='text', value='$text')
    ElementTree.SubElement(view, 'Header', value=ASKED[kind])
    ElementTree.SubElement(view, 'Choices', _choices('answer', 'text', 'single-radio') | {'value': '$choices'})
    for e in range(1, number + 1):
        # What a hidden view requires is not required: it is seen as soon as there is an answer, which is.
        hidden = ElementTree.SubElement(view, 'View', visibleWhen='choice-selected', whenTagName='answer')
        ElementTree.SubElement(hidden, 'Header', value=f'Explanation {e}')
        ElementTree.SubElement(hidden, 'Text', name=f'explanation_{e}', value=f'$explanation_{e}')
        ElementTree.SubElement(hidden, 'Header', value=RATE, size='5')
        group = ElementTree.SubElement(hidden, 'Choices', _choices(f'e{e}', f'explanation_{e}', 'single-radio'))
        for word, label in RATING_LABELS.items():
            ElementTree.SubElement(group, 'Choice', value=label, alias=word)
        ElementTree.SubElement(hidden, 'Header', value=TICK, size='5')
        group = ElementTree.SubElement(hidden, 'Choices', _choices(f'f{e}', f'explanation_{e}', 'multiple'))
        for tick, label in TICK_LABELS.items():
            ElementTree.SubElement(group, 'Choice', value=label, alias=tick)
    ElementTree.indent(view)
    return ElementTree.tostring(view, encoding='unicode') + '\n'


def _choices(name, of, kind) -> dict[str, str]:
    return {
        'name': name,
        'toName': of,
        'choice': kind,
        'required': 'true',
        'requiredMessage': f'{name}: please choose.',
    }


def read(path, study: Study, *, rater: Callable[[str], str] = _platform.hashed) -> list[responses.Response]:
    """The ratings in a file exported as JSON or as JSON-MIN. Skipped tasks (cancelled annotations) are left out.

    Args:
      path: the file.
      study: whose tasks these were.
      rater: user number or address -> id in the tidy table.

    Raises:
      ValueError: not such a file, or another study's; task and field are named.
    """
    tasks = _files.checked(_files.read_json(path), list, f'{path}: the document')
    done = []
    for number, task in enumerate(tasks, 1):
        where = f'{path}: task {number}'
        done += _annotated(_files.checked(task, dict, where), where)
    if not done:
        raise ValueError(f'{path}: no annotations in it')
    return _platform.rows(study, done, rater)


def _annotated(task: dict, where: str) -> Iterator[Done]:
    if 'annotations' not in task:  # JSON-MIN: one annotation, its fields beside the task's
        fields = {name: _values(task[name], f'{where}: {name}') for name in task if _ours(name)}
        yield _done(_files.field(task, 'item', str, where), task.get('annotator'), fields, task.get('lead_time'), where)
        return
    data = _files.field(task, 'data', dict, where)
    item = _files.field(data, 'item', str, f'{where}: data')
    annotations = _files.field(task, 'annotations', list, where)
    for annotation in sorted(annotations, key=lambda a: str(_files.checked(a, dict, where).get('updated_at', ''))):
        fields = {}
        for result in _files.field(annotation, 'result', list, where):
            name = _files.field(_files.checked(result, dict, where), 'from_name', str, where)
            if _ours(name):
                fields[name] = _values(_files.field(result, 'value', dict, where), f'{where}: {name}')
        if not annotation.get('was_cancelled'):
            yield _done(item, annotation.get('completed_by'), fields, annotation.get('lead_time'), where)


def _done(item, user, fields, seconds, where) -> Done:
    if isinstance(user, dict):
        user = user.get('email') or user.get('id')  # JSON-MIN of the same work has the address
    if not isinstance(user, int | str) or isinstance(user, bool):
        raise ValueError(f'{where}: completed_by is {user!r}, wanted a user')
    if seconds is not None:
        seconds = float(_files.checked(seconds, (int, float), f'{where}: lead_time'))
    return Done(item, str(user), fields, seconds, where)


def _ours(name: str) -> bool:
    return name == 'answer' or (len(name) == 2 and name[0] in 'ef' and name[1].isdigit())


def _values(value, where: str) -> list[str]:
    """A text, {"choices": [...]}, or a list of these."""
    if isinstance(value, list):
        return [text for part in value for text in _values(part, where)]
    if isinstance(value, dict):
        return _values(_files.field(value, 'choices', list, where), where)
    return [_files.checked(value, str, where)]
