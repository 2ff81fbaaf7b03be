"""Times a decoder that continues a text: a prompt, then one token at a time; wisp beside llama.cpp, each with its
8-bit and 4-bit blocks.

The model is a folder of Hugging Face (--decoder), or a GPT-2 of 124M with random weights. Both sides read the same
tokens.
"""
import ctypes
import os
import pathlib
import sys
import time

import numpy

import sasrec_torch as peer
from figures import over, shown, spread

WHAT = "decoder"
TOKENS_IN_TURN = 16  # as in `wisp-lab bench --what decoder`
# wisp's format, llama.cpp's, and the least cosine of their scores. Both round integers, each in its own way.
PAIRS = {"floats": (None, "f32", 0.9999), "8-bit": ("--int8", "q8_0", 0.995), "4-bit": ("--int4", "q4_0", 0.9)}
CONVERT = pathlib.Path(__file__).resolve().parents[3] / "convert"


def random_folder(folder):
    import torch
    import transformers
    torch.manual_seed(1)
    path = os.path.join(folder, "gpt2")
    transformers.GPT2LMHeadModel(transformers.GPT2Config()).save_pretrained(path)
    return path


def cosine(a, b):
    return float(numpy.dot(a, b) / numpy.linalg.norm(a) / numpy.linalg.norm(b))


class Llama:
    """llama.cpp with a file: scores after a prompt, and after tokens one at a time."""

    def __init__(self, path, threads, positions):
        import llama_cpp as lib
        self.lib, self.threads = lib, threads
        self.quiet = lib.llama_log_callback(lambda *_: None)
        lib.llama_log_set(self.quiet, ctypes.c_void_p(0))
        lib.llama_backend_init()
        how = lib.llama_model_default_params()
        how.n_gpu_layers = 0
        self.model = lib.llama_model_load_from_file(path.encode(), how)
        if not self.model:
            raise ValueError(f"llama.cpp does not load {path}")
        how = lib.llama_context_default_params()
        how.n_ctx = how.n_batch = how.n_ubatch = positions
        how.n_threads = how.n_threads_batch = threads
        self.context = lib.llama_init_from_model(self.model, how)
        self.items = lib.llama_vocab_n_tokens(lib.llama_model_get_vocab(self.model))
        self.prompt_ms, self.token_ms = [], []

    def run(self, tokens):
        array = (self.lib.llama_token * len(tokens))(*tokens)
        if self.lib.llama_decode(self.context, self.lib.llama_batch_get_one(array, len(tokens))) != 0:
            raise ValueError("llama.cpp refused a batch")
        logits = self.lib.llama_get_logits_ith(self.context, -1)
        return numpy.ctypeslib.as_array(logits, (self.items,))

    def pass_through(self, tokens):
        """Returns the milliseconds of the prompt and of each token after it, and the last scores."""
        self.lib.llama_memory_clear(self.lib.llama_get_memory(self.context), True)
        begin = time.perf_counter()
        self.run(tokens[:-TOKENS_IN_TURN])
        middle = time.perf_counter()
        for token in tokens[-TOKENS_IN_TURN:]:
            scores = self.run([token])
        end = time.perf_counter()
        return 1e3 * (middle - begin), 1e3 * (end - middle) / TOKENS_IN_TURN, scores

    def sample(self, tokens):
        prompt, token, _ = self.pass_through(tokens)
        self.prompt_ms.append(prompt)
        self.token_ms.append(token)


def files(wisp, folder, source, packing, kind):
    """Makes one model for wisp and for llama.cpp."""
    import to_gguf
    ours, theirs = os.path.join(folder, "model.wisp"), os.path.join(folder, f"{kind}.gguf")
    if not os.path.exists(ours):
        wisp.call("convert", source, "--out", ours)
    if packing:
        packed = os.path.join(folder, f"{kind}.wisp")
        wisp.call("convert", ours, packing, "--out", packed)
        ours = packed
    to_gguf.write(pathlib.Path(source), pathlib.Path(theirs), kind)
    return ours, theirs


def compare(report, wisp, a, folder, source, name):
    packing, kind, least = PAIRS[name]
    ours, theirs = files(wisp, folder, source, packing, kind)
    written = os.path.join(folder, f"{kind}.safetensors")
    call = ("--what", "decoder", "--model", ours, "--threads", a.threads)
    wisp.bench(*call, "--repeats", 1, "--tensors", written)
    tensors, _ = peer.read_safetensors(written)
    tokens = [int(token) for token in tensors["tokens"]]
    llama = Llama(theirs, a.threads, len(tokens))
    # 1 minus the cosine, so that small means near.
    if not report.check(WHAT, f"llama.cpp {kind}", "1 - cosine of scores",
                        1 - cosine(llama.pass_through(tokens)[2], tensors["scores"].numpy()), 1 - least):
        return
    prompt_ms, token_ms, rates = [], [], []
    for r in range(a.rounds):
        for turn in ("wisp", "llama.cpp")[::1 if r % 2 == 0 else -1]:
            if turn == "llama.cpp":
                llama.sample(tokens)
                continue
            figures = wisp.bench(*call, "--repeats", 3)["decoder"]
            prompt_ms.append(figures["prompt_ms"]["median"])
            token_ms.append(figures["token_ms"]["median"])
            rates.append(figures["percent_of_read"])
    mine = {"prompt_ms": spread(prompt_ms), "token_ms": spread(token_ms), "percent_of_read": spread(rates)}
    report.row(
        WHAT, f"wisp, {name}", mine,
        f"prompt {shown(mine['prompt_ms'], ' ms')}, token {shown(mine['token_ms'], ' ms')}, weights at "
        f"{shown(mine['percent_of_read'])} % of the rate at which memory is read")
    values = {"prompt_ms": spread(llama.prompt_ms), "token_ms": spread(llama.token_ms),
              "prompt_over_wisp": over(llama.prompt_ms, prompt_ms), "token_over_wisp": over(llama.token_ms, token_ms)}
    report.row(
        WHAT, f"llama.cpp {kind}", values,
        f"prompt {shown(values['prompt_ms'], ' ms')}, {shown(values['prompt_over_wisp'])} times wisp; token "
        f"{shown(values['token_ms'], ' ms')}, {shown(values['token_over_wisp'])} times wisp")


def run(report, wisp, a, folder):
    sys.path.insert(0, str(CONVERT))
    try:
        import gguf  # noqa: F401  to_gguf needs it
        import llama_cpp  # noqa: F401
        source = a.decoder or random_folder(folder)
    except ImportError as error:
        report.skip(WHAT, "llama.cpp", f"it cannot be compared ({error.name} is not installed)")
        return
    report.title(
        f"Decoder: a prompt of 512 tokens, or of what the model has room for, then {TOKENS_IN_TURN} one at a time, "
        f"{a.threads} thread(s), "
        f"{a.rounds} rounds")
    for name in PAIRS:
        compare(report, wisp, a, folder, source, name)
