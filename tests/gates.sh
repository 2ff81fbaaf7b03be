#!/usr/bin/env bash
# Compares size, memory and instructions with dated baselines in tests/gates.json, in both directions: if a lower figure
# were not recorded, a later rise would hide behind it.
#   tests/gates.sh BUILD_FOLDER             fails if a figure is not within its tolerance
#   tests/gates.sh BUILD_FOLDER --update    makes the measured figures the baseline
#
#   size_*          bytes of the stripped library: all of it, the one that only recommends, and the one for texts
#   memory_*        bytes that the recipe ml-1m-wide takes with 3416 items and 6040 users: exact (wisp inspect --memory)
#   instructions_*  of the runs of tests/gate_runs.cc; *_sse4: with the kernels of SSE4
#                   *_neon, *_neon_dot: of 64-bit Arm, without and with the dot product of integers
# Memory and instructions depend on the instruction set, and are taken under valgrind, which knows no AVX-512: the AVX2
# kernels. Those of Arm are counted by a plugin of qemu if BUILD_FOLDER is one of tools/cross/arm64.cmake, and nothing
# else is then. Sizes and instructions depend on compiler and C library. If these differ from the baseline's, nothing is
# compared and a line says so. Exit code 77: nothing at all could be compared.
source "$(dirname "$0")/shell.sh"
update=${2:-}
cached() { sed -n "s/^$1:[A-Z]*=//p" "$build/CMakeCache.txt"; }
if [ "$(cached CMAKE_BUILD_TYPE)" != Release ] || [[ "$(cached WISP_SANITIZE)" =~ address|thread ]]; then
  echo "not compared: the build is not a Release without sanitizers"
  exit 77
fi
# XNNPACK leaves a little code in the library, hardening more: these builds have figures of their own.
with=$([ "$(cached WISP_XNNPACK)" = ON ] && echo _xnnpack)$([ "$(cached WISP_HARDENING)" = ON ] && echo _hardened)
libraries=$(cached WISP_ARM64_LIBRARIES)

must() { "$@" || { echo "FAILED: $* could not be measured" >&2; exit 1; }; }
size() { strip -o stripped.so "$build/$2" && echo "size_$1$with $(stat -c %s stripped.so)"; }
memory() {  # name json-path options...
  local name=$1 path=$2
  shift 2
  valgrind -q --tool=none "$wisp" inspect ml-1m.wisp --memory --json "$@" |
    python3 -c "import json,sys; print('memory_$name', json.load(sys.stdin)['$path']['total'], '$kernels')"
}
instructions() {  # run suffix kernels program... that runs gate_runs and counts
  "${@:4}" "$build/gate_runs" "$1" 2>log >/dev/null && [ "$(grep -c 'Collected : [1-9]' log)" = 1 ] &&
    echo "instructions_$1$2 $(sed -n 's/.*Collected : \([0-9]*\).*/\1/p' log) $3"
}

arm() {
  local emulated=(qemu-aarch64 -L /usr/aarch64-linux-gnu -U LD_LIBRARY_PATH) cpu suffix kernels run
  must gcc -shared -fPIC -O2 "$root/tests/gate_counter.c" -o counter.so
  for cpu in cortex-a53 neoverse-n1; do
    kernels=$("${emulated[@]}" -cpu $cpu "$build/gate_runs" | sed -n 3p)
    suffix=$([[ $kernels = *dot* ]] && echo _neon_dot || echo _neon)
    for run in $("${emulated[@]}" "$build/gate_runs" | head -1); do
      # Only products of 8-bit integers use the dot product.
      [[ $suffix = _neon || $run = *_int8_* ]] || continue
      must instructions "$run" $suffix "$kernels" "${emulated[@]}" -cpu $cpu -plugin ./counter.so
    done
  done
  echo "compiler $("${emulated[@]}" "$build/gate_runs" | sed -n 2p)"
}

x86() {
  local callgrind=(valgrind --tool=callgrind --instr-atstart=no --callgrind-out-file=/dev/null) kernels run threads
  must size full libwisp.so
  must size inference_only libwisp-runtime.so
  must size texts libwisp-text.so
  if command -v valgrind >/dev/null; then
    kernels=$(valgrind -q --tool=none "$build/gate_runs" | sed -n 3p)
    "$wisp" new --recipe "$root/models/recipes/ml-1m-wide.json" --num-items 3416 --out ml-1m.wisp >/dev/null 2>&1
    must memory inference inference
    for threads in 1 2; do
      must memory "ordinary_threads_$threads" training --method ordinary --records 6040 --threads "$threads"
      must memory "private_threads_$threads" training --method phantom --records 6040 --threads "$threads"
    done
    for run in $("$build/gate_runs" | head -1); do
      must instructions "$run" "" "$kernels" "${callgrind[@]}"
      WISP_TARGETS=SSE4 must instructions "$run" _sse4 SSE4 "${callgrind[@]}"
    done
  else
    echo "memory and instructions are not compared: there is no valgrind (tools/dev setup installs it)" >&2
  fi
  echo "compiler $("$build/gate_runs" | sed -n 2p)"
}

if [ -z "$libraries" ]; then
  x86 >figures
  echo "instructions of 64-bit Arm are compared by tests/gates.sh build/arm64, which tools/dev arm64 builds"
else
  command -v qemu-aarch64 >/dev/null || { echo "not compared: qemu-aarch64 is missing (Debian: qemu-user)"; exit 77; }
  arm >figures
fi

python3 - "$root/tests/gates.json" figures "$update" "tests/gates.sh $1 --update" <<'PY'
import datetime, json, sys
path, figures, update, command = sys.argv[1:]
lines = [line.rstrip('\n').split(' ', 1) for line in open(figures)]
compiler = dict(lines)['compiler']
measured, said = {}, {}
for name, figure in lines:
    if name == 'compiler': continue
    value, *kernels = figure.split(' ', 1)
    measured[name] = int(value)
    said[name] = {'compiler': compiler, **({'kernels': kernels[0]} if kernels else {})}
book = json.load(open(path))
tolerances = {'size': 0.01, 'memory': 0.0, 'instructions': 0.01}

if update == '--update':
    today = datetime.date.today().isoformat()
    for name, value in sorted(measured.items()):
        kind = name.split('_')[0]
        entry = {'value': value, 'tolerance': tolerances[kind], 'date': today}
        if kind != 'memory': entry['compiler'] = compiler
        if kind != 'size': entry['kernels'] = said[name]['kernels']
        old = book.get(name)
        if old: entry['tolerance'] = old['tolerance']
        if not old or old != {**entry, 'date': old['date']}:
            print(f'{name}: {old["value"] if old else "none"} -> {value}')
            book[name] = entry
    with open(path, 'w') as f:
        f.write('{\n' + ',\n'.join(f'  {json.dumps(n)}: {json.dumps(book[n])}' for n in sorted(book)) + '\n}\n')
    sys.exit(0)

failed = compared = 0
kind_of = lambda name: name.split('_')[-2:] if name.endswith('_xnnpack_hardened') else name.split('_')[-1:] if name.endswith(('_xnnpack', '_hardened')) else []
kinds = [kind_of(m) for m in measured if m.startswith('size_')]
other_sizes = [n for n in book if n.startswith('size_') and kind_of(n) not in kinds]
of_arm = lambda name: '_neon' in name
processors = {of_arm(name) for name in measured if 'kernels' in said[name]}
for name in sorted(set(book) - set(measured) - set(other_sizes)):
    if 'kernels' in book[name] and of_arm(name) not in processors: continue
    print(f'FAILED: {name} has a baseline and was not measured')
    failed += 1
for name, value in sorted(measured.items()):
    base = book.get(name)
    if base is None:
        print(f'FAILED: {name} is {value:,} and has no baseline; if that is right: {command}')
        failed += 1
        continue
    other = [f'{what} is {is_now}, the baseline\'s is {base[what]}' for what, is_now in said[name].items()
             if base.get(what, is_now) != is_now]
    if other:
        print(f'{name} is {value:,}, not compared: {"; ".join(other)}')
        continue
    compared += 1
    change = value / base['value'] - 1
    # A linker rounds segments to pages, so the same code in another folder may differ by a page.
    pages = name.startswith('size_') and abs(value - base['value']) <= 2 * 4096
    if abs(change) <= base['tolerance'] or pages: print(f'{name} is {value:,} ({change:+.2%})')
    else:
        print(f'FAILED: {name} is {value:,}, {change:+.2%} from the baseline of {base["date"]}, {base["value"]:,}; allowed are '
              f'{base["tolerance"]:.0%} up and down. If the change is meant: {command}')
        failed += 1
print(f'{compared} compared, {failed} failed')
sys.exit(1 if failed else 0 if compared else 77)
PY
