/* What ports/wasm/demo/demo.js asks of the library when its button is pressed, natively: learn MODEL LOG FOLDER */
#include <stdio.h>
#include <time.h>
#include <wisp/wisp.h>

int main(int argc, char** argv) {
  if (argc != 4) return fputs("usage: learn MODEL LOG FOLDER\n", stderr), 2;
  char output[4096], ledger[4096];
  snprintf(output, sizeof output, "%s/mine.wisp", argv[3]);
  snprintf(ledger, sizeof ledger, "%s/privacy.ledger", argv[3]);
  wisp_personalise_options options = WISP_INIT(wisp_personalise_options);
  options.model_path = argv[1];
  options.log_path = argv[2];
  options.output_path = output;
  options.ledger_path = ledger;
  options.epsilon = options.budget_epsilon = 4;
  options.planned_runs = 4;
  options.delta = 1e-5;
  options.num_users_public = 2000;
  options.unit = WISP_UNIT_USER;
  options.times_per_second = 1;
  options.expected_batch = 128;
  options.epochs = 3;
  options.learning_rate = 0.003;
  options.num_threads = 1;
  struct timespec begin, end;
  wisp_personalise_result result = WISP_INIT(wisp_personalise_result);
  wisp_error error;
  timespec_get(&begin, TIME_UTC);
  if (wisp_personalise(&options, &result, &error) != WISP_OK) return fprintf(stderr, "%s\n", error.message), 1;
  timespec_get(&end, TIME_UTC);
  printf("%llu %.3f\n", (unsigned long long)result.num_steps,
         (double)(end.tv_sec - begin.tv_sec) + 1e-9 * (double)(end.tv_nsec - begin.tv_nsec));
  return 0;
}
