"""Lets the tests of the construction import what they share, which stands beside them."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
