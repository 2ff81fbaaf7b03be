/* Opens a model and plans its memory for each backend, or checks the reason of the refusal. Prints
 * BACKEND:HISTORY:KEY=SCORE,..., or none.
 *
 *   open_with MODEL.wisp NEEDS_LEDGER.wisp LEDGER.db PUBLIC_LABEL
 */
#include <stdio.h>
#include <string.h>

#include "ports/c/wisp.h"

enum { kHistory = 6, kCount = 5 };

static const int32_t kItems[kHistory] = {3, 1, 4, 15, 92, 65};
static int failures = 0;

static void Expect(int right, const char* what) {
  if (!right) fprintf(stderr, "FAILED: %s\n", what);
  failures += !right;
}

static int Same(const wisp_recommendation* a, const wisp_recommendation* b) {
  return memcmp(a, b, kCount * sizeof(*a)) == 0;
}

static void Recommend(wisp_model* model, wisp_recommendation* out) {
  wisp_error error;
  size_t count = kCount;
  Expect(wisp_recommend(model, kItems, kHistory, NULL, out, &count, &error) == WISP_OK && count == kCount,
         "recommending");
}

/* A batch gives the results of one by one, or is refused, as for XNNPACK. */
static void Batch(wisp_model* model, const wisp_recommendation* one, int refused) {
  wisp_error error;
  const int32_t* histories[] = {kItems, kItems, kItems};
  const size_t lengths[] = {kHistory, 2, kHistory};
  wisp_recommendation batch[3 * kCount];
  size_t found[3];
  const wisp_code code = wisp_recommend_batch(model, histories, lengths, 3, NULL, NULL, kCount, batch, found, &error);
  if (refused) {
    Expect(code == WISP_UNSUPPORTED && strstr(error.message, "XNNPACK") != NULL, "a batch with XNNPACK is refused");
  } else {
    Expect(code == WISP_OK && Same(one, batch) && Same(one, batch + 2 * kCount), "a batch gives what one by one gives");
  }
}

static void Print(const char* name, const wisp_model* model, const wisp_recommendation* top) {
  printf("%s:", name);
  for (int i = 0; i < kHistory; ++i) printf("%s%s", i > 0 ? "," : "", wisp_model_item_key(model, kItems[i]));
  for (int i = 0; i < kCount; ++i)
    printf("%c%s=%.9g", i > 0 ? ',' : ':', wisp_model_item_key(model, top[i].item), (double)top[i].score);
  printf("\n");
}

/* Opens with the backend; returns 0 if it is refused with a sentence that has `reason`. */
static int Try(const char* path, wisp_backend backend, const char* name, const char* reason, wisp_recommendation* top,
               uint64_t* packed_bytes) {
  wisp_error error;
  wisp_model* model = NULL;
  wisp_open_options options = WISP_INIT(wisp_open_options);
  wisp_model_memory memory = WISP_INIT(wisp_model_memory);
  options.backend = backend;
  const wisp_code opened = wisp_model_open_with(path, &options, &model, &error);
  Expect(wisp_model_plan_memory_with(path, &options, &memory, &error) == opened,
         "memory is planned for what can be opened");
  if (opened != WISP_OK) {
    Expect(opened == WISP_UNSUPPORTED && reason != NULL && strstr(error.message, reason) != NULL && model == NULL,
           "a backend is refused with its reason");
    printf("%s:none\n", name);
    return 0;
  }
  Expect(memory.total_bytes ==
             memory.activation_bytes + memory.packed_weights_bytes + memory.score_bytes + memory.name_bytes,
         "the parts are the total");
  *packed_bytes = memory.packed_weights_bytes;
  Recommend(model, top);
  Batch(model, top, backend == WISP_BACKEND_XNNPACK);
  Print(name, model, top);
  wisp_model_close(model);
  return 1;
}

/* Missing fields have their default; values that this version does not know are refused, without a result. */
static void Options(const char* path, const wisp_recommendation* simd) {
  struct {
    wisp_open_options known;
    int64_t later;
  } newer = {{.size = sizeof(newer)}, 0};
  wisp_error error;
  wisp_model* model = NULL;
  wisp_model_memory memory = WISP_INIT(wisp_model_memory);
  wisp_recommendation top[kCount];
  wisp_open_options older = {.size = sizeof(size_t), .backend = WISP_BACKEND_INT8}; /* only the size is read */
  const wisp_open_options* given[] = {NULL, &older, &newer.known};
  for (int i = 0; i < 4; ++i) {
    const wisp_code code =
        i < 3 ? wisp_model_open_with(path, given[i], &model, &error) : wisp_model_open(path, &model, &error);
    Expect(code == WISP_OK, "the default is opened");
    Recommend(model, top);
    Expect(Same(simd, top), "the default is float");
    wisp_model_close(model);
  }
  model = NULL;
  newer.later = 1;
  Expect(wisp_model_open_with(path, &newer.known, &model, &error) == WISP_UNSUPPORTED &&
             strstr(error.message, "wisp_open_options") != NULL,
         "a later option");
  wisp_open_options options = WISP_INIT(wisp_open_options);
  const int backends[] = {3, -1, 1000};
  for (int i = 0; i < 3; ++i) {
    char reason[32];
    snprintf(reason, sizeof(reason), "no backend %d", backends[i]);
    memcpy(&options.backend, &backends[i], sizeof(options.backend));
    Expect(wisp_model_open_with(path, &options, &model, &error) == WISP_INVALID_ARGUMENT &&
               strstr(error.message, reason) != NULL,
           "no such backend");
    Expect(wisp_model_plan_memory_with(path, &options, &memory, &error) == WISP_INVALID_ARGUMENT &&
               memory.total_bytes == 0,
           "no such backend to plan for");
  }
  Expect(wisp_model_open_with(NULL, &options, &model, &error) == WISP_INVALID_ARGUMENT &&
             strstr(error.message, "wisp_model_open_with:") != NULL,
         "no path");
  Expect(wisp_model_plan_memory_with(path, &options, NULL, &error) == WISP_INVALID_ARGUMENT, "no memory");
  Expect(strstr(error.message, "wisp_model_plan_memory_with:") != NULL, "no memory, in the words of who was called");
  Expect(wisp_model_open(NULL, &model, &error) == WISP_INVALID_ARGUMENT &&
             strstr(error.message, "wisp_model_open:") != NULL,
         "no path without options");
  options.size = 0;
  Expect(wisp_model_open_with(path, &options, &model, &error) == WISP_INVALID_ARGUMENT &&
             strstr(error.message, "WISP_INIT") != NULL,
         "no size");
  Expect(model == NULL, "nothing comes out of a refusal");
  options = (wisp_open_options)WISP_INIT(wisp_open_options);
  options.backend = WISP_BACKEND_INT8;
  Expect(wisp_model_open_with("absent.wisp", &options, &model, &error) == WISP_IO &&
             strstr(error.message, "absent.wisp") != NULL,
         "an absent model is named");
}

static void Decodings(wisp_model* model, wisp_private_options options) {
  const int decodings[] = {3, -1, 1000};
  for (int i = 0; i < 3; ++i) {
    wisp_error error;
    wisp_private_recommender* recommender = NULL;
    char reason[32];
    snprintf(reason, sizeof(reason), "no decoding %d", decodings[i]);
    memcpy(&options.decoding, &decodings[i], sizeof(options.decoding));
    const wisp_code code = wisp_private_recommender_open(model, &options, &recommender, &error);
    Expect(code == WISP_INVALID_ARGUMENT && strstr(error.message, reason) != NULL && recommender == NULL,
           "no such decoding");
  }
}

/* Private sampling needs a model and a base in float32. A refused request sets no limit, which would make the ledger,
 * and opens no ledger. */
static void Private(const char* path, const char* base_path, const char* ledger, const char* label) {
  wisp_error error;
  wisp_model *models[2] = {NULL, NULL}, *bases[2] = {NULL, NULL};
  wisp_open_options int8 = WISP_INIT(wisp_open_options);
  int8.backend = WISP_BACKEND_INT8;
  for (int i = 0; i < 2; ++i) {
    Expect(wisp_model_open_with(path, i == 1 ? &int8 : NULL, &models[i], &error) == WISP_OK, "the model is opened");
    Expect(wisp_model_open_with(base_path, i == 1 ? &int8 : NULL, &bases[i], &error) == WISP_OK, "the base is opened");
  }
  wisp_private_options options = WISP_INIT(wisp_private_options);
  options.public_datasets = &label;
  options.num_public_datasets = 1;
  options.ledger_path = ledger;
  options.clip = 0.5;
  for (int i = 0; i < 8; ++i) {
    wisp_private_recommender* recommender = NULL;
    const int which = i % 4; /* the model's backend and the base's */
    options.base_model = bases[which / 2];
    options.budget_epsilon = i > 0 ? 1 : 0;
    options.delta = i > 0 ? 1e-6 : 0;
    options.ledger_path = i < 4 ? ledger : path; /* `path` is not a ledger */
    if (i == 4) continue;
    const wisp_code code = wisp_private_recommender_open(models[which % 2], &options, &recommender, &error);
    const int is_model = strstr(error.message, "open the model") != NULL,
              is_base = strstr(error.message, "open the base") != NULL;
    if (i > 0)
      Expect(code == WISP_UNSUPPORTED && is_model == which % 2 && is_base == (which == 2) && recommender == NULL,
             "private samples in int8 are refused");
    if (i == 0) Expect(code == WISP_OK, "private samples in float");
    wisp_private_recommender_close(recommender);
  }
  options.ledger_path = ledger;
  options.base_model = bases[0];
  Decodings(models[0], options);
  for (int i = 0; i < 2; ++i) {
    wisp_model_close(models[i]);
    wisp_model_close(bases[i]);
  }
}

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  wisp_recommendation simd[kCount], other[kCount];
  uint64_t simd_bytes = 0, other_bytes = 0;
  Expect(Try(argv[1], WISP_BACKEND_SIMD, "simd", NULL, simd, &simd_bytes), "float is everywhere");
  Options(argv[1], simd);
  Try(argv[1], WISP_BACKEND_XNNPACK, "xnnpack", "XNNPACK", other, &other_bytes);
  if (Try(argv[1], WISP_BACKEND_INT8, "int8", "8-bit", other, &other_bytes)) {
    Expect(!Same(simd, other), "int8 is another computation");
    Expect(other_bytes > 0 && other_bytes < simd_bytes / 2, "packed weights of int8 take less room");
    Private(argv[2], argv[1], argv[3], argv[4]);
  }
  return failures > 0;
}
