// The recommender written out once more, naively, over any number type: the oracle of the gradient tests.
//
// It shares nothing with runtime/layers but the architecture and the names of the parameters: no tiles, no fusion, no
// backward. With dual numbers it gives exact derivatives of the loss with respect to any one weight.
#ifndef WISP_TESTS_UNIT_LAYERS_NAIVE_RECOMMENDER_H_
#define WISP_TESTS_UNIT_LAYERS_NAIVE_RECOMMENDER_H_

#include <cmath>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/core/architecture.h"

namespace wisp::testing {

// A number without its derivative: the variance path passes no gradient.
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

  // `weights` in the flat layout; must outlive this object.
  NaiveRecommender(const Architecture& a, std::span<const T> weights)
      : a_(a), parameters_(ParametersOf(a)), weights_(weights) {
    for (size_t i = 0; i < parameters_.size(); ++i) index_[parameters_[i].name] = i;
  }

  // Last hidden states [T][D]. ids < 0 are padding.
  Matrix Encode(std::span<const int32_t> ids) const {
    const size_t t_max = ids.size(), d = a_.width;
    const size_t first = a_.positions == PositionAlignment::kEnd ? a_.max_length - t_max : 0;
    Matrix x(t_max, Row(d, T(0)));
    for (size_t t = 0; t < t_max; ++t) {
      for (size_t k = 0; k < d && ids[t] >= 0; ++k) {
        x[t][k] = T(a_.embedding_scale) * At("item_embedding", ids[t] * d + k) +
                  At("position_embedding", (first + t) * d + k);
      }
    }
    Variances v;
    for (size_t t = 0; a_.re_attention == ReAttention::kOn && t < t_max; ++t) {
      const double scale = a_.embedding_scale;
      v.emplace_back(d, ids[t] < 0 ? 0
                                   : scale * scale * PlainValue(At("item_embedding.variance", ids[t])) +
                                         VarianceOf("position_embedding"));
    }
    for (const BlockSpec& block : a_.blocks) x = RunBlock(block, x, ids, v);
    return a_.final_norm_epsilon ? Norm("final_norm", *a_.final_norm_epsilon, x) : x;
  }

  Row Logits(const Row& h) const {
    const std::string table = a_.head.output_table == OutputTable::kTied ? "item_embedding" : "output_embedding";
    Row z(a_.num_items, T(0));
    for (size_t j = 0; j < z.size(); ++j) {
      for (size_t k = 0; k < h.size(); ++k) z[j] = z[j] + h[k] * At(table, j * h.size() + k);
      if (a_.head.output_bias != OutputBias::kNone) z[j] = z[j] + At("output_bias", j);
    }
    return z;
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
  // What an adapter adds to a coordinate of the matrix that it stands beside.
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

  T At(const std::string& name, size_t i) const {
    const auto found = index_.find(name);
    if (found == index_.end()) return T(NAN);
    const ParameterSpec& p = parameters_[found->second];
    return weights_[p.offset + i] + AdapterAt(p, i);
  }

  double VarianceOf(const std::string& name) const {
    const auto found = index_.find(name);
    return found == index_.end() ? NAN : PlainValue(At("parameter_variance", found->second));
  }

  Variances LinearVariance(const std::string& name, const Matrix& x, const Variances& v, size_t n) const {
    Variances y(v.size(), std::vector<double>(n, 0));
    const double bias = VarianceOf(name + ".bias"), weight = VarianceOf(name + ".weight");
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

  Variances NormVariance(const std::string& name, double epsilon, const Matrix& x, Variances v) const {
    for (size_t t = 0; t < v.size(); ++t) {
      double mean = 0, variance = 0;
      for (const T& value : x[t]) mean += PlainValue(value) / double(x[t].size());
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
        y[t][j] = At(bias, j);
        for (size_t k = 0; k < x[t].size(); ++k) y[t][j] = y[t][j] + x[t][k] * At(weight, j * x[t].size() + k);
      }
    }
    return y;
  }

  Matrix Norm(const std::string& name, double epsilon, const Matrix& x) const {
    using std::sqrt;
    Matrix y = x;
    for (Row& row : y) {
      T mean(0), variance(0);
      for (const T& v : row) mean = mean + v / T(double(row.size()));
      for (const T& v : row) variance = variance + (v - mean) * (v - mean) / T(double(row.size()));
      for (size_t k = 0; k < row.size(); ++k) {
        row[k] = (row[k] - mean) / sqrt(variance + T(epsilon)) * At(name + ".gain", k) + At(name + ".bias", k);
      }
    }
    return y;
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
    const size_t width = spec.head_width, d = spec.num_heads * width;
    const Matrix qkv = Linear(block + ".qkv", x, 3 * d);
    Matrix mixed(x.size(), Row(d, T(0)));
    const Variances kv = LinearVariance(block + ".qkv", x, v, 3 * d);
    Variances mixed_v(kv.size(), std::vector<double>(d, 0));
    for (size_t head = 0; head < spec.num_heads; ++head) {
      for (size_t i = 0; i < x.size(); ++i) {
        T sum(0);
        double largest = -1e300;
        Row weights(x.size(), T(0));
        for (size_t j = 0; j < (a_.attend == Attend::kCausal ? i + 1 : x.size()); ++j) {
          if (ids[j] < 0) continue;
          T dot(0);
          for (size_t k = 0; k < width; ++k) dot = dot + qkv[i][head * width + k] * qkv[j][d + head * width + k];
          T logit = dot * T(1.0 / std::sqrt(double(width)));
          // ALiBi: slopes halve 8 / H times from head to head.
          logit = logit - T(double(spec.slope) * std::pow(2.0, -8.0 * double(head) / spec.num_heads) *
                            std::abs(double(i) - double(j)));
          for (size_t k = 0; !kv.empty() && k < width; ++k) {
            const T q = qkv[i][head * width + k];
            logit = logit - q * q * T(kv[j][d + head * width + k] / (2 * double(width)));
          }
          weights[j] = logit;
          if (largest < PlainValue(logit)) largest = PlainValue(logit);
        }
        for (size_t j = 0; j < (a_.attend == Attend::kCausal ? i + 1 : x.size()); ++j) {
          if (ids[j] < 0) continue;
          weights[j] = exp(weights[j] - T(largest));
          sum = sum + weights[j];
        }
        if (sum == T(0)) continue;
        for (size_t j = 0; j < x.size(); ++j) {
          for (size_t k = 0; k < width; ++k) {
            mixed[i][head * width + k] =
                mixed[i][head * width + k] + weights[j] / sum * qkv[j][2 * d + head * width + k];
            if (!kv.empty())
              mixed_v[i][head * width + k] +=
                  std::pow(PlainValue(weights[j] / sum), 2) * kv[j][2 * d + head * width + k];
          }
        }
      }
    }
    v = LinearVariance(block + ".attention_out", mixed, mixed_v, a_.width);
    return Linear(block + ".attention_out", mixed, a_.width);
  }

  Matrix FeedForward(const std::string& block, const FeedForwardSpec& spec, const Matrix& x, Variances& v) const {
    using std::erf;
    Matrix inner = Linear(block + ".feed_forward_in", x, spec.inner_width);
    Variances inner_v = LinearVariance(block + ".feed_forward_in", x, v, spec.inner_width);
    for (size_t t = 0; t < inner_v.size(); ++t) {
      for (size_t k = 0; k < inner_v[t].size(); ++k)
        inner_v[t][k] = ActivationVariance(PlainValue(inner[t][k]), inner_v[t][k]);
    }
    for (Row& row : inner) {
      for (T& v : row) {
        if (spec.activation == ActivationKind::kGelu) {
          v = v * T(0.5) * (T(1) + erf(v * T(M_SQRT1_2)));
        } else if (v < T(0)) {
          v = T(0);
        }
      }
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
    const double epsilon = spec.norm_epsilon;
    if (spec.norm == NormPlacement::kPre) {
      Variances inner = NormVariance(norm1, epsilon, x, v);
      const Matrix middle = Add(x, Attention(block, spec.attention, Norm(norm1, epsilon, x), ids, inner));
      AddTo(v, inner);
      inner = NormVariance(norm2, epsilon, middle, v);
      const Matrix y = Add(middle, FeedForward(block, spec.feed_forward, Norm(norm2, epsilon, middle), inner));
      AddTo(v, inner);
      return y;
    }
    Variances inner = v;
    const Matrix attended = Add(x, Attention(block, spec.attention, x, ids, inner));
    AddTo(v, inner);
    v = inner = NormVariance(norm1, epsilon, attended, v);
    const Matrix middle = Norm(norm1, epsilon, attended);
    const Matrix fed = Add(middle, FeedForward(block, spec.feed_forward, middle, inner));
    AddTo(v, inner);
    v = NormVariance(norm2, epsilon, fed, v);
    return Norm(norm2, epsilon, fed);
  }

  Architecture a_;
  std::vector<ParameterSpec> parameters_;
  std::unordered_map<std::string, size_t> index_;
  std::span<const T> weights_;
};

}  // namespace wisp::testing

#endif  // WISP_TESTS_UNIT_LAYERS_NAIVE_RECOMMENDER_H_
