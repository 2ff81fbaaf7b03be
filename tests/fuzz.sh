#!/usr/bin/env bash
# Runs a fuzz target over its corpus, which holds seeds and every input that once broke something. With libFuzzer it
# then runs at most a thousand inputs made from them. That shows that the target works; tools/dev fuzz searches for
# faults.
#   tests/fuzz.sh BUILD_FOLDER TARGET
source "$(dirname "$0")/shell.sh"
target=${2:?the target is missing}
corpus=$root/tests/fuzz/corpus/$target
# A target's files are deleted with the folder. If possible it lies in memory, because the target writes files anew for
# every input, and syncs some.
if [ -w /dev/shm ]; then
  export TMPDIR=$(mktemp -d /dev/shm/wisp_XXXXXX)
  trap 'rm -rf "$work" "$TMPDIR"' EXIT
fi
# Not through a pipe: grep would end at the first match, and a signal would end the program.
if grep -q '^Usage:' <<<"$("$build/${target}_fuzz" -help=1 2>&1)"; then
  mkdir grown
  set -- grown "$corpus" -runs=1000 -seed=1 -max_total_time=20 -timeout=25 -rss_limit_mb=2048 -max_len=8192 -artifact_prefix="$work/"
else
  set -- "$corpus"
fi
"$build/${target}_fuzz" "$@" >out 2>&1 || fail "$(tail -n 40 out)"
finish
