# shellcheck shell=sh
# Makes .venv. Sourced, with the checkout's folder in $root, by ./hockney and by the developers' scripts: users and
# developers go through the same steps. There is no state but .venv: a copy of a lock file in it says that everything
# in that lock file is installed. It is written last, so a set-up that was interrupted is done again.
: "${root:?}"

venv_fail() {
    printf 'hockney: %s\n' "$*" >&2
    exit 3
}

# venv_ready LOCK: true if .venv holds what LOCK lists.
venv_ready() {
    [ -x "$venv/bin/python" ] && cmp -s "$root/requirements.lock" "$venv/requirements.lock" &&
        cmp -s "$root/$1" "$venv/$1"
}

# Sets $python to the real file behind the first Python that is new enough. Not to the name: a distribution that moves
# `python3` from 3.11 to 3.12 would leave a .venv that starts and finds none of its packages.
venv_find_python() {
    found='there is none'
    for name in python3 python3.14 python3.13 python3.12 python3.11 python3.10; do
        command -v "$name" >/dev/null 2>&1 || continue
        python=$("$name" -I -c '
import os, sys
if sys.version_info < (3, 10):
    sys.exit(1)
print(os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable))' 2>/dev/null) && return
        [ "$name" != python3 ] || found="python3 is $(python3 -V 2>&1 | head -n 1)"
    done
    venv_fail "needs Python 3.10 or newer as python3 on PATH, and $found"
}

# Waits until no other set-up runs here. The kernel drops the lock with the last process that holds it, so a kill
# leaves nothing behind, and an orphaned pip that still writes into .venv is waited for. flock(1) is not everywhere,
# Python is; the lock belongs to the open file, which this shell keeps after Python is gone.
venv_lock() {
    exec 9>>"$root/.venv.lock"
    "$python" -I -c '
import fcntl, sys
try:
    fcntl.flock(9, fcntl.LOCK_EX | fcntl.LOCK_NB)
except BlockingIOError:
    print("hockney: another start is setting up .venv: waiting for it ...", file=sys.stderr)
    fcntl.flock(9, fcntl.LOCK_EX)
except OSError:
    pass  # a file system without locks: only two first starts at once can clash'
}

# The two ways to make .venv and to install a lock file in it. pip skips byte-compiling all of scipy (4 s): what is
# used is compiled at its first import. MPICH is never built from source: that takes half an hour.
venv_make_uv() { uv venv --quiet --python "$python" "$venv"; }
venv_install_uv() {
    uv pip install --quiet --python "$venv/bin/python" --require-hashes --only-binary mpich -r "$1"
}
venv_make_pip() { "$python" -I -m venv "$venv"; }
venv_install_pip() {
    "$venv/bin/python" -I -m pip --disable-pip-version-check --no-input --quiet --retries 2 install --no-compile \
        --require-hashes --only-binary mpich -r "$1"
}

venv_is_offline() {
    grep -qiE 'ConnectionError|NameResolution|ConnectTimeout|ReadTimeout|ProxyError|dns error|tcp connect' "$venv.log"
}

# venv_try uv|pip LOCK: from nothing to a .venv with everything in LOCK, or with all but MPICH.
venv_try() {
    rm -rf "$venv" && "venv_make_$1" || return
    "venv_install_$1" "$root/$2" && return
    if venv_is_offline; then return 1; fi
    awk '/^[^ ]/ { keep = !/^mpich==/ } keep' "$root/$2" >"$venv/without-mpich.txt"
    "venv_install_$1" "$venv/without-mpich.txt"
}

# venv_set_up LOCK: makes .venv with everything in LOCK, if it is not so already. If it can't: a sentence, and status 3.
# The body is a subshell: the lock must not stay open in what the caller starts next.
venv_set_up() (
    venv=$root/.venv
    for tool in awk cmp grep; do
        command -v $tool >/dev/null 2>&1 ||
            venv_fail "the command $tool is not on PATH, which is '${PATH-}': set PATH, or install $tool"
    done
    if venv_ready "$1"; then return; fi
    venv_find_python
    [ -w "$root" ] || venv_fail "cannot make .venv in $root, which you may not write to; its owner has to start it once"
    venv_lock
    if venv_ready "$1"; then return; fi

    tools='' seconds=15
    if command -v uv >/dev/null 2>&1; then tools=uv seconds=5; fi
    if "$python" -I -c 'import ensurepip' 2>/dev/null; then tools="$tools pip"; fi
    [ -n "$tools" ] || venv_fail "$python can make no virtual environment. On Debian or Ubuntu, this cures it:" \
        "sudo apt-get install ${python##*/}-venv"
    why='first start'
    if [ -d "$venv" ]; then why='what is there is unfinished or out of date'; fi
    if venv_ready requirements.lock; then why='with what the tests and checks need'; fi
    printf 'hockney: setting up .venv (%s, about %s s) ... ' "$why" "$seconds" >&2
    made=
    for tool in $tools; do
        if venv_try "$tool" "$1" >"$venv.log" 2>&1; then
            made=1
            break
        fi
    done
    if [ -z "$made" ]; then
        echo failed >&2
        if venv_is_offline; then
            venv_fail "cannot reach the package index. Only this first start needs a network, or a mirror named by" \
                "PIP_INDEX_URL. Details: $venv.log"
        fi
        if grep -qiE 'do not match the hashes|hash mismatch' "$venv.log"; then
            venv_fail "refuses a package whose hash is not the one in $1. Details: $venv.log"
        fi
        venv_fail "cannot install its packages: $(grep . "$venv.log" | tail -n 1). Details: $venv.log"
    fi

    # The package is used from src/. The path is relative, so that a checkout may be moved.
    for site in "$venv"/lib/python3*/site-packages; do
        echo ../../../../src >"$site/hockney.pth"
    done
    rm -f "$venv.log"
    if ! cp "$root/$1" "$venv/$1" || ! cp "$root/requirements.lock" "$venv/requirements.lock"; then
        venv_fail "cannot finish .venv in $root"
    fi
    echo 'done' >&2
    if [ -e "$venv/without-mpich.txt" ]; then
        echo "hockney: the MPICH wheel cannot be installed here; going on without it: MPI needs one on PATH" >&2
    fi
)
