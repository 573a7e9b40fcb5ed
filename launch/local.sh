#!/usr/bin/env bash
# From a bare checkout to a report: installs, builds the built-in world, trains a text-only baseline and a small e-UG,
# decodes, evaluates. About six minutes on two cores. Usage: bash launch/local.sh [--config.key=value ...]
set -euo pipefail
cd "$(dirname "$0")/.."
start=$SECONDS
. launch/environment.sh ''

run() { "$PY" -m evil_jax.main "$@"; }
finished() { [ -f "$1/scores.json" ] || { echo "stopped before $1 was scored; the same command continues" >&2; exit 1; }; }

run --config=configs/eug.py:shapes_ve,text_only --workdir=runs/shapes_text_only --config.evaluate.report=False "$@"
finished runs/shapes_text_only
run --config=configs/eug.py:shapes_ve --workdir=runs/shapes \
    --config.evaluate.compare="('text only=runs/shapes_text_only/scores.json',)" "$@"
finished runs/shapes

echo
echo "report: $PWD/runs/shapes/report.html   ($((SECONDS - start)) s)"
