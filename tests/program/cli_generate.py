"""The program's private text generation: charges and output, a spent budget, refusals, and that the ledger remembers
everything."""

import subprocess

from program import entries, exists, run, says, size, small_decoder, try_run, write

public = "--public-dataset 'public texts'"
plain = "wisp generate --private --model tuned.wisp --prompt Once"
generate = f"{plain} --max-tokens 6"
beside = f"--base base.wisp {public}"
anchored = f"{generate} {beside}"
target = "--epsilon 8 --delta 1e-6"


def test_a_decoder_and_one_that_learned_from_notes():

    small_decoder("decoder")
    run("wisp convert decoder --out base.wisp --dataset 'public texts'")
    run("wisp convert decoder --out tuned.wisp --dataset notes")
    write("notes.txt", "the tea is cold\n\na bagel, and another\r\n\udcff\udcfe\n")


def test_times_a_prompt_and_tokens():
    # Times a prompt and tokens, and checks their scores.
    r = run("lab bench --what decoder --model base.wisp --length 4 --threads 2 --repeats 1 --tensors scores.safetensors"
        " --json")
    assert r["decoder"]["prompt_tokens"] == 4 and r["decoder"]["token_ms"]["median"] > 0
    assert r["decoder"]["read_gb_per_s"] > 0
    assert size("scores.safetensors"), "bench --tensors wrote nothing"
    run("lab bench --what decoder", 2, "needs --model")
    run("lab bench --what decoder --model base.wisp --length 4000", 2, "are for tokens one at a time")


of_texts = "wisp generate --private --model base.wisp --prompt Once"
private_texts = f"{of_texts} --max-tokens 6 --private-texts notes.txt --contexts 4"


def test_these_are_refused_before_anything_is_charged():
    run(f"{anchored} --clip 1", 4, "needs a ledger")
    run(f"{anchored} --ledger n.db", 2, "exactly one of --clip (mode anchored)")
    run(f"{generate} --ledger n.db", 2, "exactly one of --lambda (mode mixed)")
    run(f"{generate} --base base.wisp --ledger n.db --clip 1",
        4, "base model must be public: .*not declared public (--public-dataset 'public texts')")
    run(f"{anchored} --ledger n.db --clip 1 --temperature 0", 4, "arg-max")
    run(f"{anchored} --ledger n.db --clip 1 --top-k 5", 4, "truncation by private scores")
    run(f"{anchored} --ledger n.db --clip 1 --repetition-penalty 1.2", 4, "--repetition-penalty with --private")
    run(f"{anchored} --ledger n.db --clip 1 --min-p 0.1", 4, "--min-p with --private")
    run(f"{anchored} --ledger n.db --clip 1 --support model:5", 4, "tell of the model's records")
    run(f"{anchored} --ledger n.db --clip 1 --support base:0", 2, "--support is 'base:0'")
    run(f"{anchored} --ledger n.db --clip 1 --backend int8", 2, "--backend is not for --private")
    run(f"{anchored} --ledger n.db --clip 1 --mode beam",
        2, "--mode is 'beam', allowed are mixed, mixed-with-base, anchored, aggregate")
    run("wisp generate --model tuned.wisp --prompt a --ledger n.db", 2)
    run(f"{of_texts} --max-tokens 6 --private-texts notes.txt --ledger n.db --clip 1", 2)
    aggregate = f"{private_texts} {public} --ledger n.db"
    run(aggregate,
        2, "exactly one of --clip (mode aggregate), --epsilon-per-sample and --epsilon (for --planned-samples together,"
           " at --delta) is needed$")
    run(f"{aggregate} --budget 8", 2, "is needed; --budget limits the ledger alone")
    run(f"{aggregate} --planned-samples 8", 2, "and --epsilon is not given")
    run(f"{aggregate} --lambda 0.5", 2, "--lambda is of the mode mixed; the mode here is aggregate, which has --clip")
    run(f"{aggregate} --mode mixed --lambda 0.5", 2, "--mode is mixed, but with --private-texts")
    run(f"{anchored} --ledger n.db --mode aggregate --clip 1",
        2, "--mode is aggregate, which needs --private-texts and --contexts")
    run(f"{aggregate} --base base.wisp --clip 1", 2, "--base does not go with --private-texts")
    run(f"{aggregate} --clip 1 --top-k 5", 4, "voids the mode aggregate")
    run(f"{aggregate} --clip 1 --seed 1", 4, "--seed with --private")
    run(f"wisp generate --private --model base.wisp {public} --contexts 4 --ledger n.db --epsilon 8 --private-texts"
        " notes.txt --prompt \udcff",
        3, "UTF-8")
    run(f"{private_texts} --ledger n.db --clip 1", 4, "the model itself must be public")
    contexts = f"{public} --contexts 4 --ledger n.db --clip 1"
    run(f"{of_texts} {contexts} --private-texts gone.txt", 3, "cannot read gone.txt")
    run(
        f"{of_texts} {contexts} --private-texts notes.txt --max-tokens 400", 2, "one at least is needed for a text"
    )
    long = "Once " * 400
    run(f"wisp generate --private --model base.wisp {public} --contexts 4 --ledger n.db --epsilon 8 --delta 1e-6"
        f" --private-texts notes.txt --prompt '{long}'",
        2, "positions")
    assert not exists("n.db"), "a refused text was charged, or made a ledger"


def test_a_target_for_this_text_alone_is_charged_to_its_end():
    # A target for this text alone is charged to its end, and then spent. The ledger remembers it.
    r = run(
        f"{anchored} --ledger n.db {target} --json",
        0,
        "warning: without --planned-samples this text may spend the whole limit of the ledger n.db, epsilon 8 at "
        "delta 1e-06",
    )
    assert r["privacy"]["mode"] == "anchored" and r["privacy"]["samples_charged"] == 6 and len(r["tokens"]) <= 6
    assert 7 < r["privacy"]["spent"] <= 8 and r["privacy"]["limit"]["epsilon"] == 8
    r = run(f"{anchored} --ledger n.db {target}", 4, "the budget has room for 0 tokens, and up to 6 are asked for")
    assert not r.out, "a text was shown without a budget"
    assert entries("n.db") == 1, "what was refused was charged"
    run(f"{private_texts} {public} --ledger n.db --dataset other --clip 1", 4, "is of the data set 'notes'")
    run(f"{private_texts} {public} --ledger n.db --clip 1",
        4, "is of the data set 'notes', and what is to be charged is 'notes.txt': .*--dataset 'notes'")


def test_a_line_of_a_file_is_less_than_everything_that_its_user_wrote():
    # Without a chosen unit, nobody is told that users are protected.
    r = run("wisp privacy --ledger n.db --delta 1e-6")
    assert "privacy unit: one interaction" in r.out, "a ledger of a decoder's records protects something else"
    run(f"{anchored} --ledger u.db {target} --unit user")
    run(f"{private_texts} {public} --ledger u.db --dataset notes --clip 1", 4, "protects one user")


deployment = f"{plain} {beside} --ledger l.db {target} --planned-samples 10 --max-tokens"


def test_a_deployment_over_several_texts():
    r = run(f"{deployment} 6")
    assert "without --planned-samples" not in r.err, "a planned number is asked for that was given"
    assert says("^Once", r.out), "the text does not begin with its prompt"
    assert "6 tokens charged to l.db" in r.err, "the cost is not said"
    assert "of 10 tokens planned, 4 are left" in r.err, "what is left is not said"


def test_without_deployment_the_tokens_have_another_cost():
    # Without --planned-samples the tokens have another cost, and the plan does not cover them.
    run(f"{plain} {beside} --ledger l.db {target} --max-tokens 4",
        4, "begun with a plan of 10 samples, of which 4 are left;.*--planned-samples 10")
    run(f"{deployment} 6", 4, "the budget has room for 4 tokens")
    r = run(f"{deployment} 1 --json")
    assert r["privacy"]["planned_samples"] == 10 and r["privacy"]["planned_left"] == 3
    run(f"{deployment} 4", 4, "the budget has room for 3 tokens, and up to 4 are asked for")
    run(f"{deployment} 1", 0, "1 token charged")
    run(f"{deployment} 1")
    run(f"{deployment} 2", 4, "the budget has room for 1 token, and up to 2 are asked for")
    run(f"{deployment} 1", 0, "of 10 tokens planned, 0 are left")
    run(f"{deployment} 1", 4, "all 10 planned tokens are used up and charged to l.db: nothing more was charged")


def test_the_output_says_how_much_the_samples_are_worth_before_they_come():
    first = try_run(f"{anchored} --ledger weak.db --clip 0.1", stderr=subprocess.STDOUT)
    assert first.code == 0 and "the clip is 0.1" in first.out.splitlines()[0]
    # The statement uses the limit's delta, a given one, or 1e-5, and names it.
    for case in ("n.db|1e-06|", "n.db|0.001|--delta 0.001", "weak.db|1e-05|"):
        ledger, delta, options = case.split("|")
        r = run(f"wisp privacy --ledger {ledger} {options}")
        assert says(f"^  epsilon of the data set, all runs: .*(delta {delta})", r.out)


def test_the_other_laws():
    r = run(f"{generate} --ledger m.db --lambda 0.9 --budget 100 --json")
    assert r["privacy"]["mode"] == "mixed" and r["privacy"]["random_share"] > 0.09
    r = run(f"{anchored} --mode mixed-with-base --ledger b.db --lambda 0.5 --support base:20 --json")
    assert r["privacy"]["mode"] == "mixed-with-base" and 5.2 < r["privacy"]["pure_epsilon_per_sample"] < 5.4
    run(f"{private_texts} {public} --ledger t.db --dataset notes --clip 2 --context-before 'Note: '", 0, "add nothing")
    r = run(f"{private_texts} {public} --ledger t.db --dataset notes --clip 2 --json")
    assert r["privacy"]["mode"] == "aggregate" and abs(r["privacy"]["pure_epsilon_per_sample"] - 1) < 1e-6
    assert "left_out" not in r.json


share = f"{of_texts} {public} --max-tokens 1 --private-texts notes.txt --dataset notes --clip 2"


def test_the_number_of_texts_is_private():
    # Warnings about it appear on this device, before the text, and refuse nothing.
    write("blank.txt", "\n \n")
    write("empty.txt", "")
    for none in ("blank.txt", "empty.txt"):
        few = f"{of_texts} {public} --max-tokens 1 --contexts 4 --private-texts {none} --dataset none --clip 2"
        first = try_run(f"{few} --ledger none.db", stderr=subprocess.STDOUT)
        assert first.code == 0, "an empty file of texts is refused"
        assert says(
            f"no line of {none} became a private text.*charged all the same (local only)", first.out.splitlines()[0]
        )
    assert entries("none.db") > 0, "a text of no private texts was not charged"
    run(f"{share} --ledger t5.db --contexts 5",
        0, "2 texts share 5 contexts: .*at most 2 / 5 of the clip.*(local only)")
    run(f"{share} --ledger t1.db --contexts 1", 0, "2 texts share 1 context: ")
    r = run(f"{share} --ledger t4.db --contexts 4")
    assert "share 4" not in r.err, "texts for half of the contexts are told of"


def test_the_statement_says_what_was_sampled():
    # The statement says what was sampled, from what, and what one record was. The weights were public, and this charge
    # protects none.
    r = run("wisp privacy --ledger t.db --delta 1e-6")
    for words in (
        "released: the tokens that were sampled",
        "one record is: one private text in a prompt: who wrote k of them is protected less",
        "not protected: the weights that private texts were given to",
        "not protected: whoever wrote several of the records",
    ):
        assert words in r.out, f"the statement of private texts does not say '{words}'"
    assert not says("items\\|weights as they are", r.out), "the statement of private texts speaks of items"


def test_sampling_is_free_from_public_weights():
    # Sampling is free from public weights, and from those with a guarantee.
    r = run(f"wisp generate --private --model base.wisp {public} --prompt Once --max-tokens 6 --json")
    assert r["privacy"]["free"]


decoding = "wisp privacy decoding --delta 1e-6 --json"


def test_plans():
    # The cost of tokens, the parameters for a target, and how many tokens it pays for.
    r = run(f"{decoding} --clip 2 --contexts 16 --samples 100")
    assert r["mode"] == "aggregate" and abs(r["pure_per_sample"] - 0.25) < 1e-6 and r["pld"] < 7
    assert abs(r["pure"] - 25) < 1e-6
    plan = r
    r = run(f"{decoding} --clip 2 --contexts 16 --epsilon 8")
    assert r["samples"] > 100 and 7.9 < min(r["pld"], r["rdp"]) <= 8
    r = run(f"{decoding} --calibrate --contexts 16 --epsilon {plan['pld']} --samples 100")
    assert abs(r["clip"] - 2) < 0.01 and r["clip"] <= 2.0001
    r = run(f"{decoding} --support 20 --lambda 0.5 --mixing-floor 0.1 --samples 1")
    assert r["mode"] == "mixed-with-base" and 5.2 < r["pure_per_sample"] < 5.4


def test_the_perplexity():
    # An unbounded epsilon gives the model, a tiny one the base or the uniform.
    write("dev.txt", "the tea is cold\na bagel for lunch\n")
    run("wisp train --model base.wisp --texts dev.txt --method ordinary --epochs 4 --batch 2 --out learned.wisp"
        " --threads 1")
    run("wisp convert decoder --out bare.wisp --no-tokenizer")
    perplexity = "lab perplexity --model learned.wisp --base base.wisp --texts dev.txt --samples 10"
    r = run(f"{perplexity} --epsilon 0.001 --epsilon 100 --json")
    p = {(law["mode"], law.get("composition"), law.get("epsilon")): law["perplexity"] for law in r["laws"]}
    assert r["not_private"] and r["tokens"] > 10 and len(p) == 10
    model, base = p["model", None, None], p["base", None, None]
    for composition in ("pure", "pld"):
        assert abs(p["mixed", composition, 0.001] - 450) < 0.1, p
        assert abs(p["anchored", composition, 0.001] / base - 1) < 1e-3, p
        assert abs(p["mixed", composition, 100] / model - 1) < 0.1, p  # epsilon 10 per token: a share of 0.02 is left
        assert abs(p["anchored", composition, 100] / model - 1) < 1e-3, p
    run("lab perplexity --model learned.wisp --base bare.wisp --texts dev.txt", 2, "other tokens than")
    run(f"{decoding} --clip 2", 2, "--samples is needed")
    run(f"{decoding} --clip 2 --mixing-floor 0.1 --samples 1", 2, "--mixing-floor goes with --support")
    run(f"{decoding} --clip 90 --epsilon 1", 4, "one sample costs more")
