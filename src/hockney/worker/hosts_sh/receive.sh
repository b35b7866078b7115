# shellcheck shell=sh
# Writes a file that it reads; its argument is the path. Another run may write the same one now.
umask 077
mkdir -p "${1%/*}" || exit
place=$(shared "$1")
[ -z "$place" ] || { echo "others can change $place: own it, and run chmod go-w $place" >&2 && exit 1; }
cat >"$1.$$" && chmod 700 "$1.$$" && sha256sum <"$1.$$" && mv "$1.$$" "$1"
