"""--mode=construct: e-SNLI-VE from its sources, or the same cleaning of other pairs of texts about pictures.

Kayser et al. 2021, section 3 and appendix B. Everything is in `<workdir>/construct/`:

* merged.jsonl, dropped.jsonl, merged.json: pairs joined from the sources, what is none and why;
* nli-DIGEST.sqlite: what the NLI model says of captions and hypotheses; a changed threshold asks nothing;
* esnlive/: esnlive_{train,dev,test}.csv in the released layout (`data.manual_dir` of eug:esnlive), removed.jsonl;
* statistics.json, curves.csv, report.html, DATASHEET.md.

`construct.step=annotate` draws pairs to check by hand (annotate.csv; filled in it is `construct.annotated`), `relabel`
makes a study for --mode=human in which people label what is neutral in dev and test (what that gives is
`construct.relabelled`). Interrupted, the same command goes on. JAX is imported only where a filter asks the model.
"""

import pathlib

from evil_jax.modes import (
    _construction_output,
    _construction_people,
    _construction_sources,
    _nli_scores,
    _terminal,
    _together,
)

TOGETHER = True  # every process of several runs this mode
FOLDER = 'construct'


def run(config, workdir) -> dict[str, float] | None:
    """Does one step.

    Returns:
      Of the step `run` pairs of each split that are merged (without those that people labelled anew and do not agree
      on), kept and removed by each filter; None of the others.

    Raises:
      ValueError: missing, malformed or contradicting files, no NLI model where a filter asks for one.
    """
    folder = pathlib.Path(workdir) / FOLDER
    with _together.alone_in(folder), _terminal.plain_warnings():
        sources = _construction_sources.Sources(config, folder)
        if config.construct.step != 'run':
            step = {'annotate': _construction_people.annotate, 'relabel': _construction_people.study}
            return _together.first(lambda: step[config.construct.step](config, folder, sources))
        # What is wrong with the model is told now, not after the sources were read.
        model = _nli_scores.open_model(config) if sources.asking else None
        _together.first(sources.merge)
        sources.open()
        asked = _nli_scores.fill(model, sources) if model else None
        return _together.first(lambda: _construction_output.write(config, folder, sources, model, asked))
