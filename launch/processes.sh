#!/usr/bin/env bash
# Several processes of evil_jax on this machine, as if they were several machines: each has its own devices.
# Usage: bash launch/processes.sh N [--restarts=K] [--logs=DIR] -- <arguments of evil_jax.main>
#   N             number of processes
#   --restarts=K  when a process dies (killed, out of memory, crashed) all are stopped and started again, at most K times
#                 (3); training continues from its last checkpoint. An error in the input is not tried again.
#   --logs=DIR    output of the processes other than the first (default: a new folder in $TMPDIR, removed in the end if
#                 all went well)
# SIGTERM and SIGINT (Ctrl-C) are passed on: training saves and ends; a second one ends everything at once.
# The exit code is that of the processes. PYTHON names an interpreter that has evil_jax; else .venv is made and used.
# On a machine with GPUs process i gets GPU i. Several machines: see --distributed, --coordinator in evil_jax.main --help.
set -uo pipefail

fail() { echo "error: $*" >&2; exit 1; }
number_or_fail() { [[ $2 =~ ^[0-9]+$ ]] || fail "$1 is '$2', wanted a whole number"; }

[ $# -ge 1 ] || fail 'how many processes? Usage: bash launch/processes.sh N [--restarts=K] [--logs=DIR] -- --config=...'
count=$1 restarts=3 logs=''
number_or_fail 'the number of processes' "$count"
[ "$count" -ge 1 ] || fail 'the number of processes is 0'
shift
while [ $# -gt 0 ]; do
    case $1 in
        --restarts=*) restarts=${1#*=}; number_or_fail --restarts "$restarts" ;;
        --logs=*) logs=${1#*=}; [ -n "$logs" ] || fail '--logs is empty' ;;
        --) shift; break ;;
        *) fail "unknown argument '$1'; those of evil_jax.main come after --" ;;
    esac
    shift
done
[ $# -gt 0 ] || fail 'nothing to run: the arguments of evil_jax.main come after --'

if [ -n "${PYTHON:-}" ]; then
    PY=$PYTHON
else
    caller=$PWD
    cd "$(dirname "$0")/.." || exit 1
    if [ -f setup.py ]; then
        set -e
        . launch/environment.sh ''
        set +e
    else
        PY=python3
    fi
    cd "$caller" || exit 1
fi

own_logs=''
if [ -z "$logs" ]; then
    logs=$(mktemp -d "${TMPDIR:-/tmp}/evil_jax.XXXXXX") || exit 1
    own_logs=yes
fi
mkdir -p -- "$logs" || exit 1

# Every process gets a process group, so that its own children end with it and Ctrl-C reaches only this script.
set -m
pids=() codes=() signalled=0 passed=''

all() { # sends a signal to the groups of all processes
    local pid
    for pid in ${pids[@]+"${pids[@]}"}; do kill "-$1" -- "-$pid" 2>/dev/null; done
}

pass_on() {
    signalled=$((signalled + 1)) passed=$1
    if [ "$signalled" -gt 1 ]; then all KILL; return; fi
    echo "SIG$1: passed on to $count processes" >&2
    local pid # to the processes themselves: their children end when they do
    for pid in ${pids[@]+"${pids[@]}"}; do kill "-$1" "$pid" 2>/dev/null; done
}

finish() {
    all KILL
    if [ -n "$own_logs" ] && [ "${1:-1}" -eq 0 ]; then rm -rf -- "$logs"; fi
}

trap 'pass_on TERM' TERM
trap 'pass_on TERM' HUP
trap 'pass_on INT' INT
trap 'finish $?' EXIT

exec {idle}<> <(:) # nothing ever comes from here: waiting for it sleeps, without a child that would get the Ctrl-C
pause() { read -r -t "$1" -u "$idle" _ || true; }

# Should this script be killed, which no trap sees, the kernel ends the processes.
bound=()
if setpriv --pdeathsig TERM true 2>/dev/null; then bound=(setpriv --pdeathsig TERM); fi

start_all() {
    local port i
    port=$("$PY" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])') || exit 1
    pids=() codes=()
    for ((i = 0; i < count; i++)); do
        local command=(
            ${bound[@]+"${bound[@]}"} env "JAX_LOCAL_DEVICE_IDS=$i" "$PY" -m evil_jax.main "$@"
            "--coordinator=127.0.0.1:$port" "--num_processes=$count" "--process_id=$i"
        )
        if [ "$i" -eq 0 ]; then "${command[@]}" </dev/null & else "${command[@]}" </dev/null >>"$logs/process-$i.log" 2>&1 & fi
        pids+=($!)
        codes+=('')
    done
}

collect() { # notes the exit codes of processes that have ended; sets running and failed
    local i
    running=0 failed=''
    for ((i = 0; i < count; i++)); do
        if [ -z "${codes[i]}" ]; then
            if kill -0 "${pids[i]}" 2>/dev/null; then
                running=$((running + 1))
            else
                { wait "${pids[i]}"; codes[i]=$?; } 2>/dev/null
            fi
        fi
        if [ -n "${codes[i]}" ] && [ "${codes[i]}" -ne 0 ]; then failed=yes; fi
    done
}

for ((attempt = 0; ; attempt++)); do
    start_all "$@"
    running=$count failed=''
    while [ "$running" -gt 0 ] && { [ -z "$failed" ] || [ "$signalled" -gt 0 ]; }; do
        pause 0.2
        collect
    done
    # One has failed: the others notice it themselves and say so; whoever does not is stopped.
    for ((tick = 0; tick < 25 && running > 0; tick++)); do
        pause 0.2
        collect
    done
    died='' lost='' told='' code=0
    for ((i = 0; i < count; i++)); do
        case ${codes[i]} in
            '' | 0) continue ;;
            75 | 134) lost="$lost $i" ;; # what a process ends with that has lost another one, by itself or by JAX
            130) told=130 ;;             # Ctrl-C
            129 | 13[1-9] | 1[4-9]? | 2??) died="$died $i" ;;
            *) told=${codes[i]} ;;
        esac
        if [ "${codes[i]}" -gt "$code" ]; then code=${codes[i]}; fi
    done
    if [ -n "$told" ] && [ -z "$died" ] && [ "$signalled" -eq 0 ]; then code=$told; else died=$died$lost; fi
    all KILL
    for pid in "${pids[@]}"; do wait "$pid" 2>/dev/null; done
    if [ "$code" -eq 0 ]; then exit 0; fi
    if [ "$signalled" -gt 0 ] || [ -z "$died" ]; then
        # Of an error in the input its one message is all there is to know; a bug has a traceback.
        if grep -qs '^Traceback' "$logs"/process-*.log; then echo "traceback of another process: $logs" >&2; fi
        exit "$code"
    fi
    echo "died (exit code):$(for i in $died; do printf ' process %s (%s)' "$i" "${codes[i]}"; done); output: $logs" >&2
    if [ "$attempt" -ge "$restarts" ]; then
        echo "error: given up after $restarts restarts" >&2
        exit "$code"
    fi
    echo "starting all $count processes again ($((attempt + 1)) of $restarts)" >&2
done
