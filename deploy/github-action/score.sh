#!/usr/bin/env bash
# Scores DATA, and writes the report to the job summary. The variables are the inputs of action.yml.
set -fuo pipefail # -f: the names of scorers are not file patterns

report=$RUNNER_TEMP/germane-report.md
options=(--output "$report")
for scorer in ${SCORERS:-}; do options+=(--scorer "$scorer"); done
[[ -n ${FAIL_UNDER:-} ]] && options+=(--fail-under "$FAIL_UNDER")
[[ -n ${MIN_COVERAGE:-} ]] && options+=(--min-coverage "$MIN_COVERAGE")
[[ -n ${JUDGE:-} ]] && options+=(--judge "$JUDGE")
# Unset rather than empty: germane reads the variables that are set.
[[ -n ${API_KEY:-} ]] && export OPENAI_API_KEY=$API_KEY
[[ -n ${BASE_URL:-} ]] && export OPENAI_BASE_URL=$BASE_URL

"$RUNNER_TEMP/germane/bin/germane" score "${options[@]}" -- "$DATA"
code=$?

[[ -f $report ]] && cat "$report" >>"$GITHUB_STEP_SUMMARY"
case $code in
  3) echo "::error title=germane::A threshold is violated." ;;
  5) echo "::error title=germane::There is not enough data for the thresholds." ;;
esac
echo "exit-code=$code" >>"$GITHUB_OUTPUT"
exit "$code"
