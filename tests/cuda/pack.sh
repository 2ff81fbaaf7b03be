#!/usr/bin/env bash
# The archive of tools/cuda/pack, with the emulator's module: it needs no library and no file of this machine, and a step
# of each kind runs in it.
#   tests/cuda/pack.sh BUILD_FOLDER
. "$(dirname "$0")/../shell.sh" "$1"
root=$(cd "$root/.." && pwd)
"$root/tools/cuda/pack" "$build" archive.tar.gz --module "$build/libwisp_cuda_emulator.so" >log 2>&1 || { cat log; fail "it is not packed"; finish; }
tar xzf archive.tar.gz
there=$work/wisp-gpu/programs

# The packed loader finds all libraries in the archive.
for file in "$there"/bin/* "$there/libwisp_cuda.so"; do
  "$there"/c_library/ld-linux-* --library-path "$there/c_library:$there/lib" --list "$file" >out 2>&1 || fail "$file: $(cat out)"
  strange=$(grep '=>' out | grep -v "=> $there/") && fail "$file needs this machine's $strange"
done
"$there"/c_library/ld-linux-* --library-path "$there/c_library:$there/lib" "$there/bin/wisp" --version >out || fail "the packed loader starts nothing"
for name in libc.so.6 libm.so.6 libdl.so.2 librt.so.1 libpthread.so.0; do
  [ -e "$there/c_library/$name" ] || fail "the packed C library lacks $name, which a driver's libraries need"
done
for link in $(find wisp-gpu -type l); do
  [[ $(readlink -f "$link") = $work/wisp-gpu/* ]] || fail "$link leads out of the archive"
done
# A machine whose C library is too old is played by a program that does not start on it.
mkdir -p old/bin && cp -r "$there"/{start,c_library,lib} old && cp "$there/bin/wisp" old/bin/own
ln -s start old/own && printf 'no program' >old/bin/wisp
old/own --version >out 2>err || fail "it does not start by the packed loader: $(cat err)"

part() { # CODE LAST_LINE OPTIONS...
  local code=0
  env -i PATH="$PATH" wisp-gpu/gpu "${@:3}" >out 2>&1 || code=$?
  [ $code -eq "$1" ] && [ "$(tail -1 out)" = "$2" ] || fail "${*:3}: expected $1 and '$2': $code, $(cat out)"
}
part 0 "1 passed, 0 failed, 0 wait" --only ops --steps gpu_step_test --small
part 0 "1 passed, 0 failed, 0 wait" --only graphs --steps gpu_record_rows_test --small
part 0 "7 passed, 0 failed, 0 wait" --only figures --steps '[!r]*' --small
grep -q "^private step of 2,048 records, ms .* missed$" out || fail "no goal is judged: $(cat out)"
part 77 "without peers: they need --peers PYTHON, with tools/lab/bench/peers/requirements.txt and a PyTorch that sees this GPU" \
  --only peers --small
finish
