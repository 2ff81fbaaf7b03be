#!/usr/bin/env python3
"""Makes the seeds of tests/fuzz/corpus/ again: small files of every format, in the form that each target takes.

    tests/fuzz/make_corpus.py BUILD_FOLDER

Seeds are called seed-*; what a fuzzer found and what was mended since is kept beside them under other names, and stays.
"""

import hashlib, json, pathlib, re, sqlite3, struct, subprocess, sys, tempfile, time

import c_seeds

build = pathlib.Path(sys.argv[1]).resolve()
corpus = pathlib.Path(__file__).resolve().parent / "corpus"
recipes = pathlib.Path(__file__).resolve().parents[2] / "models" / "recipes"


def wisp(*arguments):
    subprocess.run([build / "wisp", *map(str, arguments)], check=True, stdout=subprocess.DEVNULL)


def seed(target, name, data):
    folder = corpus / target
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"seed-{name}").write_bytes(data)


def container(path, choice=b""):
    """tests/fuzz/container_input.h: how, offset and value of an odd byte, size of the metadata, metadata, numbers."""
    data = path.read_bytes()
    size = struct.unpack_from("<Q", data, 32)[0]
    metadata, start = data[64 : 64 + size], (64 + size + 16383) // 16384 * 16384
    return choice + bytes([2, 0, 0]) + struct.pack("<H", size) + metadata + data[start:]


def small_database(path, script):
    """An SQLite file with small pages: a fuzzer gets further with few bytes."""
    path.unlink(missing_ok=True)
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA page_size = 512")
        database.executescript(script)
    return path.read_bytes()


def endless_schema(application_id, version):
    """Pages above the schema that all lead to the next one, sixty times each: 10^10 tables, all of one name."""

    def inner(children, child, header=0):
        page = bytearray(512)
        struct.pack_into(">BHHHBI", page, header, 5, 0, children, 512 - 5 * children, 0, child)
        for i in range(children):
            struct.pack_into(">H", page, header + 12 + 2 * i, 512 - 5 * (i + 1))
            struct.pack_into(">IB", page, 512 - 5 * (i + 1), child, i + 1)
        return page

    def text(value):
        return 13 + 2 * len(value), value.encode()

    levels, sql = 6, text("CREATE TABLE IF NOT EXISTS x(a)")
    fields = [text("table"), text("x"), text("x"), (1, bytes([levels + 3])), sql]
    row = bytes([len(fields) + 1]) + bytes(kind for kind, _ in fields) + b"".join(value for _, value in fields)
    cell = bytes([len(row), 1]) + row
    leaf, table = bytearray(512), bytearray(512)
    struct.pack_into(">BHHHBH", leaf, 0, 13, 0, 1, 512 - len(cell), 0, 512 - len(cell))
    leaf[-len(cell) :] = cell
    struct.pack_into(">BHHH", table, 0, 13, 0, 0, 512)
    pages = [inner(40, 2, 100)] + [inner(60, level + 3) for level in range(levels)] + [leaf, table]
    struct.pack_into(
        ">16sHBBBBBBIIIIIIIIIIII20xII",
        pages[0],
        0,
        b"SQLite format 3\0",
        512,
        1,
        1,
        0,
        64,
        32,
        32,
        1,
        len(pages),
        0,
        0,
        1,
        4,
        0,
        0,
        1,
        version,
        0,
        application_id,
        1,
        3040001,
    )
    return b"".join(map(bytes, pages))


def binary_seeds(work):
    architecture = {"max_length": 4, "width": 4, "num_heads": 2, "num_blocks": 1, "inner_width": 3}
    training = {
        "method": "ordinary",
        "sampling": "shuffled",
        "epochs": 1,
        "expected_batch": 2,
        "seed": 1,
        "optimizer": {"kind": "adam"},
    }
    (work / "r.json").write_text(
        json.dumps(
            {"name": "small", "architecture": architecture, "training": training, "data": {"hold_out": "nothing"}}
        )
    )
    events = "user,item,time\n" + "".join(
        f"{u},{i},{t}\n"
        for t, (u, i) in enumerate(
            [("anna", "tea"), ("anna", "espresso"), ("ben", "cake"), ("ben", "tea"), ("anna", "cake")]
        )
    )
    (work / "log.csv").write_text(events)
    train = [
        "train",
        "--recipe",
        work / "r.json",
        "--data",
        work / "log.csv",
        "--dataset",
        "small",
        "--threads",
        "1",
        "--out",
        work / "m.wisp",
    ]
    wisp(*train)
    # A run that goes on for ever is stopped once it has saved: the file is gone when a run ends well.
    run = subprocess.Popen(
        [build / "wisp", *train, "--epochs", "1000000", "--checkpoint", work / "run.ckpt"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    while not (work / "run.ckpt").exists() and run.poll() is None:
        time.sleep(0.01)
    run.kill()
    run.wait()
    wisp("convert", work / "m.wisp", "--f16", "--out", work / "h.wisp")
    wisp("convert", work / "m.wisp", "--out", work / "m.safetensors")
    for choice in range(4):
        seed("model", f"floats-{choice}", container(work / "m.wisp", bytes([choice])))
    seed("model", "halves", container(work / "h.wisp", b"\0"))
    for bits in ["int8", "int4", "panels"]:
        wisp("convert", work / "m.wisp", f"--{bits}", "--out", work / f"{bits}.wisp")
        seed("model", bits, container(work / f"{bits}.wisp", b"\0"))
    seed("checkpoint", "ordinary", container(work / "run.ckpt"))
    whole = (work / "m.safetensors").read_bytes()
    length = struct.unpack_from("<Q", whole)[0]
    seed("safetensors", "exported", b"\1" + struct.pack("<H", length) + whole[8:])
    header = json.dumps(
        {
            "__metadata__": {"format": "pt"},
            "a": {"dtype": "F16", "shape": [2, 1], "data_offsets": [0, 4]},
            "b": {"dtype": "BF16", "shape": [], "data_offsets": [4, 6]},
        }
    ).encode()
    seed("safetensors", "halves", b"\1" + struct.pack("<H", len(header)) + header + b"\0\x3c\1\0\x80\x3f")
    seed("safetensors", "as-it-is", b"\0" + struct.pack("<Q", len(header)) + header + b"\0" * 6)


def database_seeds(work):
    table = "CREATE TABLE events(user TEXT, item TEXT, time INTEGER);"
    rows = (
        "INSERT INTO events VALUES ('anna', 'tea', 1), ('anna', 'cake', 2), ('ben', 'tea', -3), "
        "('ben', 'cake', 4.5);"
    )
    seed("sqlite", "table", b"\0" + small_database(work / "a.db", table + rows))
    seed(
        "sqlite",
        "view",
        b"\2" + small_database(work / "a.db", "CREATE VIEW events AS SELECT 'anna' AS user, 'tea' AS item, 7 AS time;"),
    )
    seed(
        "sqlite",
        "recursive",
        b"\0"
        + small_database(
            work / "a.db",
            "CREATE VIEW events AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT 'u' AS user, "
            "'tea' AS item, i AS time FROM n;",
        ),
    )
    seed(
        "sqlite", "index", b"\4" + small_database(work / "a.db", table + "CREATE INDEX by_user ON events(user);" + rows)
    )
    forever = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"
    seed(
        "sqlite",
        "trigger",
        b"\0"
        + small_database(
            work / "a.db", table + rows + f"CREATE TRIGGER t AFTER INSERT ON events BEGIN {forever}; END;"
        ),
    )
    seed(
        "sqlite",
        "computed",
        b"\0"
        + small_database(
            work / "a.db", table.replace(")", ", more DEFAULT (hex(zeroblob(9))), CHECK (item <> 'tea'))")
        ),
    )
    # The table that a reading by session writes, with rows that no reading writes.
    source = (corpus.parents[2] / "runtime" / "data" / "session_table.cc").read_text()
    made = "".join(
        "".join(re.findall(r'"([^"]*)"', text)) + ";" for text in re.findall(r'=\s*((?:"CREATE TABLE[^;]*));', source)
    )
    remembered = (
        "INSERT INTO wisp_readings VALUES (1, 'events', 'user', 'time', 10, 1, 3), (2, 'gone', 'a', 'b', -1, 0, NULL);"
        "INSERT INTO wisp_sessions VALUES (1, 'anna', 1, 1), (1, 'ben', -3, -3), (2, x'00', 7, 'x');"
        "INSERT INTO wisp_ledgers VALUES (1, 'l');"
    )
    for how in (8, 24):
        whole = small_database(work / "a.db", table + rows + made + remembered)
        seed("sqlite", f"sessions-{how}", bytes([how]) + whole)
    seed("sqlite", "endless-schema", b"\0" + endless_schema(0, 0))
    seed(
        "sqlite",
        "other-table",
        b"\1"
        + small_database(
            work / "a.db", table.replace("events", '"other ""table"""') + rows.replace("events", '"other ""table"""')
        ),
    )


def ledger_file_seeds(work):
    source = corpus.parents[2] / "runtime" / "privacy" / "ledger" / "ledger_tables.cc"
    made = source.read_text().split('R"sql(')[1].split(')sql"')[0]
    whole = small_database(work / "a.db", made)
    seed("ledger", "tables", bytes([1]) + whole)
    seed("ledger", "tables-shown", bytes([1 | 16]) + whole)
    view = (
        "DROP TABLE dataset; CREATE VIEW dataset AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
        "SELECT 'a' AS name, 'user' AS unit, '' AS adjacency, '' AS created FROM n WHERE i < 0;"
    )
    seed("ledger", "view", bytes([1 | 16]) + small_database(work / "a.db", made + view))
    seed("ledger", "endless-schema", bytes([1]) + endless_schema(0x77697370, 1))


def ledger_seeds():
    gaussian = bytes([0]) + struct.pack("<dd", 5, 0) + bytes([1])
    sampled = bytes([1]) + struct.pack("<dd", 1.1, 0.05) + bytes([10])
    response = bytes([2]) + struct.pack("<dd", 0, 0.1) + bytes([3]) + struct.pack("<H", 50)
    drawn = bytes([4]) + struct.pack("<dd", 0.1, 0) + bytes([2])
    limit = bytes([1]) + struct.pack("<d", 8)
    charges = b"".join(b"\0" + m + b"\1r\0" for m in (gaussian, sampled, response, drawn))
    seed("ledger", "charges", bytes([0]) + charges)
    seed("ledger", "limit", bytes([2]) + limit + b"\0" + gaussian + b"\1r\0" + b"\2\1")
    seed("ledger", "spent", bytes([6]) + b"\0" + gaussian + b"\1r\0")
    for column in range(12):
        seed(
            "ledger",
            f"edit-{column}",
            bytes([8 | 16]) + b"\0" + gaussian + b"\1r\0" + limit + b"\3" * 10 + bytes([column, 4 * 7]) + b"gausian",
        )
    seed("ledger", "no-database", bytes([1]) + b"SQLite format 3\0" + bytes(100))


def text_seeds():
    for choice, name, text in [
        (0, "user-item", "1 32\n1 7\n2 32\n"),
        (1, "ratings", "1::1193::5::978300760\n1::661::3::978302109\n"),
        (2, "csv", 'user,item,time\nanna,"tea, green",1\nben,"a ""b""",-2.5\n'),
        (3, "tsv", "user_id\titem_id\ttimestamp\n1\t2\t3\n"),
        (4, "inter", "user_id:token\titem_id:token\ttimestamp:float\n196\t242\t881250949\n"),
    ]:
        for how in (0, 1, 16):
            seed("readers", f"{name}-{how}", bytes([choice, how]) + text.encode())
    seed("readers", "lines", bytes([0x81, 0]) + b"1\ta good film\r\n0\tbad\n")
    seed("readers", "labelled-tsv", bytes([0x80, 4]) + b"sentence\tlabel\nA good film\tpositive\nbad\tnegative\n")
    seed("readers", "labelled-csv", bytes([0x83, 2]) + b'label,text\npositive,"a, b"\n0,"c\nd"\n')
    for path in sorted(recipes.glob("*.json")):
        seed("recipe", path.stem, path.read_bytes())
    seed("recipe", "deep", b'{"name":' + b"[" * 40 + b"]" * 40 + b"}")


def tokenizer_seeds(work):
    """A byte that says what comes, its size, the image (0) or the tokenizer.json (1), the text. Needs encode_lines."""
    special = [{"id": i, "content": text, "special": True} for i, text in enumerate(["<u>", "<s>"])]
    template = {
        "type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {"<s>": {"id": "<s>", "ids": [1], "tokens": ["<s>"]}},
    }
    split = {
        "type": "Sequence",
        "pretokenizers": [
            {"type": "Digits", "individual_digits": True},
            {"type": "ByteLevel", "add_prefix_space": True},
        ],
    }
    metaspace = {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "first"}
    wordpiece = {
        "added_tokens": special,
        "normalizer": {"type": "BertNormalizer"},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "decoder": {"type": "WordPiece"},
        "post_processor": template,
        "model": {
            "type": "WordPiece",
            "unk_token": "<u>",
            "vocab": {"<u>": 0, "<s>": 1, "un": 2, "##able": 3, "a": 4, ".": 5},
        },
    }
    bpe = {
        "added_tokens": special + [{"id": 7, "content": "New", "lstrip": True, "rstrip": True, "single_word": True}],
        "normalizer": {"type": "NFKC"},
        "pre_tokenizer": split,
        "decoder": {"type": "ByteLevel"},
        "model": {
            "type": "BPE",
            "unk_token": "<u>",
            "vocab": {"<u>": 0, "<s>": 1, "a": 2, "b": 3, "\u0120": 4, "ab": 5, "\u0120ab": 6},
            "merges": ["a b", "\u0120 ab"],
        },
    }
    unigram = {
        "normalizer": {
            "type": "Sequence",
            "normalizers": [{"type": "Nmt"}, {"type": "Replace", "pattern": {"String": "x"}, "content": "ab"}],
        },
        "pre_tokenizer": metaspace,
        "decoder": metaspace,
        "model": {
            "type": "Unigram",
            "unk_id": 0,
            "byte_fallback": True,
            "vocab": [["<u>", 0], ["a", -1.5], ["ab", -2], ["\u2581", -3], ["<0xC3>", -9], ["<0xA9>", -9]],
        },
    }
    for name, parts in [("wordpiece", wordpiece), ("bpe", bpe), ("unigram", unigram)]:
        text = "Un unable. ab abab New 12 \u00e9e\u0301 <s>".encode()
        (work / "t.json").write_text(json.dumps(parts))
        image = subprocess.run(
            [build / "encode_lines", work / "t.json", "image"], check=True, stdout=subprocess.PIPE
        ).stdout
        seed(
            "tokenizer",
            f"{name}-json",
            b"\1" + struct.pack("<H", (work / "t.json").stat().st_size) + (work / "t.json").read_bytes() + text,
        )
        seed("tokenizer", f"{name}-image", b"\0" + struct.pack("<H", len(image)) + image + text)


def folder_seeds():
    """Folders of Hugging Face: a config.json alone, and whole folders of models as small as can be."""
    golden = pathlib.Path(__file__).resolve().parents[1] / "golden" / "hugging_face"
    for path in sorted(golden.glob("*/config.json")):
        config = json.loads(path.read_text())
        seed(
            "hugging_face", "config-" + path.parent.name, b"\0\0\0" + json.dumps(config, separators=(",", ":")).encode()
        )
    piece = lambda text: struct.pack("<H", len(text)) + text.encode()

    def tensors(shapes):
        header, at = {}, 0
        for name, shape in shapes.items():
            size = 2
            for n in shape:
                size *= n
            header[name] = {"dtype": "F16", "shape": shape, "data_offsets": [at, at + size]}
            at += size
        return piece(json.dumps(header, separators=(",", ":"))) + bytes(at)

    def folder(name, choice, config, shapes, beside):
        files = [json.dumps(config, separators=(",", ":"))] + [
            beside.get(n, "")
            for n in (
                "modules.json",
                "1_Pooling/config.json",
                "tokenizer.json",
                "special_tokens_map.json",
                "vocab.txt",
                "index",
            )
        ]
        seed("hugging_face", name, bytes([choice]) + b"".join(map(piece, files)) + tensors(shapes))

    norm = lambda name: {name + ".weight": [2], name + ".bias": [2]}
    linear = lambda name, n, k: {name + ".weight": [n, k], name + ".bias": [n]}
    layer = "encoder.layer.0."
    bert = {
        "embeddings.word_embeddings.weight": [4, 2],
        "embeddings.position_embeddings.weight": [3, 2],
        "embeddings.token_type_embeddings.weight": [2, 2],
        **norm("embeddings.LayerNorm"),
        **linear(layer + "attention.self.query", 2, 2),
        **linear(layer + "attention.self.key", 2, 2),
        **linear(layer + "attention.self.value", 2, 2),
        **linear(layer + "attention.output.dense", 2, 2),
        **norm(layer + "attention.output.LayerNorm"),
        **linear(layer + "intermediate.dense", 3, 2),
        **linear(layer + "output.dense", 2, 3),
        **norm(layer + "output.LayerNorm"),
        "cls.bias": [1],
    }
    config = {
        "model_type": "bert",
        "vocab_size": 4,
        "hidden_size": 2,
        "num_attention_heads": 1,
        "num_hidden_layers": 1,
        "intermediate_size": 3,
        "max_position_embeddings": 3,
    }
    modules = json.dumps(
        [{"type": "Transformer", "path": ""}, {"type": "Pooling", "path": "1_Pooling"}, {"type": "Normalize"}]
    )
    folder(
        "sentence",
        1,
        config,
        bert,
        {
            "modules.json": modules,
            "1_Pooling/config.json": '{"pooling_mode_mean_tokens":true}',
            "vocab.txt": "a\n[SEP]\n",
        },
    )
    folder(
        "shard",
        3,
        config,
        bert,
        {
            "index": '{"weight_map":{"cls.bias":"a.safetensors"}}',
            "tokenizer.json": '{"added_tokens":[{"id":1,"content":"<s>"}]}',
            "special_tokens_map.json": '{"sep_token":{"content":"<s>"}}',
        },
    )
    gpt2 = {
        "wte.weight": [4, 2],
        "wpe.weight": [3, 2],
        **norm("h.0.ln_1"),
        "h.0.attn.c_attn.weight": [2, 6],
        "h.0.attn.c_attn.bias": [6],
        **linear("h.0.attn.c_proj", 2, 2),
        **norm("h.0.ln_2"),
        "h.0.mlp.c_fc.weight": [2, 3],
        "h.0.mlp.c_fc.bias": [3],
        "h.0.mlp.c_proj.weight": [3, 2],
        "h.0.mlp.c_proj.bias": [2],
        **norm("ln_f"),
        "lm_head.weight": [4, 2],
    }
    folder(
        "gpt2",
        1,
        {"model_type": "gpt2", "vocab_size": 4, "n_embd": 2, "n_head": 1, "n_layer": 1, "n_inner": 3, "n_positions": 3},
        gpt2,
        {},
    )


def fleet_seeds():
    """Answers of a fleet's server (protobuf of Flower), files of replies, records, JSON, objects, a whole round."""

    def field(number, value):
        size = len(value)
        length = bytes([size]) if size < 128 else bytes([size & 127 | 128, size >> 7])
        return bytes([number << 3 | 2]) + length + value

    def number(number, value):
        return bytes([number << 3, value])

    def real(number, value):
        return bytes([number << 3 | 1]) + struct.pack("<d", value)

    def item(key, value):
        return field(1, field(1, key) + field(2, value))

    def made(kind, child, body):
        content = f"{kind} {child} {len(body)}".encode() + b"\0" + body
        return content, hashlib.sha256(content).hexdigest()

    def message(identity, source, destination, reply_to=b""):
        ends = number(3, source) + number(4, destination) + (field(5, reply_to) if reply_to else b"")
        name = field(2, identity) if identity else b""
        return number(1, 77) + name + ends + real(7, 3600.0) + field(8, b"train") + real(9, 1.8e9)

    values = item(b"task", field(5, b"train")) + item(b"round", number(2, 14)) + item(b"weights", field(6, b"\0\xff"))
    record, record_id = made("ConfigRecord", "", values)
    names, names_id = made("RecordDict", record_id, json.dumps({"wisp": record_id}).encode())
    outer, outer_id = made("Message", names_id, field(1, message(b"", 1, 9)))
    below = field(1, names_id.encode()) + field(2, field(1, record_id.encode()))
    tree = field(1, outer_id.encode()) + field(2, below)
    request = field(1, message(outer_id.encode(), 1, 9)) + field(2, b"")
    answer = field(1, number(1, 5)) + field(2, request) + field(3, tree)
    reply, reply_id = made("Message", names_id, field(1, message(b"", 9, 1, outer_id.encode())))
    file = field(1, b"wisp fleet reply 1") + field(2, reply_id.encode())
    file += field(3, record) + field(3, names) + field(3, reply)
    plan = b'{"name": "caf\\u00e9 \\ud83d\\ude00", "rounds": 100, "z": -1.5e-3, "on": true}'

    def answered(body, status=0):
        return bytes([status]) + struct.pack("<H", len(body)) + body

    objects = [answered(number(1, 1) + number(2, 1) + field(3, content)) for content in (outer, record)]
    calls = answered(b"", 5) + answered(number(1, 9)) + answered(number(1, 9)) + answered(answer) + b"".join(objects)
    wanted = answered(b"") + answered(field(4, b"session")) + answered(number(1, 1))
    for choice, name, data in (
        (0, "answer", answer),
        (1, "reply", file),
        (2, "record", values),
        (3, "plan", plan),
        (4, "object", record),
        (4, "names", json.dumps({"wisp": "a" * 64}).encode()),
        (5, "round", b"\0" + calls + wanted),
        (5, "over", b"\1" + answered(number(1, 1)) + answered(b'{"code": 2007, "detail": "over"}', 4)),
    ):
        seed("fleet", name, bytes([choice]) + data)


with tempfile.TemporaryDirectory() as folder:
    binary_seeds(pathlib.Path(folder))
    database_seeds(pathlib.Path(folder))
    ledger_file_seeds(pathlib.Path(folder))
    tokenizer_seeds(pathlib.Path(folder))
ledger_seeds()
text_seeds()
folder_seeds()
fleet_seeds()
for target, name, calls in c_seeds.all_seeds():
    seed(target, name, calls)
print(sum(1 for _ in corpus.glob("*/seed-*")), "seeds,", sum(p.stat().st_size for p in corpus.glob("*/*")), "bytes")
