"""Makes `golden_models` and `attributed` importable from the tests beside them."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
