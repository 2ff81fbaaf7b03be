// Implements `wisp privacy perplexity`: the perplexity of private sampling against epsilon.
#ifndef WISP_TOOLS_WISP_PRIVACY_PERPLEXITY_H_
#define WISP_TOOLS_WISP_PRIVACY_PERPLEXITY_H_

#include <string>
#include <vector>

#include "tools/wisp/commands.h"

namespace wisp::tools {

struct PerplexityArguments {
  std::string model, adapter, base, texts, record = "line";
  std::vector<double> epsilons = {1, 2, 4, 8, 16, 32, 64};
  uint64_t draws = 100;  // tokens that each epsilon pays for
  double delta = 1e-6, temperature = 1;
  uint32_t max_length = 0;  // tokens that are read of each text; 0: the positions of the models
};

// Computes the perplexity of texts under the laws of Majmudar et al. 2022, figure 2 (mixed with the uniform), and under
// the anchored one, by pure composition and by PLD. Beside them stand the model and the base alone. Not private: local
// only.
Status PrivacyPerplexity(const PerplexityArguments& arguments, OutputFormat format);

}  // namespace wisp::tools

#endif  // WISP_TOOLS_WISP_PRIVACY_PERPLEXITY_H_
