#!/usr/bin/env bash
# Situations of an app on a device: damaged models, sessions and days as records, the log of one person.
#   tests/devices.sh BUILD_FOLDER
. "$(dirname "$0")/shell.sh"

"$wisp" synth --out public.txt --population public --users 200 --seed 1 >/dev/null 2>&1 || fail "synth of public data"
"$wisp" synth --out log.db --population device --users 60 --seed 3 >/dev/null 2>&1 || fail "synth of a log"
"$wisp" train --recipe "$root/models/recipes/cafe.json" --epochs 1 --data public.txt --dataset shipped --out base.wisp >/dev/null 2>&1 || fail "a base model"

# Every command that shows a model's output finds a damaged weight. The last bytes of the file are weights.
python3 -c 'import sys; b = bytearray(open("base.wisp", "rb").read()); b[-4096:-4064] = b"\xff" * 32; open("damaged.wisp", "wb").write(b)'
expect 3 "damaged.wisp: tensor .* is damaged" "$wisp" recommend --model damaged.wisp --data log.db --user u00003
expect 3 "damaged.wisp: tensor .* is damaged" "$wisp" recommend --model damaged.wisp --data log.db --user u00003 --backend int8
expect 3 "damaged.wisp: tensor .* is damaged" "$wisp" recommend --model base.wisp --base damaged.wisp --data log.db --user u00003 --private --public-dataset shipped
expect 3 "damaged.wisp: tensor .* is damaged" "$wisp" evaluate --model damaged.wisp --data log.db
expect 3 "damaged.wisp: tensor .* is damaged" "$wisp" inspect damaged.wisp --verify
expect 3 "damaged.wisp: tensor .* is damaged" "$wisp" train --recipe "$root/models/recipes/cafe-device.json" --model damaged.wisp --data log.db --num-records-public 60 --out o.wisp --ledger l.db
expect 0 "" "$wisp" inspect base.wisp --verify
expect 2 "names no item" "$wisp" recommend --model base.wisp --data log.db --user u00003 --candidates ,

# The unit of the recipe is the unit of the records. The log's events lie up to two days apart.
unit() { # NAME KEYS: a recipe for these keys of privacy in the place of the unit
  sed 's/"unit": "user"/'"$2"'/' "$root/models/recipes/cafe-device.json" >"$1.json"
}
train=("$wisp" train --model base.wisp --public-dataset shipped --batch 20 --epochs 1 --delta 0.0001 --json)
unit user '"unit": "user"'
unit session '"unit": "session", "session_gap": 86400'
unit day '"unit": "day"'
records=()
for name in user session day; do
  expect 0 "" "${train[@]}" --data log.db --recipe $name.json --num-records-public 300 --out $name.wisp --ledger $name.ledger --dataset log
  records[${#records[@]}]=$(python3 -c 'import json; print(json.load(open("out"))["records"])')
  "$wisp" privacy --ledger $name.ledger --delta 1e-4 >statement 2>&1
  grep -q "privacy unit: one $name\$" statement || fail "the statement does not say the unit $name"
  grep -q '"privacy_unit": "'$name'[",]' <<<"$("$wisp" inspect $name.wisp --json)" || fail "the model does not say the unit $name"
done
grep -q "one day of a user, not the user" statement || fail "the statement does not say what one day protects"
# A user has several sessions of two events or more; a day of two events is rare.
[ "${records[0]}" -eq 60 ] && [ "${records[1]}" -gt 60 ] && [ "${records[2]}" -gt 0 ] && [ "${records[2]}" -ne "${records[1]}" ] || fail "records of users, sessions, days: ${records[*]}"

unit bare '"unit": "session"'
expect 2 "session gap is 0 seconds" "${train[@]}" --data log.db --recipe bare.json --num-records-public 300 --out o.wisp --ledger o.ledger
unit gap '"unit": "day", "session_gap": 60'
expect 2 "only the unit session has one" "${train[@]}" --data log.db --recipe gap.json --num-records-public 300 --out o.wisp --ledger o.ledger
unit interaction '"unit": "interaction"'
expect 4 "one event alone teaches nothing" "${train[@]}" --data log.db --recipe interaction.json --num-records-public 300 --out o.wisp --ledger o.ledger
"$wisp" synth --out log.txt --population device --users 60 --seed 3 >/dev/null 2>&1 || fail "synth of lines"
expect 2 "log.txt: sessions must stay what they were" "${train[@]}" --data log.txt --recipe session.json --num-records-public 300 --out o.wisp --ledger o.ledger
expect 4 "protects one user" "${train[@]}" --data log.db --recipe session.json --num-records-public 300 --out o.wisp --ledger user.ledger --dataset log
# Records of another size do not add up to one figure with earlier ones, even if their unit has the same name.
unit short '"unit": "session", "session_gap": 10'
expect 4 "of more than 86400 seconds.*; asked for was .*of more than 10 seconds.*: costs of different records" "${train[@]}" --data log.db \
  --recipe short.json --num-records-public 300 --out o.wisp --ledger session.ledger --dataset log
unit millis '"unit": "session", "session_gap": 86400, "times_per_second": 1000'
expect 4 "count 1 to the second; asked for was .* count 1000 to the second" "${train[@]}" --data log.db \
  --recipe millis.json --num-records-public 300 --out o.wisp --ledger session.ledger --dataset log
[ ! -e o.wisp ] && [ ! -e o.ledger ] || fail "a refused run left something behind"

# One person: a delta that protects nothing is refused, and the output says what one record means.
expect 4 "at most 1e-05" "$wisp" train --recipe user.json --model base.wisp --data log.db --public-dataset shipped --batch 1 --epochs 1 --delta 0.1 --num-records-public 1 --out o.wisp --ledger o.ledger
expect 0 "there is one record, one user: .*docs/privacy.md" "$wisp" train --recipe user.json --model base.wisp --data log.db --public-dataset shipped --batch 1 --epochs 1 --delta 1e-5 --num-records-public 1 --out one.wisp --ledger one.ledger

# The example is C99.
cc -std=c99 -pedantic -Wall -Wextra -Werror -I"$build/include" "$root/ports/c/example.c" -o example -L"$build" -lwisp -Wl,-rpath,"$build" 2>err || fail "the example: $(head -c 300 err)"
finish
