import os
import stat
import subprocess

import pytest

from evil_jax.metrics import _java, resources

PROGRAM = """
import java.io.*;
import java.util.Locale;

public class Echo {
    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        PrintStream out = new PrintStream(System.out, false, "UTF-8");
        out.println(String.format("%.1f", 1.5) + " " + Locale.getDefault() + " " + "I".toLowerCase());
        for (String line; (line = in.readLine()) != null; ) {
            if (line.equals("fail")) {
                throw new IllegalStateException("no more of this");
            }
            if (line.equals("wait")) {
                System.err.println("waiting");
                Thread.sleep(60000);
            }
            System.err.println("a long line on standard error, which nobody reads before the end: " + line);
            out.println("[" + line + "]");
        }
        out.flush();
    }
}
"""


@pytest.fixture(scope='module')
def folder(java, tmp_path_factory):
    compiler = os.path.join(os.path.dirname(os.path.realpath(java)), 'javac')
    if not os.path.exists(compiler):
        pytest.skip(f'no Java compiler: {compiler} does not exist')
    path = tmp_path_factory.mktemp('with blanks é')
    (path / 'Echo.java').write_text(PROGRAM)
    environment = os.environ | {'LC_ALL': 'C.UTF-8'}
    subprocess.run([compiler, '-d', '.', 'Echo.java'], cwd=path, env=environment, check=True, timeout=60)
    return path


def test_lines_go_in_and_come_out(java, folder):
    lines = ['a dog', '', 'é ||| 犬 \U0001f600', 'half \ud83d a pair', '']
    found = _java.run(java, ['Echo'], lines, classpath=[folder, folder / 'no such.jar'])
    assert found == ['1.5 en_US i', '[a dog]', '[]', '[é ||| 犬 \U0001f600]', '[half \ufffd a pair]', '[]']
    assert _java.run(java, ['Echo'], [], classpath=[folder]) == ['1.5 en_US i']


def test_numbers_have_points_whatever_the_user_speaks(java, folder, monkeypatch):
    monkeypatch.setenv('LC_ALL', 'de_DE.UTF-8')
    monkeypatch.setenv('JAVA_TOOL_OPTIONS', '-Duser.language=de -Duser.country=DE -Dfile.encoding=ISO-8859-1')
    assert _java.run(java, ['Echo'], ['é'], classpath=[folder]) == ['1.5 en_US i', '[é]']


def test_a_hundred_thousand_lines_with_both_outputs_full(java, folder):
    found = _java.run(java, ['Echo'], [f'line {n}' for n in range(100_000)], classpath=[folder], timeout=120)
    assert len(found) == 100_001
    assert found[-1] == '[line 99999]'


def test_what_it_said_is_in_the_error(java, folder):
    with pytest.raises(_java.Failed, match=r'(?s)Echo ended with code 1 \(Java [\d.]+.*no more of this') as caught:
        _java.run(java, ['Echo'], ['x'] * 1000 + ['fail'], classpath=[folder])
    assert len(str(caught.value)) < 2500
    assert isinstance(caught.value, resources.Unavailable)
    with pytest.raises(_java.Failed, match='NoSuchClass'):
        _java.run(java, ['NoSuchClass'], classpath=[folder])


def test_it_is_stopped_after_its_time(java, folder):
    with pytest.raises(_java.Failed, match=r'(?s)Echo did not end within 1 seconds.*waiting'):
        _java.run(java, ['Echo'], ['wait'], classpath=[folder], timeout=1)


def test_a_line_break_inside_a_line_is_refused():
    with pytest.raises(ValueError, match='line break inside'):
        _java.run('java', ['Echo'], ['a\nb'])


def test_a_folder_that_the_class_path_cannot_name(java):
    with pytest.raises(resources.Unavailable, match=f"'{os.pathsep}' in its name"):
        _java.run(java, ['Echo'], classpath=[f'/a{os.pathsep}b'])


def test_version(java):
    assert _java.major(java) >= 8
    assert _java.version(java).split('.')[0] in (str(_java.major(java)), '1')


@pytest.mark.parametrize(
    ('said', 'version', 'major'),
    [
        ('openjdk version "1.8.0_392"', '1.8.0_392', 8),
        ('Picked up JAVA_TOOL_OPTIONS: -Dversion="9"\nopenjdk version "21" 2023-09-19', '21', 21),
        ('java version "11.0.2" 2019-01-15 LTS', '11.0.2', 11),
        ('openjdk version "22-ea"', '22-ea', 22),
    ],
)
def test_versions_of_others(tmp_path, said, version, major):
    program = _program(tmp_path, f"cat >&2 <<'END'\n{said}\nEND\n")
    assert (_java.version(program), _java.major(program)) == (version, major)


def test_a_placeholder_is_no_java(tmp_path):
    program = _program(tmp_path, 'echo The operation could not be completed. >&2; exit 1')
    with pytest.raises(resources.Unavailable, match='could not be completed'):
        _java.version(program)
    with pytest.raises(resources.Unavailable, match='does not run'):
        _java.version(str(tmp_path / 'none'))


def _program(folder, script):
    path = folder / 'java'
    path.write_text(f'#!/bin/sh\n{script}')
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)
