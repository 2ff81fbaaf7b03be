#!/usr/bin/env bash
# Backends, histories in batches, and the speed of scoring: by the program and in C.
#   tests/cli_backends.sh BUILD_FOLDER
. "$(dirname "$0")/shell.sh"
. "$root/tests/cli_fixtures.sh"
plain plain.wisp
memory=("$wisp" inspect base.wisp --memory)

# Several histories at once, in C.
c_program recommend_batch batches
expect 0 "" ./recommend_batch base.wisp
# A backend can be chosen in C as on the command line, with equal scores.
c_program open_with backends
expect 0 "" ./open_with base.wisp plain.wisp backends.db "$label"
[ ! -e backends.db ] || fail "a refused recommender left a ledger behind"
cp out backends.txt
# So can its memory be planned; a backend that the build lacks is refused in the words of the runtime.
expect 0 "" "${memory[@]}" --threads 1 --json
cp out whole.json
for backend in simd int8 xnnpack; do
  if grep -q "^$backend:none" backends.txt; then
    why="has no XNNPACK"
    [ $backend = int8 ] && why="no 8-bit kernels"
    expect 3 "$why" "${memory[@]}" --backend $backend
    continue
  fi
  expect 0 "" "${memory[@]}" --threads 1 --backend $backend --json
  json 'j["inference"]["backend"] == "'$backend'" and ("batch_of_32" in j) == ("'$backend'" != "xnnpack")'
  json '(j == json.load(open("whole.json"))) == ("'$backend'" == "simd")'
done
expect 2 "allowed are simd, int8 and xnnpack" "${memory[@]}" --backend int4
expect 2 "memory" "$wisp" inspect base.wisp --backend int8
for line in $(grep -v none backends.txt); do
  IFS=: read -r backend history scores <<<"$line"
  expect 0 "" "$wisp" recommend --model base.wisp --history "$history" --count 5 --backend "$backend" --json
  json '[i["item"] + "=%.9g" % i["score"] for i in j] == "'"$scores"'".split(",")'
done
# Threads that share a history change no score.
expect 0 "" "$wisp" recommend --model base.wisp --history "$history" --json
cp out alone.txt
expect 0 "" "$wisp" recommend --model base.wisp --history "$history" --threads 2 --json
cmp -s out alone.txt || fail "two threads recommend something else: $(head -c 300 out)"
expect 0 "" "$lab" bench --what score --length 20 --items 300 --repeats 1 --threads 2 --json
json 'all(0 < j["batch"][b]["histories_per_s"]["median"] for b in ("1", "8", "32")) and j["batch"]["threads"] == 2'
json 'j["scoring"]["several_threads"]["threads"] == 2 and j["scoring"]["several_threads"]["over_one_thread"]["median"] > 0'

finish
