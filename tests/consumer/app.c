/* An app outside of the tree, in C and in C++: opens a model and recommends. With WITH_TRAINING it also calls functions
 * of the larger library that need SQLite and libsodium: a log, and private recommendations. With WITH_TEXT it asks for
 * texts, which the model does not have.
 *
 *   app MODEL.wisp LOG.db
 */
#include <stdio.h>
#include <string.h>
#include <wisp/wisp.h>
#include <wisp/wisp_text.h>

static int Fail(const wisp_error* error) {
  fprintf(stderr, "app: %s\n", error->message);
  return 1;
}

static int Recommend(wisp_model* model) {
  const int32_t history[] = {12, 7, 31};
  wisp_error error;
  wisp_recommendation top[5];
  size_t count = 5;
  if (wisp_recommend(model, history, 3, NULL, top, &count, &error) != WISP_OK) return Fail(&error);
  return count == 5 && strlen(wisp_model_item_name(model, top[0].item)) > 0 ? 0 : 2;
}

#ifdef WITH_TRAINING
static int DrawAfterLog(wisp_model* model, const char* log_path) {
  wisp_error error;
  wisp_log* log = NULL;
  wisp_private_recommender* recommender = NULL;
  wisp_private_options options = WISP_INIT(wisp_private_options);
  const char* const datasets[] = {"synthetic public cafe guests"};
  int32_t history[2], drawn[3];
  size_t num_history = 2, count = 3;
  int failed = 1;
  options.public_datasets = datasets;
  options.num_public_datasets = 1;
  if (wisp_log_open(log_path, &log, &error) == WISP_OK &&
      wisp_log_append(log, "guest", wisp_model_item_key(model, 12), 1, &error) == WISP_OK &&
      wisp_log_history(log, model, "guest", history, &num_history, &error) == WISP_OK &&
      wisp_private_recommender_open(model, &options, &recommender, &error) == WISP_OK &&
      wisp_private_recommend(recommender, history, num_history, NULL, drawn, &count, &error) == WISP_OK)
    failed = 0;
  wisp_private_recommender_close(recommender);
  wisp_log_close(log);
  return failed ? Fail(&error) : count == 3 ? 0 : 2;
}
#endif

#ifdef WITH_TEXT
static int OpenAsText(const char* path) {
  wisp_error error;
  wisp_text_model* model = NULL;
  float vector[1];
  if (wisp_text_open(path, NULL, &model, &error) != WISP_INVALID_ARGUMENT || model != NULL) return 2;
  if (wisp_text_embed(model, "a text", vector, 1, &error) == WISP_OK) return 2;
  wisp_text_close(model);
  return 0;
}
#endif

int main(int argc, char** argv) {
  wisp_error error;
  wisp_model* model = NULL;
  int failed;
  if (argc != 3) return 2;
  if (wisp_model_open(argv[1], &model, &error) != WISP_OK) return Fail(&error);
  failed = Recommend(model);
#ifdef WITH_TEXT
  if (!failed) failed = OpenAsText(argv[1]);
#endif
#ifdef WITH_TRAINING
  if (!failed) failed = DrawAfterLog(model, argv[2]);
#endif
  wisp_model_close(model);
  return failed;
}
