// The recommender written out once more, naively, over any number type: the oracle of the gradient tests.
//
// It shares nothing with runtime/layers but the architecture and the names of the parameters: no tiles, no fusion, no
// backward. With dual numbers it gives exact derivatives of the loss with respect to any one weight.
#ifndef WISP_TESTS_UNIT_NAIVE_RECOMMENDER_H_
#define WISP_TESTS_UNIT_NAIVE_RECOMMENDER_H_

#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "runtime/core/architecture.h"

namespace wisp::testing {

template <class T>
class NaiveRecommender {
 public:
  using Row = std::vector<T>;
  using Matrix = std::vector<Row>;

  // `weights` in the flat layout; must outlive this object.
  NaiveRecommender(const Architecture& a, std::span<const T> weights) : a_(a), parameters_(ParametersOf(a)), weights_(weights) {}

  // Last hidden states [T][D]. ids < 0 are padding.
  Matrix Encode(std::span<const int32_t> ids) const {
    const size_t t_max = ids.size(), d = a_.width;
    const size_t first = a_.positions == PositionAlignment::kEnd ? a_.max_length - t_max : 0;
    Matrix x(t_max, Row(d, T(0)));
    for (size_t t = 0; t < t_max; ++t) {
      for (size_t k = 0; k < d && ids[t] >= 0; ++k) {
        x[t][k] = T(a_.embedding_scale) * At("item_embedding", ids[t] * d + k) + At("position_embedding", (first + t) * d + k);
      }
    }
    for (size_t b = 0; b < a_.num_blocks; ++b) x = RunBlock("block" + std::to_string(b), x, ids);
    return a_.norm == NormPlacement::kPre ? Norm("final_norm", x) : x;
  }

  Row Logits(const Row& h) const {
    const std::string table = a_.output_table == OutputTable::kTied ? "item_embedding" : "output_embedding";
    Row z(a_.num_items, T(0));
    for (size_t j = 0; j < z.size(); ++j) {
      for (size_t k = 0; k < h.size(); ++k) z[j] = z[j] + h[k] * At(table, j * h.size() + k);
      if (a_.output_bias != OutputBias::kNone) z[j] = z[j] + At("output_bias", j);
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

 private:
  T At(const std::string& name, size_t i) const {
    for (const ParameterSpec& p : parameters_) {
      if (p.name == name) return weights_[p.offset + i];
    }
    return T(NAN);
  }

  Matrix Linear(const std::string& name, const Matrix& x, size_t n) const {
    Matrix y(x.size(), Row(n, T(0)));
    for (size_t t = 0; t < x.size(); ++t) {
      for (size_t j = 0; j < n; ++j) {
        y[t][j] = At(name + ".bias", j);
        for (size_t k = 0; k < x[t].size(); ++k) y[t][j] = y[t][j] + x[t][k] * At(name + ".weight", j * x[t].size() + k);
      }
    }
    return y;
  }

  Matrix Norm(const std::string& name, const Matrix& x) const {
    using std::sqrt;
    Matrix y = x;
    for (Row& row : y) {
      T mean(0), variance(0);
      for (const T& v : row) mean = mean + v / T(double(row.size()));
      for (const T& v : row) variance = variance + (v - mean) * (v - mean) / T(double(row.size()));
      for (size_t k = 0; k < row.size(); ++k) {
        row[k] = (row[k] - mean) / sqrt(variance + T(a_.norm_epsilon)) * At(name + ".gain", k) + At(name + ".bias", k);
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

  Matrix Attention(const std::string& block, const Matrix& x, std::span<const int32_t> ids) const {
    using std::exp;
    const size_t d = a_.width, width = d / a_.num_heads;
    const Matrix qkv = Linear(block + ".qkv", x, 3 * d);
    Matrix mixed(x.size(), Row(d, T(0)));
    for (size_t head = 0; head < a_.num_heads; ++head) {
      for (size_t i = 0; i < x.size(); ++i) {
        T sum(0);
        Row weights(x.size(), T(0));
        for (size_t j = 0; j < (a_.attend == Attend::kCausal ? i + 1 : x.size()); ++j) {
          if (ids[j] < 0) continue;
          T dot(0);
          for (size_t k = 0; k < width; ++k) dot = dot + qkv[i][head * width + k] * qkv[j][d + head * width + k];
          weights[j] = exp(dot * T(1.0 / std::sqrt(double(width))));
          sum = sum + weights[j];
        }
        if (sum == T(0)) continue;
        for (size_t j = 0; j < x.size(); ++j) {
          for (size_t k = 0; k < width; ++k) {
            mixed[i][head * width + k] = mixed[i][head * width + k] + weights[j] / sum * qkv[j][2 * d + head * width + k];
          }
        }
      }
    }
    return Linear(block + ".attention_out", mixed, d);
  }

  Matrix FeedForward(const std::string& block, const Matrix& x) const {
    using std::erf;
    Matrix inner = Linear(block + ".feed_forward_in", x, a_.inner_width);
    for (Row& row : inner) {
      for (T& v : row) {
        if (a_.activation == ActivationKind::kGelu) {
          v = v * T(0.5) * (T(1) + erf(v * T(M_SQRT1_2)));
        } else if (v < T(0)) {
          v = T(0);
        }
      }
    }
    return Linear(block + ".feed_forward_out", inner, a_.width);
  }

  Matrix RunBlock(const std::string& block, const Matrix& x, std::span<const int32_t> ids) const {
    if (a_.norm == NormPlacement::kPre) {
      const Matrix middle = Add(x, Attention(block, Norm(block + ".attention_norm", x), ids));
      return Add(middle, FeedForward(block, Norm(block + ".feed_forward_norm", middle)));
    }
    const Matrix middle = Norm(block + ".attention_norm", Add(x, Attention(block, x, ids)));
    return Norm(block + ".feed_forward_norm", Add(middle, FeedForward(block, middle)));
  }

  Architecture a_;
  std::vector<ParameterSpec> parameters_;
  std::span<const T> weights_;
};

}  // namespace wisp::testing

#endif  // WISP_TESTS_UNIT_NAIVE_RECOMMENDER_H_
