"""Helper modules of this folder are imported by their names."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
