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


def faults():
    return barriers() + places() + sums() + formed()
