#!/usr/bin/env bash
# A night's health of all hosts, for cron: HOSTS=n[1-64] health.sh. What it prints, cron sends by mail.
# HOCKNEY (the command), HOSTFILE in place of HOSTS, STORE, DURATION, TEXTFILE and DRAIN=yes may be set: see README.md.
set -euo pipefail

hockney=${HOCKNEY:-hockney}
store=${STORE:-$PWD/health.db}
where=(${HOSTFILE:+--hostfile "$HOSTFILE"} ${HOSTS:+--hosts "$HOSTS"})
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# 1: a fault was found. 3: a host cannot be used, or something is not clear.
code=0
"$hockney" health "${where[@]}" --time "${DURATION:-5m}" --store "$store" --label nightly -q --drain \
    --bad-hosts "$folder/bad" >"$folder/drain" || code=$?
[ "$code" -le 3 ] && [ "$code" -ne 2 ] || exit "$code"

if [ -n "${TEXTFILE:-}" ]; then # of node_exporter, which reads it whole or not at all
    {
        echo '# HELP hockney_bad_host 1: a finding of hockney health is about this host.'
        echo '# TYPE hockney_bad_host gauge'
        [ ! -e "$folder/bad" ] || sed 's/.*/hockney_bad_host{host="&"} 1/' "$folder/bad"
        echo '# TYPE hockney_health_exit_code gauge'
        echo "hockney_health_exit_code $code"
    } >"$TEXTFILE.$$"
    mv "$TEXTFILE.$$" "$TEXTFILE"
fi
if [ "$code" -ne 0 ] && [ -e "$folder/bad" ]; then # else nothing was measured, and it has said why
    "$hockney" show last --store "$store"
fi
if [ "${DRAIN:-no}" = yes ]; then
    sh -e "$folder/drain"
else
    cat "$folder/drain"
fi
exit "$code"
