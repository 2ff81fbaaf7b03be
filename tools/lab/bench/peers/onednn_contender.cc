// oneDNN 2: dnnl_sgemm, and the matmul and inner product primitives with w in their preferred layout.
//
// A primitive is made once, with its buffers; `run` executes it. In the backward product for w both operands are new in
// every step, so there matmul reads them in their original layout.
#include <omp.h>

#include <memory>
#include <oneapi/dnnl/dnnl.hpp>
#include <unordered_map>

#include "tools/lab/bench/peers/contender.h"

namespace wisp::bench {
namespace {

using Tag = dnnl::memory::format_tag;
using Desc = dnnl::memory::desc;

const dnnl::engine& Engine() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

dnnl::stream& Stream() {
  static dnnl::stream stream(Engine());
  return stream;
}

Desc Matrix(size_t rows, size_t cols, Tag tag) {
  return Desc({static_cast<dnnl_dim_t>(rows), static_cast<dnnl_dim_t>(cols)}, dnnl::memory::data_type::f32, tag);
}

dnnl::memory Wrap(const Desc& desc, const float* data) {
  return dnnl::memory(desc, Engine(), const_cast<float*>(data));
}

// A primitive with its arguments. `weights` is w in its original layout, which `pack` converts to the layout `wanted`.
struct Bound {
  dnnl::primitive primitive;
  std::unordered_map<int, dnnl::memory> arguments;

  void Execute() {
    primitive.execute(Stream(), arguments);
    Stream().wait();
  }
};

std::function<void()> BindWeights(Bound& bound, const dnnl::memory& weights, const Desc& wanted) {
  if (wanted == weights.get_desc()) {
    bound.arguments.insert({DNNL_ARG_WEIGHTS, weights});
    return {};
  }
  const dnnl::memory packed(wanted, Engine());
  bound.arguments.insert({DNNL_ARG_WEIGHTS, packed});
  const dnnl::reorder reorder(weights, packed);
  const auto pack = [=] {
    dnnl::memory from = weights, to = packed;
    reorder.execute(Stream(), from, to);
    Stream().wait();
  };
  pack();
  return pack;
}

void Add(const std::string& name, const std::string& implementation, Bound bound, std::function<void()> pack,
         Contenders& contenders) {
  const auto shared = std::make_shared<Bound>(std::move(bound));
  contenders.push_back({name, implementation, [shared] { shared->Execute(); }, std::move(pack)});
}

void AddMatmul(const Product& p, Contenders& contenders) {
  const bool for_weights = p.orientation == Orientation::kBackwardWeight,
             forward = p.orientation == Orientation::kForward;
  // out = source * weights
  const dnnl::memory source = for_weights ? Wrap(Matrix(p.n, p.rows, Tag::ba), p.dy)
                              : forward   ? Wrap(Matrix(p.rows, p.k, Tag::ab), p.x)
                                          : Wrap(Matrix(p.rows, p.n, Tag::ab), p.dy);
  const dnnl::memory weights = for_weights ? Wrap(Matrix(p.rows, p.k, Tag::ab), p.x)
                               : forward   ? Wrap(Matrix(p.k, p.n, Tag::ba), p.w)
                                           : Wrap(Matrix(p.n, p.k, Tag::ab), p.w);
  const Desc out = Matrix(p.out_rows(), p.out_cols(), Tag::ab);
  const Desc asked = for_weights ? weights.get_desc() : Matrix(p.inner(), p.out_cols(), Tag::any);
  const dnnl::matmul::primitive_desc chosen(dnnl::matmul::desc(source.get_desc(), asked, out), Engine());
  Bound bound{dnnl::matmul(chosen), {{DNNL_ARG_SRC, source}, {DNNL_ARG_DST, Wrap(out, p.out)}}};
  auto pack = BindWeights(bound, weights, chosen.weights_desc());
  Add("onednn matmul", chosen.impl_info_str(), std::move(bound), std::move(pack), contenders);
}

void AddInnerProduct(const Product& p, Contenders& contenders) {
  const Desc x = Matrix(p.rows, p.k, Tag::ab), y = Matrix(p.rows, p.n, Tag::ab), any = Matrix(p.n, p.k, Tag::any),
             plain = Matrix(p.n, p.k, Tag::ab);
  const auto kind =
      p.orientation == Orientation::kForward ? dnnl::prop_kind::forward_inference : dnnl::prop_kind::forward_training;
  const dnnl::inner_product_forward::primitive_desc forward(dnnl::inner_product_forward::desc(kind, x, any, y),
                                                            Engine());
  if (p.orientation == Orientation::kForward) {
    Bound bound{dnnl::inner_product_forward(forward), {{DNNL_ARG_SRC, Wrap(x, p.x)}, {DNNL_ARG_DST, Wrap(y, p.out)}}};
    auto pack = BindWeights(bound, Wrap(plain, p.w), forward.weights_desc());
    Add("onednn inner", forward.impl_info_str(), std::move(bound), std::move(pack), contenders);
  } else if (p.orientation == Orientation::kBackwardInput) {
    const dnnl::inner_product_backward_data::primitive_desc chosen(dnnl::inner_product_backward_data::desc(x, any, y),
                                                                   Engine(), forward);
    Bound bound{dnnl::inner_product_backward_data(chosen),
                {{DNNL_ARG_DIFF_DST, Wrap(y, p.dy)}, {DNNL_ARG_DIFF_SRC, Wrap(x, p.out)}}};
    auto pack = BindWeights(bound, Wrap(plain, p.w), chosen.weights_desc());
    Add("onednn inner", chosen.impl_info_str(), std::move(bound), std::move(pack), contenders);
  } else {
    const dnnl::inner_product_backward_weights::primitive_desc chosen(
        dnnl::inner_product_backward_weights::desc(x, plain, y), Engine(), forward);
    Bound bound{dnnl::inner_product_backward_weights(chosen),
                {{DNNL_ARG_DIFF_DST, Wrap(y, p.dy)},
                 {DNNL_ARG_SRC, Wrap(x, p.x)},
                 {DNNL_ARG_DIFF_WEIGHTS, Wrap(plain, p.out)}}};
    Add("onednn inner", chosen.impl_info_str(), std::move(bound), {}, contenders);
  }
}

void AddSgemm(const Product& p, Contenders& contenders) {
  const auto rows = static_cast<dnnl_dim_t>(p.rows), n = static_cast<dnnl_dim_t>(p.n), k = static_cast<dnnl_dim_t>(p.k);
  if (p.orientation == Orientation::kForward) {
    contenders.push_back(
        {"onednn sgemm", "dnnl_sgemm", [=] { dnnl_sgemm('N', 'T', rows, n, k, 1, p.x, k, p.w, k, 0, p.out, n); }, {}});
  } else if (p.orientation == Orientation::kBackwardInput) {
    contenders.push_back(
        {"onednn sgemm", "dnnl_sgemm", [=] { dnnl_sgemm('N', 'N', rows, k, n, 1, p.dy, n, p.w, k, 0, p.out, k); }, {}});
  } else {
    contenders.push_back(
        {"onednn sgemm", "dnnl_sgemm", [=] { dnnl_sgemm('T', 'N', n, k, rows, 1, p.dy, n, p.x, k, 0, p.out, k); }, {}});
  }
}

}  // namespace

std::string DescribeOneDnn() {
  omp_set_num_threads(1);
  const dnnl_version_t* v = dnnl_version();
  return std::to_string(v->major) + "." + std::to_string(v->minor) + "." + std::to_string(v->patch);
}

// A primitive that this version lacks throws; the others still take part.
void AddOneDnn(const Product& p, Contenders& contenders) {
  AddSgemm(p, contenders);
  for (auto* add : {AddMatmul, AddInnerProduct}) {
    try {
      add(p, contenders);
    } catch (const dnnl::error&) {}
  }
}

}  // namespace wisp::bench
