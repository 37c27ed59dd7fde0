# What the shell scripts share; to be sourced.

# Runs a command under a heading that says how long the whole has taken.
step() {
    local heading=$1
    shift
    printf '\n\033[1m== %s\033[0m (%d s so far)\n' "$heading" "$SECONDS"
    "$@"
}

# Installs Debian packages, if we may.
install_packages() {
    command -v apt-get >/dev/null || { echo "please install $*" >&2; return 1; }
    local sudo=()
    [ "$(id -u)" = 0 ] || sudo=(sudo)
    echo "installing $*" >&2
    "${sudo[@]}" apt-get update -qq >&2
    DEBIAN_FRONTEND=noninteractive "${sudo[@]}" apt-get install -y -qq --no-install-recommends "$@" >&2
}

# Prints the path of a Python 3 that has psycopg 3.
python_with_psycopg() {
    local attempt python
    for attempt in 1 2; do
        for python in python3 /usr/bin/python3; do
            if command -v "$python" >/dev/null && "$python" -c 'import psycopg' 2>/dev/null; then
                command -v "$python"
                return
            fi
        done
        [ "$attempt" = 2 ] || install_packages python3-psycopg || return 1
    done
    echo "no Python 3 with psycopg, though python3-psycopg is installed" >&2
    return 1
}
