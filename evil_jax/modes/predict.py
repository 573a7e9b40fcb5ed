"""--mode=predict: one question about one picture's regions, answered and explained at the terminal; or of a plain
classifier the class of one picture or text.

    --config.predict.question='Is the cat asleep?' --config.predict.image_id=132417
    --config.predict.question=... --config.predict.features=regions.tsv     a features file instead of the data folder
    --config.predict.features=cat.jpg, or image_id=...      the picture that is classified
    --config.predict.question='Nobody laughed.'             the text that is classified

Without `image_id` the features must hold a single picture. `--config.predict.answer=yes` explains that answer instead
of the predicted one. Settings of `decode` (method, beams, ...) apply.
"""

import sys

import jax
import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.prompt import Prompt
from rich.table import Table

from evil_jax.data import load, text_lengths, words
from evil_jax.modes import _one_picture, decode
from evil_jax.records import Example, Prediction
from evil_jax.training import processes, sharding

TOGETHER = True  # every process of several runs this mode


def run(config, workdir) -> dict[str, float]:
    """Answers and explains; prints the question, the five likeliest answers and the explanation.

    Returns:
      probability: of the predicted answer; explanation_tokens and explanation_score (see `decoding.generate`), where
      the model explains.

    Raises:
      ValueError: a model that chooses (VCR) or reads annotated objects, no question and no terminal to ask at, no such
        image, a picture where region features are read, an answer outside the vocabulary, no checkpoint.
    """
    settings, console = config.predict, Console()
    if config.data.choices:
        raise ValueError(
            f'--mode=predict asks one question with nothing to choose from, but this model takes one of '
            f'{config.data.choices} choices of an example (data.choices): use --mode=decode'
        )
    if config.data.objects == 'annotated':
        raise ValueError(
            "--mode=predict knows no objects that people annotated, which this model reads (data.objects='annotated'): "
            'use --mode=decode'
        )
    inputs, found, image_id = load.inputs(config), None, ''
    if inputs != 'text':
        of = _one_picture.regions if inputs == 'regions' else _one_picture.picture
        found, image_id = of(config, 'predict', 'features', 'image_id')
    folder = decode.find_checkpoint(workdir, settings.checkpoint)
    if settings.answer:
        config = config.copy_and_resolve_references()
        config.decode.condition = 'gold'
    decoder, params = decode.load_trained(config, workdir, folder)
    text = '' if inputs == 'pictures' else _question(settings.question, console)
    example = Example(id='question', image_id=image_id, text=text)
    gold = decoder.task.answer_index(settings.answer, example) if settings.answer else -1
    if text_lengths.length('text', example.text, decoder.task.assets) > config.data.max_text:
        _, cut = words.pieces(example.text, decoder.task.assets.word, config.data.max_text, decoder.task.pairs)
        which = f'{cut} words at the ends of its two texts' if decoder.task.pairs else f'its last {cut} words'
        console.print(
            f'[yellow]The {"text" if inputs == "text" else "question"} is cut to {config.data.max_text} word pieces '
            f'(data.max_text): {which} are not read.[/]'
        )
    row = decoder.task.transform(example, found) | {'mask': np.bool_(True), 'row': np.int32(0), 'gold': np.int32(gold)}
    ways = decoder.mesh.shape['data'] * decoder.mesh.shape['fsdp']
    rows = sharding.local_rows(ways, decoder.mesh)
    batch = {name: np.stack([value] * len(rows)) for name, value in row.items()}  # every device gets a row
    batch['mask'][:] = rows == 0  # one is real
    first = {name: value[0] for name, value in jax.device_get(decoder.predict(params, batch)).items()}
    prediction = decoder.prediction(example, first)
    _show(console, example, prediction, settings.answer)
    if settings.answer and prediction.explanation_ids is None:
        console.print(
            f'[yellow]The model only answers: it cannot explain {escape(settings.answer)} (predict.answer).[/]'
        )
    numbers = {'probability': prediction.answer_scores[prediction.answer]}
    if prediction.explanation_ids is not None:
        numbers |= {'explanation_tokens': float(first['length']), 'explanation_score': float(first['score'])}
    return numbers


def _question(text: str, console: Console) -> str:
    text = text.strip()
    if not text and sys.stdin.isatty() and processes.count() == 1:
        text = Prompt.ask('Question', console=console).strip()
    if not text:
        raise ValueError("there is no question: set --config.predict.question='...'")
    return text


def _show(console: Console, example: Example, prediction: Prediction, given: str) -> None:
    """Texts are escaped: rich would take square brackets for markup."""
    page = Table.grid(padding=(0, 2))
    page.add_column(style='dim')
    page.add_column()
    if example.image_id:
        page.add_row('image', escape(example.image_id))
    if example.text:
        page.add_row('question' if example.image_id else 'text', f'[bold]{escape(example.text)}[/]')
    answers = Table.grid(padding=(0, 2))
    for answer, probability in prediction.answer_scores.items():
        style = 'bold green' if answer == prediction.answer else ''
        answers.add_row(escape(answer) or '(empty)', f'{probability:.1%}', '█' * round(20 * probability), style=style)
    page.add_row('answer', answers)
    if prediction.explanation_ids is not None:
        label = f'why {escape(given)}' if given else 'because'
        page.add_row(label, escape(prediction.explanation) or '[dim](no words)[/]')
    console.print()
    console.print(page)
    console.print()
