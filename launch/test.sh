#!/usr/bin/env bash
# Installs the test extras and runs the suite. Usage: bash launch/test.sh [--acceptance] [pytest arguments]
#   --acceptance   also trains and measures every number that the issues ask for, and prints wanted beside got
set -euo pipefail
cd "$(dirname "$0")/.."
. launch/environment.sh test

export JAX_PLATFORMS=cpu HF_HUB_OFFLINE=1
marks=(-m 'not acceptance')
if [ "${1:-}" = --acceptance ]; then
    marks=()
    shift
fi
.venv/bin/ruff check .
.venv/bin/ruff format --check .
"$PY" -m pytest -c tests/pytest.ini tests "${marks[@]}" "$@"
