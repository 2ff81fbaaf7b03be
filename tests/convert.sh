#!/usr/bin/env bash
# Models to and from safetensors files: bit for bit in both directions, refusals, nothing half-written, and no false
# claims by a model from outside. tools/bench/peers/parity.py compares scores with PyTorch, if $PYTHON has it.
#   tests/convert.sh BUILD_FOLDER
. "$(dirname "$0")/shell.sh"
# edit IN OUT CODE runs Python on a file's header `h` (a dictionary) and data `d` (a bytearray).
edit() {
  python3 - "$1" "$2" "$3" <<'END' || fail "the edit $3 does not run"
import json, struct, sys
raw = open(sys.argv[1], "rb").read()
n = struct.unpack("<Q", raw[:8])[0]
h, d = json.loads(raw[8:8 + n]), bytearray(raw[8 + n:])
exec(sys.argv[3])
text = json.dumps(h).encode()
open(sys.argv[2], "wb").write(struct.pack("<Q", len(text)) + text + d)
END
}
# same A B [CODE] compares the tensors of two files, by name and bit, after CODE on the headers `a` and `b`.
same() {
  python3 - "$1" "$2" "${3:-}" <<'END' || fail "$1 and $2 hold other tensors"
import json, struct, sys
def read(path):
    raw = open(path, "rb").read()
    n = struct.unpack("<Q", raw[:8])[0]
    return json.loads(raw[8:8 + n]), raw[8 + n:]
(a, x), (b, y) = read(sys.argv[1]), read(sys.argv[2])
exec(sys.argv[3])
of = lambda h, d: {k: (t["dtype"], t["shape"], d[slice(*t["data_offsets"])]) for k, t in h.items() if k != "__metadata__"}
sys.exit(0 if of(a, x) == of(b, y) else 1)
END
}
inspect() { python3 -c "import json,subprocess,sys; j=json.loads(subprocess.check_output(['$wisp','inspect','$1','--verify','--json'])); sys.exit(0 if ($2) else 1)" || fail "$2 does not hold of $1"; }

# Exported and converted back, with every switch of a recipe in one of two models.
cp "$root/models/cafe.wisp" cafe.wisp
cat >other.json <<'END'
{"architecture": {"max_length": 9, "width": 12, "num_heads": 3, "num_blocks": 3, "inner_width": 7, "embedding_scale": 3.4641016, "attention_slope": 0.3,
  "norm_epsilon": 1e-7, "activation": "relu", "norm": "post", "output_table": "untied", "output_bias": "trained", "positions": "end", "attend": "all", "re_attention": "on"}}
END
expect 0 "" "$wisp" new --recipe other.json --num-items 31 --out other.wisp
for model in cafe other; do
  expect 0 "" "$wisp" export $model.wisp --out $model.safetensors
  expect 0 "" "$wisp" convert $model.safetensors --out $model-back.wisp
  expect 0 "" "$wisp" export $model-back.wisp --out $model-back.safetensors
  same $model.safetensors $model-back.safetensors 'assert a["__metadata__"]["wisp.architecture"] == b["__metadata__"]["wisp.architecture"]'
  "$wisp" inspect $model.wisp --json >a.json && "$wisp" inspect $model-back.wisp --json >b.json
  python3 -c "import json; a, b = json.load(open('a.json')), json.load(open('b.json')); assert all(a[k] == b[k] for k in ('architecture', 'tensors', 'item_keys', 'item_names'))" ||
    fail "$model came back as another model"
done
# Items that nobody is shown stay hidden, and damaged data about them does not show them again.
printf 'tea-mint\n' >gone.txt && printf 'new-tea\tNew tea\n' >new.tsv
expect 0 "" "$wisp" catalogue retire --model cafe.wisp --items gone.txt --out less.wisp
expect 0 "" "$wisp" catalogue add --model less.wisp --items new.tsv --out withheld.wisp
expect 0 "" "$wisp" export withheld.wisp --out withheld.safetensors
expect 0 "" "$wisp" convert withheld.safetensors --out withheld-back.wisp
inspect withheld-back.wisp 'j["retired_items"] == 1 and j["untrained_items"] == 1 and j["allow_seen"]'
all=(--history bagel-lentil --count 481 --json)
"$wisp" recommend --model withheld.wisp "${all[@]}" >a.json && "$wisp" recommend --model withheld-back.wisp "${all[@]}" >b.json && cmp -s a.json b.json || fail "items that were withheld came back"
grep -q '"tea-mint"\|"new-tea"' b.json && fail "an item that is withheld is shown"
for damage in 'retired "[481]"' 'retired "[3, 3]"' 'untrained "[5, 4]"' 'untrained "[-1]"' 'retired "[[1]]"' 'untrained "7"' 'retired "["'; do
  edit withheld.safetensors damaged.safetensors "h['__metadata__']['wisp.${damage%% *}'] = ${damage#* }"
  expect 3 "damaged.safetensors: __metadata__ 'wisp.${damage%% *}' is '.*'; allowed is a list of items, which are 0 to 480, each once, ascending" \
    "$wisp" convert damaged.safetensors --out damaged.wisp
done
edit withheld.safetensors damaged.safetensors "h['__metadata__']['wisp.retired'] = json.dumps(list(range(481)))"
expect 3 "damaged.safetensors: __metadata__ 'wisp.retired' and 'wisp.untrained' hold all 481 items; at least one must be left" "$wisp" convert damaged.safetensors --out damaged.wisp
[ ! -e damaged.wisp ] || fail "a refused file left a model behind"

ask=(--history tea-mint,bagel-lentil --count 480 --allow-seen --json)
"$wisp" recommend --model cafe.wisp "${ask[@]}" >a.json && "$wisp" recommend --model cafe-back.wisp "${ask[@]}" >b.json && cmp -s a.json b.json || fail "scores or names changed on the way"
same cafe.safetensors cafe.safetensors 'assert "synthetic public cafe guests" in a["__metadata__"]["wisp.provenance"] and "no privacy guarantee" in a["__metadata__"]["wisp.provenance"]'

# A config may leave out what shapes tell; if it says it, they must agree. A recipe is a config too.
edit cafe.safetensors bare.safetensors 'del h["__metadata__"]'
python3 - <<'PY'
import json, struct
header = json.dumps({"model.embed_tokens.weight": {"dtype": "F32", "shape": [3, 2], "data_offsets": [0, 24]}, "lm_head.weight": {"dtype": "F32", "shape": [1], "data_offsets": [24, 28]}}).encode()
open("foreign.safetensors", "wb").write(struct.pack("<Q", len(header)) + header + bytes(28))
PY
expect 3 "foreign.safetensors: it is not a recommender of wisp's: it holds .*model.embed_tokens.weight.*Supported are .*item_embedding.weight .items, width.*docs/convert.md" "$wisp" convert foreign.safetensors --out o.wisp
[ ! -e o.wisp ] || fail "a refused convert wrote a model"
expect 2 "bare.safetensors: its __metadata__ has no 'wisp.architecture': --config is needed" "$wisp" convert bare.safetensors --out o.wisp
echo '{"embedding_scale": 6}' >config.json
expect 3 "foreign.safetensors: it lies beside a config.json, .*give the folder '\.'\. By itself it is not a recommender of wisp's" \
  "$wisp" convert foreign.safetensors --out o.wisp
expect 0 "" "$wisp" convert bare.safetensors --out o.wisp --config config.json
expect 0 "" "$wisp" export o.wisp --out o.safetensors
same cafe.safetensors o.safetensors 'assert a["__metadata__"]["wisp.architecture"] == b["__metadata__"]["wisp.architecture"]'
inspect o.wisp 'not j["item_keys"] and not j["item_names"]'
expect 0 "" "$wisp" convert bare.safetensors --out o.wisp --config "$root/models/recipes/cafe.json"
rm -f o.wisp
echo '{"width": 31}' >config.json
expect 3 "config.json:.width is 31, the tensors of bare.safetensors say 32" "$wisp" convert bare.safetensors --out o.wisp --config config.json
echo '{"num_blocks": 1}' >config.json
expect 3 "num_blocks is 1, the tensors of bare.safetensors say 2" "$wisp" convert bare.safetensors --out o.wisp --config config.json
echo '{"norm": "post"}' >config.json
expect 3 "tensor 'final_norm.weight' belongs to nothing" "$wisp" convert bare.safetensors --out o.wisp --config config.json
echo '{"num_heads": 5}' >config.json
expect 3 "num_heads is 5, which does not divide width 32" "$wisp" convert bare.safetensors --out o.wisp --config config.json
echo '{"widht": 32}' >config.json
expect 3 "unknown key 'widht'" "$wisp" convert bare.safetensors --out o.wisp --config config.json
edit cafe.safetensors no-json.safetensors 'h["__metadata__"]["wisp.architecture"] = "{"'
expect 3 "__metadata__ 'wisp.architecture' is '{', which is not JSON" "$wisp" convert no-json.safetensors --out o.wisp

# A SASRec of another program, recognised by its tensors; its items are named by their numbers, from 1.
golden=$root/tests/golden/sasrec
expect 2 "recbole.safetensors: it is a SASRec of RecBole, whose tensors do not tell the heads" "$wisp" convert "$golden/recbole.safetensors" --out r.wisp
echo '{"num_heads": 2, "norm": "post"}' >heads.json
expect 0 "" "$wisp" convert "$golden/recbole.safetensors" --out r.wisp --config heads.json
expect 0 "is of SASRec.pytorch, which attends to the padding before a history shorter than 7" "$wisp" convert "$golden/sasrec_pytorch.safetensors" --out p.wisp --config heads.json
for pair in r:recbole p:post; do
  python3 - "$wisp" "${pair%:*}.wisp" "$golden/expected.json" "${pair#*:}" <<'END' || fail "lists of ${pair#*:} differ"
import json, subprocess, sys
wisp, model, golden, cases = sys.argv[1:]
for one in json.load(open(golden))[cases][:5]:
    best = sorted(range(len(one["scores"])), key=lambda i: -one["scores"][i])[:10]
    ask = [wisp, "recommend", "--model", model, "--history", ",".join(map(str, one["history"])), "--count", "10", "--allow-seen", "--json"]
    found = json.loads(subprocess.check_output(ask))
    assert [r["item"] for r in found] == [str(i + 1) for i in best], (found, best)
END
done
printf 'PK\003\004 and the rest' >m.pth
expect 3 "m.pth: it is a zip archive, as torch saves" "$wisp" convert m.pth --out o.wisp

# Items.
edit bare.safetensors keyed.safetensors 'h["__metadata__"] = {"wisp.architecture": "{\"embedding_scale\": 6}", "wisp.item_keys": "[1]"}'
expect 3 "allowed is a list of texts\|is no list of texts" "$wisp" convert keyed.safetensors --out o.wisp
edit bare.safetensors keyed.safetensors 'h["__metadata__"] = {"wisp.architecture": "{\"embedding_scale\": 6}", "wisp.item_keys": "[\"a\"]"}'
expect 3 "there are 1 of them for 480 items" "$wisp" convert keyed.safetensors --out o.wisp
seq 479 >keys.txt
expect 3 "keys.txt: there are 479 of them for 480 items" "$wisp" convert cafe.safetensors --out o.wisp --item-keys keys.txt
(cat keys.txt; echo 7) >twice.txt
expect 2 "'7'\|\"7\"\| 7" "$wisp" convert cafe.safetensors --out o.wisp --item-keys twice.txt
expect 2 "--item-names needs --item-keys" "$wisp" convert bare.safetensors --out o.wisp --config "$root/models/recipes/cafe.json" --item-names keys.txt
[ ! -e o.wisp ] || fail "a refused file left a model behind"
(cat keys.txt; echo 480) >all.txt
printf '3\tthree\n' >names.txt
expect 0 "" "$wisp" convert cafe.safetensors --out keyed.wisp --item-keys all.txt --item-names names.txt
inspect keyed.wisp 'j["item_keys"] and j["item_names"]'
expect 0 "" "$wisp" recommend --model keyed.wisp --history 3 --count 3

# Damage and other kinds are named, and existing files stay.
cp cafe.wisp o.wisp
head -c 5000 cafe.safetensors >cut.safetensors
expect 3 "cut.safetensors: it is cut short, or damaged: the header promises [0-9]* bytes of itself, there are 4992" "$wisp" convert cut.safetensors --out o.wisp
head -c -5 cafe.safetensors >short.safetensors
promised=$(python3 -c 'import os,struct; print(os.path.getsize("cafe.safetensors") - 8 - struct.unpack("<Q", open("cafe.safetensors", "rb").read(8))[0])')
expect 3 "short.safetensors: it is cut short, or damaged: the header promises $promised bytes of data, there are $((promised - 5))" "$wisp" convert short.safetensors --out o.wisp
expect 3 "cafe.wisp: it is a wisp model already; convert reads safetensors files" "$wisp" convert cafe.wisp --out o.wisp
expect 3 "nowhere.safetensors" "$wisp" convert nowhere.safetensors --out o.wisp
edit cafe.safetensors gap.safetensors 'd += b"1234"'
expect 3 "gap.safetensors: there are 4 bytes of data behind the last tensor" "$wisp" convert gap.safetensors --out o.wisp
edit cafe.safetensors type.safetensors 'h["final_norm.bias"]["dtype"] = "I32"'
expect 3 "type.safetensors: tensor 'final_norm.bias' has the dtype 'I32', allowed are F32, F16 and BF16" "$wisp" convert type.safetensors --out o.wisp
edit cafe.safetensors nan.safetensors 'struct.pack_into("<f", d, h["final_norm.bias"]["data_offsets"][0], float("inf"))'
expect 3 "nan.safetensors: tensor 'final_norm.bias' holds inf at place 0, allowed are finite numbers" "$wisp" convert nan.safetensors --out o.wisp
edit cafe.safetensors name.safetensors 'h["final_norm.beta"] = h.pop("final_norm.bias")'
expect 3 "name.safetensors: there is no tensor 'final_norm.bias'" "$wisp" convert name.safetensors --out o.wisp
cmp -s cafe.wisp o.wisp || fail "a refused file changed the model that was there"
cp cafe.safetensors kept.safetensors
expect 3 "cut.wisp" "$wisp" export cut.wisp --out kept.safetensors
expect 3 "nowhere" "$wisp" export cafe.wisp --out nowhere/o.safetensors
expect 3 "nowhere" "$wisp" convert cafe.safetensors --out nowhere/o.wisp
cmp -s kept.safetensors cafe.safetensors || fail "a refused export changed the file that was there"
ls | grep -q tmp && fail "a temporary file was left: $(ls)"

# F16 and BF16 become float32: numbers that are exact in both come back unchanged.
for type in F16 BF16; do
  edit other.safetensors narrow.safetensors "
n = bytearray()
for t in [h[k] for k in h if k != '__metadata__']:
    b, e = t['data_offsets']
    v = [0.5 if i % 3 else 2.0 for i in range((e - b) // 4)]
    t['data_offsets'] = [len(n), len(n) + 2 * len(v)]
    t['dtype'] = '$type'
    n += b''.join(struct.pack('<e', x) if '$type' == 'F16' else struct.pack('<f', x)[2:] for x in v)
d = n"
  edit other.safetensors wide.safetensors "
for t in [h[k] for k in h if k != '__metadata__']:
    b, e = t['data_offsets']
    struct.pack_into('<%df' % ((e - b) // 4), d, b, *[0.5 if i % 3 else 2.0 for i in range((e - b) // 4)])"
  expect 0 "" "$wisp" convert narrow.safetensors --out narrow.wisp
  expect 0 "" "$wisp" export narrow.wisp --out back.safetensors
  same wide.safetensors back.safetensors
done

# A model from outside counts as neither untrained, nor public, nor private, whatever its file says.
inspect cafe-back.wisp 'len(j["provenance"]) == 1 and j["provenance"][0]["epsilon"] is None and j["provenance"][0]["dataset"] == "unknown, imported"'
edit cafe.safetensors boast.safetensors 'h["__metadata__"]["wisp.provenance"] = "epsilon 0, public"'
expect 0 "boast.safetensors states 'epsilon 0, public': nothing vouches for that" "$wisp" convert boast.safetensors --out boast.wisp
for model in boast.wisp cafe-back.wisp; do
  expect 2 "which no provenance here names" "$wisp" recommend --model $model --history tea-mint --private --public-dataset "unknown, imported"
  expect 4 "states no epsilon" "$wisp" recommend --model $model --history tea-mint --private
done
"$wisp" synth --out log.db --population device --users 60 --seed 3 >/dev/null || fail "synth"
private=(--recipe "$root/models/recipes/cafe-device.json" --data log.db --num-records-public 60 --batch 20 --epochs 1 --delta 0.001 --epsilon 4)
expect 4 "did not say what data it learned from: that may be 'log.db'" "$wisp" train "${private[@]}" --model cafe-back.wisp --out t.wisp --ledger l.db
expect 0 "" "$wisp" convert cafe.safetensors --out named.wisp --dataset "cafe log"
expect 4 "trained on 'cafe log' before, without a guarantee" "$wisp" train "${private[@]}" --model named.wisp --dataset "cafe log" --out t.wisp --ledger l.db
[ ! -e t.wisp ] && [ ! -e l.db ] || fail "a refused run left something behind"
expect 0 "" "$wisp" convert cafe.safetensors --out shipped.wisp --dataset shipped
expect 0 "" "$wisp" train "${private[@]}" --model shipped.wisp --out t.wisp --ledger l.db
grep -q "of the weights it began with: .*'shipped'.* states no epsilon" out || fail "training on top of an import does not say so: $(cat out)"
expect 0 "" "$wisp" recommend --model t.wisp --history tea-mint --private --public-dataset shipped
expect 4 "states no epsilon" "$wisp" recommend --model t.wisp --history tea-mint --private

# A guarantee does not survive the way to another program and back; a warning says so.
expect 0 "" "$wisp" export t.wisp --out t.safetensors
expect 0 "t.safetensors states '.*epsilon 3.9.* at delta 0.001.*': nothing vouches for that, and t-back.wisp has lost the guarantee; keep the model that was exported" \
  "$wisp" convert t.safetensors --out t-back.wisp --json
python3 -c 'import json; assert "epsilon 3.9" in json.load(open("out"))["lost_guarantee"]' || fail "the lost guarantee is not in the JSON: $(cat out)"
inspect t-back.wisp 'j["provenance"][0]["epsilon"] is None and "not carried over" in j["provenance"][0]["description"]'
expect 0 "" "$wisp" convert cafe.safetensors --out o.wisp --json
[ ! -s err ] && ! grep -q "lost_guarantee" out || fail "a guarantee is missed although there was no guarantee: $(cat err out)"
expect 0 "" "$wisp" export t-back.wisp --out t-again.safetensors
expect 0 "" "$wisp" convert t-again.safetensors --out o.wisp
[ ! -s err ] || fail "a guarantee is lost twice: $(cat err)"

# PyTorch gives the same scores; 77: it is not installed.
"${PYTHON:-python3}" "$root/tools/bench/peers/parity.py" cafe.wisp --wisp "$wisp" --shapes 4 >out 2>err
code=$?
[ $code -eq 0 ] || [ $code -eq 77 ] || fail "scores differ from PyTorch's: $(cat out err)"
[ $code -eq 77 ] && cat err
finish
