/* Checks that wisp_personalise refuses before anything is spent, and does not change ledger and limit.
 *
 *   personalise_refused MODEL.wisp LOG.db LEDGER.db IMPORTED.wisp TRAINED.wisp TUNED.wisp
 *
 * The ledger has spent more than epsilon 2; nobody said what IMPORTED learned from; TRAINED learned from LOG without a
 * guarantee, TUNED with one, paid for from LEDGER.
 */
#include <stdio.h>
#include <string.h>

#include "ports/c/wisp.h"

static char before[1 << 16], after[1 << 16];

static int Statement(const char* ledger, char* text) {
  wisp_error error;
  size_t needed = 0;
  return wisp_privacy_statement(ledger, 1e-3, WISP_STATEMENT_JSON, text, sizeof(before), &needed, &error) == WISP_OK &&
         needed <= sizeof(before);
}

static int Refused(const wisp_personalise_options* options, wisp_code code, const char* because) {
  wisp_error error = {0};
  const wisp_code got = wisp_personalise(options, NULL, &error);
  const int right = got == code && strstr(error.message, because) != NULL && Statement(options->ledger_path, after) &&
                    strcmp(before, after) == 0;
  if (!right)
    fprintf(stderr, "FAILED: code %d, '%s', expected %d with '%s' and an unchanged ledger\n", (int)got, error.message,
            (int)code, because);
  return right;
}

int main(int argc, char** argv) {
  if (argc != 7 || !Statement(argv[3], before)) {
    fprintf(stderr, "FAILED: %s\n", argc == 7 ? "LEDGER cannot be read" : "six files are to be named");
    return 1;
  }
  wisp_personalise_options options = {.size = sizeof(options),
                                      .model_path = argv[1],
                                      .log_path = argv[2],
                                      .output_path = "refused.wisp",
                                      .ledger_path = argv[3],
                                      .epsilon = 4,
                                      .delta = 1e-3,
                                      .num_records_public = 60,
                                      .epochs = 1,
                                      .unit = WISP_UNIT_USER};
  wisp_error error = {0};
  int right = 1;
  options.num_threads = 4000000000u;
  right &= Refused(&options, WISP_INVALID_ARGUMENT, "num_threads is 4000000000");
  wisp_personalise_memory memory = WISP_INIT(wisp_personalise_memory);
  if (wisp_personalise_plan_memory(&options, &memory, &error) != WISP_INVALID_ARGUMENT ||
      strstr(error.message, "num_threads") == NULL || memory.total_bytes != 0) {
    fprintf(stderr, "FAILED: memory for 4000000000 threads: %s\n", error.message);
    right = 0;
  }
  options.num_threads = 0;
  options.output_path = "no/such/folder/out.wisp";
  right &= Refused(&options, WISP_IO, "no/such/folder");
  options.output_path = argv[2];
  right &= Refused(&options, WISP_INVALID_ARGUMENT, "output_path and log_path name the same file");
  options.output_path = argv[3];
  right &= Refused(&options, WISP_INVALID_ARGUMENT, "output_path and ledger_path name the same file");
  options.output_path = "refused.wisp";
  options.dataset = "another";
  right &= Refused(&options, WISP_PRIVACY_REFUSED, "what is to be charged is 'another'");
  options.dataset = NULL;
  options.budget_epsilon = 2;
  right &= Refused(&options, WISP_PRIVACY_REFUSED, "is spent on the data set already");
  options.budget_epsilon = 0;
  options.model_path = argv[4];
  right &= Refused(&options, WISP_PRIVACY_REFUSED, "it was imported");
  options.model_path = argv[5];
  right &= Refused(&options, WISP_PRIVACY_REFUSED, "without a guarantee");
  /* LEDGER paid for this model, but the named ledger does not know it: the refusal makes no model, limit or file. */
  options.model_path = argv[6];
  options.ledger_path = "unpaid.db";
  options.budget_epsilon = 9;
  if (wisp_personalise(&options, NULL, &error) != WISP_PRIVACY_REFUSED ||
      strstr(error.message, "did not pay for it") == NULL) {
    fprintf(stderr, "FAILED: a ledger that knows nothing of the model: %s\n", error.message);
    right = 0;
  }
  return right ? 0 : 1;
}
