"""Faults of layers and heads: gates, rotary positions, norms of rows."""
from faults import table

GRADIENTS = "gradients_test:*Gradients.NormsOfBothFormsEqualDualNumbers*"
SPARSE = "sparse_test:*Sparse.MaskedGradientAndNormEqualDualNumbers*"
SCORES = "inference_test:SessionTest.ScoresEqualTheNaiveRecommender"
TEXTS = "text_batch_test:TextBatches.E*"
KEPT = "cached_keys_test:CachedKeys.*"
SHARED = "parts_test:Parts.OneRowIsSharedByColumnsAndHeads"


def blocks():
    return table("runtime/layers/residual_gate.cc", [
        ("gate-without-a-gradient-of-its-own", "ResidualGate::BackwardStream", "if (linear_)", "if (false && linear_)",
         GRADIENTS),
        ("gate-left-out", "ResidualGate::Forward", "if (!linear_) return;", "return;", SCORES),
    ]) + table("runtime/layers/attention.cc", [
        ("rotary-gradient-turned-further", "Attention::RotateBack", "kernels::Rotation::kInverse",
         "kernels::Rotation::kForward", GRADIENTS),
        ("rotary-forgets-what-has-passed", "Attention::Rotate", "turn.first_position = past;",
         "turn.first_position = 0;", "inference_test:SessionTest.ScoresDoNotDependOnTheHistoriesBefore"),
        ("wanted-queries-turned-as-the-first", "Attention::Rotate",
         "turn.first_position = past + p.first_query;",
         "turn.first_position = past;", SCORES),
        ("texts-that-grow-share-the-first-cache", "Attention::GetCache", "context.text_B[b].cache",
         "context.text_B[0].cache", TEXTS),
        ("new-keys-of-a-text-over-its-first", "Attention::KeepNewKeys", "context.past_of(b)", "0", TEXTS),
        ("heads-of-a-thread-read-the-first-keys", "Attention::Mix", ".From(heads.first,", ".From(0,", SHARED),
        ("heads-of-a-thread-keep-the-first-slopes", "Attention::Mix", "args.slope_H += query_head",
         "args.slope_H += 0", SHARED),
    ]) + table("runtime/text/text_batch.cc", [
        ("text-in-another-place-is-kept", "TextBatch::Kept", "places_[text.place].encoded",
         "places_[0].encoded", TEXTS),
    ]) + table("runtime/text/generate_batch.cc", [
        ("every-prompt-draws-alike", "Begin", "sampling.seed += prompt;", "",
         "generate_batch_test:GenerateTogetherTest.EachTextIsThatOfItsPromptAlone"),
    ]) + table("runtime/layers/linear.cc", [
        ("columns-of-a-thread-from-the-first-on", "Linear::Multiply", "weights.ops->packed_size(first, k_)",
         "size_t{0}", SHARED),
        ("wanted-queries-of-the-first-rows", "Linear::ForwardQueries", "x + rows.first * k_", "x", SCORES),
    ]) + table("runtime/layers/attention.cc", [
        ("rotary-of-queries-alone", "Attention::Rotate", "turn.heads = spec_.num_kv_heads;", "turn.heads = 0;", SCORES),
    ]) + table("kernels/simd/layer_norm.cc", [
        ("roots-of-the-first-rows-alone", "LayerNormForward", "*rstd = a.rstd_R + first", "*rstd = a.rstd_R",
         "norms_test:LayerNorm.ForwardEqualsReferenceInDouble"),
        ("rms-roots-of-the-first-rows-alone", "RmsNormForward", "a.epsilon, a.rstd_R + first", "a.epsilon, a.rstd_R",
         "norms_test:RmsNorm.ForwardEqualsReferenceInDouble"),
    ]) + table("kernels/simd/attention-inl.h", [
        ("a-floor-under-what-is-no-number", "Correct", "hn::IfThenElse(hn::Lt(x, lowest), lowest, x)",
         "hn::Max(x, lowest)",
         "attention_test:Attention.AQueryThatIsNotANumberStaysOne"),
    ]) + table("kernels/reference/attention.h", [
        ("kept-halves-of-values-for-keys", "KeepRows", "keys[to] = ToHalf(a.k[from])", "keys[to] = ToHalf(a.v[from])",
         KEPT),
        ("kept-floats-over-each-other", "KeepRows", "keys[a.kept.room * a.head_width + to] = a.v[from]",
         "keys[to] = a.v[from]", KEPT),
        ("kept-values-out-of-their-place", "KeepRows", "keys[a.kept.room * a.head_width + to] = ToHalf(a.v[from])",
         "keys[to] = ToHalf(a.v[from])", KEPT),
    ]) + table("kernels/simd/cached_keys.cc", [
        ("panel-of-kept-keys-written-whole", "KeepInPanel", "j < end", "j < kPanelWidth", KEPT),
        ("kept-values-from-the-first-row-on", "KeepHead", "(a.position + r) * width", "r * width", KEPT),
        ("kept-heads-over-the-first", "KeepKeys", "a.kept.From(h, a.head_width)", "a.kept.From(0, a.head_width)", KEPT),
    ]) + table("kernels/simd/attention.cc", [
        ("attention-hides-what-is-no-number", "Softmax", "sum[r] != 0 ? largest[r]", "sum[r] > 0 ? largest[r]",
         "attention_test:Attention.AQueryThatIsNotANumberStaysOne"),
    ]) + table("runtime/layers/norm.cc", [
        ("norm-gradient-of-both-kinds-alike", "NormLayer::Backward", "if (is_rms())", "if (false && is_rms())",
         GRADIENTS),
    ]) + table("runtime/layers/feed_forward.cc", [
        ("gated-halves-exchanged", "FeedForward::Activate", ".up_RF = before + inner_", ".up_RF = before", SCORES),
    ])


def cosine():
    return table("runtime/layers/next_item_head.cc", [
        ("cosine-table-gradient-without-its-norm", "NextItemHead::GetRowNorm",
         "if (weights.unit_gain() == nullptr) return {};", "return {};", GRADIENTS),
        ("cosine-gradient-through-the-table-as-it-is", "NextItemHead::BackwardRows",
         "if (weights.unit_gain() != nullptr)", "if (false)", GRADIENTS),
    ]) + table("runtime/layers/recommender.cc", [
        ("cosine-of-states-as-they-are", "Recommender::ForHead", "if (!is_cosine_) return h;", "return h;", SCORES),
    ]) + table("runtime/methods/sparse/sparse_gradients.cc", [
        ("cosine-rows-without-their-norm", "SparseGradients::NormBackward", ".rstd_R = f.row_norm.rstd_N + row",
         ".rstd_R = f.row_norm.rstd_N",
         SPARSE),
    ])


def windows():
    attention = "attention_test:Attention."
    return table("kernels/attention.h", [
        ("window-off-by-one", "AttendBegin", "behind - a.window", "behind - a.window - 1",
         "gradients_test:*Gradients.NormsOfBothFormsEqualDualNumbers*", "hugging_face_test:*mistral_window*"),
    ]) + table("kernels/simd/attention.cc", [
        ("window-not-in-the-sum", "Softmax", "Exponentials(p.at(r), begin,", "Exponentials(p.at(r), a.first_key,",
         attention + "ForwardEqualsReferenceInDouble"),
    ]) + table("kernels/simd/attention_backward.cc", [
        ("window-not-in-backward", "SoftmaxBackward", "Exponentials(row, begin,", "Exponentials(row, a.first_key,",
         attention + "BackwardEqualsReferenceInDouble"),
    ]) + table("tools/convert/hugging_face/config.cc", [
        ("window-in-every-block-of-qwen2", "IsSliding", "(*layers)[index] == kSliding;", "true;",
         "hugging_face_test:*qwen2_window*"),
    ]) + table("runtime/layers/classifier.cc", [
        ("relu-pooler-as-tanh", "Classifier::RepresentAll", "if (is_relu()) {", "if (false) {",
         "hugging_face_test:*distilbert_classes*"),
        ("relu-pooler-passes-every-gradient", "Classifier::Backward", "if (is_relu()) {", "if (false) {",
         "classifier_test:*"),
    ])


def formats():
    return table("runtime/model/container.cc", [
        ("newer-files-read-all-the-same", "CheckVersions", "header.oldest_reader > format.version", "false",
         "model_file_test:ModelFile.NewerFormatHasItsOwnMessage"),
    ]) + table("runtime/core/architecture.cc", [
        ("window-of-an-encoder-taken", "Validate", "block.attention.window > 0 && a.attend == Attend::kAll", "false",
         "model_metadata_test:ModelMetadata.BlocksOutOfRangeAreRefused"),
        ("variance-of-gates-taken-as-known", "CheckReAttention",
         'if (b.feed_forward.gated) what = "a gated feed-forward";', "",
         "model_metadata_test:ModelMetadata.BlocksOutOfRangeAreRefused"),
    ])


def towers():
    towers = "two_tower_test:TwoTowerTest."
    return table("runtime/layers/two_tower.cc", [
        ("tower-without-the-input-use-of-items", "", ".scale = factor.scale", ".scale = 0", GRADIENTS),
        ("tower-of-the-last-tile-alone", "",
         "factor.first_row == 0 ? kernels::Store::kAssign : kernels::Store::kAdd", "kernels::Store::kAssign",
         GRADIENTS),
        ("tower-takes-rows-of-the-record-before", "TwoTower::FactorRecords", "begin[b] = 2 * records.begin_B[b]",
         "begin[b] = records.begin_B[b]", "gradients_test:TwoTowers.*"),
    ]) + table("runtime/train/step_part.h", [
        ("item-rows-left-as-they-were", "Derive", "if (graph.derived(trained))", "if (false)",
         towers + "RowsFollowFromFeaturesAfterEachRun"),
    ]) + table("runtime/train/trainer.cc", [
        ("item-rows-not-packed-again", "Trainer::Changes", "fitted || follows ||", "fitted ||",
         towers + "OrdinaryTraining_FindsItemsOfNoRecord"),
    ]) + table("runtime/model/catalogue.cc", [
        ("new-rows-from-the-first-features", "RowsFromFeatures", "features[item * a.item_features + f]", "features[f]",
         "catalogue_test:CatalogueTest.NewItems_GetRowsFromTheirFeatures"),
    ]) + table("runtime/personalise/rebase.cc", [
        ("new-items-of-the-old-tower", "CarriedOver", "if (new_architecture.item_features > 0)", "if (false)",
         "rebase_test:RebaseTest.NewItems_GetRowsFromTheTowerThatWasLearned"),
    ])


def tables():
    return table("kernels/reference/reference.cc", [
        ("op-that-no-vectors-replace-is-left-out", "ReferenceTable", ".map = reference::Map<float>,",
         ".map = Replaced<kBesideVectors>(reference::Map<float>),", "tables_test:AllOps.EveryTableReplaces*"),
    ])


def faults():
    return blocks() + cosine() + windows() + formats() + towers() + tables()
