#!/usr/bin/env python3
"""Small models of each family that `wisp convert` reads, with random weights, and what transformers computes with them.

    python3 -m venv VENV && VENV/bin/pip install torch transformers safetensors numpy
    VENV/bin/python tools/convert/goldens.py tests/golden/hugging_face        # every family, or those that are named
    VENV/bin/python tools/convert/goldens.py tests/golden/hugging_face gpt2 llama

A folder for each: config.json and model.safetensors as save_pretrained writes them, and expected.json: ids, and the
embedding, the scores of the classes, or those of the next token after the last position. The weights are those of the
file; the reference computes with them in double precision. For gpt2 and llama also a folder "gradient": losses.json has
the loss of each text as a language model is trained (the mean cross-entropy of the next token) and the length of its
gradient, and model.safetensors the gradient of the text with the number "of", under the names of the weights.
Made with torch 2.14.1 and transformers 5.24.0.
Exit code 77: a package is missing.
"""
import json
import os
import random
import shutil
import sys

try:
    import torch
    import transformers
    from safetensors.torch import save_file
except ImportError as error:
    print(f"goldens: {error.name} is not installed, nothing was made", file=sys.stderr)
    sys.exit(77)

VOCABULARY, WIDTH, POSITIONS = 60, 24, 20
SEPARATOR = 3
ENCODER = dict(vocab_size=VOCABULARY, hidden_size=WIDTH, num_attention_heads=3, num_hidden_layers=2,
               intermediate_size=40, max_position_embeddings=POSITIONS)
DECODER = dict(vocab_size=VOCABULARY, hidden_size=WIDTH, num_attention_heads=4, num_key_value_heads=2,
               num_hidden_layers=2, intermediate_size=32, max_position_embeddings=POSITIONS)


def randomise(model, seed):
    """Makes weights so large that every part of the model affects its output."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, p in model.named_parameters():
            noise = torch.randn(p.shape, generator=generator)
            is_gain = p.dim() == 1 and name.endswith("weight")
            p.copy_(1 + 0.2 * noise if is_gain else 0.2 * noise if p.dim() == 1 else 0.3 * noise)
    return model.eval()


def types_of(ids, config):
    """Tokens after the first separator belong to the second sentence."""
    if config.model_type not in ("bert", "electra"):
        return None
    types, kind = [], 0
    for token in ids:
        types.append(min(kind, config.type_vocab_size - 1))
        kind += token == SEPARATOR
    return types


def run(model, ids):
    given = dict(input_ids=torch.tensor([ids]))
    types = types_of(ids, model.config)
    if types is not None:
        given["token_type_ids"] = torch.tensor([types])
    with torch.no_grad():
        return model(**given)


def first(model, ids):
    return run(model, ids).last_hidden_state[0, 0]


def pooled(model, ids):
    return run(model, ids).pooler_output[0]


def mean_of_length_one(model, ids):
    mean = run(model, ids).last_hidden_state[0].mean(0)
    return mean / mean.norm()


def classes(model, ids):
    return run(model, ids).logits[0]


def next_token(model, ids):
    return run(model, ids).logits[0, -1]


def texts(two_sentences):
    rng = random.Random(7)
    words = lambda n: [rng.randrange(5, VOCABULARY) for _ in range(n)]
    one = [[2, *words(1), SEPARATOR], [2, *words(9), SEPARATOR], [2, *words(14), SEPARATOR]]
    two = [[2, *words(4), SEPARATOR, *words(5), SEPARATOR], [2, *words(1), SEPARATOR, *words(8), SEPARATOR]]
    return one + two if two_sentences else one + [words(1), words(POSITIONS - 2)]


def write_json(path, value):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as file:
        json.dump(value, file, indent=1)
        file.write("\n")


def write_vocabulary(folder):
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"] + [f"word{i}" for i in range(5, VOCABULARY)]
    with open(os.path.join(folder, "vocab.txt"), "w") as file:
        file.write("\n".join(words) + "\n")


def write_added_tokens(folder):
    write_json(os.path.join(folder, "special_tokens_map.json"), {"sep_token": {"content": "<end>", "lstrip": False}})
    write_json(os.path.join(folder, "tokenizer.json"), {"added_tokens": [{"id": SEPARATOR, "content": "<end>"}]})


def write_sentence_modules(folder):
    write_vocabulary(folder)
    types = "sentence_transformers.models."
    write_json(os.path.join(folder, "modules.json"),
               [{"idx": 0, "name": "0", "path": "", "type": types + "Transformer"},
                {"idx": 1, "name": "1", "path": "1_Pooling", "type": types + "Pooling"},
                {"idx": 2, "name": "2", "path": "2_Normalize", "type": types + "Normalize"}])
    write_json(os.path.join(folder, "1_Pooling", "config.json"),
               {"word_embedding_dimension": WIDTH, "pooling_mode_cls_token": False, "pooling_mode_mean_tokens": True})
    write_json(os.path.join(folder, "sentence_bert_config.json"), {"max_seq_length": 16, "do_lower_case": False})


def labels(*names):
    return dict(id2label=dict(enumerate(names)), label2id={name: i for i, name in enumerate(names)})


def families():
    """Maps a name to (model class, config, compared output, other files of the folder, type of the numbers)."""
    t = transformers
    roberta = dict(ENCODER, max_position_embeddings=POSITIONS + 2, pad_token_id=1, type_vocab_size=1)
    float32 = torch.float32
    rope = {"rope_type": "default", "rope_theta": 500.0}
    return {
        "bert": (t.BertModel, t.BertConfig(**ENCODER), pooled, write_added_tokens, float32),
        "sentence": (t.BertModel, t.BertConfig(**ENCODER, hidden_act="gelu_new"), mean_of_length_one,
                     write_sentence_modules, float32),
        "bert_classes": (t.BertForSequenceClassification, t.BertConfig(**ENCODER, **labels("bad", "fair", "good")),
                         classes, write_vocabulary, float32),
        "electra": (t.ElectraModel, t.ElectraConfig(**ENCODER, embedding_size=WIDTH), first, write_vocabulary,
                    torch.float16),
        "roberta": (t.RobertaModel, t.RobertaConfig(**roberta), pooled, None, float32),
        "roberta_classes": (t.RobertaForSequenceClassification, t.RobertaConfig(**roberta, **labels("no", "yes")),
                            classes, None, float32),
        "distilbert": (t.DistilBertModel,
                       t.DistilBertConfig(vocab_size=VOCABULARY, dim=WIDTH, n_heads=3, n_layers=2, hidden_dim=40,
                                          max_position_embeddings=POSITIONS), first, None, float32),
        "gpt2": (t.GPT2LMHeadModel,
                 t.GPT2Config(vocab_size=VOCABULARY, n_embd=WIDTH, n_head=3, n_layer=2, n_positions=POSITIONS),
                 next_token, None, float32),
        "llama": (t.LlamaForCausalLM, t.LlamaConfig(**DECODER, head_dim=8, rope_parameters=rope), next_token, None,
                  float32),
        "llama_tied": (t.LlamaForCausalLM, t.LlamaConfig(**DECODER, tie_word_embeddings=True), next_token, None,
                       torch.bfloat16),
        "qwen2": (t.Qwen2ForCausalLM, t.Qwen2Config(**DECODER, tie_word_embeddings=True), next_token, None, float32),
        "mistral": (t.MistralForCausalLM, t.MistralConfig(**DECODER, head_dim=6, sliding_window=None), next_token,
                    None, torch.bfloat16),
        "distilbert_classes": (t.DistilBertForSequenceClassification,
                               t.DistilBertConfig(vocab_size=VOCABULARY, dim=WIDTH, n_heads=3, n_layers=1,
                                                  hidden_dim=40, max_position_embeddings=POSITIONS,
                                                  **labels("bad", "good")), classes, None, float32),
        "mistral_window": (t.MistralForCausalLM,
                           t.MistralConfig(**DECODER, head_dim=6, sliding_window=5, attn_implementation="eager"),
                           next_token, None, float32),
        "qwen2_window": (t.Qwen2ForCausalLM,
                         t.Qwen2Config(**DECODER, use_sliding_window=True, sliding_window=4, max_window_layers=1,
                                       attn_implementation="eager"), next_token, None, float32),
    }


LANGUAGE = ("gpt2", "llama")


def loss_of(model, ids):
    """Returns the mean cross-entropy of each token but the first, which nothing predicts."""
    logits = model(input_ids=torch.tensor([ids[:-1]])).logits[0]
    return torch.nn.functional.cross_entropy(logits, torch.tensor(ids[1:]))


def write_gradients(model, folder, ids):
    cases, of = [], len(ids) - 1
    for i, one in enumerate(ids):
        model.zero_grad()
        loss = loss_of(model, one)
        loss.backward()
        gradients = {name: p.grad.float().contiguous() for name, p in model.named_parameters()}
        norm = sum(float(p.grad.square().sum()) for p in model.parameters()) ** 0.5
        cases.append({"ids": one, "loss": float(loss.detach()), "norm": norm})
        if i == of:
            os.makedirs(folder, exist_ok=True)
            save_file(gradients, os.path.join(folder, "model.safetensors"), metadata={"format": "pt"})
    model.config.save_pretrained(folder)
    write_json(os.path.join(folder, "losses.json"), {"of": of, "cases": cases})


def make(out, name, seed):
    model_class, config, compared, beside, number_type = families()[name]
    folder = os.path.join(out, name)
    shutil.rmtree(folder, ignore_errors=True)
    randomise(model_class(config), seed).to(number_type).save_pretrained(folder)
    for extra in ("generation_config.json",):
        if os.path.exists(os.path.join(folder, extra)):
            os.remove(os.path.join(folder, extra))
    if beside is not None:
        beside(folder)
    model = model_class.from_pretrained(folder, dtype=number_type).double().eval()
    ids = texts(config.model_type == "bert")
    cases = [{"ids": one, "expected": [float(x) for x in compared(model, one)]} for one in ids]
    write_json(os.path.join(folder, "expected.json"), {"what": compared.__name__, "cases": cases})
    if name in LANGUAGE:
        write_gradients(model, os.path.join(folder, "gradient"), [one for one in ids if len(one) > 1])
    return folder


def main():
    if len(sys.argv) < 2:
        print("goldens: which folder to write to is missing, as in tests/golden/hugging_face", file=sys.stderr)
        return 2
    names = sys.argv[2:] or list(families())
    unknown = [name for name in names if name not in families()]
    if unknown:
        print(f"goldens: {unknown[0]} is no family; allowed are {', '.join(families())}", file=sys.stderr)
        return 2
    for name in names:
        folder = make(sys.argv[1], name, seed=100 + list(families()).index(name))
        size = sum(os.path.getsize(os.path.join(root, f)) for root, _, files in os.walk(folder) for f in files)
        print(f"{folder}: {size} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
