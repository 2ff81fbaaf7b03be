#!/usr/bin/env bash
# The command of ports/linux-arm64/wisp-personalise.service runs a training session as the page of the Raspberry Pi says:
# after a plan, in the folder that the unit names, with only relative paths and the installed program.
#   tests/systemd_unit.sh BUILD_FOLDER
source "$(dirname "$0")/shell.sh"
unit=$root/ports/linux-arm64/wisp-personalise.service timer=$root/ports/linux-arm64/wisp-personalise.timer page=$root/docs/raspberry-pi.md
said() { sed -n "s/^$1=//p" "$unit"; }
read -ra command <<<"$(said ExecStart)"
# systemd looks for it in /usr/local/bin and /usr/bin, where it may be installed.
[ "${command[0]}" = wisp ] || fail "ExecStart begins with ${command[0]}"
[ "$(said ConditionPathExists)" = "$(said WorkingDirectory)/log.ledger" ] || fail "the condition names another ledger"
[ "/var/lib/$(said StateDirectory)" = "$(said WorkingDirectory)" ] || fail "the unit works in another folder than its own"

[ "$(said CPUSchedulingPolicy)" = idle ] && ! grep -q ^Nice= "$unit" || fail "the unit does not leave the processor to everybody else"

# The plan of the page, with fewer sessions and guests.
cp "$root/models/cafe.wisp" base.wisp
mkdir anchor
[ "$(said RequiresMountsFor)" = "$(said WorkingDirectory)/anchor" ] || fail "the unit does not wait for the folder of the anchor"
"$wisp" synth --out log.db --population device --users 60 --seed 3 >out 2>err || fail "synth"
mapfile -t plan < <(python3 - "$page" <<'PYTHON'
import re, shlex, sys
command = re.search(r"wisp (plan --data (?:.*\\\n)*.*)", open(sys.argv[1]).read())[1]
words = shlex.split(command.replace("\\\n", " "))
words[words.index("--num-records-public") + 1] = "60"
words[words.index("--for") + 1] = "2 days"
print("\n".join(words))
PYTHON
)
[[ " ${plan[*]} " == " plan --data log.db --model base.wisp --ledger log.ledger "* ]] || fail "plan and unit name other files: ${plan[*]}"
[[ " ${plan[*]} " == *" --anchor anchor/log.anchor "* ]] || fail "the plan of the page has no anchor, or another: ${plan[*]}"
[[ " ${command[*]} " == *" --anchor anchor/log.anchor "* ]] || fail "the unit has no anchor, or another: ${command[*]}"
expect 0 "" "$wisp" "${plan[@]}" --steps 4 --evaluations 1
cp log.ledger old.ledger
for planned_run in 1 2; do
  expect 0 "" "$wisp" "${command[@]:1}" --early --json
  json "j['steps'] == 4 and j['steps_of_model'] == 4 * $planned_run"
done
# An old card: the ledger is from the plan's time, the anchor is not.
cp log.ledger newest.ledger && cp old.ledger log.ledger
expect 4 "its anchor knows row" "$wisp" "${command[@]:1}" --json
cp newest.ledger log.ledger
expect 0 "" "$wisp" recommend --model mine.wisp --history tea-mint
if command -v systemd-analyze >/dev/null; then
  mkdir units
  sed "s|^ExecStart=[^ ]*|ExecStart=$wisp|; /^User=/d; /^Group=/d" "$unit" >units/wisp-personalise.service
  cp "$timer" units
  systemd-analyze verify units/wisp-personalise.service units/wisp-personalise.timer >out 2>&1 || fail "systemd-analyze: $(head -c 300 out)"
  grep -F "$PWD/units" out && fail "systemd-analyze warns"
else
  echo "the units are not read by systemd: systemd-analyze is missing (Debian: systemd)"
fi
finish
