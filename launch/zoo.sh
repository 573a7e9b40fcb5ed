#!/usr/bin/env bash
# The five models of Kayser et al. 2021 on the built-in world: trains and scores one after the other, then FME's M_T
# alone against joint training with three seeds, and writes one report with all of them beside e-UG. About half an hour
# on two cores; stopped (Ctrl-C, SIGTERM), the same command continues. Usage: bash launch/zoo.sh [--config.key=value ...]
set -euo pipefail
cd "$(dirname "$0")/.."
start=$SECONDS
. launch/environment.sh ''

run() { "$PY" -m evil_jax.main "$@"; }
finished() { [ -f "$1" ] || { echo "stopped before $1 was written; the same command continues" >&2; exit 1; }; }

compare=
for pair in qa_gpt2=QA-only rvt=RVT pjx=PJ-X fme=FME; do
    model=${pair%=*}
    run --config="configs/$model.py:shapes_ve" --workdir="runs/zoo/$model" --config.evaluate.report=False "$@"
    finished "runs/zoo/$model/scores.json"
    compare+="'${pair#*=}=runs/zoo/$model/scores.json', "
done
run --config=configs/learning_instructions.py:shapes_ve,model=fme --mode=sweep --workdir=runs/zoo/learning_instructions "$@"
finished runs/zoo/learning_instructions/best.json
compare+="'FME=runs/zoo/learning_instructions/sweep.json', "
run --config=configs/eug.py:shapes_ve --workdir=runs/zoo/eug --config.evaluate.compare="($compare)" "$@"
finished runs/zoo/eug/report.html

echo
echo "report: $PWD/runs/zoo/eug/report.html   ($((SECONDS - start)) s)"
