"""Faults of texts: what is kept of each in training, tokenizers, and models of other programs."""
from faults import table

CACHE = "pooled_cache_test:PooledCacheTest."
SAME_BITS = CACHE + "EveryMethodAndClassifierTrainsTheSameBits"
IDS = "text_golden_test:*Golden.IdsAreThoseOfTheReference*"
IN_LONG_WORDS = "tokenizer_image_test:Tokenizer.PairThatIsGoneIsNotMergedInALongWord"
IMAGE = "tokenizer_image_test:"
FAMILY = "hugging_face_test:*HuggingFaceFamily.ComputesWhatTransformersDoes*"
ENDS = "text_ends_test:TextEnds."
CONFIG = "hugging_face_config_test:"
GOES_ON = CACHE + "ResumedRun_HasTheSameBits"
MADE = CACHE + "OneIsMadeWhereItChangesNothingAndFits"


def pooled_cache():
    return table("runtime/train/pooled_cache.cc", [
        ("pooled-of-another", "PooledCache::Place", "record * width_", "0 * record * width_", SAME_BITS),
        ("pooled-each-time", "PooledCache::Want", "known_[record] = 1;", "", CACHE + "EachRecordPassesTheBlocksOnce"),
        ("pooled-with-dropout", "PooledCache::IsUsedFor", "Drops(o) ||", "", MADE),
        ("pooled-of-all-that-trains", "TrainsTheHeadAlone", "o.trained_part == TrainedPart::kHead", "true", MADE),
        ("pooled-above-the-ceiling", "PooledCache::IsUsedFor", "num_records <= o.cache_at_most",
         "num_records / 2 <= o.cache_at_most", MADE),
    ]) + table("runtime/train/trainer.cc", [
        ("pack-nothing-new", "Trainer::Changes", "trained_.contains(i)", "!trained_.contains(i)",
         "trainer_test:TrainerTest.*"),
        ("pack-without-the-fitted-head", "Trainer::Changes", "fitted ||", "",
         CACHE + "OneProcessTrainsWhatAProcessForEachStepDoes"),
    ]) + table("runtime/train/held_weights.cc", [
        ("pack-old-weights-after-a-checkpoint", "HeldWeights::Take", "packed_once_ = false;", "", GOES_ON),
    ]) + table("runtime/train/trainer_checkpoint.cc", [
        ("pooled-before-a-checkpoint", "Trainer::Restore", "if (context_.pooled) context_.pooled->Forget();", "",
         GOES_ON),
    ])


def tokenizers():
    return table("runtime/text/tokenizers/normalize.cc", [
        ("bert-marks-not-in-order", "Flush", "if (On(bert::kStripAccents)) OrderMarks(codes_);", "",
         IMAGE + "Tokenizer.MarksThatStayAreInOrder"),
        ("bert-lower-case-left-out", "Flush", "if (On(bert::kLower)) {", "if (false) {", IDS),
        ("bert-chinese-not-spaced", "Add", "On(bert::kSpaceChinese) && IsChinese(code)", "false", IDS),
        ("bert-accents-kept", "Flush", "Has(code, unicode::kNonspacing)", "false", IDS),
    ]) + table("runtime/text/tokenizers/normal_form.cc", [
        ("hangul-joins-what-is-no-final", "Composed", "if (second == kBeforeHangulFinals) return 0;", "",
         "text_unicode_test:NormalForms.AreThoseOfUnicode"),
    ]) + table("runtime/text/tokenizers/wordpiece.cc", [
        ("wordpiece-shortest-first", "AppendWordPiece", "longest = id;", "if (longest < 0) longest = id;", IDS),
        ("wordpiece-keeps-what-is-before-the-unknown", "AppendWordPiece", "ids.resize(before);", "", IDS),
    ]) + table("runtime/text/tokenizers/bpe.cc", [
        ("bpe-ranks-ignored", "MergeShort", "symbols[i].rank < symbols[best].rank", "symbols[best].rank == kNoRank",
         IDS),
        ("bpe-long-words-merge-stale-pairs", "MergeLong", "if (symbol.rank != top >> 32) continue;", "", IN_LONG_WORDS),
        ("bpe-unknown-not-fused", "Unknown", "if (!image_.Is(option::kFuseUnknown)) Flush();", "Flush();",
         IMAGE + "Tokenizer.UnknownCharactersSideBySideAreOneWhereTheyFuse"),
    ]) + table("runtime/text/tokenizers/unigram.cc", [
        ("unigram-last-of-equal-paths", "FindPaths", "candidate > node.score", "candidate >= node.score",
         IMAGE + "Tokenizer.UnigramTakesTheBestPathAndOfEqualOnesTheFirst"),
        ("unigram-unknown-piece-by-piece", "AppendUnigram", "if (!unknown) unknown_begin = begin;",
         "unknown_begin = begin;", IDS),
    ]) + table("runtime/text/tokenizers/decode.cc", [
        ("a-run-of-bytes-shown-as-one-fault", "ShowFaults", "for (size_t i = 0; i < run_.size(); ++i)", "",
         "decode_test:*"),
    ]) + table("runtime/text/generate.cc", [
        ("held-text-of-the-prompt-shown", "TextGrowth::Begin", "growth.stream_.Forget();", "",
         "text_growth_test:TextGrowth.*"),
    ]) + table("runtime/text/tokenizers/tokenizer.cc", [
        ("cut-behind-the-end", "Tokenizer::EncodeWithin", "behind = item < 0 ? 0 : behind + 1;", "behind = 0;",
         "c_text_test:*"),
        ("cache-of-another-tokenizer", "Tokenizer::FillTemplate", "scratch.cache.Clear();", "",
         IMAGE + "Tokenizer.ScratchGoesFromOneToAnother"),
        ("failed-text-leaves-ids", "Tokenizer::FillTemplate", "if (!status.ok()) ids.resize(before);", "",
         IMAGE + "Tokenizer.TextThatGrowsBeyondMeasureIsRefusedAndChangesNothing"),
    ])


def conversion():
    return table("tools/convert/hugging_face/tensors.cc", [
        ("positions-from-the-first-row", "Copy", "d.first_position", "0", FAMILY),
        ("matrices-not-transposed", "Copy", "if (match.how != How::kTransposed) return", "if (true) return", FAMILY),
        ("shape-not-looked-at", "CheckSource", "tensor.shape == needed", "tensor.shape.size() == needed.size()",
         CONFIG + "HuggingFaceTensors.WrongOnesAreRefusedByName"),
        ("numbers-that-are-not-finite", "ReadWeights",
         "WISP_RETURN_IF_ERROR(CheckFinite(folder, match.sources[i], values));", "",
         CONFIG + "HuggingFaceTensors.WrongOnesAreRefusedByName"),
    ]) + table("tools/convert/hugging_face/left_out.cc", [
        ("unknown-tensors-passed-over", "ReasonToLeaveOut", "if (ignored == nullptr) {",
         'if (ignored == nullptr) return std::string("unknown");\n  if (false) {',
         CONFIG + "HuggingFaceTensors.WrongOnesAreRefusedByName"),
        ("tensors-left-out-unread", "ReasonToLeaveOut", "if (Holds(folder, d, ignored->check, tensor, wrong))",
         "if (true)", CONFIG + "HuggingFaceTensors.ReasonsToLeaveOutAreChecked"),
    ]) + table("tools/convert/unread_keys.cc", [
        ("unknown-keys-passed-over", "SayUnread", "read.contains(key)", "true",
         "hugging_face_settings_test:HuggingFaceSettings.KeysThatNobodyKnowsAreSaid"),
    ]) + table("tools/convert/hugging_face/folder.cc", [
        ("other-output-of-a-tied-model-dropped", "UntieOther", "output = OutputTable::kUntied;", "",
         "hugging_face_test:HuggingFace.OutputOfTheFileIsUsedWhereItIsAnother"),
        ("missing-shard-not-noticed", "Folder::OpenShards",
         'if (!IsFile(At(name))) return InvalidData(index_path, ": it names the shard ", Shown(name), ", which is not '
         'there");', "",
         CONFIG + "HuggingFaceFolder.MissingOrForeignFiles_AreNamed"),
        ("shard-without-its-tensor", "Folder::OpenShards", "found == tensors_.end() ||", "found != tensors_.end() &&",
         CONFIG + "HuggingFaceFolder.MissingOrForeignFiles_AreNamed"),
        ("paths-that-lead-outside", "StaysWithin", "name[0] != '/' && name.find(\"..\") == std::string::npos", "true",
         CONFIG + "HuggingFaceFolder.MissingOrForeignFiles_AreNamed"),
    ]) + table("tools/convert/hugging_face/config.cc", [
        ("tied-table-said-untied", "ReadTied", "tied ? OutputTable::kTied", "false ? OutputTable::kTied", FAMILY),
        ("rotary-base-of-old-configs-alone", "ReadRotaryBase", "if (base != 0) return static_cast<float>(base);", "",
         FAMILY),
        ("scaled-rotary-positions-taken", "ReadRotaryBase", 'type != "default"', "false",
         CONFIG + "HuggingFaceConfig.UnsupportedSettings_AreRefusedByName"),
        ("roberta-counts-positions-from-its-padding", "ReadBert", '"pad_token_id", kMaxItems, 1) + 1',
         '"pad_token_id", kMaxItems, 1)',
         FAMILY),
    ]) + table("tools/convert/safetensors.cc", [
        ("bf16-as-f16", "SafeTensor::CopyTo", "BrainToFloat(bits)", "FloatOfHalf(bits)",
         "safetensors_test:SafeTensors.NarrowNumbers_AreConvertedExactly", FAMILY),
        ("half-exponent-off-by-one", "FloatOfHalf", "(exponent + 112)", "(exponent + 111)",
         "safetensors_test:SafeTensors.NarrowNumbers_AreConvertedExactly"),
    ])


def ends():
    return table("runtime/text/tokenizers/tokenizer.cc", [
        ("one-end-of-several", "Tokenizer::IsEnd",
         "std::find(image_.ends.begin(), image_.ends.end(), id) != image_.ends.end()", "false", ENDS + "*"),
    ]) + table("runtime/text/generate.cc", [
        ("prompts-closed-by-the-template", "PromptTokens", "SpecialTokens::kBefore", "SpecialTokens::kAdd",
         ENDS + "Prompt_ContinuesAfterAnEndOfItsOwn"),
    ]) + table("runtime/text/texts.cc", [
        ("chunks-closed-by-the-template", "AppendRecord", "text::SpecialTokens::kBefore", "text::SpecialTokens::kAdd",
         ENDS + "RecordsAreMarkedOnce"),
    ]) + table("tools/convert/tokenizer_settings.cc", [
        ("ends-of-the-tokenizer-alone", "AddId", "if (IsToken(token)) return Add(meaning, "
         "static_cast<int32_t>(token), file, id);", "if (IsToken(token)) return;",
         "tokenizer_settings_test:TokenizerMeanings.EndsComeFromEveryFileThatNamesThem"),
    ])


def recommenders():
    lists = "foreign_sasrec_test:ForeignSasrec."
    return table("tools/convert/foreign_sasrec.cc", [
        ("sasrec-not-scaled", "SasrecArchitecture", "a.embedding_scale = std::sqrt(static_cast<float>(a.width));", "",
         lists + "ListsAreThoseOfTheirEquations"),
        ("sasrec-of-an-old-version-taken", "CheckPaddingIsZero", "return v == 0;", "return v == v;",
         lists + "OtherTensorsAreRefusedByName"),
    ]) + table("runtime/data/labelled.cc", [
        ("names-that-are-numbers-taken-for-places", "MatchClass",
         "if (!NumbersArePlaces(classes)) return std::nullopt;", "",
         "labelled_test:Labelled.ClassesCalledByOtherNumbersAreNamedAlone"),
    ])


def faults():
    return pooled_cache() + tokenizers() + conversion() + ends() + recommenders()
