"""Faults of this folder's subject, for tests/mutants/run: name, function, expression, fault, tests that fail."""
from faults import table

FAULTS = [
    *table("kernels/simd/outer_tile.cc", [
        ("integers-beyond-32-bits", "FindRunEnd", "if (room < 0) break;", "",
         "integers_test:Integers.SumsAreExactAlsoBeyond32Bits"),
    ]),
    *table("kernels/reference/rows.h", [
        ("masks-of-the-first-record", "DrawKeep", "MakeOptions(a.options_B, b).dropout_seed",
         "MakeOptions(a.options_B, 0).dropout_seed",
         "batch_shapes_test:BatchShapes.RecommendersOfEveryKindTrainTheSame"),
    ]),
    *table("kernels/reference/heads.h", [
        ("weight-of-the-first-record", "SoftmaxStart", "MakeOptions(a.options_B, b).target_weight",
         "MakeOptions(a.options_B, 0).target_weight",
         "batch_shapes_test:BatchShapes.RecommendersOfEveryKindTrainTheSame"),
    ]),
    *table("kernels/reference/pack_panels.cc", [
        ("scales-beyond-halves", "PackBlock", "if (!IsFinite(scale)) return false;", "",
         "panels_test:Panels.ScalesBeyondFloat16_AreRefused"),
        ("weights-rounded-down", "PackBlock", "std::nearbyint(w[c] / step)", "std::floor(w[c] / step)",
         "panels_test:Panels.Weights_AreTheNearestAndConvertBack"),
    ]),
    *table("kernels/simd/gemm.cc", [
        ("panels-begin-at-their-first-row", "MultiplyPanels", "if (begin.n > 0) MultiplyPanelPart(begin);", "",
         "panels_test:Panels.FloatsAreMultipliedToTheBitAsIfTheyHadBeenPacked"),
        ("parts-of-a-panel-are-one", "MultiplyStrip", "block.first * kFloatPanelRows + part * kPanelWidth",
         "block.first * kFloatPanelRows", "panels_test:Panels.FloatsAreMultipliedToTheBitAsIfTheyHadBeenPacked"),
        ("strips-begin-within-a-panel", "MultiplyBlock", "IsDivided(p) ? kSubPanels : 1", "1",
         "panels_test:Panels.FloatsAreMultipliedToTheBitAsIfTheyHadBeenPacked"),
    ]),
    *table("kernels/simd/embedding.cc", [
        ("rows-of-panels-are-rounded-twice", "EmbedPanels",
         "a.table.bits != PanelBits::kThirtyTwo || a.half_positions_TD != nullptr", "true",
         "panels_test:Panels.EmbeddingEqualsItsFormulaToTheBit",
         "quantised_test:Quantised.PanelsOfFloatsGiveTheBitsOfTheFloatsAndAreNotCopied"),
    ]),
    *table("kernels/int8/quantise.cc", [
        ("offset-not-taken-back", "QuantiseBlocks", "row.start[block] = -IntegerOffset(weights) * sum;",
         "row.start[block] = 0;", "block_kernels_test:BlockKernels.EveryKernelEqualsPlainLoops"),
        ("blocks-of-no-numbers-are-zeros", "QuantiseBlocks", "std::numeric_limits<float>::quiet_NaN()", "0.0f",
         "block_kernels_test:BlockKernels.NonFiniteNumbers_GiveNansOnlyInTheirRow"),
    ]),
    *table("kernels/int8/blocks.cc", [
        ("later-columns-replace", "StoreSums", "a.store == kernels::Store::kAdd || !columns.is_first",
         "a.store == kernels::Store::kAdd", "block_kernels_test:BlockKernels.EveryKernelEqualsPlainLoops"),
    ]),
    *table("kernels/simd/layer_norm.cc", [
        ("roots-of-the-first-rows-alone", "LayerNormForward", "*rstd = a.rstd_R + first", "*rstd = a.rstd_R",
         "norms_test:LayerNorm.ForwardEqualsReferenceInDouble"),
        ("rms-roots-of-the-first-rows-alone", "RmsNormForward", "a.epsilon, a.rstd_R + first", "a.epsilon, a.rstd_R",
         "norms_test:RmsNorm.ForwardEqualsReferenceInDouble"),
    ]),
    *table("kernels/simd/attention-inl.h", [
        ("a-floor-under-what-is-no-number", "Correct", "hn::IfThenElse(hn::Lt(x, lowest), lowest, x)",
         "hn::Max(x, lowest)", "attention_test:Attention.AQueryThatIsNotANumberStaysOne"),
    ]),
    *table("kernels/reference/attention.h", [
        ("kept-halves-of-values-for-keys", "KeepRows", "keys[to] = ToHalf(a.k[from])",
         "keys[to] = ToHalf(a.v[from])", "cached_keys_test:CachedKeys.*"),
        ("kept-floats-over-each-other", "KeepRows", "keys[a.kept.room * a.head_width + to] = a.v[from]",
         "keys[to] = a.v[from]", "cached_keys_test:CachedKeys.*"),
        ("kept-values-out-of-their-place", "KeepRows", "keys[a.kept.room * a.head_width + to] = ToHalf(a.v[from])",
         "keys[to] = ToHalf(a.v[from])", "cached_keys_test:CachedKeys.*"),
    ]),
    *table("kernels/simd/cached_keys.cc", [
        ("panel-of-kept-keys-written-whole", "KeepInPanel", "j < end", "j < kPanelWidth",
         "cached_keys_test:CachedKeys.*"),
        ("kept-values-from-the-first-row-on", "KeepHead", "(a.position + r) * width", "r * width",
         "cached_keys_test:CachedKeys.*"),
        ("kept-heads-over-the-first", "KeepKeys", "a.kept.From(h, a.head_width)", "a.kept.From(0, a.head_width)",
         "cached_keys_test:CachedKeys.*"),
    ]),
    *table("kernels/simd/attention.cc", [
        ("attention-hides-what-is-no-number", "Softmax", "sum[r] != 0 ? largest[r]", "sum[r] > 0 ? largest[r]",
         "attention_test:Attention.AQueryThatIsNotANumberStaysOne"),
        ("window-not-in-the-sum", "Softmax", "Exponentials(p.at(r), begin,", "Exponentials(p.at(r), a.first_key,",
         "attention_test:Attention.ForwardEqualsReferenceInDouble"),
    ]),
    *table("kernels/attention.h", [
        ("window-off-by-one", "AttendBegin", "behind - a.window", "behind - a.window - 1",
         "gradients_test:*Gradients.NormsOfBothFormsEqualDualNumbers*", "hugging_face_test:*mistral_window*"),
    ]),
    *table("kernels/simd/attention_backward.cc", [
        ("window-not-in-backward", "SoftmaxBackward", "Exponentials(row, begin,", "Exponentials(row, a.first_key,",
         "attention_test:Attention.BackwardEqualsReferenceInDouble"),
    ]),
    *table("kernels/reference/reference.cc", [
        ("op-that-no-vectors-replace-is-left-out", "ReferenceTable", ".map = reference::Map<float>,",
         ".map = Replaced<kBesideVectors>(reference::Map<float>),", "tables_test:AllOps.EveryTableReplaces*"),
    ]),
    *table("kernels/host_memory.cc", [
        ("app-without-memory", "FromApp", "if (memory == nullptr) throw std::bad_alloc();", "",
         "c_embed_test:CEmbedTest.AnAllocatorWithoutMemoryIsAnErrorWheneverItEnds"),
        ("memory-not-given-back", "Release", "app.release(app.data, memory, bytes);", "(void)app; (void)bytes;",
         "c_embed_test:CEmbedTest.TakesLargeBuffersFromTheApp"),
    ]),
]
