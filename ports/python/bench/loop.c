/* The C side of bench.py: the same calls, and the time they take. */
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <wisp/wisp.h>

static double Now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Seconds for one wisp_recommend per history; negative if one of them failed. */
double loop_one(wisp_model* model, const int32_t* histories, size_t length, size_t num_histories, size_t k) {
  wisp_recommendation* top = malloc(k * sizeof(*top));
  const double start = Now();
  for (size_t i = 0; i < num_histories; ++i) {
    size_t count = k;
    if (wisp_recommend(model, histories + i * length, length, NULL, top, &count, NULL) != WISP_OK) return -1;
  }
  const double seconds = Now() - start;
  free(top);
  return seconds;
}

/* Seconds for the last `num` events of a history that grows to `length`, with one wisp_recommend each. */
double loop_growing(wisp_model* model, const int32_t* history, size_t length, size_t num, size_t k) {
  wisp_recommendation* top = malloc(k * sizeof(*top));
  size_t count = k;
  if (wisp_recommend(model, history, length - num, NULL, top, &count, NULL) != WISP_OK) return -1;
  const double start = Now();
  for (size_t i = 0; i < num; ++i) {
    count = k;
    if (wisp_recommend(model, history, length - num + i + 1, NULL, top, &count, NULL) != WISP_OK) return -1;
  }
  const double seconds = Now() - start;
  free(top);
  return seconds;
}

/* Seconds for one wisp_recommend_batch, including the transfer of the histories. */
double loop_batch(wisp_model* model, const int32_t* histories, size_t length, size_t num_histories, size_t k) {
  const double start = Now();
  const int32_t** starts = malloc(num_histories * sizeof(*starts));
  size_t* lengths = malloc(num_histories * sizeof(*lengths));
  size_t* found = malloc(num_histories * sizeof(*found));
  wisp_recommendation* top = malloc(num_histories * k * sizeof(*top));
  for (size_t i = 0; i < num_histories; ++i) starts[i] = histories + i * length, lengths[i] = length;
  wisp_batch_options how = WISP_INIT(wisp_batch_options);
  how.num_threads = 1;
  const wisp_code code = wisp_recommend_batch(model, starts, lengths, num_histories, NULL, &how, k, top, found, NULL);
  free(top), free(found), free(lengths), free(starts);
  return code == WISP_OK ? Now() - start : -1;
}
