#!/usr/bin/env bash
# Checks against a baseline and posts the result, with the report of the new run, as Markdown:
# check.sh STORE BASELINE [OPTION of hockney check …]; BASELINE may be `accepted`
# The Markdown goes to FILE.md next to the store, to the summary of the step, and into a comment: of the pull request
# (GitHub: PULL_REQUEST, GH_TOKEN), of the merge request (GitLab: CI_MERGE_REQUEST_IID, GITLAB_TOKEN). The page goes to
# FILE.html. Ends with the exit code of the check.
set -uo pipefail

hockney=${HOCKNEY:-hockney}
if [ $# -lt 2 ]; then
    echo 'usage: check.sh STORE BASELINE [OPTION of hockney check ...]' >&2
    exit 2
fi
if ! command -v "$hockney" >/dev/null; then
    echo "check.sh: there is no $hockney: name the command with HOCKNEY=/path/to/hockney" >&2
    exit 2
fi
store=$1 baseline=$2
shift 2
markdown=${store%.db}.md
fence=$(printf '\140\140\140')
rm -f "$markdown.table"

code=0
output=$("$hockney" check --store "$store" --baseline "$baseline" --markdown "$markdown.table" "$@" 2>"$markdown.err") ||
    code=$?
case $code in
    0) verdict='no slowdown' ;;
    1) verdict='slower' ;;
    2) verdict='not checked' ;;
    *) verdict='inconclusive' ;;
esac
{
    echo "### hockney: $verdict"
    echo
    if [ -s "$markdown.table" ]; then
        cat "$markdown.table"
        output=
    fi
    said=$(printf '%s' "${output:+$output$'\n'}" && grep '^hockney: ' "$markdown.err")
    # A fence in the output would end the block.
    [ -z "$said" ] || printf '%s\n%s\n%s\n' "$fence" "${said//$fence/"'''"}" "$fence"
} >"$markdown"
# Only a check that ended with 2 may have no run of its own.
if [ "$code" -ne 2 ]; then
    "$hockney" report last --format md --store "$store" -o "$markdown.run" >&2 &&
        printf '\n<details><summary>Report of this run</summary>\n\n%s\n\n</details>\n' "$(cat "$markdown.run")" >>"$markdown"
    "$hockney" report last --store "$store" -o "${store%.db}.html" >&2
fi
rm -f "$markdown.err" "$markdown.run" "$markdown.table"

cat "$markdown"
[ -z "${GITHUB_STEP_SUMMARY-}" ] || cat "$markdown" >>"$GITHUB_STEP_SUMMARY"
if [ -n "${PULL_REQUEST-}" ]; then
    gh pr comment "$PULL_REQUEST" --body-file "$markdown" || echo 'the comment could not be posted' >&2
fi
if [ -n "${CI_MERGE_REQUEST_IID-}" ] && [ -n "${GITLAB_TOKEN-}" ]; then
    notes=$CI_API_V4_URL/projects/$CI_PROJECT_ID/merge_requests/$CI_MERGE_REQUEST_IID/notes
    # The token is no argument: other users see those.
    printf 'header = "PRIVATE-TOKEN: %s"\n' "$GITLAB_TOKEN" |
        curl --silent --show-error --fail --output /dev/null --config - --data-urlencode "body@$markdown" "$notes" ||
        echo 'the comment could not be posted' >&2
fi
exit "$code"
