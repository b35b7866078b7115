# shellcheck shell=sh
# The first folder or link on the way to a file that others own or may write, or the file; empty without any.
# Above the folder of the file, one where all may write only their own files is no danger.
shared() {
    find -L "${1%/*}" -prune \( -perm -20 -o -perm -2 \) 2>/dev/null | grep . && return
    for place in "$1" "$(cd -P "${1%/*}" && pwd)"; do
        while [ "$place" ]; do
            find "$place" -prune ! -user 0 ! -user "$(id -u)"
            find "$place" -prune ! -type l ! \( -type d -perm -1000 \) \( -perm -20 -o -perm -2 \)
            place=${place%/*}
        done
    done 2>/dev/null | head -n 1
}
