"""Makes `parity`, `resnet_twin` and `vocabularies` importable from the tests beside them."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
