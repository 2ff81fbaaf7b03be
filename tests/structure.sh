#!/usr/bin/env bash
# The shape of the tree: who includes whom, what the library never does, how long files are.
#   tests/structure.sh [ROOT]     prints every breach; exits 1 if there is one
set -uo pipefail
cd "${1:-$(dirname "$0")/..}"
[ -d runtime/core ] || { echo "$PWD: holds no runtime/core; ROOT is the root of the sources"; exit 1; }
breaches=0
breach() { echo "$*"; breaches=$((breaches + 1)); }

sources() {  # FOLDER... [-maxdepth N]
  find "$@" \( -name '*.h' -o -name '*.hpp' -o -name '*.cc' -o -name '*.c' \) -not -path '*/generated/*' 2>/dev/null | sort
}

# Maps a folder to our files that it may include, as an extended regular expression. With `top`, files below its folders
# have rules of their own.
check_arrows() {
  local folder=$1 allowed=$2 depth=${3:-} file include
  while read -r file; do
    while read -r include; do
      [[ $include =~ ^($allowed) ]] || breach "$file includes $include; $folder may include: $allowed"
    done < <(grep -oE '^#include "[^"]+"' "$file" | cut -d'"' -f2 | grep -E '^(runtime|kernels|schema|ports|tools|tests)/')
  done < <(sources "$folder" ${depth:+-maxdepth 1})
}
check_arrows kernels 'kernels/'
check_arrows schema 'schema/'
check_arrows runtime/core 'runtime/core/|kernels/(kernels|device|module/module)\.h$'
check_arrows runtime/model 'runtime/(model|core)/|schema/'
check_arrows runtime/layers 'runtime/(layers|core)/|kernels/(kernels|device)\.h$'
# Two factories in runtime/layers choose the kind of a recommending model, and all other code runs any kind.
while read -r hit; do breach "MakeModelView and MakeGraph choose the kind of a model: $hit"; done < <(
  sources runtime kernels ports tools | grep -v '^runtime/layers/' | xargs grep -n '^#include "runtime/layers/recommender\.h"')
core='runtime/core/(date|decimal|fork|hex|platform|reason|status|text)\.h$' writer='runtime/privacy/json\.h$' accounting='runtime/privacy/accounting/' noise='runtime/privacy/noise/'
check_arrows runtime/sqlite "runtime/sqlite/|$core"
check_arrows runtime/privacy "runtime/(privacy|sqlite)/|$core"
check_arrows runtime/privacy/noise "$noise|$core"
check_arrows runtime/privacy/accounting "$accounting|$writer|$core"
check_arrows runtime/privacy/ledger "runtime/privacy/ledger/|runtime/sqlite/|$accounting|$noise|$writer|$core"
check_arrows runtime/privacy/audit "runtime/privacy/audit/|$accounting|$noise|$writer|$core"
check_arrows runtime/gradients 'runtime/(gradients|core)/|runtime/layers/(factors|record)\.h$|kernels/(kernels|device)\.h$'
check_arrows runtime/data 'runtime/(data|sqlite|core)/|kernels/pages\.h$'
below='runtime/(model|layers|gradients|privacy|data|core)/|kernels/(kernels|device)\.h$' step='runtime/train/[a-z_]+\.h$'
check_arrows runtime/train "$step|$below" top
check_arrows runtime/train/run "runtime/train/run/|$step|$below"
check_arrows runtime/train/audit "runtime/train/audit/|$step|$below"
# A method knows itself and what every method has; the table knows them all.
for method in phantom rgp sparse dp_fp re_attention; do
  check_arrows runtime/methods/$method "runtime/methods/$method/|runtime/train/audit/|$step|$below"
done
# In place of a folder that a build leaves out.
check_arrows runtime/methods/absent "runtime/methods/[a-z_]+/[a-z_]+_method\.h$|$step"
check_arrows runtime/methods "runtime/methods/[a-z_]+/[a-z_]+_method\.h$|$step" top
check_arrows runtime/personalise "runtime/personalise/|runtime/train/run/|$step|$below"
check_arrows runtime/inference 'runtime/(inference|model|layers|core)/|kernels/(kernels|device)\.h$'
# The wing of other devices' memory; runtime/inference/device_wing.h is how the core calls it.
check_arrows runtime/device 'runtime/(device|inference|model|layers|core)/|kernels/(kernels|device)\.h$'
check_arrows runtime/private_sampling 'runtime/(private_sampling|inference|model|layers|privacy|core)/|kernels/kernels\.h$'
# The wing of fleets. Only runtime/fleet/flower knows the protocol of Flower.
check_arrows runtime/fleet "runtime/fleet/([a-z_0-9]+\.h$|flower/)|runtime/(personalise|train/run)/|runtime/methods/phantom/phantom_method\.h$|kernels/half\.h$|$step|$below" top
check_arrows runtime/fleet/server "runtime/fleet/([a-z_0-9]+\.h$|server/)|runtime/personalise/|$step|$below"
check_arrows runtime/fleet/flower "runtime/fleet/(flower/|transport\.h$|sha256\.h$|flat_json\.h$)|$core"
# The wing of texts. The rooms above include nothing of it, so a build without it is whole.
check_arrows runtime/text/tokenizers 'runtime/(text/tokenizers|core)/|schema/generated/'
check_arrows runtime/text 'runtime/text/([a-z_]+\.h$|tokenizers/)|runtime/(inference|model|layers|core)/|kernels/(kernels|device)\.h$' top
check_arrows runtime/text/private_sampling 'runtime/(text|private_sampling|inference|model|layers|privacy|core)/|kernels/kernels\.h$'
check_arrows tools/convert 'tools/convert/|runtime/(text/tokenizers|core)/|schema/generated/'
check_arrows tools/wisp 'tools/(wisp|convert)/|runtime/|kernels/|schema/'
check_arrows tools/tokenizers 'tools/convert/|runtime/(text/tokenizers|core)/'
check_arrows ports/c 'ports/c/|runtime/'
check_arrows ports/python 'ports/python/'
check_arrows ports/wasm 'ports/c/'
check_arrows ports/android 'ports/android/'

# The library prints nothing, ends no process, throws nothing. The emulator of a GPU serves only tests, kernels/highway/
# only programs and tests.
while read -r hit; do breach "in the library: $hit"; done < <(
  sources runtime kernels | grep -vE '^kernels/(cuda/emulate|highway)/' | xargs grep -nE '\b(printf|fprintf|puts|abort|exit|_exit|std::cout|std::cerr|throw)\b *[(;<"]' |
    grep -vE '//.*(printf|fprintf|puts|abort|exit|throw)|snprintf')
# Nothing above the kernels names an instruction set or a device.
while read -r hit; do breach "above the kernels: $hit"; done < <(sources runtime | xargs sed -s 's://.*$::' | grep -nE '\b(CUDA|AVX2?|AVX512|NEON|_mm[0-9]*_)\b')
# Systems differ in one interface of the library, runtime/core/platform.h; one file of the kernels, for pages of memory;
# one of the program. Kernels of a GPU and what loads them are for systems that have those.
platform='^(runtime/core/(platform_(posix|windows)|process_windows)\.cc|kernels/pages\.cc|tools/wisp/system_(posix|windows)\.cc|kernels/(cuda|module)/.*|kernels/int8/arm\.cc)$'
system_header='^ *# *include *<((arpa|linux|mach|net|netinet|sys)/.*|aio|dirent|dlfcn|fcntl|fts|ftw|glob|grp|poll|pthread|pwd|sched|semaphore|spawn|termios|unistd|windows|winsock2|bcrypt|aclapi|sddl|shellapi|io|direct|process)(\.h)?>'
while read -r hit; do breach "runtime/core/platform.h has what the library needs of a system: $hit"; done < <(
  sources runtime kernels ports/c tools/wisp tools/convert | grep -vE "$platform" | xargs grep -niE "$system_header")
# These come with headers of the language, and not every system has them, or not with the same promise.
uneven='(^|[^:.>_A-Za-z])((f|fdata)sync|sync_file_range|getentropy|getrandom|renameat2|mkdtemp|mkstemp|realpath|O_TMPFILE|(std::)?(rename|remove|fopen)) *\([^)]'
while read -r hit; do breach "runtime/core/platform.h has this for every system: $hit"; done < <(
  sources runtime ports/c tools/wisp tools/convert | grep -vE "$platform|^ports/c/example\.c$" | xargs sed -s 's://.*$::' | grep -nE "$uneven")
# A stream or std::filesystem reads a path by the code page of Windows, and ours are UTF-8.
while read -r hit; do breach "runtime/core/native_path.h makes a path of this: $hit"; done < <(
  sources tools/wisp tools/convert | xargs grep -nE 'std::[io]?fstream [a-z_]+\([^"N)]|std::filesystem::([a-z_]+)\([^)N"]' | grep -vE 'temp_directory_path|path\(')
# Text leaves the program without characters that a terminal acts on, and JSON escapes them.
while read -r hit; do breach "tools/wisp/output.h prints: $hit"; done < <(
  sources tools/wisp tools/lab | grep -vE '^tools/(wisp/output\.cc$|lab/bench/peers/)' | xargs grep -nE '\bstd::(printf|puts|putchar)\(')
while read -r hit; do breach "tools/wisp/output.h writes JSON: $hit"; done < <(
  sources tools/wisp tools/lab | grep -vE '^tools/(wisp/output\.cc$|lab/bench/peers/)' | xargs grep -nE "dump\([^()]*\)(\.c_str\(\)\);|.*\\\\n)")
# Packages that tools/dev takes from elsewhere have their hashes in tools/pinned; our own wheels need none.
while read -r hit; do breach "without hashes: $hit"; done < <(grep -n 'pip install' tools/dev | grep -vE -- '--require-hashes -r tools/pinned/|--no-deps build/')
# Other programs call the library too, so it names a setting as C does, between grave accents;
# tools/wisp/option_names.cc has the program's option for each.
while read -r hit; do breach "the library names an option of the program: $hit"; done < <(
  sources runtime ports/c | xargs grep -nE '"[^"]*--[a-z]' | grep -vE '(//|/\*).*--[a-z]')
while read -r setting; do
  grep -qF "$setting" tools/wisp/option_names.cc || breach "tools/wisp/option_names.cc has no option for $setting"
done < <(sources runtime | xargs sed 's://.*$::' | grep -oE '`[a-z0-9_]+`' | sort -u)
# One owner of the budget: no other file computes a sampling probability, a mechanism or a noise multiplier. Samples
# have sample_cost.cc; cmd_privacy.cc is a calculator, whose user gives the probability, and bench_machine.cc times it;
# audit_dp_fp.cc restates a paper.
owns='^(runtime/privacy/.*|runtime/train/(budget|privacy_plan|search_plan)\.cc|runtime/fleet/fleet_budget\.cc|runtime/private_sampling/sample_cost\.cc|runtime/methods/dp_fp/audit_dp_fp\.cc|tools/wisp/cmd_privacy\.cc|tools/lab/bench/bench_machine\.cc)$'
second='\bMechanism::(Gaussian|PoissonSubsampledGaussian|RandomisedResponse|NonUniformResponse|BoundedRange|Make)\(|\b(RandomAllocation|CorrelatedGaussian|PrivateSearch|CalibrateNoise)\('
second+='|batch[a-z_]*\)* / [a-z_.()>-]*(records|public|users|texts|size\(\))|\b(probability|noise_multiplier) = [^,;}]*( [*/] |sqrt)'
while read -r hit; do breach "runtime/train/budget.h has this formula: $hit"; done < <(
  sources runtime ports tools | grep -vE "$owns" | xargs grep -nE "$second" | grep -vE "^[^:]*:[0-9]+:.*//.*($second)")
# All SQLite files are opened in one place, which refuses planted journals.
while read -r hit; do breach "runtime/sqlite/open.h opens every database: $hit"; done < <(
  sources runtime kernels ports tools | grep -vE '^runtime/sqlite/open\.(cc|h)$' | xargs grep -nE '\bsqlite3_(open(16|_v2)?|vfs_register)\b *[(;]|\bATTACH\b|VACUUM INTO')
# Browsers, Apple's systems and Android compile the library with LLVM's C++ library, whose old versions lack these.
while read -r hit; do breach "LLVM's C++ library of Debian 12 lacks this: $hit"; done < <(
  sources runtime kernels ports/c | xargs grep -nE 'std::(ranges|views|format|jthread|stop_token|source_location|atomic_ref)\b' | grep -v '//.*std::')
# An app's language changes no number and no sentence. The sentences of the emulator and the GPU have no such numbers.
asks_locale='\b(v?s?n?f?printf|strto(d|f|ld)|ato[fi]|sto(f|d|ld)|strerror(_r|_l)?|strftime|is(al(pha|num)|digit|space|upper|lower|punct|print|xdigit|w[a-z]+)|to(lower|upper)|setlocale|localeconv|strcoll|strxfrm|[a-z]+_category\(\)\.message|dlerror|[io]?f?stringstream|[io]fstream|std::locale|put_time|get_time) *[({< ]'
while read -r hit; do breach "asks the program's locale; runtime/core has decimal.h, date.h, reason.h and text.h for this: $hit"; done < <(
  sources runtime kernels ports/c | grep -vE '^(runtime/core/(decimal\.h|c_locale\.h|reason\.cc)|kernels/cuda/(emulate|gpu)/.*|kernels/module/module\.cc|ports/c/example\.c)$' |
    xargs grep -nE "$asks_locale" | grep -vE "//.*$asks_locale|utf8proc_to(lower|upper)")
# The results of a layer or a gradient sink lie in a device's memory: only ops read and write it. The host writes record
# data where they lie (GraphBase::Enter, and Classifier's one row per record); key_value_cache.h looks at sizes;
# constants.cc makes data that is then copied in.
touches='std::(mem(set|cpy|move)|copy(_n)?|fill(_n)?|transform|accumulate|inner_product|iota|(max|min)_element|exp|expm1|log|log1p|tanh)\('
entering='^runtime/layers/(graph_base\.cc:[0-9]+:.*std::copy\(\(record\.|classifier\.cc:[0-9]+:.*std::iota\(context\.buffers\.host\[one_each_\]|constants\.cc:|key_value_cache\.h:[0-9]+:.*std::max_element\(sizes_)'
while read -r hit; do breach "on the host, not an op: $hit"; done < <(
  sources runtime/layers runtime/gradients | xargs grep -nE "$touches" | grep -vE "//.*$touches" | grep -vE "$entering")
# A result that mixes weights of several models names what each of them learned from (runtime/model/provenance.h).
# `wisp convert --int8` reads two models only to compare them.
while read -r file; do
  [ "$file" = tools/wisp/convert_compress.cc ] || [ "$(grep -cE '\b(AllWeights|GetContents|flat_weights|Tensor)\(' "$file")" -lt 2 ] ||
    breach "$file reads weights more than once and writes a model: take both from a Mixture"
done < <(sources runtime ports/c tools/wisp tools/lab | grep -vE '^(runtime/model|tools/lab/bench)/' | xargs grep -l 'WriteModel(')
while read -r hit; do breach "provenance is joined, never set (JoinProvenance): $hit"; done < <(
  sources runtime ports/c tools/wisp tools/lab | grep -v '^runtime/model/' |
    xargs grep -nE '(\.|->)provenance *(=[^=]|\.(assign|insert|erase|clear|resize|pop_back|swap)\()' | grep -v '= JoinProvenance(')
# Items are ranked in one place, runtime/core/served_list.h, from which serving and evaluation take their lists. No
# other file decides which items are seen, or orders by scores. The files named here order tokens, samples, statistics,
# successions, transitions or the rows of a method, and rank no list of items.
ranks='^(runtime/core/served_list\.(h|cc)|runtime/inference/batch_recommender\.(h|cc)|runtime/device/device_batch\.(h|cc)|tools/lab/bench/bench_ops_cases\.cc)$'
not_lists='^(runtime/private_sampling/(audit_decoding|sample_law|private_sampling)\.cc|runtime/model/model_(metadata|writer)\.cc|runtime/personalise/rebase\.cc|runtime/train/(successions|bias_weight)\.cc|runtime/text/private_sampling/private_generator\.cc|runtime/text/token_sampler\.cc|runtime/privacy/audit/audit(_step)?\.cc|runtime/train/(popularity|run/baselines)\.cc|tools/convert/tokenizer_image\.cc|tools/lab/cmd_bench\.cc|tools/wisp/cmd_classify\.cc)$'
orders='std::(partial_sort|stable_sort|sort|nth_element|(push|pop|sort|make)_heap|max_element|greater)\b'
while read -r file; do
  [[ $file =~ $ranks ]] && continue
  code=$(sed 's://.*$::' "$file")
  grep -qE '\bTopK\b|[=!]= *(wisp::)?SeenItems::|\+\+rank;|\brank *\+=' <<<"$code" && breach "$file ranks items: runtime/core/served_list.h does"
  [[ $file =~ $not_lists ]] && continue
  grep -qE "$orders" <<<"$code" && grep -qiE '\bscores?_?\b' <<<"$code" && breach "$file orders by scores: runtime/core/served_list.h does"
done < <(sources runtime ports/c tools)
# The model says if lists hold items of the history (ModelLists); only a call that serves a person may differ.
while read -r file; do breach "$file chooses what lists hold: what is tested and evaluated is what the model says"; done < <(
  sources runtime/train runtime/personalise | xargs grep -l 'SeenItems')
# CMakeLists.txt reads this mark only in first lines.
while read -r hit; do breach "the mark for speed is no first line of a .cc file: $hit"; done < <(
  sources runtime kernels ports tools | xargs grep -n '^// Built for speed' /dev/null | grep -vE '\.cc:1:// Built for speed: .*\.$')
while read -r lines file; do
  [ "$file" = total ] || [ "$lines" -le 500 ] || breach "$file has $lines lines; 500 are allowed"
done < <(sources runtime kernels ports tools schema tests | xargs wc -l)

[ "$breaches" -eq 0 ] || { echo "$breaches breaches"; exit 1; }
