# Sourced by the other scripts: makes .venv in the checkout and installs evil_jax with the extras in $1 (may be empty).
# Needs Python 3.11 to 3.13 (or $PYTHON) and access to PyPI; on Debian, as root, it adds a missing python3-venv itself.
# Leaves: PY, the interpreter of the environment. Nothing is done when nothing changed since the last run.

extras=${1:-}
[ -f setup.py ] || { echo "error: $PWD is not a checkout of evil_jax; an installed package needs no environment" >&2; exit 1; }

fits() { "$1" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' 2>/dev/null; }

find_python() {
    local candidate
    if [ -n "${PYTHON:-}" ]; then
        fits "$PYTHON" && echo "$PYTHON" && return
        echo "error: PYTHON=$PYTHON is not a Python 3.11, 3.12 or 3.13" >&2
        return 1
    fi
    for candidate in python3.11 python3.12 python3.13 python3; do
        fits "$candidate" && echo "$candidate" && return
    done
    echo 'error: Python 3.11, 3.12 or 3.13 is needed (set PYTHON to one)' >&2
    return 1
}

make_environment() {
    # An environment without pip is what a killed first run leaves behind.
    .venv/bin/python -m pip --version >/dev/null 2>&1 && return
    rm -rf .venv
    "$1" -m venv .venv >/dev/null 2>&1 && return
    rm -rf .venv
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        apt-get update -qq
        apt-get install -y -qq "$("$1" -c 'import sys; print("python3.%d-venv" % sys.version_info[1])')" >/dev/null
    fi
    "$1" -m venv .venv
}

python=$(find_python)
make_environment "$python"
PY=$PWD/.venv/bin/python
constraints=launch/constraints/$("$PY" -c 'import sys; print("py%d%d" % sys.version_info[:2])').txt

stamp=.venv/installed-${extras:-run}
wanted=$(cat setup.py "$constraints" | cksum)
if [ "$(cat "$stamp" 2>/dev/null)" != "$wanted" ]; then
    echo "installing evil_jax${extras:+[$extras]} into .venv"
    # uv installs several times faster than pip, which does all the work where uv cannot be had.
    target=".${extras:+[$extras]}"
    { "$PY" -m pip install -q --disable-pip-version-check uv 2>.venv/log &&
        "$PY" -m uv pip install -q --python "$PY" -c "$constraints" -e "$target" 2>>.venv/log; } ||
        "$PY" -m pip install -q --disable-pip-version-check -c "$constraints" -e "$target" 2>>.venv/log ||
        { cat .venv/log >&2; exit 1; }
    echo "$wanted" >"$stamp"
fi

# Compiled modules are kept in the environment. Where they are not kept (many containers say so), every process compiles
# the libraries anew, which takes longer than all else that it does at its start.
unset PYTHONDONTWRITEBYTECODE
export PYTHONPYCACHEPREFIX=$PWD/.venv/pycache
export TPU_SKIP_MDS_QUERY=${TPU_SKIP_MDS_QUERY:-1}
# Programs compiled once are found again by the next run (and by the next test).
export JAX_COMPILATION_CACHE_DIR=${JAX_COMPILATION_CACHE_DIR:-$PWD/.venv/xla_cache}
# Large buffers on huge pages: XLA allocates them anew each step, and page faults cost a quarter of a step on a CPU.
export GLIBC_TUNABLES=${GLIBC_TUNABLES:-glibc.malloc.hugetlb=1}
