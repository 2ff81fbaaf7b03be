/* wisp_recommend_batch gives the results of wisp_recommend, history by history, and names errors.
 *
 *   recommend_batch MODEL.wisp
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ports/c/wisp.h"

enum { kHistories = 40, kCount = 5 };

static int failures = 0;

static void Expect(int right, const char* what) {
  if (!right) fprintf(stderr, "FAILED: %s\n", what);
  failures += !right;
}

/* The app's pool runs one task after the other, the last one first. */
static void RunTasks(void* user_data, size_t num_tasks, wisp_task task, void* task_data) {
  for (size_t i = num_tasks; i-- > 0;) task(task_data, i);
  *(size_t*)user_data += num_tasks;
}

/* A count above the catalogue gives all of it, as far as a buffer can reach. */
static void ExpectAll(wisp_model* model, const int32_t* const* histories, const size_t* lengths) {
  const size_t items = wisp_model_num_items(model), counts[] = {SIZE_MAX, SIZE_MAX - 1, (size_t)1 << 60, items + 3};
  wisp_recommendation* one = malloc(items * sizeof(*one));
  wisp_recommendation* batch = malloc((2 * items + 3) * sizeof(*batch));
  wisp_error error;
  size_t found[2] = {0, 0}, count = SIZE_MAX;
  wisp_recommend_options options = WISP_INIT(wisp_recommend_options);
  options.allow_seen = 2;
  Expect(wisp_recommend(model, histories[0], lengths[0], &options, one, &count, &error) == WISP_OK &&
             count == items - 1,
         "all of one");
  for (int i = 0; i < 4; ++i) {
    Expect(wisp_recommend_batch(model, histories, lengths, 1, &options, NULL, counts[i], batch, found, &error) ==
                   WISP_OK &&
               found[0] == count && memcmp(one, batch, count * sizeof(*one)) == 0,
           "all of a batch of one");
    Expect(wisp_recommend_batch(model, histories, lengths, 0, &options, NULL, counts[i], batch, found, &error) ==
               WISP_OK,
           "all of none");
    if (i == 3) break;
    found[1] = 77;
    Expect(wisp_recommend_batch(model, histories, lengths, 2, &options, NULL, counts[i], batch, found, &error) ==
                   WISP_INVALID_ARGUMENT &&
               strstr(error.message, "too many") != NULL && found[1] == 77,
           "no buffer reaches the second history");
  }
  /* The second history's results begin `count` after the first's, not at the catalogue's end. */
  Expect(wisp_recommend_batch(model, histories, lengths, 2, &options, NULL, items + 3, batch, found, &error) ==
                 WISP_OK &&
             found[1] == items - 2,
         "all of two");
  count = items;
  Expect(wisp_recommend(model, histories[1], lengths[1], &options, one, &count, &error) == WISP_OK &&
             count == found[1] && memcmp(one, batch + items + 3, count * sizeof(*one)) == 0,
         "the second of two");
  free(batch);
  free(one);
}

/* No more threads than histories, and none beyond what is allowed. */
static void ExpectThreads(wisp_model* model, const int32_t* const* histories, const size_t* lengths) {
  static wisp_recommendation best[kHistories];
  size_t found[kHistories], lent = 0;
  wisp_error error;
  wisp_batch_options how = WISP_INIT(wisp_batch_options);
  how.run_tasks = RunTasks;
  how.run_tasks_data = &lent;
  how.num_threads = 1024;
  Expect(wisp_recommend_batch(model, histories, lengths, 3, NULL, &how, 1, best, found, &error) == WISP_OK && lent == 3,
         "a thread for each history");
  Expect(wisp_recommend_batch(model, histories, lengths, kHistories, NULL, &how, 1, best, found, &error) == WISP_OK &&
             lent == 3 + kHistories,
         "more of them where there are more");
  Expect(wisp_recommend_batch(model, histories, lengths, 0, NULL, &how, 1, best, found, &error) == WISP_OK,
         "threads for none");
  for (uint64_t threads = 1025; threads <= UINT32_MAX; threads = threads * 16 + 15) {
    how.num_threads = (uint32_t)threads;
    Expect(wisp_recommend_batch(model, histories, lengths, 3, NULL, &how, 1, best, found, &error) ==
                   WISP_INVALID_ARGUMENT &&
               strstr(error.message, "num_threads") != NULL,
           "too many threads");
  }
}

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  wisp_error error;
  size_t lent = 0;
  wisp_model* model = NULL;
  if (wisp_model_open(argv[1], &model, &error) != WISP_OK) {
    fprintf(stderr, "%s\n", error.message);
    return 1;
  }
  int32_t items[kHistories];
  const int32_t* histories[kHistories];
  size_t lengths[kHistories], found[kHistories];
  wisp_recommendation batch[kHistories * kCount];
  for (int i = 0; i < kHistories; ++i) {
    items[i] = i * 11;
    histories[i] = items;
    lengths[i] = (size_t)i + 1;
  }
  const int32_t candidates[] = {3, 1, 4, 15, 92, 65, 35, 89, 79};
  wisp_recommend_options options = WISP_INIT(wisp_recommend_options);
  options.candidates = candidates;
  options.num_candidates = 9;
  /* Runs on 0, 1, 2 threads of the library, then on 3 that the app lends. */
  for (uint32_t threads = 0; threads < 4; ++threads) {
    const wisp_recommend_options* given = threads == 1 ? &options : NULL;
    wisp_batch_options how = WISP_INIT(wisp_batch_options);
    how.num_threads = threads;
    how.run_tasks = threads == 3 ? RunTasks : NULL;
    how.run_tasks_data = &lent;
    Expect(wisp_recommend_batch(model, histories, lengths, kHistories, given, &how, kCount, batch, found, &error) ==
               WISP_OK,
           "a batch");
    for (size_t i = 0; i < kHistories; ++i) {
      wisp_recommendation one[kCount];
      size_t count = kCount;
      Expect(wisp_recommend(model, histories[i], lengths[i], given, one, &count, &error) == WISP_OK, "one by one");
      Expect(found[i] == count && memcmp(one, batch + i * kCount, count * sizeof(one[0])) == 0,
             "a batch gives what one by one gives");
    }
  }
  Expect(lent == 3, "the app's threads are asked, one task each");
  ExpectAll(model, histories, lengths);
  ExpectThreads(model, histories, lengths);
  lengths[7] = 0;
  Expect(wisp_recommend_batch(model, histories, lengths, kHistories, NULL, NULL, kCount, batch, found, &error) ==
                 WISP_INVALID_ARGUMENT &&
             strstr(error.message, "history 7 is empty") != NULL,
         "an empty history is named");
  lengths[7] = 8;
  histories[9] = NULL;
  Expect(wisp_recommend_batch(model, histories, lengths, kHistories, NULL, NULL, kCount, batch, found, &error) ==
                 WISP_INVALID_ARGUMENT &&
             strstr(error.message, "history 9 is NULL") != NULL,
         "a history that is NULL is named");
  Expect(wisp_recommend_batch(model, NULL, lengths, 1, NULL, NULL, kCount, batch, found, &error) ==
             WISP_INVALID_ARGUMENT,
         "no histories");
  Expect(wisp_recommend_batch(model, histories, lengths, 0, NULL, NULL, kCount, batch, found, &error) == WISP_OK,
         "none of them");
  Expect(wisp_recommend_batch(model, histories, lengths, SIZE_MAX / 8, NULL, NULL, SIZE_MAX / 8, batch, found,
                              &error) == WISP_INVALID_ARGUMENT,
         "too many");
  wisp_model_close(model);
  return failures > 0;
}
