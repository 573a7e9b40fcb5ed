"""What an installed package carries beside its Python files."""

import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

PROGRAM = """
from setuptools import distutils  # makes distutils importable on every Python
from distutils.core import run_setup
distribution = run_setup('setup.py', script_args=['--quiet'], stop_after='commandline')
command = distribution.get_command_obj('build_py')
command.finalize_options()
for _, folder, _, files in command.data_files:
    for file in files:
        print(f'{folder}/{file}')
"""


def test_configs_scripts_constraints_and_templates_are_installed():
    done = subprocess.run([sys.executable, '-c', PROGRAM], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for folder, wanted in (
        ('launch', '*.sh'),
        ('launch', 'constraints/*.txt'),
        ('evil_jax/metrics', '*.json'),
        ('evil_jax/metrics/_spice', '**/*.java'),
        ('evil_jax/pages', 'templates/*'),
    ):
        paths = [path.relative_to(ROOT / folder) for path in (ROOT / folder).glob(wanted) if path.is_file()]
        assert paths
        for path in paths:
            assert any(line.endswith(f'{folder.rpartition("/")[2]}/{path}') for line in done.stdout.splitlines()), path
