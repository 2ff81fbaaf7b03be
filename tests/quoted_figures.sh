#!/usr/bin/env bash
# Figures that several documents quote are equal in all of them (tests/quoted_figures.py), and drawn pages match their
# results.
#   tests/quoted_figures.sh BUILD_FOLDER
. "$(dirname "$0")/shell.sh"
check() { python3 "$root/tests/quoted_figures.py" "$1" >said 2>&1; }
check "$root" || fail "figures differ: $(cat said)"

# Tables that a test prints are those of the documents.
printed() {  # PROGRAM FILTER DOCUMENT SED-EXPRESSION, which makes rows of the document of what is printed
  [ -x "$build/$1" ] || { echo "not compared: there is no $1 in $build"; return; }
  "$build/$1" --gtest_filter="$2" >said 2>&1 || fail "$1 --gtest_filter=$2: $(tail -n 3 said)"
  sed -nE "$4" said >rows
  [ -s rows ] || fail "$1 prints no rows"
  while IFS= read -r row; do
    grep -qF -- "$row" "$root/docs/$3" || fail "docs/$3 has no row '$row', which $1 prints"
  done <rows
}
printed privacy_filter_test '*Year*' algorithms.md \
  's/^\| 365 \| 20 \|/| 365, nightly |/p; s/^\| 52 \| 20 \|/| 52, weekly |/p; s/^\| 12 \| 20 \|/| 12, monthly |/p'
printed plan_change_test 'Cost*' personalise.md 's/^after +([0-9]+ %) of the steps: ([0-9]\.[0-9]{2})[0-9]*$/| \1 | \2 times |/p'

# A figure that was changed in one place only is noticed, wherever that is, and so is a missing quotation.
git -C "$root" ls-files -z '*.md' tests/gates.json tests/mutants docs/results models/reproduce tools/lab/reproduce \
  runtime/personalise/measured_gains.cc | tar -C "$root" --null -T - -cf tree.tar
changed() {  # SENTENCE FILE SED-EXPRESSION
  rm -rf tree && mkdir tree && tar -C tree -xf tree.tar
  sed -i "$3" "tree/$2"
  cmp -s "tree/$2" "$root/$2" && fail "nothing was changed by $3"
  check tree && fail "not seen: $1"
  grep -q -- "$1" said || fail "not said: $1: $(cat said)"
}
changed "README.md: size of what recommends is" tests/gates.json '/size_inference_only_xnnpack_hardened/s/"value": [0-9]*/"value": 300000/'
changed "README.md: memory of private training, one thread is" README.md '/memory planned for private training/s/MB/KB/; /memory planned/s/| [0-9.]* /| 1.5 /'
changed "README.md: the best ten after one more event is" docs/results/measured.jsonl '/"score.one-more"/s/0.033/0.5/'
changed "README.md: 'time of a private step' does not stand in one place" README.md '/^| time of a private step/d'
changed "docs/measured.md lacks what .*measured.py draw writes: | a step over 1e5" docs/results/adafest-table-4.jsonl 's/"step_seconds":0.036/"step_seconds":0.046/'
changed "docs/measured.md: .*draw does not write: | private step" docs/results/measured.jsonl '/"step.batch-64"/s/1.061/1.071/'
changed "docs/processors.md lacks what .*processors.py draw writes: | Zen 5 |" docs/results/processors/zen-5.json 's/"kernels": "AVX3"/"kernels": "AVX4"/'
changed "zen-5.json: it is not what" docs/results/processors/zen-5.json 's/"fma_peak_gflops"/"peak"/'
changed "measured.jsonl, line 3: it is damaged" docs/results/measured.jsonl '3s/.$//'
changed "README.md: the best ten after one more event is" README.md '/the best 10 after 200 events/s/0.033/0.034/'
changed "is not found as" docs/performance.md '/^| open | 410/s/open/opening/'
changed "docs/gains.md: .*gains.py draw writes: | cafe: other tastes.* 0.1934" docs/results/gains.jsonl '1s/"base": [0-9.]*/"base": 0.1934/'
changed "README.md: .*gains.py draw writes: | 2,000 | +9 to" docs/results/gains.jsonl '2s/lowest": [-0-9.]*/lowest": 0.09/g'
changed "measured_gains.cc: .*gains.py draw writes: *.people = 500" runtime/personalise/measured_gains.cc '/people = 500/s/runs = 12/runs = 13/'
changed "more than 90000 planted faults" SECURITY.md 's/more than [0-9]* faults/more than 90000 faults/'

# A figure comes from a command's JSON, in bold beyond its bound. A command that fails leaves the data as they are.
measured() { PYTHONDONTWRITEBYTECODE=1 python3 tree/tools/lab/reproduce/measured.py "$@" >said 2>&1; }
rm -rf tree && mkdir tree && tar -C tree -xf tree.tar
measured record step.batch-64 -- printf '{"training": {"private_over_ordinary": {"median": 1.2}}}' || fail "record: $(cat said)"
measured draw --out drawn.md || fail "draw: $(cat said)"
grep -q 'private step over ordinary step.*; \*\*1.200\*\* |' drawn.md || fail "a recorded figure is not drawn: $(grep 'private step over' drawn.md)"
cp tree/docs/results/measured.jsonl before
measured record step.batch-64 -- false && fail "a command that fails is recorded"
measured record step.no-such -- true && fail "a figure that the page lacks is recorded"
cmp -s before tree/docs/results/measured.jsonl || fail "a refused figure is written down"

# A machine is one file more.
processors() { PYTHONDONTWRITEBYTECODE=1 python3 tree/tools/lab/reproduce/processors.py "$@" >said 2>&1; }
sed 's/"name": "[^"]*", //; s/"read_gb_per_s": [0-9.]*/"read_gb_per_s": 7/' "$root/docs/results/processors/zen-5.json" >machine.json
processors add "Other (AVX-512)" machine.json || fail "add: $(cat said)"
grep -q '^| Other (AVX-512) | .*; 7.00 |' tree/docs/processors.md || fail "an added machine is not drawn: $(cat tree/docs/processors.md)"
echo '{}' >machine.json
processors add other machine.json && fail "a file without a machine is added"
grep -q "machine.json: it is not what .wisp-lab bench --all --json. prints" said || fail "not said: $(cat said)"
sed 's/"top_10_ms_int8": {"median": [0-9.]*/"top_10_ms_int8": {"median": 0/' "$root/docs/results/processors/zen-5.json" >machine.json
processors add other machine.json && fail "a figure of 0 is divided by"
grep -q "machine.json: it is not what" said || fail "not said: $(cat said)"
[ ! -e tree/docs/results/processors/other.json ] || fail "a refused machine is kept"
cp "$root/docs/results/processors/zen-5.json" machine.json
processors add "zen-5!" machine.json && fail "a machine replaces one of another name"
grep -q "it has the machine 'Zen 5'; allowed are another name, and --replace" said || fail "not said: $(cat said)"
processors add --replace "Zen 5" machine.json || fail "add --replace: $(cat said)"
processors add "日本" machine.json && fail "a name without letters names a file"
grep -q "the name is '日本', allowed is" said || fail "not said: $(cat said)"

# Pages of papers equal the drawing of the results; for that of SST-2 this holds for its figure only.
git -C "$root" ls-files -z docs/papers docs/results models/reproduce tools/lab/reproduce ports/python/bench | tar -C "$root" --null -T - -cf papers.tar
mkdir papers && tar -C papers -xf papers.tar
drawn() {  # TABLE PAGE PLOT: where they differ from the tree's
  (cd papers && PYTHONDONTWRITEBYTECODE=1 tools/lab/reproduce/draw.py --table "$1" --results "docs/results/$(basename "$1" .json).jsonl" \
    --markdown "$2" --svg "$3") >said 2>&1 || fail "$1 is not drawn: $(cat said)"
  cmp -s "papers/$3" "$root/$3" && { [ "${2%/*}" != docs/papers ] || cmp -s "papers/$2" "$root/$2"; }
}
for results in "$root"/docs/results/*.jsonl; do
  case $(basename "$results") in measured.jsonl | gains.jsonl | fleet.jsonl) continue ;; esac
  name=$(basename "$results" .jsonl) page=docs/papers/$(basename "$results" .jsonl).md table=$(basename "$results" .jsonl)
  [ "$name" != sst2 ] || page=sst2.md table=docs/results/sst2.json
  drawn "$table" "$page" "docs/papers/$name.svg" || fail "docs/papers/$name is not what tools/lab/reproduce/draw.py draws"
done
(cd papers && PYTHONDONTWRITEBYTECODE=1 ports/python/bench/fleet.py --draw) >said 2>&1 && cmp -s papers/docs/fleet.svg "$root/docs/fleet.svg" ||
  fail "docs/fleet.svg is not what ports/python/bench/fleet.py draws: $(head -c 300 said)"
sed -i '1s/"records_per_second":5/"records_per_second":6/' papers/docs/results/phantom-figure-8.jsonl
drawn phantom-figure-8 docs/papers/phantom-figure-8.md docs/papers/phantom-figure-8.svg && fail "another result than that of the page is not seen"
finish
