"""Faults of texts: what is kept of each in training, tokenizers, and models of other programs."""
from faults import table

CACHE = "pooled_cache_test:PooledCacheTest."
SAME_BITS = CACHE + "EveryMethodAndClassifierTrainsTheSameBits"
GOES_ON = CACHE + "ARunGoesOnFromACheckpointWithTheSameBits"
MADE = CACHE + "OneIsMadeWhereItChangesNothingAndFits"


def pooled_cache():
    return table("runtime/train/pooled_cache.cc", [
        ("pooled-of-another", "PooledCache::Place", "record * width_", "0 * record * width_", SAME_BITS),
        ("pooled-each-time", "PooledCache::Want", "known_[record] = 1;", "", CACHE + "EachRecordPassesTheBlocksOnce"),
        ("pooled-with-dropout", "PooledCache::IsOf", "Drops(o) ||", "", MADE),
        ("pooled-of-all-that-trains", "TrainsTheHeadAlone", "o.trained_part == TrainedPart::kHead", "true", MADE),
        ("pooled-above-the-ceiling", "PooledCache::IsOf", "num_records <= o.cache_at_most", "num_records / 2 <= o.cache_at_most", MADE),
    ]) + table("runtime/train/trainer.cc", [
        ("pack-nothing-new", "Trainer::KeepWhatChanges", "trained_.contains(i)", "!trained_.contains(i)",
         "trainer_test:TrainerTest.*"),
        ("pack-without-the-fitted-head", "Trainer::KeepWhatChanges", "fitted ||", "",
         CACHE + "OneProcessTrainsWhatAProcessForEachStepDoes"),
    ]) + table("runtime/train/trainer_checkpoint.cc", [
        ("pack-old-weights-after-a-checkpoint", "Trainer::Restore", "packed_once_ = false;", "", GOES_ON),
        ("pooled-before-a-checkpoint", "Trainer::Restore", "if (pooled_) pooled_->Forget();", "", GOES_ON),
    ])


def faults():
    return pooled_cache()
