# Sourced by the other scripts: makes .venv in the checkout and installs evil_jax with the extras in $1 (may be empty).
# Needs Python >= 3.11 (or $PYTHON) and access to PyPI; on Debian, as root, it adds a missing python3-venv itself.
# Leaves: PY, the interpreter of the environment. Nothing is done when nothing changed since the last run.

extras=${1:-}

find_python() {
    local candidate
    for candidate in ${PYTHON:-} python3.11 python3.12 python3.13 python3; do
        if "$candidate" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' 2>/dev/null; then
            echo "$candidate"
            return
        fi
    done
    echo 'error: Python 3.11, 3.12 or 3.13 is needed (set PYTHON to one)' >&2
    return 1
}

make_environment() {
    local python=$1
    "$python" -m venv .venv 2>/dev/null && return
    rm -rf .venv
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        apt-get update -qq && apt-get install -y -qq "$("$python" -c 'import sys; print("python3.%d-venv" % sys.version_info[1])')"
    fi
    "$python" -m venv .venv
}

python=$(find_python)
[ -x .venv/bin/python ] || make_environment "$python"
PY=$PWD/.venv/bin/python
tag=$("$PY" -c 'import sys; print("py%d%d" % sys.version_info[:2])')
constraints=launch/constraints/$tag.txt

stamp=.venv/installed-${extras:-run}
wanted=$(cat setup.py "$constraints" | cksum)
if [ "$(cat "$stamp" 2>/dev/null)" != "$wanted" ]; then
    echo "installing evil_jax${extras:+[$extras]} into .venv ($tag)"
    # uv installs ten times faster than pip; where it cannot be had, the second command does all the work.
    "$PY" -m pip install -q --disable-pip-version-check uv 2>.venv/log &&
        "$PY" -m uv pip install -q --python "$PY" -c "$constraints" -e . 2>>.venv/log || true
    "$PY" -m pip install -q --disable-pip-version-check -c "$constraints" -e ".${extras:+[$extras]}" 2>>.venv/log ||
        { cat .venv/log >&2; exit 1; }
    echo "$wanted" >"$stamp"
fi

export JAX_PLATFORMS=${JAX_PLATFORMS:-} TPU_SKIP_MDS_QUERY=${TPU_SKIP_MDS_QUERY:-1}
# Programs compiled once are found again by the next run (and by the next test).
export JAX_COMPILATION_CACHE_DIR=${JAX_COMPILATION_CACHE_DIR:-$PWD/.venv/xla_cache}
