"""The signatures of a leaderboard told once: what all numbers have in common, then what is each one's own."""

from collections.abc import Mapping

_ANSWERS = ('s_t', 'accuracy', 'vqa_')


def told(signatures: Mapping[str, Mapping[str, str]]) -> list[tuple[str, str]]:
    """[(whose, fields)]: of all scores, of those of explanations, of each score, of each system.

    The lines about a number have all fields of its signature together. Scores with the same fields share a line. What
    a system has in some scores only is followed by their names.

    Args:
      signatures: system -> score name -> signature; '' = not known.
    """
    fields = {(m, s): _fields(line) for s, lines in signatures.items() for m, line in lines.items() if line}
    metrics, systems = (dict.fromkeys(key[i] for key in fields) for i in (0, 1))

    def taken(wanted):
        """What all of some numbers have in common, which they then lose."""
        some = [key for key in fields if wanted(*key)]
        common = [field for field in fields[some[0]] if all(field in fields[key] for key in some)] if some else []
        for key in some:
            fields[key] = [field for field in fields[key] if field not in common]
        return common

    found = [('all scores', taken(lambda m, s: True))]
    found.append(('scores of explanations', taken(lambda m, s: not m.startswith(_ANSWERS))))
    of_systems = {system: taken(lambda m, s, system=system: s == system) for system in systems}
    of_metrics = {}
    for metric in metrics:
        of_metrics.setdefault(tuple(taken(lambda m, s, metric=metric: m == metric)), []).append(metric)
    found += [(', '.join(names), own) for own, names in of_metrics.items()]
    for system, own in of_systems.items():
        some = {}
        for (metric, other), rest in fields.items():
            for field in rest if other == system else ():
                some.setdefault(field, []).append(metric)
        found.append((system, [*own, *[f'{field} ({", ".join(names)})' for field, names in some.items()]]))
    return [(whose, '|'.join(own)) for whose, own in found if own]


def _fields(line):
    """Fields of a signature but its name; the versions of several packages are a field each."""
    parts = [part for part in line.split('|') if not part.startswith('metric:')]
    return [one for part in parts for one in (part.split('+') if part.startswith('version:') else [part])]
