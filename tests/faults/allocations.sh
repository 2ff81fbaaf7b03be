#!/usr/bin/env bash
# Every allocation of opening and recommending fails in turn, and a sample of those of a fine-tuning (allocations.c).
#   tests/faults/allocations.sh BUILD_FOLDER POINTS
. "$(dirname "$0")/../shell.sh"
root=$(cd "$root/.." && pwd)  # shell.sh takes the folder above the test's
"$wisp" synth --out log.db --population device --users 60 --seed 3 >out 2>err || fail "synth"
cc -std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror -O1 -I"$root" "$root/tests/faults/allocations.c" -o allocations -L"$build" -lwisp -Wl,-rpath,"$build" || exit 1
./allocations "$root/models/cafe.wisp" log.db "$PWD" "$2" || fail "an allocation that fails is not survived"
finish
