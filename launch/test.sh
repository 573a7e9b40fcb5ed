#!/usr/bin/env bash
# Installs the test extras and runs the suite. Usage: bash launch/test.sh [--acceptance] [pytest arguments]
#   --acceptance   also trains and measures every number that the issues ask for, and prints wanted beside got
set -euo pipefail
cd "$(dirname "$0")/.."
. launch/environment.sh test

export JAX_PLATFORMS=cpu HF_HUB_OFFLINE=1
arguments=(-c tests/pytest.ini tests)
marks='not acceptance'
for argument in "$@"; do
    if [ "$argument" = --acceptance ]; then marks=''; else arguments+=("$argument"); fi
done
.venv/bin/ruff check .
.venv/bin/ruff format --check .
exec "$PY" -m pytest -m "$marks" "${arguments[@]}"
