/* Makes the call of an app's start: makes or finds the plan of a deployment; then prints what the ledger has.
 *
 *   plan BASE.wisp LEDGER OUT.wisp
 */
#include <stdio.h>

#include "ports/c/wisp_deployment.h"

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  wisp_error error;
  wisp_plan_options options = WISP_INIT(wisp_plan_options);
  options.model_path = argv[1];
  options.ledger_path = argv[2];
  options.output_path = argv[3];
  options.dataset = "the cafe's log";
  options.epsilon = 4;
  options.delta = 1e-5;
  options.num_records_public = 2000;
  options.runs = 6;
  options.steps_per_run = 2;
  options.evaluations = 2;
  options.unit = WISP_UNIT_USER;
  options.num_threads = 1;
  wisp_plan plan = WISP_INIT(wisp_plan);
  wisp_budget budget = WISP_INIT(wisp_budget);
  if (wisp_plan_make(&options, &plan, &error) == WISP_OK &&
      wisp_budget_read(argv[2], NULL, 1e-5, &budget, &error) == WISP_OK) {
    printf("%d %d %d %d %g\n", plan.was_there, budget.has_plan, (int)budget.runs_left, (int)budget.evaluations_left,
           budget.epsilon_limit);
    return 0;
  }
  fprintf(stderr, "plan: %s\n", error.message);
  return (int)error.code;
}
