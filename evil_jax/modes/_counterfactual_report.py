"""From answers to edited questions to scores, rules, the page and the terminal's tables."""

import itertools
import pathlib
from collections.abc import Sequence

from evil_jax import records
from evil_jax.counterfactual import colours, consistency, judging, mentions, rules, score, tagging, views
from evil_jax.counterfactual import exchange as exchange_lib
from evil_jax.counterfactual.judged import Judged
from evil_jax.counterfactual.lexicon import Lexicon
from evil_jax.data import load
from evil_jax.modes import _cards, _edited, _judged_files, _terminal
from evil_jax.pages import counterfactual as page

RULES, REPORT = 'rules.json', 'report.html'
_SHORT = 10  # rules at the terminal
_UNCHANGED = ('noop', 'repeat')  # baselines that ask the question as it was


def tell_edits(asked: exchange_lib.Asked, coverage: dict) -> None:
    """Prints how many questions each family could edit, and what kept it from the others most often."""
    rows = [
        (
            row['family'],
            f'{row["edited"]:,} of {row["asked"]:,}',
            f'{row["share"]:.1%}',
            ', '.join(f'{reason["reason"]} {reason["questions"]:,}' for reason in row['reasons'][:3]),
        )
        for row in coverage['table']
    ]
    _terminal.show('questions that could be edited', ('family', 'questions', 'share', 'why not the others'), rows)
    print(f'{asked.counts["edits"]:,} edits: {asked.path("edits")}', flush=True)


def write(
    config, folder: pathlib.Path, asked: exchange_lib.Asked, coverage: dict, questions: _edited.Source,
    lexicon: Lexicon, paths: Sequence, format: str, model: dict | None = None,
) -> dict[str, float]:  # fmt: skip
    """Judges answers, and writes and prints everything that follows from them.

    Args:
      config: `counterfactual`, `seed` and `evaluate.bootstrap`.
      folder: of the files.
      asked: what was asked.
      coverage: of `_edited.asked`.
      questions: the examples.
      lexicon: WordNet.
      paths: files of answers.
      format: of them.
      model: what `_answering.answer` tells, where a model of ours answered.

    Returns:
      The numbers of the mode.

    Raises:
      ValueError: answers that are malformed or do not belong to what was asked.
    """
    section, examples = config.counterfactual, {example.id: example for example in questions.examples}
    allow = [word.strip() for word in section.allow.split(',') if word.strip()]
    answers = exchange_lib.read_answers(paths, asked, format, allow, examples, explanations=True)
    if str(answers.counts):
        print(f'left out as counterfactual.allow says: {answers.counts}')
    judged = judging.judge(asked, answers, examples, mode=section.accuracy)
    resamples, seed = config.evaluate.bootstrap, config.seed
    summary = score.summary(judged, seed=seed, resamples=resamples)
    found = rules.find(judged, lexicon, rule_settings(config))
    explained = human = None
    if answers.explained:
        explained, human = _explanations(config, asked, judged, answers, examples.values(), lexicon)
    made_from = {
        'questions': questions.name,
        **questions.made_from,
        'answers': [f'{pathlib.Path(path).name} sha256 {records.file_hash(path)}' for path in paths],
        'left out': str(answers.counts),
        'edits': asked.hashes['edits'],
        'wordnet': lexicon.signature,
    }
    document = {
        'schema': 1,
        'made_from': made_from,
        'settings': asked.about['edits'],
        'coverage': coverage['table'],
        'oracle': coverage['oracle'],
        'summary': summary,
        'rules': found.to_json(),
        'explanations': explained,
        'human': human,
    }
    _judged_files.write(folder, asked, judged)
    records.write_json(folder / RULES, document)
    _tell(summary, found, explained, model)
    if section.report:
        shown = _page(config, asked, judged, answers, questions, examples, lexicon, found, document)
        page.write_counterfactual(folder / REPORT, shown)
        print(f'report: {folder / REPORT}')
    return _numbers(summary, found)


def rule_settings(config) -> rules.Settings:
    """What makes a rule. ValueError where a value is none."""
    section = config.counterfactual
    names = ('tau', 'alpha', 'min_questions', 'min_images')
    return rules.Settings(seed=config.seed, **{name: section[name] for name in names})


def _explanations(config, asked, judged, answers, examples, lexicon):
    """(what `consistency` measures, and how often people repeat a word of the question)."""
    finder = mentions.Finder(lexicon)
    tables = [(judged, 'edits')] + [(judged.baselines, 'baselines')] * (judged.baselines is not None)
    pairs = itertools.chain.from_iterable(
        consistency.pairs(table, asked.edits(name), answers.explanation, lexicon) for table, name in tables
    )
    measured = consistency.measure(pairs, finder, seed=config.seed, resamples=config.evaluate.bootstrap)
    tagger = tagging.make_tagger('heuristic', lexicon)
    nouns = lambda text: [token.lemma for token in tagger(text) if token.pos == 'n']
    named = lambda text: [name for _, _, name in colours.find(tagger(text), text)]
    return measured, consistency.human_rates(examples, finder, nouns, named) or consistency.HUMAN


def _page(config, asked, judged: Judged, answers, questions, examples, lexicon, found, document) -> dict:
    """What the page is made of (pages/counterfactual.py)."""
    section = config.counterfactual
    first = [name for rule in found.rules for name in rule.examples]
    rows = views.sample(judged, section.report_examples, config.seed, first)
    own = not section.questions
    images = load.images(config) if own or config.data.images else None
    return {
        'title': f'Counterfactual questions: {questions.name}',
        'facts': {
            'answers': 'our model' if own and not section.answers else section.answers,
            'questions': questions.name,
        },
        'settings': document['made_from'] | asked.about['edits'],
        'files': {
            'judged.jsonl, judged.csv': 'every edit with its answers',
            'rules.json': 'these numbers',
            'edits.jsonl': 'the edits, with all that is needed to audit them',
        },
        'summary': document['summary'],
        'rules': document['rules'],
        'colours': views.colour_map(judged),
        'distance': views.by_distance(judged, seed=config.seed, resamples=config.evaluate.bootstrap),
        'trees': views.trees(judged, lexicon),
        'transitions': views.transitions(judged),
        'explanations': document['explanations'],
        'human': document['human'],
        'coverage': document['coverage'],
        'metric': asked.about['edits']['metric'],
        'oracle': document['oracle'],
        'records': [_record(asked, judged, row, answers, examples, images) for row in rows],
    }


def _record(asked, judged: Judged, row: int, answers, examples, images) -> dict:
    edit = asked.edit(int(judged.offset[row]))
    example = examples[edit.example_id]
    before, after = answers.get(edit.example_id), answers.get(edit.id)
    gold = judged.names['gold'][judged.gold[row]]
    if example.choices is not None and gold.isdecimal():
        gold = example.choices[int(gold)]
    value = lambda name: float(getattr(judged, name)[row])
    shown = _cards.picture(example, images, None, ())
    return edit.to_json() | {
        'answer': before.answer,
        'answer_star': after.answer,
        'compared': [judged.names[name][getattr(judged, name)[row]] for name in ('answer', 'answer_star')],
        'scores': before.scores,
        'scores_star': after.scores,
        'gold': [gold] if gold else [],
        'right': value('right'),
        'right_star': value('right_star'),
        'kept': bool(judged.kept[row]),
        'transition': judged.names['transition'][judged.transition[row]],
        'met': None if judged.met[row] < 0 else bool(judged.met[row]),
        'explanation': before.explanation,
        'explanation_star': after.explanation,
        'picture': shown['picture'],
        'problem': shown['problem'],
    }


def _tell(summary, found: rules.Found, explained, model) -> None:
    if model:
        rate = model['answered'] / max(model['seconds'], 1e-9)
        print(f'{model["asked"]:,} questions, {model["answered"]:,} different ones answered now, {rate:.0f} a second')
        if model['cut']:
            print(f'warning: {model["cut"]:,} questions are longer than data.max_text: their ends were not read')
    print('\n'.join(score.lines(summary)))
    beside = summary['all']['baselines']
    again = [f'{row["k"]:,} of {row["n"]:,} ({name})' for name in _UNCHANGED if (row := beside.get(name)) and row['k']]
    if again:
        print(f'warning: the same question has another answer: {", ".join(again)}. So many flips are noise')
    for title, some in (('rules', found.rules), ('not confirmed by the other half of the pictures', found.unconfirmed)):
        if some:
            print(f'{title}: {len(some)}')
            for rule in some[:_SHORT]:
                print(f'  {rule.sentence}')
    if not found.rules:
        print('rules: none')
    if explained:
        told = (f'{name} {row["value"]:.3f}' for name in consistency.RATES if (row := explained['all'][name])['n'])
        print(f'explanations: {", ".join(told)}')


def _numbers(summary, found: rules.Found) -> dict[str, float]:
    numbers = {'rules': float(len(found.rules))}
    for row in summary['families']:
        for name in ('acc', 'acc_star', 'flips', 'unwarranted_stability', 'unwarranted_flips', 'expected_right'):
            value = row[name]['value'] if isinstance(row[name], dict) else row[name]
            if value is not None:
                numbers[f'{row["family"]} {name}'] = value
    return numbers
