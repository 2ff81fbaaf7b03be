/* Runs a fine-tuning that declares another number of users than its log has, and prints its steps.
 *
 *   declared MODEL.wisp LOG.db LEDGER.db OUT.wisp USERS
 */
#include <stdio.h>
#include <stdlib.h>

#include "ports/c/wisp.h"

int main(int argc, char** argv) {
  if (argc != 6) return 1;
  wisp_error error;
  wisp_personalise_options options = {.size = sizeof(options),
                                      .model_path = argv[1],
                                      .log_path = argv[2],
                                      .output_path = argv[4],
                                      .ledger_path = argv[3],
                                      .epsilon = 2,
                                      .delta = 1e-4,
                                      .num_records_public = (uint32_t)atoi(argv[5]),
                                      .unit = WISP_UNIT_USER,
                                      .expected_batch = 20,
                                      .epochs = 1};
  wisp_personalise_result result = {.size = sizeof(result)};
  if (wisp_personalise(&options, &result, &error) != WISP_OK) {
    fprintf(stderr, "declared: %s\n", error.message);
    return 1;
  }
  printf("%llu\n", (unsigned long long)result.num_steps);
  return 0;
}
