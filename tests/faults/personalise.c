/* Runs one fine-tuning through the C interface, and writes a line at once for each reported step.
 *
 *   personalise MODEL.wisp LOG.db LEDGER.db CHECKPOINT OUT.wisp
 */
#include <stdio.h>

#include "ports/c/wisp.h"

static int OnProgress(const wisp_progress* progress, void* user_data) {
  (void)user_data;
  fprintf(stderr, "train %llu/%llu\n", (unsigned long long)progress->step, (unsigned long long)progress->num_steps);
  return 0;
}

int main(int argc, char** argv) {
  if (argc != 6) return 2;
  wisp_error error;
  wisp_personalise_options options = {.size = sizeof(options),
                                      .model_path = argv[1],
                                      .log_path = argv[2],
                                      .output_path = argv[5],
                                      .ledger_path = argv[3],
                                      .checkpoint_path = argv[4],
                                      .checkpoint_every = 2,
                                      .epsilon = 4,
                                      .delta = 1e-4,
                                      .num_records_public = 60,
                                      .unit = WISP_UNIT_USER,
                                      .expected_batch = 20,
                                      .epochs = 2,
                                      .num_threads = 1,
                                      .progress = OnProgress};
  if (wisp_personalise(&options, NULL, &error) == WISP_OK) return 0;
  fprintf(stderr, "personalise: %s\n", error.message);
  return (int)error.code;
}
