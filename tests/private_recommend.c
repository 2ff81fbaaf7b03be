/* Private recommendations through the C interface: refused without a ledger, sampled while the budget lasts, free for
 * public data.
 *
 *   private_recommend MODEL.wisp BASE.wisp LEDGER.db PUBLIC_LABEL
 */
#include <stdio.h>
#include <string.h>

#include "ports/c/wisp.h"

enum { kTop = 4 };

static int Fails(const char* what, const wisp_error* error) {
  fprintf(stderr, "FAILED: %s: %s\n", what, error->message);
  return 1;
}

/* Samples until the budget refuses; returns the number of answered calls. */
static int SampleUntilSpent(wisp_private_recommender* recommender, wisp_error* error) {
  const int32_t history[] = {3, 1, 4};
  wisp_recommend_options options = WISP_INIT(wisp_recommend_options);
  int calls = 0;
  options.allow_seen = 2;
  for (; calls < 100; ++calls) {
    int32_t items[kTop];
    size_t count = kTop;
    if (wisp_private_recommend(recommender, history, 3, &options, items, &count, error) != WISP_OK) break;
    for (size_t i = 0; i < count; ++i) {
      for (size_t j = 0; j < i; ++j)
        if (items[i] == items[j]) return -1;
      if (items[i] == 3 || items[i] == 1 || items[i] == 4) return -1;
    }
  }
  return calls;
}

int main(int argc, char** argv) {
  wisp_error error;
  wisp_model *model = NULL, *base = NULL;
  wisp_private_recommender* recommender = NULL;
  if (argc != 5) return WISP_INVALID_ARGUMENT;
  const char* labels[] = {argv[4]};
  if (wisp_model_open(argv[1], &model, &error) != WISP_OK || wisp_model_open(argv[2], &base, &error) != WISP_OK)
    return Fails("opening", &error);

  wisp_private_options options = WISP_INIT(wisp_private_options);
  options.base_model = base;
  options.public_datasets = labels;
  options.num_public_datasets = 1;
  options.epsilon = 2;
  options.delta = 1e-6;
  options.planned_samples = 3 * kTop;
  if (wisp_private_recommender_open(model, &options, &recommender, &error) != WISP_PRIVACY_REFUSED ||
      strstr(error.message, "ledger") == NULL) {
    return Fails("without a ledger", &error);
  }
  options.ledger_path = argv[3];
  options.samples_per_charge = kTop;
  if (wisp_private_recommender_open(model, &options, &recommender, &error) != WISP_OK) return Fails("anchored", &error);
  if (wisp_private_recommender_is_free(recommender)) return Fails("it is not free", &error);
  const int calls = SampleUntilSpent(recommender, &error);
  if (calls != 3 || error.code != WISP_PRIVACY_REFUSED) return Fails("samples until the budget is spent", &error);
  wisp_private_recommender_close(recommender);

  options.ledger_path = NULL;
  if (wisp_private_recommender_open(base, &options, &recommender, &error) != WISP_OK)
    return Fails("public data", &error);
  if (!wisp_private_recommender_is_free(recommender) || SampleUntilSpent(recommender, &error) != 100)
    return Fails("free samples", &error);
  wisp_private_recommender_close(recommender);
  wisp_model_close(base);
  wisp_model_close(model);
  puts("held");
  return 0;
}
