"""Faults of the kernels of a GPU: barriers, tiles, sums. The op suite runs them under the emulator."""
from faults import table


def barriers():
    return table("kernels/cuda/gemm.cc", [
        ("product-reads-a-slice-too-early", "MultiplyTile", "__syncthreads(); if (first_k", "if (first_k", "cuda_gemm_test:*"),
        ("product-overwrites-a-slice-in-use", "MultiplyTile", "__syncthreads(); } WISP_UNROLL", "} WISP_UNROLL", "cuda_gemm_test:*"),
    ]) + table("kernels/cuda/attention.cc", [
        ("attention-overwrites-a-tile-in-use", "MultiplyRows", "__syncthreads(); // nobody reads the last tile any more", "",
         "cuda_attention_test:*Forward*"),
        ("attention-overwrites-numbers-in-use", "Add", "__syncwarp(); // no lane reads the last numbers any more", "",
         "cuda_attention_test:*Forward*"),
        ("attention-overwrites-deltas-in-use", "KeyGradients", "__syncthreads(); // nobody reads the last deltas any more", "",
         "cuda_attention_test:*Backward*"),
    ]) + table("kernels/cuda/layer_norm.cc", [
        ("norm-sums-before-all-wrote", "NormParameterGradients", "__syncthreads();", "", "cuda_norms_test:*Backward*"),
    ]) + table("kernels/cuda/device_code.h", [
        ("block-sum-before-all-wrote", "BlockSum", "__syncthreads();", "", "cuda_ops_test:*"),
    ])


def places():
    return table("kernels/cuda/gemm.cc", [
        ("product-reads-a-column-too-many", "MultiplyTile", "k_of_a < p.k ?", "k_of_a <= p.k ?", "cuda_gemm_test:*"),
        ("product-writes-a-row-too-many", "MultiplyTile", "m < p.m && n < p.n) Finish", "m <= p.m && n < p.n) Finish", "cuda_gemm_test:*"),
        ("few-rows-drop-their-bias", "Finish", "p.bias != nullptr", "false", "cuda_gemm_test:*"),
    ]) + table("kernels/cuda/attention.cc", [
        ("keys-of-the-wrong-head", "ShareOf", "static_cast<unsigned>(KeyHead(a, head))", "head", "cuda_attention_test:*"),
        ("queries-that-attend-left-out", "KeyGradients", "(first_key - past) / kWarp * kWarp", "(first_key - past + kWarps)",
         "cuda_attention_test:*Backward*"),
        ("older-sums-not-shrunk", "AttendQueries", "out.Scale(shrink);", "", "cuda_attention_test:*Forward*"),
        ("older-variances-shrunk-once", "AttendQueries", "variance.Scale(shrink * shrink);", "variance.Scale(shrink);", "cuda_attention_test:*"),
        ("a-held-logit-passes-gradient", "WeightsOf", "logit.held ? 0.0f :", "", "cuda_attention_test:*"),
    ]) + table("kernels/cuda/scatter.h", [
        ("first-row-of-an-id-not-added", "AddRowsById", "other = t; other", "other = t + 1; other", "cuda_ops_test:*"),
    ]) + table("kernels/cuda/records.h", [
        ("records-of-later-launches-begin-anew", "ForRecords", "segments.begin_B[first + i]", "segments.begin_B[i]", "cuda_rows_test:*"),
    ])


def sums():
    return table("kernels/cuda/reduce.cc", [
        ("grid-ignores-the-sign", "AccumulateOnGrid", "a.sign * static_cast", "static_cast", "cuda_ops_test:*"),
        ("grid-cuts-off", "AccumulateOnGrid", "__float2int_rn(__fmul_rn(a.x[i], a.scale))", "static_cast<int>(a.x[i] * a.scale)",
         "cuda_ops_test:*"),
        ("last-part-of-a-sum-dropped", "Sum", "i < blocks; ++i) sum", "i + 1 < blocks; ++i) sum", "cuda_ops_test:*"),
    ]) + table("kernels/cuda/layer_norm.cc", [
        ("last-warp-of-a-column-dropped", "NormParameterGradients", "w < kWarps; ++w", "w < kWarps - 1; ++w", "cuda_norms_test:*Backward*"),
    ]) + table("kernels/cuda/softmax.cc", [
        ("older-exponentials-not-shrunk", "UpdateStats", "a.sum_R[r] * expf(before - largest) + sum", "a.sum_R[r] + sum",
         "cuda_softmax_test:*"),
    ])


def formed():
    return table("kernels/cuda/formed.cc", [
        ("grid-rows-ignore-the-sign", "AddRowsOnGrid", "a.sign * total[j]", "total[j]", "cuda_formed_test:*RowsOnTheGrid*"),
        ("squares-of-the-last-warp-dropped", "LeaveParts", "w < kWarps; ++w", "w + 1 < kWarps; ++w", "cuda_formed_test:*"),
        ("rows-into-the-first-records-table", "AddRowsOfRecords", " + size_t{records.first + blockIdx.y} * a.stride", "", "cuda_formed_test:*Scattered*"),
        ("rows-of-later-launches-begin-anew", "AccumulateRowsOnGrid", "share.x_BN += first * a.ldx;", "", "cuda_formed_test:*RowsOnTheGrid*"),
    ]) + table("kernels/cuda/gemm.cc", [
        ("gradients-of-the-first-records-rows", "MultiplyRecords", "p.a += begin * p.lda;", "", "cuda_formed_test:*WeightGradients*"),
    ]) + table("runtime/layers/weights.cc", [
        ("squares-packed-for-more-rows", "SquaredRows", "p.block + 1 == a.blocks.size()", "false", "cuda_graph_test:*Recommender*"),
    ]) + table("runtime/layers/packed_weights.cc", [
        ("variances-never-read", "PackedWeights::Pack", "if (part == 0) ReadVariances();", "", "cuda_graph_test:*Recommender*"),
    ])


def steps():
    """A private step on a device: what bounds a record, what is released, and that nothing of it is left out."""
    sums, runs, failure = "cuda_formed_gradients_test:*", "cuda_trainer_test:*", "cuda_device_failure_test:*"
    return table("runtime/gradients/formed_gradients.cc", [
        ("gradients-of-the-last-batch-kept", "FormedGradients::BeginRecords", "ops_->clear", "if (false) ops_->clear", runs + "Private*"),
        ("records-above-their-bound-stay", "FormedGradients::FinishRecords", "TakeBack();", "", sums + "AboveItsBound*"),
        ("all-taken-back-with-one", "FormedGradients::TakeBack", "steps_B_[b] = 0;", "", sums + "AboveItsBound*"),
        ("squares-of-part-of-a-row", "FormedGradients::FinishRecords", ".n = trained_->size(), .squares_B", ".n = trained_->size() - 16, .squares_B", sums),
        ("row-norm-of-the-first-record", "FormedGradients::FormNormedRows", "own.dy_RN += f.records.begin(b) * f.lddy;", "", sums + "Sums*"),
    ]) + table("runtime/gradients/gradient_sum.cc", [
        ("rows-taken-back-are-added-again", "GridGradientSum::AddRows", ".sign = sign", ".sign = 1", sums + "AboveItsBound*"),
    ]) + table("runtime/gradients/sum_gradients.cc", [
        ("vectors-of-one-record", "SumGradients::Vector", ".rows = num_records_", ".rows = 1", runs + "Ordinary*"),
    ]) + table("runtime/train/release/device_release.cc", [
        ("a-device-step-without-noise", "DrawNoise", "privacy::AddDiscreteGaussian(noise, sigma_, {drawn, n});", "(void)noise;", runs + "Private*"),
        ("noise-of-the-last-step", "Prepare", "graph_->device()", "if (drawn_[0] == noise_.size()) graph_->device()", runs + "Private*"),
        ("noise-adds-to-the-last-steps", "DrawNoise", "std::fill_n(drawn, n, 0);", "", runs + "Private*"),
        ("one-workers-noise-for-all", "DrawNoise", "worker, num_workers_, draw", "0, num_workers_, draw", runs + "Private*"),
        ("half-the-noise-on-a-device", "PrivateDeviceRelease", "sigma_in_steps(options.privacy.noise_multiplier)",
         "sigma_in_steps(options.privacy.noise_multiplier / 2)", runs + "Private*"),
        ("sums-of-two-device-steps", "", "{ sum_.Clear(); } // The integers", "{} // The integers", runs + "Private*"),
        ("parameters-all-get-the-first-gradient", "", "gradient_.data() + trained_->offset(i)", "gradient_.data()", runs + "Private*"),
    ]) + table("runtime/train/trainer.cc", [
        ("noise-that-did-not-arrive", "Trainer::StepWeights", 'WISP_RETURN_IF_ERROR(WaitForDevice("the noise of a step was added"));', "", failure),
        ("a-failed-device-is-asked-again", "Trainer::Step", "WISP_RETURN_IF_ERROR(CheckDevice());", "", failure),
        ("weights-without-variances", "Trainer::MakeWeights", "noise_variance_->Initialise(on_host_);", "", runs + "ReAttention*"),
    ]) + table("runtime/train/trainer_checkpoint.cc", [
        ("a-checkpoint-of-a-failed-device", "Trainer::Save", 'WISP_RETURN_IF_ERROR(WaitForDevice("a checkpoint was made"));', "", failure),
    ]) + table("runtime/train/run/job.cc", [
        ("a-model-of-a-failed-device", "Run", "WISP_RETURN_IF_ERROR(trainer_->CheckDevice());", "", failure),
    ]) + table("runtime/train/noise_variance.cc", [
        ("all-rows-as-one", "NoiseVariance::Add", "const size_t rows = i == 0 ? p.rows : 1;", "const size_t rows = 1;", runs + "ReAttention*"),
    ]) + table("runtime/train/check_options.cc", [
        ("a-device-takes-any-method", "ValidateDevice", "if (o.method != Method::kOrdinary && o.method != Method::kPhantom)", "if (false)",
         runs + "Refuses*"),
    ]) + table("kernels/cuda/step.cc", [
        ("noise-left-out-of-the-sum", "NoisedSum", "a.sum[i] + a.noise[i]", "a.sum[i]", "cuda_step_test:*"),
        ("moves-not-averaged", "AddMovesOfRows", "(sum / static_cast<double>(a.n))", "sum", "cuda_step_test:*"),
    ]) + table("runtime/layers/next_item_head.cc", [
        ("bias-gradients-beyond-their-room", "NextItemHead::Emit", "(keeps_dbias_ ?", "(max_records_ > 1 ?", "cuda_graph_test:*Catalogue*"),
    ])


def faults():
    return barriers() + places() + sums() + formed() + steps()
