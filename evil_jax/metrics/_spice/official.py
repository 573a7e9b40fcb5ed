"""The original SPICE 1.0 on the user's files: its jar of pycocoevalcap, CoreNLP 3.6.0, a Java of any version from 8 on.

`driver/SpiceDriver.java` is compiled once, with the Java compiler that stands beside the program, into the cache
folder. What it may touch is as the original has it: the two jars of CoreNLP and those in pycocoevalcap's spice/lib.
"""

import dataclasses
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
from collections.abc import Sequence

from evil_jax.metrics import _java, base, resources

DRIVER = pathlib.Path(__file__).parent / 'driver' / 'SpiceDriver.java'
CORENLP = ('stanford-corenlp-3.6.0.jar', 'stanford-corenlp-3.6.0-models.jar')
_MEMORY = '-Xmx8G'  # as the original is started
_WHERE = (
    'unpack stanford-corenlp-full-2015-12-09.zip of https://stanfordnlp.github.io/CoreNLP/history.html and name its '
    'folder in evaluate.corenlp or $CORENLP_HOME; or give tuples of any parser in evaluate.spice_tuples'
)


@dataclasses.dataclass(frozen=True)
class Program:
    """Where everything is.

    Attributes:
      java: path of Java.
      classpath: the original's jars, CoreNLP's first.
      synonyms: the jar among them that has WordNet's synonyms.
    """

    java: str
    classpath: tuple[pathlib.Path, ...]
    synonyms: pathlib.Path

    @property
    def name(self) -> str:
        """For signatures."""
        return f'spice-1.0+corenlp-3.6.0(java {_java.version(self.java)})'


def find(folder: str = '', corenlp: str = '', java: str = '') -> Program:
    """Looks for Java, SPICE and CoreNLP; starts nothing but `java -version`.

    Args:
      folder, java: as in `resources.pycocoevalcap` and `resources.java`.
      corenlp: folder with the two jars of CoreNLP 3.6.0; '' = $CORENLP_HOME, else pycocoevalcap's spice/lib, where
        that package puts them after its download.

    Raises:
      Unavailable: names what is missing and how to get it.
    """
    spice = resources.pycocoevalcap(folder) / 'spice'
    jar, lib = spice / 'spice-1.0.jar', spice / 'lib'
    if not jar.is_file():
        raise resources.Unavailable(f'needs {jar.name}, which pip install pycocoevalcap brings')
    home = pathlib.Path(corenlp or os.environ.get('CORENLP_HOME') or lib)
    if missing := [name for name in CORENLP if not (home / name).is_file()]:
        where = "pycocoevalcap's spice/lib" if home == lib else home  # reasons are published: no folder of this machine
        raise resources.Unavailable(f'needs CoreNLP 3.6.0: {where} has no {" and no ".join(missing)}; {_WHERE}')
    program = resources.java(java)
    _java.version(program)
    others = (path for path in sorted(lib.glob('*.jar')) if not path.name.startswith('stanford-corenlp'))
    return Program(program, (*(home / name for name in CORENLP), jar, *others), lib / 'Meteor-1.5.jar')


def score(
    program: Program, ids: Sequence[str], candidates: Sequence[str], references: Sequence[list[str]]
) -> list[float]:
    """F of each example.

    Raises:
      Failed: the program ended with an error, or answered for other ids.
      Unavailable: no Java compiler.
    """
    return [row['f'] for row in _run(program, ids, candidates, references)]


def parse(program: Program, texts: Sequence[str]) -> list[list[list[str]]]:
    """Tuples of each text; errors as in `score`."""
    return [row['candidate'] for row in _run(program, list(map(str, range(len(texts)))), texts, [[]] * len(texts))]


def _run(program, ids, candidates, references) -> list[dict]:
    """What the driver says of each example."""
    lines = [
        json.dumps({'id': i, 'candidate': candidate, 'references': texts})
        for i, candidate, texts in zip(ids, candidates, references)
    ]
    classpath = [compiled(program), *program.classpath]
    said = _java.run(program.java, ['SpiceDriver'], lines, classpath=classpath, options=[_MEMORY])
    found = {row['id']: row for row in map(json.loads, said)}
    if found.keys() != set(ids):
        raise _java.Failed(f'SPICE answered for other examples: {base.some(found.keys() ^ set(ids))}')
    return [found[i] for i in ids]


def compiled(program: Program) -> pathlib.Path:
    """The folder of the driver's classes, made once for each driver and Java. Two processes may do so at once.

    Raises:
      Unavailable: Java has no compiler with it, or it refuses the driver.
    """
    source = DRIVER.read_bytes()
    key = hashlib.sha256(source + b'\n'.join(os.fsencode(path) for path in program.classpath)).hexdigest()[:16]
    target = resources.cache() / 'spice' / f'{key}-java{_java.major(program.java)}'
    if (target / 'SpiceDriver.class').is_file():
        return target
    beside = pathlib.Path(program.java).resolve().with_name('javac')
    compiler = shutil.which(beside) or shutil.which('javac')
    if compiler is None:
        raise resources.Unavailable(
            f'needs a Java compiler once, for its driver: {program.java} comes without javac (a JRE); install a JDK'
        )
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix='.made') as made:
        classes = pathlib.Path(made) / 'classes'
        classes.mkdir()
        _compile(compiler, classes, program)
        try:
            classes.rename(target)
        except OSError:
            if not (target / 'SpiceDriver.class').is_file():
                raise
    return target


def _compile(compiler, classes, program) -> None:
    # Bytecode of Java 8, whichever compiler: one found on the PATH may be newer than the program.
    command = [
        compiler, '-source', '8', '-target', '8', '-nowarn', '-Xlint:-options', '-proc:none', '-encoding', 'UTF-8',
        '-d', str(classes), '-cp', os.pathsep.join(map(str, program.classpath)), str(DRIVER),
    ]  # fmt: skip
    environment = os.environ | {'LC_ALL': 'C.UTF-8'}
    done = subprocess.run(command, capture_output=True, env=environment, timeout=300, check=False)
    if done.returncode:
        said = (done.stdout + done.stderr).decode(errors='replace').strip()[-2000:]
        raise resources.Unavailable(f'{compiler} refuses the driver of SPICE: {said}')
