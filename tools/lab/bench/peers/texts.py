"""A step of ordinary training of a sentence encoder with a head of classes, its table of tokens frozen: wisp beside
torch.

Both read the same labelled texts in batches of the same size. torch pads each batch to its longest text, as is usual;
once more with texts of like length together, so that it pads little. wisp pads nothing. That both compute the same
encoder is minilm_parity.py's business; the heads are drawn afresh.
"""
import csv
import json
import os
import time

import torch

from figures import over, shown, spread
from minilm import package_folder

WHAT = "texts"
STEPS = 4  # timed steps of an epoch; one more is not timed


class Classifier(torch.nn.Module):
    def __init__(self, folder):
        super().__init__()
        import transformers
        self.encoder = transformers.AutoModel.from_pretrained(folder)
        self.encoder.embeddings.word_embeddings.weight.requires_grad = False
        self.head = torch.nn.Linear(self.encoder.config.hidden_size, 2)

    def forward(self, batch):
        states = self.encoder(**batch).last_hidden_state
        mask = batch["attention_mask"].unsqueeze(-1)
        return self.head((states * mask).sum(1) / mask.sum(1))


class Torch:
    def __init__(self, folder, texts, labels, batch, sorts):
        import transformers
        transformers.utils.logging.disable_progress_bar()
        torch.manual_seed(1)
        self.model = Classifier(folder).eval()  # no dropout, as in wisp's recipe
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        self.optimizer = torch.optim.AdamW([p for p in self.model.parameters() if p.requires_grad], lr=1e-5)
        if sorts:
            texts, labels = zip(*sorted(zip(texts, labels, strict=True),
                                        key=lambda pair: len(self.tokenizer(pair[0])["input_ids"])),
                                strict=True)
        self.batches = [(list(texts[i:i + batch]), torch.tensor(labels[i:i + batch]))
                        for i in range(0, len(texts), batch)]
        self.step(0)

    def step(self, i):
        texts, labels = self.batches[i]
        batch = self.tokenizer(texts, padding=True, truncation=True, max_length=64, return_tensors="pt")
        self.optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(self.model(batch), labels)
        loss.backward()
        self.optimizer.step()

    def sample(self):
        begin = time.perf_counter()
        for i in range(STEPS):
            self.step(i)
        return (time.perf_counter() - begin) / STEPS


class WispTexts:
    def __init__(self, wisp, folder, encoder, texts, labels, batch, threads):
        self.wisp, self.folder, self.threads = wisp, folder, threads
        wisp.call("convert", encoder, "--out", self.file("encoder.wisp"))
        with open(self.file("texts.tsv"), "w", encoding="utf-8", newline="") as file:
            rows = csv.writer(file, delimiter="\t", lineterminator="\n", quoting=csv.QUOTE_NONE)
            rows.writerow(("sentence", "label"))
            rows.writerows(zip(texts, labels, strict=True))
        recipe = {
            "training": {
                "method": "ordinary", "trains": "blocks", "steps": 1, "expected_batch": batch,
                "num_records_public": len(texts), "seed": 1, "optimizer": {"kind": "adamw", "learning_rate": 1e-5}
            }, "data": {"classes": ["0", "1"]}
        }
        for steps in (1, 1 + STEPS):
            recipe["training"]["steps"] = steps
            with open(self.file(f"{steps}.json"), "w", encoding="utf-8") as file:
                json.dump(recipe, file)

    def file(self, name):
        return os.path.join(self.folder, name)

    def seconds(self, steps):
        begin = time.perf_counter()
        self.wisp.call("train", "--recipe", self.file(f"{steps}.json"),
                       "--model", self.file("encoder.wisp"), "--labelled", self.file("texts.tsv"), "--out",
                       self.file("out.wisp"), "--max-length", 64, "--threads", self.threads)
        return time.perf_counter() - begin

    def sample(self):
        """Returns the time of five steps less that of one."""
        return (self.seconds(1 + STEPS) - self.seconds(1)) / STEPS


def read(path, count):
    with open(path, encoding="utf-8") as file:
        rows = [line.rstrip("\n").split("\t") for line in file][1:count + 1]
    return [text for text, _ in rows], [int(label) for _, label in rows]


def run(report, wisp, a, folder):
    if not a.data:
        report.skip(WHAT, "torch", "there are no texts: --data FILE, with a header and text<TAB>label lines, is needed")
        return
    batch = a.batch or 256
    texts, labels = read(a.data, batch * STEPS)
    torch.set_num_threads(a.threads)
    try:
        encoder = a.encoder or package_folder()
        theirs = {
            name: Torch(encoder, texts, labels, batch, sorts)
            for name, sorts in (("torch", False), ("torch, by length", True))
        }
    except ImportError as error:
        report.skip(WHAT, "torch", f"a package is not installed ({error})")
        return
    ours = WispTexts(wisp, folder, encoder, texts, labels, batch, a.threads)
    report.title(
        f"Texts: a step of {batch}, the first {len(texts)} of {os.path.basename(a.data)}, {a.threads} thread(s), "
        f"{a.rounds} rounds"
    )
    sides = {"wisp": ours, **theirs}
    seconds = {name: [] for name in sides}
    for r in range(a.rounds):
        for name in list(sides)[::1 if r % 2 == 0 else -1]:
            seconds[name].append(sides[name].sample())
    report.row(WHAT, "wisp", {"step_s": spread(seconds["wisp"])}, shown(spread(seconds["wisp"]), " s"))
    for name in theirs:
        values = {"step_s": spread(seconds[name]), "over_wisp": over(seconds[name], seconds["wisp"])}
        report.row(WHAT, name, values, f"{shown(values['step_s'], ' s')}, {shown(values['over_wisp'])} times wisp")
