/* Fails allocations in turn, one alone or with all later ones, in opening a model, recommending, and fine-tuning
 * through the C interface. Each call must return an error with a sentence, or do its work without the memory;
 * afterwards everything must work as before. The ledger must state its earlier steps and the reported ones, and a
 * fine-tuning after it must succeed.
 *
 *   allocations MODEL.wisp LOG.db FOLDER POINTS    POINTS of a fine-tuning, evenly spaced; every one of the rest
 *   allocations MODEL.wisp LOG.db FOLDER 0 AT      in a fine-tuning, this one and all later ones
 *
 * Ends with a line "N passed, N failed".
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ports/c/wisp.h"

/* ---- The C library's allocator, which fails when it is told to ------------------------------------------------ */

extern void* __libc_malloc(size_t);
extern void* __libc_calloc(size_t, size_t);
extern void* __libc_realloc(void*, size_t);
extern void* __libc_memalign(size_t, size_t);

enum Mode { kOff, kOne, kAllFrom };
static atomic_int mode;
static atomic_long seen, fail_at;

static int Fails(void) {
  if (atomic_load(&mode) == kOff) return 0;
  const long n = atomic_fetch_add(&seen, 1) + 1, at = atomic_load(&fail_at);
  if (atomic_load(&mode) == kOne ? n != at : n < at) return 0;
  errno = ENOMEM;
  return 1;
}

void* malloc(size_t n) { return Fails() ? NULL : __libc_malloc(n); }
void* calloc(size_t n, size_t size) { return Fails() ? NULL : __libc_calloc(n, size); }
void* realloc(void* p, size_t n) { return Fails() ? NULL : __libc_realloc(p, n); }
void* memalign(size_t alignment, size_t n) { return Fails() ? NULL : __libc_memalign(alignment, n); }
void* aligned_alloc(size_t alignment, size_t n) { return Fails() ? NULL : __libc_memalign(alignment, n); }
int posix_memalign(void** p, size_t alignment, size_t n) {
  if (Fails()) return ENOMEM;
  *p = __libc_memalign(alignment, n);
  return *p == NULL ? ENOMEM : 0;
}

static void Arm(enum Mode how, long at) {
  atomic_store(&seen, 0);
  atomic_store(&fail_at, at);
  atomic_store(&mode, how);
}
static long Disarm(void) {
  atomic_store(&mode, kOff);
  return atomic_load(&seen);
}

/* ---- The calls under test
 * -------------------------------------------------------------------------------------------------- */

enum { kTop = 5, kSteps = 3 }; /* for a fine-tuning: 60 users, 20 at a time */
static const char *model_path, *log_path, *folder;
static char ledger_path[4096], output_path[4096];
static const int32_t kHistory[] = {3, 7, 12};
static wisp_recommendation expected[kTop];
static wisp_model* model;
static int passed, failed;

static wisp_code Recommend(wisp_error* error) {
  wisp_recommendation top[kTop];
  size_t count = kTop;
  const wisp_code code = wisp_recommend(model, kHistory, 3, NULL, top, &count, error);
  if (code == WISP_OK && (count != kTop || memcmp(top, expected, sizeof top) != 0)) {
    snprintf(error->message, sizeof error->message, "other items were recommended");
    return -1;
  }
  return code;
}

static wisp_code OpenAndRecommend(wisp_error* error) {
  wisp_model* before = model;
  model = NULL;
  wisp_code code = wisp_model_open(model_path, &model, error);
  if (code == WISP_OK) code = Recommend(error);
  wisp_model_close(model);
  model = before;
  return code;
}

static uint64_t steps_reported, steps_stated; /* of the last fine-tuning; in the ledger, when last read */

static void RemoveLedger(void) {
  char path[4200];
  for (const char** s = (const char*[]){"", "-wal", "-shm", "-journal", NULL}; *s != NULL; ++s) {
    snprintf(path, sizeof path, "%s%s", ledger_path, *s);
    unlink(path);
  }
  steps_stated = 0;
}

static int OnProgress(const wisp_progress* progress, void* user_data) {
  (void)progress, (void)user_data;
  ++steps_reported;
  return 0;
}

static wisp_code Personalise(wisp_error* error) {
  steps_reported = 0;
  wisp_personalise_options options = {.size = sizeof(options),
                                      .model_path = model_path,
                                      .log_path = log_path,
                                      .output_path = output_path,
                                      .ledger_path = ledger_path,
                                      .epsilon = 4,
                                      .delta = 1e-4,
                                      .num_records_public = 60,
                                      .expected_batch = 20,
                                      .epochs = 1,
                                      .num_threads = 1,
                                      .progress = OnProgress,
                                      .unit = WISP_UNIT_USER};
  return wisp_personalise(&options, NULL, error);
}

static wisp_code StepsInLedger(uint64_t* steps, wisp_error* error) {
  static char text[1 << 16];
  struct stat known;
  *steps = 0;
  /* nothing was charged; the next run makes it */
  if (stat(ledger_path, &known) != 0 || known.st_size == 0) return WISP_OK;
  size_t needed = 0;
  const wisp_code code =
      wisp_privacy_statement(ledger_path, 1e-4, WISP_STATEMENT_JSON, text, sizeof text, &needed, error);
  const char* of_all = code == WISP_OK ? strstr(text, "\"steps\": ") : NULL;
  if (of_all != NULL) *steps = strtoull(of_all + strlen("\"steps\": "), NULL, 10);
  return code;
}

static wisp_code LedgerHolds(wisp_error* error) {
  const uint64_t before = steps_stated;
  const wisp_code code = StepsInLedger(&steps_stated, error);
  if (code != WISP_OK || steps_stated >= before + steps_reported) return code;
  snprintf(error->message, sizeof error->message,
           "the ledger states %llu steps, before it were %llu and %llu were reported done",
           (unsigned long long)steps_stated, (unsigned long long)before, (unsigned long long)steps_reported);
  return -1;
}

static wisp_code LedgerHoldsAndRunsAgain(wisp_error* error) {
  wisp_code code = LedgerHolds(error);
  if (code == WISP_OK) code = Personalise(error);
  if (code == WISP_OK) code = LedgerHolds(error);
  if (code != WISP_OK || steps_reported == kSteps) return code;
  snprintf(error->message, sizeof error->message, "the next fine-tuning reported %llu steps",
           (unsigned long long)steps_reported);
  return -1;
}

static void Fail(const char* what, long at, enum Mode how, const char* because, const char* message) {
  ++failed;
  printf("FAILED %s, allocation %ld%s: %s: %s\n", what, at, how == kAllFrom ? " and all that follow" : "", because,
         message);
}

/* Tests one point: the call without its memory, then everything with it. */
static void Try(const char* what, wisp_code (*call)(wisp_error*), wisp_code (*check)(wisp_error*), enum Mode how,
                long at) {
  wisp_error error;
  memset(&error, 0, sizeof error);
  Arm(how, at);
  const wisp_code code = call(&error);
  Disarm();
  if (code != WISP_OK && (code == (wisp_code)-1 || error.message[0] == '\0'))
    return Fail(what, at, how, "no sentence", error.message);
  if (code == WISP_INTERNAL && strstr(error.message, "memory") == NULL)
    return Fail(what, at, how, "called a fault of the library", error.message);
  if (check(&error) != WISP_OK) return Fail(what, at, how, "afterwards", error.message);
  if (Recommend(&error) != WISP_OK) return Fail(what, at, how, "the model that was open", error.message);
  ++passed;
}

static long Count(const char* what, wisp_code (*call)(wisp_error*)) {
  wisp_error error;
  Arm(kOne, -1);
  const wisp_code code = call(&error);
  const long n = Disarm();
  if (code != WISP_OK) {
    printf("FAILED %s without a fault: %s\n", what, error.message);
    exit(1);
  }
  printf("%s: %ld allocations\n", what, n);
  return n;
}

int main(int argc, char** argv) {
  if (argc != 5 && argc != 6) return 2;
  model_path = argv[1], log_path = argv[2], folder = argv[3];
  const long points = atol(argv[4]);
  snprintf(ledger_path, sizeof ledger_path, "%s/allocations.db", folder);
  snprintf(output_path, sizeof output_path, "%s/allocations.wisp", folder);
  setvbuf(stdout, NULL, _IOLBF, 0);
  wisp_error error;
  size_t count = kTop;
  if (wisp_model_open(model_path, &model, &error) != WISP_OK ||
      wisp_recommend(model, kHistory, 3, NULL, expected, &count, &error) != WISP_OK) {
    printf("FAILED: %s\n", error.message);
    return 1;
  }
  if (argc == 6) Try("personalise", Personalise, LedgerHoldsAndRunsAgain, kAllFrom, atol(argv[5]));
  for (enum Mode how = kOne; argc == 5 && how <= kAllFrom; ++how) {
    const long to_open = Count("open and recommend", OpenAndRecommend), to_recommend = Count("recommend", Recommend);
    for (long at = 1; at <= to_open; ++at) Try("open and recommend", OpenAndRecommend, OpenAndRecommend, how, at);
    for (long at = 1; at <= to_recommend; ++at) Try("recommend", Recommend, Recommend, how, at);
    if (points == 0) continue;
    RemoveLedger();
    const long to_personalise = Count("personalise", Personalise);
    for (long i = 0; i < points; ++i) {
      /* Four in a row share a ledger, and after the last of them there is a fine-tuning that does not fail. */
      if (i % 4 == 0) RemoveLedger();
      /* Half of the points are among the first thousand, where files are opened and read. */
      const long early = to_personalise < 1000 ? to_personalise : 1000;
      const long at = i % 2 == 0 ? 1 + i * early / points : 1 + i * to_personalise / points;
      Try("personalise", Personalise, i % 4 == 3 ? LedgerHoldsAndRunsAgain : LedgerHolds, how, at);
    }
  }
  wisp_model_close(model);
  printf("%d passed, %d failed\n", passed, failed);
  return failed == 0 ? 0 : 1;
}
