"""--mode=counterfactual: what is answered when a word of the question is exchanged, and the rules behind it.

A split, or `counterfactual.questions`, is edited (evil_jax/counterfactual). The edited questions are answered by the
trained model of `workdir`, or by any system: they are written, its answers come back in `counterfactual.answers`. Then
flips, accuracies and expectations are counted and rules are searched. All of it is in `<workdir>/counterfactual/`:
edits.jsonl and asked.jsonl, asked.csv (what is asked), coverage.json, judged.jsonl and judged.csv (each edit with its
answers), rules.json (scores and rules) and report.html.

With files of questions and answers nothing of this imports JAX.
"""

import pathlib

from evil_jax import records
from evil_jax.counterfactual import exchange, lexicon
from evil_jax.data import load
from evil_jax.modes import _counterfactual_report, _edited, _judged_files, _systems, _terminal, _together

TOGETHER = True  # every process of several runs this mode
FOLDER = 'counterfactual'
FILES = (
    *exchange.FILES.values(), exchange.MANIFEST, _edited.COVERAGE, *_judged_files.NAMES, _counterfactual_report.RULES,
    _counterfactual_report.REPORT,
)  # fmt: skip


def run(config, workdir) -> dict[str, float] | None:
    """Edits, answers and scores; where answers are to come from elsewhere, tells what to do instead.

    Returns:
      Of each family 'flips', 'acc' and 'acc_star' as far as they are known, the number of rules; None while answers are
      missing.

    Raises:
      ValueError: no WordNet (where it was looked for is told), questions or answers that are malformed or do not belong
        together, no checkpoint.
    """
    folder = pathlib.Path(workdir) / FOLDER
    with _together.alone_in(folder), _terminal.plain_warnings():
        _together.first(lambda: records.remove_leftovers(*(folder / name for name in FILES)))
        return _run(config, folder.parent, folder)


def _run(config, workdir, folder):
    section = config.counterfactual
    # What is wrong or missing is told now, not after hours of answers.
    _counterfactual_report.rule_settings(config)
    paths = _systems.paths(section.answers) if section.answers else []
    if config.data.images:
        load.images(config)
    words = lexicon.open_lexicon(section.wordnet)
    questions = _edited.source(config)
    if not section.questions and not paths:
        # Imported here: the files of other systems need no JAX.
        from evil_jax.modes import _answering, decode

        decode.find_checkpoint(workdir, section.checkpoint)
    edited = lambda: _edited.asked(config, folder, questions, words)
    made = []
    _together.first(lambda: made.append(edited()))
    asked, coverage = made[0] if made else edited()  # the other processes open what the first one wrote
    tell = lambda paths, format, **more: _together.first(
        lambda: _counterfactual_report.write(config, folder, asked, coverage, questions, words, paths, format, **more)
    )
    _together.first(lambda: _counterfactual_report.tell_edits(asked, coverage))
    if section.answers:
        return tell(paths, section.answers_format)
    if section.questions:
        print(_next_step(asked))
        return None
    reader = load.open_inputs(config)
    model = _answering.answer(config, workdir, folder, asked, reader, questions.examples, questions.split)
    return tell([model.pop('path')], 'jsonl', model=model)


def _next_step(asked: exchange.Asked) -> str:
    return (
        f'now let your system answer {asked.path("asked")} (or {asked.path("table")}), '
        f'{asked.counts["asked"]:,} questions: a line {{"id": ..., "answer": ...}} each, and run the same command with '
        f'--config.counterfactual.answers=FILE'
    )
