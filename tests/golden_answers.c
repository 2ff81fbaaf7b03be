/* The C interface opens the files of tests/golden/0.1 and answers what answers.txt says (tests/golden/README.md).
 *
 *   golden_answers FOLDER     a copy: an opened ledger may get files of SQLite beside it
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ports/c/wisp_deployment.h"

enum { kItems = 7 };

static const char* folder;
static int answers = 0;

static void Expect(int right, const char* question, const char* what) {
  if (right) return;
  fprintf(stderr, "golden_answers: %s: %s\n", question, what);
  exit(1);
}

static const char* Path(char path[512], const char* name) {
  snprintf(path, 512, "%s/%s", folder, name);
  return path;
}

/* Numbers may differ by the rounding of another processor. */
static int IsNear(double a, double b) { return fabs(a - b) <= 1e-5 * (1 + fabs(a)); }

/* The next word of the line that strtok reads. */
static const char* Next(const char* question) {
  const char* word = strtok(NULL, " \n");
  Expect(word != NULL, question, "the line is too short");
  return word;
}

static void Recommend(const char* question, int has_adapter) {
  char path[512], adapter[512], history[64];
  wisp_error error;
  wisp_model* model = NULL;
  wisp_open_options options = WISP_INIT(wisp_open_options);
  wisp_recommend_options how = WISP_INIT(wisp_recommend_options);
  wisp_recommendation best[kItems];
  int32_t items[8];
  size_t length = 0, count = kItems, i;
  Path(path, Next(question));
  if (has_adapter) options.adapter_path = Path(adapter, Next(question));
  Expect(wisp_model_open_with(path, &options, &model, &error) == WISP_OK, question, error.message);
  snprintf(history, sizeof(history), "%s", Next(question));
  for (char* key = history; key != NULL && length < 8;) {
    char* comma = strchr(key, ',');
    if (comma != NULL) *comma = 0;
    items[length++] = wisp_model_find_item(model, key);
    key = comma == NULL ? NULL : comma + 1;
  }
  how.allow_seen = 1;
  Expect(wisp_recommend(model, items, length, &how, best, &count, &error) == WISP_OK, question, error.message);
  Expect(count == kItems, question, "another number of items");
  for (i = 0; i < count; ++i) {
    Expect(strcmp(wisp_model_item_key(model, best[i].item), Next(question)) == 0, question, "another item");
    Expect(IsNear(strtod(Next(question), NULL), best[i].score), question, "another score");
  }
  wisp_model_close(model);
}

static void History(const char* question) {
  char path[512];
  wisp_error error;
  wisp_log* log = NULL;
  wisp_model* model = NULL;
  int32_t items[16];
  size_t count = 16, i;
  const char* user;
  Expect(wisp_log_open(Path(path, Next(question)), &log, &error) == WISP_OK, question, error.message);
  Expect(wisp_model_open(Path(path, Next(question)), &model, &error) == WISP_OK, question, error.message);
  user = Next(question);
  Expect(wisp_log_history(log, model, user, items, &count, &error) == WISP_OK, question, error.message);
  for (i = 0; i < count; ++i) {
    Expect(strcmp(wisp_model_item_key(model, items[i]), Next(question)) == 0, question, "another item");
  }
  wisp_model_close(model);
  wisp_log_close(log);
}

static void Events(const char* question) {
  char path[512];
  wisp_error error;
  wisp_log* log = NULL;
  wisp_log_counts counts = WISP_INIT(wisp_log_counts);
  Expect(wisp_log_open(Path(path, Next(question)), &log, &error) == WISP_OK, question, error.message);
  Expect(wisp_log_count(log, &counts, &error) == WISP_OK, question, error.message);
  Expect(counts.events == strtoull(Next(question), NULL, 10), question, "another number of events");
  wisp_log_close(log);
}

static void Epsilon(const char* question) {
  static char statement[65536];
  char path[512];
  wisp_error error;
  wisp_budget budget = WISP_INIT(wisp_budget);
  size_t needed = 0;
  double delta, epsilon;
  const char* said;
  Path(path, Next(question));
  delta = strtod(Next(question), NULL);
  epsilon = strtod(Next(question), NULL);
  Expect(wisp_budget_read(path, NULL, delta, &budget, &error) == WISP_OK, question, error.message);
  Expect(IsNear(epsilon, budget.epsilon_stated), question, "the budget states another epsilon");
  Expect(wisp_privacy_statement(path, delta, WISP_STATEMENT_JSON, statement, sizeof(statement), &needed, &error) ==
             WISP_OK,
         question, error.message);
  said = strstr(statement, "\"epsilon\":");
  Expect(said != NULL && IsNear(epsilon, strtod(said + 10, NULL)), question, "the statement has another epsilon");
}

int main(int argc, char** argv) {
  char path[512], line[512], question[512];
  const char* verb;
  FILE* file;
  folder = argc == 2 ? argv[1] : ".";
  file = fopen(Path(path, "answers.txt"), "r");
  Expect(file != NULL, path, "cannot be opened");
  while (fgets(line, sizeof(line), file) != NULL) {
    snprintf(question, sizeof(question), "%.40s", line);
    verb = strtok(line, " \n");
    if (strcmp(verb, "recommend") == 0)
      Recommend(question, 0);
    else if (strcmp(verb, "adapter") == 0)
      Recommend(question, 1);
    else if (strcmp(verb, "history") == 0)
      History(question);
    else if (strcmp(verb, "events") == 0)
      Events(question);
    else if (strcmp(verb, "epsilon") == 0)
      Epsilon(question);
    else
      Expect(0, question, "no such question");
    Expect(strtok(NULL, " \n") == NULL, question, "the line says more than was answered");
    ++answers;
  }
  fclose(file);
  printf("%d answers hold\n", answers);
  return 0;
}
