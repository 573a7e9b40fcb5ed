"""--mode=human: what people say of explanations, from the sample to the statistics (Kayser et al., 2021, 4.3, D and E).

`human.step` says what is done; everything is in `<workdir>/human/`:

* `sample`: which explanations people are asked about, of the predictions of `evaluate`: study.json, images/.
* `serve`: raters work in their browsers, what they say is in ratings.sqlite; until Ctrl-C, and on when started again.
* `export`: files for MTurk, Label Studio or Potato instead, in `<workdir>/human/<human.to>/`.
* `score`: of what the server collected, or of `human.ratings`: ratings.csv and ratings.jsonl (the tidy table),
  results.json, table.csv, table.tex, report.html.
* `power`: how many examples and raters tell two systems apart: power.json.

A study that asks for labels (--mode=construct makes one with construct.step=relabel) is served and exported alike;
`score` then writes labels.csv, labels.jsonl and results.json: majorities, agreement, raters.

Nothing of this imports JAX.
"""

import pathlib

from evil_jax import records
from evil_jax.modes import _human_report, _human_study, _terminal

FOLDER = 'human'


def run(config, workdir) -> dict[str, float] | None:
    """Does one step.

    Returns:
      Of `score` s_e_human, s_t and s_o_human of each data set and system, or how many labels were changed and how
      well people agree; None of the others.

    Raises:
      ValueError: missing or malformed files, another study in the folder, ratings that do not belong to the study.
    """
    folder = pathlib.Path(workdir) / FOLDER
    with _terminal.plain_warnings():
        match config.human.step:
            case 'sample':
                with records.locked(folder / '.lock', 'another run makes a study here'):
                    return _human_study.sample(config, folder)
            case 'serve':
                return _human_study.serve(config, folder)
            case 'export':
                return _human_study.export(config, folder)
            case 'power':
                return _human_report.power(config, folder)
            case _:
                return _human_report.score(config, folder)
