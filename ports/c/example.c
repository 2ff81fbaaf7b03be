/* The main job in C: recommend, fine-tune privately on what happened on this device, recommend again.
 *
 *   example MODEL.wisp EVENTS.db LEDGER.db OUT.wisp USER [EPSILON]
 */
#include <stdio.h>
#include <stdlib.h>
#include <wisp/wisp.h>

enum { kHistory = 200, kTop = 5 };

static int Fail(const wisp_error* error) {
  fprintf(stderr, "example: %s\n", error->message);
  return (int)error->code;
}

static int Show(const char* title, const char* model_path, const char* log_path, const char* user) {
  wisp_error error;
  wisp_model* model = NULL;
  wisp_log* log = NULL;
  int32_t history[kHistory];
  wisp_recommendation top[kTop];
  size_t num_history = kHistory, count = kTop;
  int failed = 1;
  if (wisp_model_open(model_path, &model, &error) == WISP_OK && wisp_log_open(log_path, &log, &error) == WISP_OK &&
      wisp_log_history(log, model, user, history, &num_history, &error) == WISP_OK &&
      wisp_recommend(model, history, num_history, NULL, top, &count, &error) == WISP_OK) {
    printf("%s\n", title);
    for (size_t i = 0; i < count; ++i) printf("  %zu. %s\n", i + 1, wisp_model_item_name(model, top[i].item));
    failed = 0;
  }
  wisp_log_close(log);
  wisp_model_close(model);
  return failed ? Fail(&error) : 0;
}

static int OnProgress(const wisp_progress* progress, void* user_data) {
  (void)user_data;
  fprintf(stderr, "step %llu of %llu", (unsigned long long)progress->step, (unsigned long long)progress->num_steps);
  /* Epsilon is NaN while it is unknown. Rounded up: an epsilon is never shown smaller than it is. */
  if (progress->epsilon == progress->epsilon) fprintf(stderr, ", epsilon so far %.2f", progress->epsilon + 0.005);
  fputc('\n', stderr);
  return 0;
}

static int PrintStatement(const char* ledger_path, double delta) {
  wisp_error error;
  size_t needed = 0;
  if (wisp_privacy_statement(ledger_path, delta, WISP_STATEMENT_TEXT, NULL, 0, &needed, &error) != WISP_OK)
    return Fail(&error);
  char* text = malloc(needed);
  if (text == NULL) return WISP_INTERNAL;
  const int failed =
      wisp_privacy_statement(ledger_path, delta, WISP_STATEMENT_TEXT, text, needed, &needed, &error) != WISP_OK;
  if (!failed) fputs(text, stdout);
  free(text);
  return failed ? Fail(&error) : 0;
}

int main(int argc, char** argv) {
  if (argc < 6) {
    fprintf(stderr, "usage: example MODEL.wisp EVENTS.db LEDGER.db OUT.wisp USER [EPSILON]\n");
    return WISP_INVALID_ARGUMENT;
  }
  wisp_error error;
  wisp_personalise_options options = WISP_INIT(wisp_personalise_options);
  options.model_path = argv[1];
  options.log_path = argv[2];
  options.ledger_path = argv[3];
  options.output_path = argv[4];
  options.epsilon = argc > 6 ? atof(argv[6]) : 3.0;
  options.delta = 1e-4;
  options.budget_epsilon = 8;        /* over all that is ever done with this log, killed runs included */
  options.unit = WISP_UNIT_USER;     /* several people use this device; on one person's read docs/privacy.md */
  options.num_records_public = 2000; /* a number of users that anybody may know; put your own here */
  options.epochs = 2;
  options.progress = OnProgress;
  int failed = Show("before", argv[1], argv[2], argv[5]);
  if (failed) return failed;
  if (wisp_personalise(&options, NULL, &error) != WISP_OK) return Fail(&error);
  failed = Show("after", argv[4], argv[2], argv[5]);
  return failed ? failed : PrintStatement(argv[3], options.delta);
}
