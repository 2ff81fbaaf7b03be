/* An app that lends its threads to wisp_personalise and asks beforehand how much memory that takes.
 *
 *   lent_threads MODEL.wisp LOG.db LEDGER.db OUT.wisp
 */
#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "ports/c/wisp.h"

static int failures = 0;
static size_t tasks = 0, most_threads = 0;

static void Expect(int right, const char* what) {
  if (!right) fprintf(stderr, "FAILED: %s\n", what);
  failures += !right;
}

static size_t Threads(void) {
  size_t n = 0;
  DIR* folder = opendir("/proc/self/task");
  if (folder == NULL) return 0;
  for (const struct dirent* entry = readdir(folder); entry != NULL; entry = readdir(folder))
    n += entry->d_name[0] != '.';
  closedir(folder);
  return n;
}

/* A pool without threads: runs one task after the other, the last one first. */
static void RunTasks(void* user_data, size_t num_tasks, wisp_task task, void* task_data) {
  Expect(strcmp(user_data, "mine") == 0, "the app's pointer comes back");
  Expect(num_tasks == 3, "one task for each worker");
  for (size_t i = num_tasks; i-- > 0;) task(task_data, i);
  tasks += num_tasks;
  if (Threads() > most_threads) most_threads = Threads();
}

static void Memory(const char* path) {
  wisp_error error;
  wisp_model_memory memory = WISP_INIT(wisp_model_memory);
  Expect(wisp_model_plan_memory(path, &memory, &error) == WISP_OK, "memory of a model is planned");
  Expect(memory.size == sizeof(memory) && memory.file_bytes > 0 && memory.activation_bytes > 0, "memory is filled");
  Expect(memory.total_bytes ==
             memory.activation_bytes + memory.packed_weights_bytes + memory.score_bytes + memory.name_bytes,
         "the parts are the total");
  printf("%llu\n", (unsigned long long)memory.total_bytes);
  Expect(wisp_model_plan_memory("absent.wisp", &memory, &error) == WISP_IO &&
             strstr(error.message, "absent.wisp") != NULL,
         "an absent model is named");
  memory.size = 0;
  Expect(wisp_model_plan_memory(path, &memory, &error) == WISP_INVALID_ARGUMENT &&
             strstr(error.message, "WISP_INIT") != NULL,
         "a size is asked for");
}

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  Memory(argv[1]);
  wisp_error error;
  wisp_personalise_options options = WISP_INIT(wisp_personalise_options);
  options.model_path = argv[1];
  wisp_personalise_memory memory = WISP_INIT(wisp_personalise_memory);
  Expect(wisp_personalise_plan_memory(&options, &memory, &error) == WISP_INVALID_ARGUMENT,
         "a number of users is asked for");
  options.num_records_public = 60;
  options.unit = WISP_UNIT_USER;
  options.num_threads = 3;
  Expect(wisp_personalise_plan_memory(&options, &memory, &error) == WISP_OK && memory.total_bytes > memory.weight_bytes,
         "memory of training is planned");
  printf("%llu\n", (unsigned long long)memory.total_bytes);
  options.log_path = argv[2];
  options.ledger_path = argv[3];
  options.output_path = argv[4];
  options.epsilon = 8;
  options.delta = 1e-3;
  options.epochs = 1;
  options.run_tasks = RunTasks;
  options.run_tasks_data = "mine";
  const size_t before = Threads();
  Expect(wisp_personalise(&options, NULL, &error) == WISP_OK, error.message);
  Expect(tasks > 0, "the app's threads got the work");
  Expect(most_threads == before, "the library created no thread");
  return failures == 0 ? 0 : 1;
}
