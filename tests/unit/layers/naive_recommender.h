// The recommender written again, naively, in any number type: the oracle of the gradient tests.
//
// It shares nothing with runtime/layers but the architecture and the names of the parameters: no tiles, no fusion, no
// backward pass. With dual numbers it gives exact derivatives of the loss with respect to any one weight.
#ifndef WISP_TESTS_UNIT_LAYERS_NAIVE_RECOMMENDER_H_
#define WISP_TESTS_UNIT_LAYERS_NAIVE_RECOMMENDER_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/core/architecture.h"

namespace wisp::test {

// Returns a number without its derivative: the variance path passes no gradient.
inline double PlainValue(double x) { return x; }
template <class T>
double PlainValue(const T& x) {
  return x.value;
}

template <class T>
class NaiveRecommender {
 public:
  using Variances = std::vector<std::vector<double>>;  // Re-Attention, [T][D]; empty without

  using Row = std::vector<T>;
  using Matrix = std::vector<Row>;

  // `weights` has the flat layout and must outlive this object.
  NaiveRecommender(const Architecture& a, std::span<const T> weights)
      : a_(a), parameters_(ListParameters(a)), weights_(weights) {
    for (size_t i = 0; i < parameters_.size(); ++i) index_[parameters_[i].name] = i;
  }

  // Returns the last hidden states [T][D]. ids < 0 are padding.
  Matrix Encode(std::span<const int32_t> ids) const {
    const size_t t_max = ids.size(), d = a_.width;
    const size_t first = a_.positions == PositionAlignment::kEnd ? a_.max_length - t_max : 0;
    Matrix x(t_max, Row(d, T(0)));
    for (size_t t = 0; t < t_max; ++t) {
      for (size_t k = 0; k < d && ids[t] >= 0; ++k) {
        x[t][k] = T(a_.embedding_scale) * At("item_embedding", ids[t] * d + k);
        if (a_.position_table == PositionTable::kLearned)
          x[t][k] = x[t][k] + At("position_embedding", (first + t) * d + k);
        if (a_.token_types.count > 0) x[t][k] = x[t][k] + At("type_embedding", GetType(ids, t) * d + k);
      }
    }
    if (a_.embedding_norm_epsilon) x = Norm("embedding_norm", NormKind::kLayer, *a_.embedding_norm_epsilon, x);
    Variances v;
    for (size_t t = 0; a_.re_attention == ReAttention::kOn && t < t_max; ++t) {
      const double scale = a_.embedding_scale;
      v.emplace_back(d, ids[t] < 0 ? 0
                                   : scale * scale * PlainValue(At("item_embedding.variance", ids[t])) +
                                         GetVarianceOrZero("position_embedding"));
    }
    for (const BlockSpec& block : a_.blocks) x = RunBlock(block, x, ids, v);
    return a_.final_norm_epsilon ? Norm("final_norm", a_.final_norm_kind, *a_.final_norm_epsilon, x) : x;
  }

  Row Logits(const Row& h) const {
    const std::string table = a_.head.output_table == OutputTable::kTied ? "item_embedding" : "output_embedding";
    Row z(a_.num_items, T(0));
    for (size_t j = 0; j < z.size(); ++j) {
      Row e(h.size(), T(0));
      for (size_t k = 0; k < h.size(); ++k) e[k] = At(table, j * h.size() + k);
      for (size_t k = 0; k < h.size(); ++k) z[j] = z[j] + h[k] * e[k];
      if (a_.head.temperature > 0) z[j] = z[j] / (T(a_.head.temperature) * Length(h) * Length(e));
      if (a_.head.output_bias != OutputBias::kNone) z[j] = z[j] + At("output_bias", j);
    }
    return z;
  }

  // Includes the constant that the product adds under the root.
  static T Length(const Row& x) {
    using std::sqrt;
    T sum(double(x.size()) * 1e-8);
    for (const T& v : x) sum = sum + v * v;
    return sqrt(sum);
  }

  T Loss(std::span<const int32_t> inputs, std::span<const int32_t> targets, double weight) const {
    using std::exp;
    using std::log;
    const Matrix h = Encode(inputs);
    T loss(0);
    for (size_t t = 0; t < inputs.size(); ++t) {
      if (targets[t] < 0) continue;
      const Row z = Logits(h[t]);
      T sum(0);
      for (const T& v : z) sum = sum + exp(v);
      loss = loss + T(weight) * (log(sum) - z[static_cast<size_t>(targets[t])]);
    }
    return loss;
  }

  // The sampled softmax of runtime/layers/sampled_head.h: each negative stands for num_items / K items.
  T SampledLoss(std::span<const int32_t> inputs, std::span<const int32_t> targets, std::span<const int32_t> negatives,
                double weight) const {
    using std::exp;
    using std::log;
    const Matrix h = Encode(inputs);
    T loss(0);
    for (size_t t = 0; t < inputs.size(); ++t) {
      if (targets[t] < 0) continue;
      const Row z = Logits(h[t]);
      const T target = z[static_cast<size_t>(targets[t])];
      T sum = exp(target);
      for (int32_t n : negatives) {
        if (n != targets[t])
          sum = sum + T(double(a_.num_items) / double(negatives.size())) * exp(z[static_cast<size_t>(n)]);
      }
      loss = loss + T(weight) * (log(sum) - target);
    }
    return loss;
  }

 private:
  size_t GetType(std::span<const int32_t> ids, size_t t) const {
    size_t separators = 0;
    for (size_t before = 0; before < t; ++before) separators += ids[before] == a_.token_types.separator ? 1 : 0;
    return std::min<size_t>(separators, a_.token_types.count - 1);
  }

  // Returns the adapter's addition to a coordinate of its matrix.
  T AdapterAt(const ParameterSpec& p, size_t i) const {
    T sum(0);
    const std::string name = p.name.substr(0, p.name.rfind('.'));
    const auto down = index_.find(name + ".adapter_down"), up = index_.find(name + ".adapter_up");
    if (p.shape != ParameterShape::kMatrix || down == index_.end() || up == index_.end()) return sum;
    const size_t rank = parameters_[down->second].rows, row = i / p.cols, column = i % p.cols;
    for (size_t r = 0; r < rank; ++r) {
      sum = sum + weights_[parameters_[up->second].offset + row * rank + r] *
                      weights_[parameters_[down->second].offset + r * p.cols + column];
    }
    return T(static_cast<double>(a_.adapter->alpha) / a_.adapter->rank) * sum;
  }

  // Two towers: an entry of an item's row, from its features.
  T RowAt(size_t i) const {
    const size_t features = parameters_[index_.at("item_features")].offset + i / a_.width * a_.item_features,
                 tower = parameters_[index_.at("item_tower")].offset + i % a_.width;
    T sum(0);
    for (size_t f = 0; f < a_.item_features; ++f) sum = sum + weights_[features + f] * weights_[tower + f * a_.width];
    return sum;
  }

  T At(const std::string& name, size_t i) const {
    if (a_.item_features > 0 && name == "item_embedding") return RowAt(i);
    const auto found = index_.find(name);
    if (found == index_.end()) return T(NAN);
    const ParameterSpec& p = parameters_[found->second];
    return weights_[p.offset + i] + AdapterAt(p, i);
  }

  double GetVariance(const std::string& name) const {
    const auto found = index_.find(name);
    return found == index_.end() ? NAN : PlainValue(At("parameter_variance", found->second));
  }

  bool Has(const std::string& name) const { return index_.contains(name); }
  double GetVarianceOrZero(const std::string& name) const { return Has(name) ? GetVariance(name) : 0; }

  Variances LinearVariance(const std::string& name, const Matrix& x, const Variances& v, size_t n) const {
    Variances y(v.size(), std::vector<double>(n, 0));
    const double bias = GetVarianceOrZero(name + ".bias"), weight = GetVariance(name + ".weight");
    for (size_t t = 0; t < v.size(); ++t) {
      for (size_t j = 0; j < n; ++j) {
        y[t][j] = bias;
        for (size_t k = 0; k < v[t].size(); ++k) {
          const double w = PlainValue(At(name + ".weight", j * v[t].size() + k)), mean = PlainValue(x[t][k]);
          y[t][j] += v[t][k] * w * w + weight * (mean * mean + v[t][k]);
        }
      }
    }
    return y;
  }

  Variances NormVariance(const std::string& name, const BlockSpec& spec, const Matrix& x, Variances v) const {
    const double epsilon = spec.norm_epsilon;
    for (size_t t = 0; t < v.size(); ++t) {
      double mean = 0, variance = 0;
      for (size_t k = 0; k < x[t].size() && spec.norm_kind == NormKind::kLayer; ++k)
        mean += PlainValue(x[t][k]) / double(x[t].size());
      for (const T& value : x[t]) variance += std::pow(PlainValue(value) - mean, 2) / double(x[t].size());
      for (size_t k = 0; k < v[t].size(); ++k)
        v[t][k] *= std::pow(PlainValue(At(name + ".gain", k)), 2) / (variance + epsilon);
    }
    return v;
  }

  static double ActivationVariance(double mean, double v) {
    if (v <= 0) return 0;
    const double z = mean / std::sqrt(v), cdf = 0.5 * std::erfc(-z * M_SQRT1_2),
                 density = std::exp(-z * z / 2) / std::sqrt(2 * M_PI);
    const double e = mean * cdf + std::sqrt(v) * density;
    return (mean * mean + v) * cdf + mean * std::sqrt(v) * density - e * e;
  }

  Matrix Linear(const std::string& name, const Matrix& x, size_t n) const {
    Matrix y(x.size(), Row(n, T(0)));
    const std::string weight = name + ".weight", bias = name + ".bias";
    for (size_t t = 0; t < x.size(); ++t) {
      for (size_t j = 0; j < n; ++j) {
        if (Has(bias)) y[t][j] = At(bias, j);
        for (size_t k = 0; k < x[t].size(); ++k) y[t][j] = y[t][j] + x[t][k] * At(weight, j * x[t].size() + k);
      }
    }
    return y;
  }

  Matrix Norm(const std::string& name, NormKind kind, double epsilon, const Matrix& x) const {
    using std::sqrt;
    Matrix y = x;
    for (Row& row : y) {
      T mean(0), variance(0);
      for (size_t k = 0; k < row.size() && kind == NormKind::kLayer; ++k) mean = mean + row[k] / T(double(row.size()));
      for (const T& v : row) variance = variance + (v - mean) * (v - mean) / T(double(row.size()));
      for (size_t k = 0; k < row.size(); ++k) {
        row[k] = (row[k] - mean) / sqrt(variance + T(epsilon)) * At(name + ".gain", k);
        if (kind == NormKind::kLayer) row[k] = row[k] + At(name + ".bias", k);
      }
    }
    return y;
  }

  static T Sigmoid(const T& x) {
    using std::exp;
    return T(1) / (T(1) + exp(T(0) - x));
  }

  // Multiplies the branch by the sigmoid of a linear layer of the stream, if the block has one.
  Matrix Gated(const std::string& gate, const Matrix& stream, Matrix branch) const {
    if (!Has(gate + ".weight")) return branch;
    const Matrix z = Linear(gate, stream, a_.width);
    for (size_t t = 0; t < z.size(); ++t) {
      for (size_t k = 0; k < z[t].size(); ++k) branch[t][k] = branch[t][k] * Sigmoid(z[t][k]);
    }
    return branch;
  }

  // Rotates pairs of entries of every head by position * base^(-2 i / width), as complex products.
  static void Rotate(const RotarySpec& r, size_t position, size_t head_width, T* heads, size_t num_heads) {
    for (size_t h = 0; h < num_heads; ++h) {
      for (size_t i = 0; i < r.width / 2; ++i) {
        const double angle = double(position) / std::pow(double(r.base), 2.0 * double(i) / r.width);
        T* head = heads + h * head_width;
        T &a = head[r.interleaved ? 2 * i : i], &b = head[r.interleaved ? 2 * i + 1 : i + r.width / 2];
        const T turned = a * T(std::cos(angle)) - b * T(std::sin(angle));
        b = a * T(std::sin(angle)) + b * T(std::cos(angle));
        a = turned;
      }
    }
  }

  static Matrix Add(Matrix a, const Matrix& b) {
    for (size_t t = 0; t < a.size(); ++t) {
      for (size_t k = 0; k < a[t].size(); ++k) a[t][k] = a[t][k] + b[t][k];
    }
    return a;
  }

  // `v` is the variance of x and becomes that of the result.
  Matrix Attention(const std::string& block, const AttentionSpec& spec, const Matrix& x, std::span<const int32_t> ids,
                   Variances& v) const {
    using std::exp;
    const size_t width = spec.head_width, d = spec.num_heads * width, kd = spec.num_kv_heads * width;
    Matrix qkv = Linear(block + ".qkv", x, d + 2 * kd);
    for (size_t t = 0; t < qkv.size(); ++t) {
      Rotate(spec.rotary, t, width, qkv[t].data(), spec.num_heads);
      Rotate(spec.rotary, t, width, qkv[t].data() + d, spec.num_kv_heads);
    }
    Matrix mixed(x.size(), Row(d, T(0)));
    const Variances kv = LinearVariance(block + ".qkv", x, v, d + 2 * kd);
    Variances mixed_v(kv.size(), std::vector<double>(d, 0));
    for (size_t head = 0; head < spec.num_heads; ++head) {
      const size_t key = d + head / (spec.num_heads / spec.num_kv_heads) * width, value = key + kd;
      for (size_t i = 0; i < x.size(); ++i) {
        T sum(0);
        double largest = -1e300;
        const size_t first = spec.window > 0 && i + 1 > spec.window ? i + 1 - spec.window : 0;
        Row weights(x.size(), T(0));
        for (size_t j = first; j < (a_.attend == Attend::kCausal ? i + 1 : x.size()); ++j) {
          if (ids[j] < 0) continue;
          T dot(0);
          for (size_t k = 0; k < width; ++k) dot = dot + qkv[i][head * width + k] * qkv[j][key + k];
          T logit = dot * T(1.0 / std::sqrt(double(width)));
          // ALiBi: slopes halve 8 / H times from head to head.
          logit = logit - T(double(spec.slope) * std::pow(2.0, -8.0 * double(head) / spec.num_heads) *
                            std::abs(double(i) - double(j)));
          for (size_t k = 0; !kv.empty() && k < width; ++k) {
            const T q = qkv[i][head * width + k];
            logit = logit - q * q * T(kv[j][key + k] / (2 * double(width)));
          }
          weights[j] = logit;
          if (largest < PlainValue(logit)) largest = PlainValue(logit);
        }
        for (size_t j = first; j < (a_.attend == Attend::kCausal ? i + 1 : x.size()); ++j) {
          if (ids[j] < 0) continue;
          weights[j] = exp(weights[j] - T(largest));
          sum = sum + weights[j];
        }
        if (sum == T(0)) continue;
        for (size_t j = 0; j < x.size(); ++j) {
          for (size_t k = 0; k < width; ++k) {
            mixed[i][head * width + k] = mixed[i][head * width + k] + weights[j] / sum * qkv[j][value + k];
            if (!kv.empty())
              mixed_v[i][head * width + k] += std::pow(PlainValue(weights[j] / sum), 2) * kv[j][value + k];
          }
        }
      }
    }
    v = LinearVariance(block + ".attention_out", mixed, mixed_v, a_.width);
    return Linear(block + ".attention_out", mixed, a_.width);
  }

  static T Activated(ActivationKind kind, const T& x) {
    using std::erf;
    switch (kind) {
      case ActivationKind::kRelu:
        return x < T(0) ? T(0) : x;
      case ActivationKind::kGelu:
        return x * T(0.5) * (T(1) + erf(x * T(M_SQRT1_2)));
      case ActivationKind::kGeluTanh:
        return x *
               Sigmoid(T(2 * std::sqrt(2 / M_PI)) * (x + T(0.044715) * x * x * x));  // (1 + tanh u) / 2 = sigmoid(2 u)
      case ActivationKind::kSilu:
        return x * Sigmoid(x);
    }
    ADD_FAILURE() << "the oracle has no formula for activation " << static_cast<int>(kind);
    return x;
  }

  Matrix FeedForward(const std::string& block, const FeedForwardSpec& spec, const Matrix& x, Variances& v) const {
    Matrix inner = Linear(block + ".feed_forward_in", x, spec.gated ? 2 * spec.inner_width : spec.inner_width);
    Variances inner_v = LinearVariance(block + ".feed_forward_in", x, v, spec.inner_width);
    for (size_t t = 0; t < inner_v.size(); ++t) {
      for (size_t k = 0; k < inner_v[t].size(); ++k)
        inner_v[t][k] = ActivationVariance(PlainValue(inner[t][k]), inner_v[t][k]);
    }
    for (Row& row : inner) {
      for (size_t k = 0; k < spec.inner_width; ++k) {
        row[k] = Activated(spec.activation, row[k]);
        if (spec.gated) row[k] = row[k] * row[spec.inner_width + k];
      }
      row.resize(spec.inner_width, T(0));
    }
    v = LinearVariance(block + ".feed_forward_out", inner, inner_v, a_.width);
    return Linear(block + ".feed_forward_out", inner, a_.width);
  }

  static void AddTo(Variances& v, const Variances& w) {
    for (size_t t = 0; t < v.size(); ++t) {
      for (size_t k = 0; k < v[t].size(); ++k) v[t][k] += w[t][k];
    }
  }

  Matrix RunBlock(const BlockSpec& spec, const Matrix& x, std::span<const int32_t> ids, Variances& v) const {
    const std::string block = "block" + std::to_string(&spec - a_.blocks.data());
    const std::string norm1 = block + ".attention_norm", norm2 = block + ".feed_forward_norm";
    const auto norm = [&](const std::string& name, const Matrix& of) {
      return Norm(name, spec.norm_kind, spec.norm_epsilon, of);
    };
    if (spec.norm == NormPlacement::kPre) {
      Variances inner = NormVariance(norm1, spec, x, v);
      const Matrix middle = Add(x, Gated(block + ".attention_residual_gate", x,
                                         Attention(block, spec.attention, norm(norm1, x), ids, inner)));
      AddTo(v, inner);
      inner = NormVariance(norm2, spec, middle, v);
      const Matrix y = Add(middle, Gated(block + ".feed_forward_residual_gate", middle,
                                         FeedForward(block, spec.feed_forward, norm(norm2, middle), inner)));
      AddTo(v, inner);
      return y;
    }
    Variances inner = v;
    const Matrix attended =
        Add(x, Gated(block + ".attention_residual_gate", x, Attention(block, spec.attention, x, ids, inner)));
    AddTo(v, inner);
    v = inner = NormVariance(norm1, spec, attended, v);
    const Matrix middle = norm(norm1, attended);
    const Matrix fed = Add(middle, Gated(block + ".feed_forward_residual_gate", middle,
                                         FeedForward(block, spec.feed_forward, middle, inner)));
    AddTo(v, inner);
    v = NormVariance(norm2, spec, fed, v);
    return norm(norm2, fed);
  }

  Architecture a_;
  std::vector<ParameterSpec> parameters_;
  std::unordered_map<std::string, size_t> index_;
  std::span<const T> weights_;
};

}  // namespace wisp::test

#endif  // WISP_TESTS_UNIT_LAYERS_NAIVE_RECOMMENDER_H_
