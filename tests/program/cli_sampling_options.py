"""The program's warnings about private sampling, and about options for it that mean nothing."""

import pytest
from program import entries, label, plain, run, says

pytestmark = pytest.mark.usefixtures("cafe")


one = f"wisp recommend --model plain.wisp --history tea-mint,bagel-lentil --private --public-dataset '{label}' --count"
sample = f"{one} 4"


def test_samples_that_depend_little_on_the_model():
    # Samples that depend little on the model, and options that mean nothing, in the words of the options.
    plain("plain.wisp")
    r = run(f"{sample} --ledger w.db --lambda 1e-3 --json", 0, "99.9 % of the samples are random.*--base")
    assert abs(r["privacy"]["random_share"] - 0.999) < 1e-12
    assert "w.db was charged and has no limit" in r.err, "a ledger without a limit is not spoken of"
    r = run(f"{sample} --ledger w.db --lambda 0.9 --budget 1e4 --delta 1e-6")
    assert says("^10 % of the samples are random", r.out) and not r.err, "mixed samples"
    anchored = f"{sample} --ledger w.db --base base.wisp"
    run(f"{anchored} --clip 0.1", 0, "follow the base model almost entirely")
    r = run("wisp privacy decoding --support 10000 --lambda 1e-4 --samples 100 --delta 1e-6 --json")
    assert r["random_share"] == 1 - 1e-4 and r["mode"] == "mixed"
    before = entries("w.db")
    planned = f"{sample} --ledger w.db --delta 1e-6"
    run(f"{planned} --epsilon 2 --planned-samples 3", 2, "--count is 4, but --planned-samples allows 3")
    run(f"{planned} --epsilon 2 --planned-samples 8 --block 9", 2, "--block is 9, but --planned-samples allows 8")
    run(f"{planned} --epsilon 2 --planned-samples 0", 2, "--planned-samples is 0")
    run(f"{planned} --epsilon 1000 --planned-samples 8", 2, "1e-06 to 100")
    run("wisp privacy decoding --calibrate --epsilon 1000 --samples 100 --delta 1e-6", 2, "1e-06 to 100")
    run(f"{one} 0 --ledger w.db --lambda 0.9", 2, "--count is 0")
    run("wisp recommend --model plain.wisp --history tea-mint --count 0", 2, "--count is 0")
    run(f"{sample} --ledger w.db --clip 0.5", 2, "--clip is of the mode anchored.*--lambda")
    run(f"{anchored} --lambda 0.5", 2, "--lambda is of the mode mixed")
    run(f"{sample} --ledger w.db --mode anchored --clip 0.5", 2, "--mode anchored needs --base")
    run(f"{sample} --ledger w.db --lambda 1.5", 2, "lambda is 1.5")
    run(f"{sample} --ledger w.db --lambda -1", 2, "lambda is -1")
    run(f"{sample} --ledger w.db --lambda 1", 4, "nothing is mixed in")
    run(f"{anchored} --public-dataset '{label}' --clip 0", 2, "clip is 0")
    run("wisp recommend --model plain.wisp --data log.db --user u00003 --history tea-mint",
        2, "one is allowed, 2 were given")
    run(f"{one} 1 --ledger w.db --lambda 0.9 --candidates tea-mint --exclude-seen", 0, "--allow-seen")
    run("wisp recommend --model plain.wisp --history tea-mint --candidates tea-mint --exclude-seen",
        0, "nothing is left")
    assert entries("w.db") == before, "a refused sample was charged"
    blanks = run("wisp recommend --model plain.wisp --history ' tea-mint , bagel-lentil' --json")
    r = run("wisp recommend --model plain.wisp --history tea-mint,bagel-lentil --json")
    assert r.out == blanks.out, "blanks around the items of a history change the answer"


def test_a_spent_budget_in_words():
    # One sample of epsilon 0.9 fits into 1, 4 do not.
    spent = "one costs epsilon 0.9 at delta 0, spent on this data is epsilon 0, the limit is epsilon 1 at delta 1e-06"
    run(f"{sample} --ledger words.db --epsilon-per-sample 0.9 --budget 1 --delta 1e-6",
        4, f"does not allow 4 samples: {spent}; 1 more would fit")
    run(f"{one} 1 --ledger words.db --epsilon-per-sample 0.9")
    run(f"{one} 1 --ledger words.db --epsilon-per-sample 0.9", 4, "no more sample fits: nothing was charged")
    assert entries("words.db") == 1, "a sample beyond the budget was charged"
