"""Makes `fakes` importable: pytest runs with importmode=importlib, which adds no folders to the path."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
