"""Faults of the kernels of a GPU: barriers, tiles, sums. The op suite runs them under the emulator."""
from faults import table


def barriers():
    return table("kernels/cuda/stages/products.h", [
        ("product-reads-a-slice-too-early", "MultiplyTile", "__syncthreads(); if (first_k", "if (first_k",
         "cuda_gemm_test:*"),
        ("product-overwrites-a-slice-in-use", "MultiplyTile", "__syncthreads(); } WISP_UNROLL", "} WISP_UNROLL",
         "cuda_gemm_test:*"),
    ]) + table("kernels/cuda/stages/attention.h", [
        ("attention-overwrites-a-tile-in-use", "MultiplyRows",
         "__syncthreads(); // all have read the previous tile", "",
         "cuda_attention_test:*Forward*"),
        ("attention-overwrites-numbers-in-use", "Add", "__syncwarp(); // all lanes have read the previous numbers", "",
         "cuda_attention_test:*Forward*"),
    ]) + table("kernels/cuda/attention.cc", [
        ("attention-overwrites-deltas-in-use", "KeyGradients",
         "__syncthreads(); // all have read the previous deltas", "",
         "cuda_attention_test:*Backward*"),
    ]) + table("kernels/cuda/layer_norm.cc", [
        ("norm-sums-before-all-wrote", "NormParameterGradients", "__syncthreads();", "", "cuda_norms_test:*Backward*"),
    ]) + table("kernels/cuda/device_code.h", [
        ("block-sum-before-all-wrote", "BlockSum", "__syncthreads();", "", "cuda_ops_test:*"),
    ])


def places():
    return table("kernels/cuda/stages/products.h", [
        ("product-reads-a-column-too-many", "MultiplyTile", "k_of_a < p.k ?", "k_of_a <= p.k ?", "cuda_gemm_test:*"),
        ("product-writes-a-row-too-many", "MultiplyTile", "m < p.m && n < p.n) Finish", "m <= p.m && n < p.n) Finish",
         "cuda_gemm_test:*"),
        ("few-rows-drop-their-bias", "Finish", "p.bias != nullptr", "false", "cuda_gemm_test:*"),
        ("few-rows-drop-what-is-left-of-sixteen", "MultiplyElement", "for (; k < p.k; ++k) sum",
         "for (; k + 1 < p.k; ++k) sum", "cuda_gemm_test:*"),
        ("scores-of-the-last-tile-laid-out-as-of-others", "MakeTileProduct", ".ldb = count,", ".ldb = a.tile,",
         "cuda_scoring_test:ScoreTiles*"),
        ("scores-with-the-first-tiles-bias", "MakeTileProduct", "a.bias_N + first", "a.bias_N",
         "cuda_scoring_test:ScoreTiles*"),
    ]) + table("kernels/cuda/stages/tensor_products.h", [
        ("tensor-slice-overwritten-in-use", "MultiplyTensorTile",
         "MultiplySlices<Number>(a_slice, b_slice, sum); __syncthreads();",
         "MultiplySlices<Number>(a_slice, b_slice, sum);", "cuda_arithmetic_test:*"),
        ("tensor-slice-read-too-early", "MultiplyTensorTile", "b_next); __syncthreads(); if", "b_next); if",
         "cuda_arithmetic_test:*"),
        ("word-filled-from-beyond-the-row", "MakeWord", "inner < k ?", "inner <= k ?", "cuda_arithmetic_test:*"),
        ("scale-of-another-row", "FinishTensor", "GetRowScales()[row]", "GetRowScales()[0]",
         "cuda_arithmetic_test:*Integers*"),
        ("scale-of-tiny-rows-not-zero", "ComputeRowScale", "if (magnitude < kSmallest) return {0.0f, 0.0f};", "",
         "cuda_arithmetic_test:*Integers*"),
        ("last-piece-as-wide-as-the-others", "GetPiece", "left < t.piece_columns ? left : t.piece_columns",
         "t.piece_columns",
         "cuda_arithmetic_test:*Tiles*"),
    ]) + table("kernels/cuda/tensor.cc", [
        ("tf32-records-share-the-first-ones-rows", "MultiplyRecordsTf32", "p.b += begin * p.ldb;", "",
         "cuda_arithmetic_test:*Records*"),
        ("tf32-gradients-lose-their-scale", "LinearBackwardWeight", ".scale = a.scale", ".scale = 1.0f",
         "cuda_arithmetic_test:*Gradients*"),
        ("float16-offered-for-training", "FillNumber", "table.record_weight_gradients = nullptr;", "",
         "cuda_trainer_test:*Refuses*"),
    ]) + table("runtime/text/classifier_session.cc", [
        ("unknown-tokens-pass", "CheckTokens", "if (static_cast<uint32_t>(id) >= a.num_items)", "if (false)",
         "cuda_device_classifier_test:*Refused*"),
        ("a-class-from-a-failed-device", "ClassifierSession::Run",
         "WISP_RETURN_IF_ERROR(WaitForDevice(graph_.device()));",
         "(void)0;", "cuda_device_classifier_test:*Fails*"),
        ("a-class-of-no-number", "ClassifierSession::Run", "return finite ? OkStatus()", "return true ? OkStatus()",
         "cuda_device_classifier_test:*Float16Overflow*"),
        ("classifier-launches-one-by-one", "ClassifierSession::Run", "const Gathering gathering(memory);", "",
         "cuda_device_classifier_test:*OneLaunch*"),
        ("representations-not-clipped", "", "{.norm_bound = o.norm_bound}", "{.norm_bound = 0}",
         "cuda_device_classifier_test:*Clipped*"),
    ]) + table("kernels/cuda/stages/attention.h", [
        ("keys-of-the-wrong-head", "ComputeShare", "static_cast<unsigned>(KeyHead(a, head))", "head",
         "cuda_attention_test:*"),
        ("older-sums-not-shrunk", "AttendBlockQueries", "out.Scale(shrink);", "", "cuda_attention_test:*Forward*"),
        ("older-variances-shrunk-once", "AttendBlockQueries", "variance.Scale(shrink * shrink);",
         "variance.Scale(shrink);",
         "cuda_attention_test:*"),
    ]) + table("kernels/cuda/attention.cc", [
        ("queries-that-attend-left-out", "KeyGradients", "(first_key - past) / kWarp * kWarp",
         "(first_key - past + kWarps)",
         "cuda_attention_test:*Backward*"),
        ("a-held-logit-passes-gradient", "ComputeWeights", "logit.held ? 0.0f :", "", "cuda_attention_test:*"),
    ]) + table("kernels/cuda/scatter.h", [
        ("first-row-of-an-id-not-added", "AddRowsById", "other = t; other", "other = t + 1; other", "cuda_ops_test:*"),
    ]) + table("kernels/cuda/records.h", [
        ("records-of-later-launches-begin-anew", "ForRecords", "segments.begin_B[first + i]", "segments.begin_B[i]",
         "cuda_rows_test:*"),
    ])


def sums():
    return table("kernels/cuda/reduce.cc", [
        ("grid-ignores-the-sign", "AccumulateOnGrid", "a.sign * static_cast", "static_cast", "cuda_ops_test:*"),
        ("grid-cuts-off", "AccumulateOnGrid", "__float2int_rn(__fmul_rn(a.x[i], a.scale))",
         "static_cast<int>(a.x[i] * a.scale)",
         "cuda_ops_test:*"),
        ("last-part-of-a-sum-dropped", "Sum", "i < blocks; ++i) sum", "i + 1 < blocks; ++i) sum", "cuda_ops_test:*"),
    ]) + table("kernels/cuda/layer_norm.cc", [
        ("last-warp-of-a-column-dropped", "NormParameterGradients", "w < kWarps; ++w", "w < kWarps - 1; ++w",
         "cuda_norms_test:*Backward*"),
    ]) + table("kernels/cuda/softmax.cc", [
        ("older-exponentials-not-shrunk", "UpdateStats", "a.sum_R[r] * expf(before - largest) + sum",
         "a.sum_R[r] + sum",
         "cuda_softmax_test:*"),
    ])


def formed():
    return table("kernels/cuda/formed.cc", [
        ("grid-rows-ignore-the-sign", "AddRowsOnGrid", "a.sign * total[j]", "total[j]",
         "cuda_formed_test:*RowsOnTheGrid*"),
        ("squares-of-the-last-warp-dropped", "LeaveParts", "w < kWarps; ++w", "w + 1 < kWarps; ++w",
         "cuda_formed_test:*"),
        ("rows-into-the-first-records-table", "AddRecordRows", " + size_t{records.first + blockIdx.y} * a.stride",
         "", "cuda_formed_test:*Scattered*"),
        ("rows-of-later-launches-begin-anew", "AccumulateRowsOnGrid", "share.x_BN += first * a.ldx;", "",
         "cuda_formed_test:*RowsOnTheGrid*"),
    ]) + table("kernels/cuda/gemm.cc", [
        ("gradients-of-the-first-records-rows", "MultiplyRecords", "p.a += begin * p.lda;", "",
         "cuda_formed_test:*WeightGradients*"),
    ]) + table("runtime/layers/weights.cc", [
        ("squares-packed-for-more-rows", "SquaredRows", "p.block + 1 == a.blocks.size()", "false",
         "cuda_graph_test:*Recommender*"),
    ]) + table("runtime/layers/packed_weights.cc", [
        ("variances-never-read", "PackedWeights::Pack", "if (part == 0) ReadVariances();", "",
         "cuda_graph_test:*Recommender*"),
    ])


def steps():
    """A private step on a device: the bound of a record, the release, and that nothing of it is left out."""
    sums, runs, failure = "cuda_formed_gradients_test:*", "cuda_trainer_test:*", "cuda_device_failure_test:*"
    slots = "cuda_record_rows_test:*"
    return table("runtime/gradients/record_rows.cc", [
        ("gradients-of-the-last-batch-kept", "RecordRows::Begin", "ops_->clear", "if (false) ops_->clear",
         runs + "Private*"),
        ("records-above-their-bound-stay", "RecordRows::Finish", "TakeBack(slots);", "", sums + "AboveItsBound*"),
        ("all-taken-back-with-one", "RecordRows::TakeBack", "steps_B_[b] = 0;", "", sums + "AboveItsBound*"),
        ("squares-of-part-of-a-row", "RecordRows::Finish", ".n = row_size_, .squares_B",
         ".n = row_size_ - 16, .squares_B", sums),
        ("row-norm-of-the-first-record", "FormNormedRows", "own.dy_RN += f.records.begin(b) * f.lddy;", "",
         sums + "Sums*"),
        ("slots-do-not-count-for-the-bound", "RecordRows::Add", "squares_B_[b] += slot_squares_B_[b]",
         "squares_B_[b] += 0", slots),
        ("slots-are-not-taken-back", "RecordRows::Add", "if (slots.slots == 0) return;",
         "if (slots.slots == 0 || sign < 0) return;", slots),
        ("what-has-slots-is-added-twice", "RecordRows::Add", "row_size_ - slots.slots * slots.d", "row_size_", slots),
        ("norms-without-slots", "RecordRows::Finish", ".n = row_size_, .squares_B",
         ".n = row_size_ - slots.slots * slots.d, .squares_B", slots),
    ]) + table("runtime/gradients/gradient_sum.cc", [
        ("rows-taken-back-are-added-again", "GridGradientSum::AddRows", ".sign = sign", ".sign = 1",
         sums + "AboveItsBound*"),
    ]) + table("runtime/gradients/sum_gradients.cc", [
        ("vectors-of-one-record", "SumGradients::Vector", ".rows = num_records_", ".rows = 1", runs + "Ordinary*"),
    ]) + table("runtime/train/step_sum.cc", [
        ("a-device-step-without-noise", "StepSum::DrawAhead", "noise_->Add(step_, *grid_, first, {drawn, n}, noise);",
         "(void)noise;", runs + "Private*"),
        ("noise-of-the-last-step", "StepSum::Send", "device_.memory",
         "if (ahead_->drawn[0] == static_cast<int64_t>(size_)) device_.memory", runs + "Private*"),
        ("noise-of-part-of-the-sum", "StepSum::Send", "size_ * sizeof(int64_t)", "size_ / 2 * sizeof(int64_t)",
         "cuda_methods_test:*StepsAre*"),
    ]) + table("runtime/train/sum_method.cc", [
        ("one-workers-noise-for-all", "SumMethod::DrawNoise", "ForEachPiece(worker,", "ForEachPiece(0,",
         runs + "Private*"),
        ("parameters-all-get-the-first-gradient", "FlatMethod::ApplyAll", "gradient + trained_->offset(i)", "gradient",
         runs + "Private*"),
    ]) + table("runtime/train/gradient_step.cc", [
        ("noise-that-did-not-arrive", "GradientStep::Run",
         'WISP_RETURN_IF_ERROR(c.weights.WaitForDevice("the noise of a step was added"));', "", failure),
    ]) + table("runtime/train/trainer.cc", [
        ("a-failed-device-is-asked-again", "Trainer::Step", "WISP_RETURN_IF_ERROR(CheckDevice());", "", failure),
    ]) + table("runtime/train/held_weights.cc", [
        ("weights-without-variances", "HeldWeights::ChangeOnHost", "change(on_host_);", "", runs + "ReAttention*"),
    ]) + table("runtime/train/trainer_checkpoint.cc", [
        ("a-checkpoint-of-a-failed-device", "Trainer::Save",
         'WISP_RETURN_IF_ERROR(weights_.WaitForDevice("a checkpoint was made"));', "", failure),
    ]) + table("runtime/train/run/job.cc", [
        ("a-model-of-a-failed-device", "Run", "WISP_RETURN_IF_ERROR(AddChargeNote(trainer_->CheckDevice()));", "",
         failure),
    ]) + table("runtime/methods/re_attention/noise_variance.cc", [
        ("all-rows-as-one", "NoiseVariance::AddOnDevice", "s.item_rows ? of.rows.size() : p.rows", "1",
         runs + "ReAttention*"),
    ]) + table("runtime/train/check_options.cc", [
        ("gram-norms-asked-of-a-device", "ValidateDevice",
         "if (o.privacy.norm_form == NormForm::kGram || o.privacy.norm_form == NormForm::kIntegers)", "if (false)",
         runs + "Refuses*"),
    ]) + table("kernels/cuda/step.cc", [
        ("noise-left-out-of-the-sum", "NoisedSum", "a.sum[i] + a.noise[i]", "a.sum[i]", "cuda_step_test:*"),
        ("moves-not-averaged", "AddRowMoves", "(sum / static_cast<double>(a.n))", "sum", "cuda_step_test:*"),
    ]) + table("runtime/layers/next_item_head.cc", [
        ("bias-gradients-beyond-their-room", "NextItemHead::Emit", "(keeps_dbias_ ?", "(max_records_ > 1 ?",
         "cuda_graph_test:*Catalogue*"),
    ])


def methods():
    """RGP, rows of a table and DP-FP on a device."""
    runs, dp_fp = "cuda_methods_test:*", "cuda_dp_fp_test:*"
    same, company, planned = runs + "StepsAre*", runs + "Company*", runs + "Hold*"
    return table("kernels/cuda/formed.cc", [
        ("slots-ignore-the-sign", "AddSlotsOnGrid", "a.sign * static_cast<int64_t>(steps)", "steps",
         "cuda_formed_test:*Slots*"),
        ("slots-of-the-first-record", "AddSlotsOnGrid", "a.slot_BJ[b * a.slots + e / a.d]", "a.slot_BJ[e / a.d]",
         "cuda_formed_test:*Slots*"),
        ("rows-without-a-slot-go-to-the-first", "AddSlotsOnGrid", "if (slot < 0) continue;", "",
         "cuda_formed_test:*Slots*"),
        ("slots-of-later-launches-begin-anew", "AccumulateSlotsOnGrid", "share.slot_BJ += first * a.slots;", "",
         "cuda_formed_test:*Slots*"),
    ]) + table("kernels/cuda/optimizer.cc", [
        ("rows-stepped-from-the-first-on", "Of", "size_t{a.row_J[i / a.d]} * a.d + i % a.d", "i",
         "cuda_step_test:*Named*"),
    ]) + table("kernels/cuda/step.cc", [
        ("moves-of-the-first-rows", "AddRowMoves", "a.row_R == nullptr ? i : a.row_R[i]", "i",
         "cuda_step_test:*Named*"),
    ]) + table("runtime/methods/rgp/rgp_batch_gradients.cc", [
        ("blocks-of-the-head-replace-each-other", "RgpBatchGradients::ProjectOuter",
         "head_open_ ? Store::kAdd : Store::kAssign", "Store::kAssign", runs + "Larger*"),
        ("the-last-head-is-left-open", "RgpBatchGradients::FinishRecords", "if (head_open_) FinishHead();", "",
         runs + "Groups*"),
        ("inputs-without-their-right-side", "RgpBatchGradients::ProjectRows", "FormRecordOuters(*ops_, right,",
         "if (false) FormRecordOuters(*ops_, right,", same),
        ("one-records-scale-of-inputs", "RgpBatchGradients::ProjectRows", ".scale = f.scale", ".scale = 1.0f", same),
    ]) + table("runtime/methods/rgp/rgp_carriers.cc", [
        ("right-carriers-stay-on-the-host", "RgpCarriers::CopyToDevice", "copy(right_[parameter], made.right);", "",
         same),
        ("transposed-carriers-stay-on-the-host", "RgpCarriers::CopyToDevice",
         "copy(right_transposed_[parameter], made.right_transposed);", "", same),
    ]) + table("runtime/methods/sparse/sparse_batch_gradients.cc", [
        ("rows-outside-of-the-set-train", "SparseBatchGradients::GetRow", "item < 0 ? -1 : set_->slot(item)",
         "item < 0 ? -1 : std::max(0, set_->slot(item))", same),
        ("one-records-own-rows-for-the-next", "SparseBatchGradients::FormOwnRows",
         "place_of_slot_[static_cast<size_t>(slot)] = -1;", ";", same),
        ("own-rows-of-the-first-record", "SparseBatchGradients::GetRow",
         "b * OwnRows(setup_) + static_cast<size_t>(place)", "static_cast<size_t>(place)", same),
        ("targets-scattered-as-inputs", "SparseBatchGradients::Rows", "f.of_targets ? targets_.data() : inputs_.data()",
         "inputs_.data()", same),
        ("columns-of-the-first-rows-of-a-set", "SparseBatchGradients::RestrictToSet", "set_rows_.data() + first",
         "set_rows_.data()", runs + "Larger*"),
    ]) + table("runtime/methods/sparse/sparse_method.cc", [
        ("rows-of-a-set-without-noise", "ForEachPiece", "i < end; ++i", "i < end && i == end; ++i", same),
        ("noise-in-the-order-of-the-sum", "ForEachPiece", "layout_.slot(static_cast<size_t>(rows_.slot(rows[i])))",
         "layout_.slot(i)", same),
        ("a-set-that-the-device-was-not-told", "SetRows", "on_device_->BeginStep();", ";", same),
    ]) + table("runtime/methods/rgp/rgp_method.cc", [
        ("a-release-that-is-not-prepared", "Update", "carriers_.Prepare({released, carriers_.release_size()});", "",
         same),
    ]) + table("runtime/methods/dp_fp/head_pass.cc", [
        ("a-head-that-stays-on-the-host", "HeadPass::Fit", "copy(ParameterRole::kClassBias, bias_);", "",
         dp_fp + "StepsAre*"),
    ]) + table("runtime/methods/dp_fp/dp_fp_method.cc", [
        ("paper-noise-that-stays-on-the-host", "PaperNoise::Input", "memory_.copy_in(", "if (false) memory_.copy_in(",
         dp_fp + "StepsAre*"),
    ]) + table("runtime/train/negative_sampler.cc", [
        ("negatives-of-the-last-step", "NegativeSampler::Draw", "graph_->device().memory.copy_in(",
         "if (step == 0) graph_->device().memory.copy_in(", same),
        ("negatives-without-their-weight", "NegativeSampler::NegativeSampler", "graph.device().memory.copy_in(",
         "if (false) graph.device().memory.copy_in(", "sparse_test:*Sampler*"),
    ]) + table("runtime/methods/re_attention/noise_variance.cc", [
        ("no-rows-are-all-rows", "NoiseVariance::Add", "s.item_rows ? s.item_rows->rows.size() : p.rows",
         "s.item_rows && !s.item_rows->rows.empty() ? s.item_rows->rows.size() : p.rows", "re_attention_test:*NoStep*"),
        ("moves-of-rows-that-stayed", "NoiseVariance::AddOnDevice", "variance, of.on_device", "variance, nullptr",
         runs + "Optimizers*"),
    ])


def memory():
    """The memory in which a GPU's buffers lie, the host's access to shared memory, and the counts of a roofline."""
    kinds = "cuda_memory_kinds_test:*"
    return table("kernels/cuda/memory_kinds.h", [
        ("managed-behind-a-bus", "ChooseMemory", "facts.integrated && facts.managed", "facts.managed", kinds),
        ("shared-memory-is-of-no-stream", "ChooseMemory", "!facts.concurrent", "false", kinds),
    ]) + table("kernels/cuda/shared_memory.h", [
        ("the-host-copies-while-a-kernel-runs", "CopyByHost", "if (!Wait()) return false;", "", kinds),
        ("a-sum-in-a-dump", "ExcludeFromDumps", "MADV_DONTDUMP);", "MADV_NORMAL);", kinds),
    ]) + table("tools/lab/roofline/op_cost.cc", [
        ("keys-to-come-are-attended", "AddRecord", "end - std::min(first_key, end)", "num_keys", "cli_roofline.py"),
    ]) + table("tools/lab/roofline/rooflines.cc", [
        ("the-shorter-of-memory-and-arithmetic", "Roofline::ComputeSeconds", "std::max(memory,", "std::min(memory,",
         "cli_roofline.py"),
    ])


def programs():
    program, batch, session = "cuda_program_test:*", "cuda_device_batch_test:*", "cuda_device_session_test:*"
    return table("kernels/cuda/program.cc", [
        ("stages-without-a-barrier-of-the-grid", "RunProgram", "GridBarrier();", "__syncthreads();", program),
        ("no-barrier-between-narrow-and-wide", "RunProgram", "narrow && narrow_before)", "(narrow || narrow_before))",
         program),
        ("no-barrier-between-narrow-stages", "RunProgram", "{ __syncthreads(); } else if (at > 0)",
         "{ } else if (at > 0)", program),
        ("every-block-does-narrow-stages", "RunProgram", "narrow && blockIdx.x > 0 ? head.blocks : blockIdx.x",
         "narrow ? 0 : blockIdx.x",
         program),
        ("a-program-runs-again", "FlushProgram", "recorder.program.used = 0;", "", program),
        ("copies-overtake-a-program-on-the-way-in", "CopyInWithProgram", "FlushProgram(); return false;",
         "return false;", program),
        ("copies-overtake-a-program-on-the-way-out", "CopyOutWithProgram", "FlushProgram(); return false;",
         "return false;", program),
        ("a-full-program-is-written-beyond", "RoomFor", "if (!recorder.HasRoom(head.size)) FlushProgram();", "",
         program),
        ("nothing-is-put-together", "Gather", "launches == Launches::kTogether", "false", program + "IsOneLaunch"),
    ]) + table("kernels/cuda/stages/top_k.h", [
        ("minus-zero-is-below-zero", "MakeKey", "score + 0.0f", "score", "cuda_scoring_test:TopK*"),
        ("equal-scores-by-the-larger-column", "MakeKey", "| ~column", "| (column + 1)", "cuda_scoring_test:TopK*"),
        ("a-score-that-is-no-number-left-out-unsaid", "FirstKey", "strange = true;", "", "cuda_scoring_test:TopK*"),
        ("what-is-excluded-is-offered", "FirstKey", "(column % 32) & 1) != 0) return 0;",
         "(column % 32) & 1) != 0 && column > 40) return 0;",
         "cuda_scoring_test:TopK*"),
        ("later-steps-forget-what-is-no-number", "RunList", "(a.k + 1)] != 0) strange = true;",
         "(a.k + 1)] > 1) strange = true;",
         "cuda_scoring_test:TopK.ManyScores"),
        ("a-list-is-left-out", "LaterKey", "i / a.k >= a.of_one ||", "i / a.k + 1 >= a.of_one ||",
         "cuda_scoring_test:TopK.ManyScores"),
    ]) + table("runtime/inference/session.cc", [
        ("damaged-weights-recommend-on-a-device", "Session::RecommendOnDevice",
         "if (!best->all_finite) return NotFinite();", "", session),
    ]) + table("runtime/device/device_scores.cc", [
        ("a-list-of-a-failed-device", "Recommend", "WISP_RETURN_IF_ERROR(WaitForDevice(device_));", "", session),
        ("a-device-forgets-what-was-seen", "MarkTaken", "TakeUnoffered(history,", "TakeUnoffered({},", session),
        ("candidates-allow-all-on-a-device", "MarkTaken",
         "options.candidates.empty() ? Offered::kAll : Offered::kNone", "Offered::kAll",
         session),
    ]) + table("runtime/inference/session_setup.cc", [
        ("a-session-of-a-failed-device", "Session::Create", "WISP_RETURN_IF_ERROR(session->Arrived());", "", session),
    ]) + table("runtime/device/device_batch.cc", [
        ("a-batch-of-a-failed-device", "RowsOnDevice::RecommendSome",
         "top_.Run(rows, count); WISP_RETURN_IF_ERROR(WaitForDevice(graph_->device()));",
         "top_.Run(rows, count);", batch),
        ("a-batch-forgets-what-was-seen", "RowsOnDevice::MarkTaken",
         "TakeUnoffered(history,", "TakeUnoffered({},", batch),
    ]) + table("runtime/layers/model_view.cc", [
        ("hidden-states-of-the-next-history", "ModelView::RepresentTogether", "context.records.begin_B[b + 1] - 1",
         "context.records.begin_B[b]",
         batch),
    ]) + table("runtime/layers/key_value_cache.h", [
        ("variances-among-the-keys-of-a-batch", "variances", "arena_[slots_[index]] + variances_at_[index]",
         "arena_[slots_[index]]", batch),
    ])


def faults():
    return barriers() + places() + sums() + formed() + steps() + methods() + memory() + programs()
