#!/usr/bin/env bash
# Installs the test extras and runs the suite. Usage: bash launch/test.sh [--acceptance] [tests/FILE ...] [pytest options]
#   --acceptance   also trains and measures every number that the issues ask for, and prints wanted beside got
set -euo pipefail
cd "$(dirname "$0")/.."
. launch/environment.sh test

# Pages are also tested in a browser. Where Chromium cannot be had, those tests skip and say so.
if ! { command -v chromium && command -v chromedriver; } >/dev/null && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo 'installing chromium'
    { apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium chromium-driver; } >.venv/log 2>&1 ||
        { echo 'chromium could not be installed:' && tail -2 .venv/log; } >&2
fi

export JAX_PLATFORMS=cpu HF_HUB_OFFLINE=1
arguments=(-c tests/pytest.ini)
marks='not acceptance' paths=''
for argument in "$@"; do
    if [ "$argument" = --acceptance ]; then marks=''; else arguments+=("$argument"); fi
    case $argument in tests | tests/*) paths=given ;; esac
done
[ -n "$paths" ] || arguments+=(tests)
# Two at a time, and programs that run a few times only are compiled quickly; not where times are measured.
if [ -n "$marks" ]; then
    arguments+=(-n 2 --dist loadfile --no-loadscope-reorder)
    export OPENBLAS_NUM_THREADS=1  # the threads of small matrices only wait for each other
    export XLA_FLAGS="${XLA_FLAGS:-} --xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false"
    export JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS=0  # tests compile the same small programs again and again
fi
.venv/bin/ruff check .
.venv/bin/ruff format --check .
exec "$PY" -m pytest -m "$marks" "${arguments[@]}"
