/* An app's program (tests/abi_consumers.sh), in C99 and C++11. It passes structs of its header's size and of every
 * shorter size, and checks each byte after them.
 *
 *   consumer MODEL.wisp LOG.db LEDGER OUTPUT.wisp
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wisp/wisp.h>
#include <wisp/wisp_embed.h>
#include <wisp/wisp_deployment.h>
#include <wisp/wisp_fleet.h>
#include <wisp/wisp_text.h>

enum { kUntouched = 0xa5, kMostBytes = 4096 };

static int failures = 0;

static void Held(int held, const char* what) {
  if (held) return;
  fprintf(stderr, "consumer: %s\n", what);
  ++failures;
}

static void Succeeded(wisp_code code, const wisp_error* error, const char* what) {
  if (code == WISP_OK) return;
  fprintf(stderr, "consumer: %s: %s\n", what, error->message);
  ++failures;
}

/* A result struct of `size` bytes at the start of an untouched buffer. */
typedef union {
  size_t size;
  double align;
  unsigned char bytes[kMostBytes];
} Room;

static Room* Fresh(Room* room, size_t size) {
  memset(room->bytes, kUntouched, sizeof room->bytes);
  room->size = size;
  return room;
}

static void IsUntouchedBehind(const Room* room, size_t size, const char* what) {
  size_t i;
  Held(room->size == size, what);
  for (i = size < sizeof room->size ? sizeof room->size : size; i < sizeof room->bytes; ++i) {
    if (room->bytes[i] != kUntouched) {
      Held(0, what);
      return;
    }
  }
}

/* CALL fills `room` as a TYPE: in every size from the first to the header's, and never beyond. */
#define FILLS(TYPE, CALL)                                                                                            \
  do {                                                                                                               \
    static Room whole, room_of_part;                                                                                 \
    size_t bytes;                                                                                                    \
    Room* room = Fresh(&whole, sizeof(TYPE));                                                                        \
    Succeeded(CALL, &error, #CALL);                                                                                  \
    IsUntouchedBehind(&whole, sizeof(TYPE), #TYPE " was written behind its end");                                    \
    for (bytes = 8; bytes < sizeof(TYPE); bytes += 8) {                                                              \
      room = Fresh(&room_of_part, bytes);                                                                            \
      Succeeded(CALL, &error, #CALL ", shorter");                                                                    \
      IsUntouchedBehind(&room_of_part, bytes, "a short " #TYPE " was written behind its end");                       \
      Held(memcmp(whole.bytes + 8, room_of_part.bytes + 8, bytes - 8) == 0, "a short " #TYPE " has other contents"); \
    }                                                                                                                \
    room = Fresh(&room_of_part, sizeof(TYPE) - 1);                                                                   \
    Held(CALL == WISP_INVALID_ARGUMENT, "a size that no " #TYPE " ever had is taken");                               \
    room = Fresh(&room_of_part, 0);                                                                                  \
    Held(CALL == WISP_INVALID_ARGUMENT, #TYPE " without a size is taken");                                           \
    IsUntouchedBehind(&room_of_part, 0, "a refused " #TYPE " was written");                                          \
  } while (0)

static void Recommends(const char* path) {
  static const int32_t history[] = {12, 7, 31, 400, 5}, excluded[] = {3, 4};
  wisp_error error;
  wisp_model* model = NULL;
  wisp_recommendation first[5], top[5];
  wisp_recommend_options options = WISP_INIT(wisp_recommend_options);
  wisp_open_options how = WISP_INIT(wisp_open_options);
  wisp_batch_options batch = WISP_INIT(wisp_batch_options);
  const int32_t* histories[1];
  size_t lengths[1], found[1], count = 5, i, size;
  FILLS(wisp_model_memory, wisp_model_plan_memory(path, (wisp_model_memory*)(void*)room, &error));
  how.verify = WISP_VERIFY_ALWAYS;
  Succeeded(wisp_model_open_with(path, &how, &model, &error), &error, "wisp_model_open_with");
  options.excluded = excluded;
  options.num_excluded = 2;
  Succeeded(wisp_recommend(model, history, 5, &options, first, &count, &error), &error, "wisp_recommend");
  for (i = 0; i < count; ++i)
    printf("%d %a %s\n", first[i].item, first[i].score, wisp_model_item_name(model, first[i].item));
  /* Bytes after a short struct are not read: here they would forbid all items and give a wrong list of candidates. */
  for (size = 24; size <= sizeof options; size += 8) {
    memset((unsigned char*)&options + size, 0xff, sizeof options - size);
    options.size = size;
    count = 5;
    Succeeded(wisp_recommend(model, history, 5, &options, top, &count, &error), &error, "wisp_recommend, shorter");
    Held(count == 5 && memcmp(first, top, sizeof top) == 0, "shorter wisp_recommend_options recommend otherwise");
    memset((unsigned char*)&options + size, 0, sizeof options - size);
  }
  options.size = 20;
  Held(wisp_recommend(model, history, 5, &options, top, &count, &error) == WISP_INVALID_ARGUMENT,
       "a size of 20 is taken");
  options.size = sizeof options;
  histories[0] = history;
  lengths[0] = 5;
  batch.num_threads = 1;
  Succeeded(wisp_recommend_batch(model, histories, lengths, 1, &options, &batch, 5, top, found, &error), &error,
            "batch");
  Held(found[0] == 5 && memcmp(first, top, sizeof top) == 0, "wisp_recommend_batch recommends otherwise");
  FILLS(wisp_model_info, wisp_model_info_read(model, (wisp_model_info*)(void*)room, &error));
  FILLS(wisp_provenance, wisp_model_provenance(model, 0, (wisp_provenance*)(void*)room, &error));
  wisp_model_close(model);
}

static void Personalises(char** argv) {
  wisp_error error;
  wisp_personalise_options options = WISP_INIT(wisp_personalise_options);
  wisp_log* log = NULL;
  char text[16];
  size_t needed = 0, size;
  FILE* file;
  options.model_path = argv[1];
  options.log_path = argv[2];
  options.ledger_path = argv[3];
  options.output_path = argv[4];
  options.epsilon = 2;
  options.delta = 1e-4;
  options.num_records_public = 100;
  options.unit = WISP_UNIT_USER;
  options.num_threads = 1;
  options.epochs = 0.02;
  FILLS(wisp_personalise_memory, wisp_personalise_plan_memory(&options, (wisp_personalise_memory*)(void*)room, &error));
  Succeeded(wisp_log_open(argv[2], &log, &error), &error, "wisp_log_open");
  FILLS(wisp_log_counts, wisp_log_count(log, (wisp_log_counts*)(void*)room, &error));
  wisp_log_close(log);
  /* Options that end before a required field are refused, and nothing is spent. */
  for (size = 8; size < 56; size += 8) {
    options.size = size;
    Held(wisp_personalise(&options, NULL, &error) != WISP_OK && error.message[0] != 0,
         "options without a delta are taken");
  }
  file = fopen(argv[3], "rb");
  Held(file == NULL, "a refused call left a ledger");
  options.size = sizeof options;
  {
    static Room result_room;
    Room* room = Fresh(&result_room, sizeof(wisp_personalise_result));
    Succeeded(wisp_personalise(&options, (wisp_personalise_result*)(void*)room, &error), &error, "wisp_personalise");
    IsUntouchedBehind(room, sizeof(wisp_personalise_result), "wisp_personalise_result was written behind its end");
    printf("%llu steps\n", (unsigned long long)((wisp_personalise_result*)(void*)room)->num_steps);
  }
  Succeeded(wisp_privacy_statement(argv[3], 1e-4, WISP_STATEMENT_TEXT, text, sizeof text, &needed, &error), &error,
            "statement");
  Held(needed > sizeof text && text[sizeof text - 1] == 0, "a statement that is cut has no end");
  Held(wisp_fleet_open(NULL, NULL, &error) == WISP_INVALID_ARGUMENT, "a fleet without options is refused");
  wisp_fleet_close(NULL);
  FILLS(wisp_budget, wisp_budget_read(argv[3], NULL, 1e-4, (wisp_budget*)(void*)room, &error));
}

static void RefusesTexts(const char* path) {
  wisp_error error;
  wisp_text_model* model = NULL;
  Held(wisp_text_open(path, NULL, &model, &error) == WISP_INVALID_ARGUMENT && model == NULL,
       "a recommender is a text model");
}

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  Held(strncmp(wisp_version(), "0.", 2) == 0, "another version than 0.x");
  Recommends(argv[1]);
  Personalises(argv);
  RefusesTexts(argv[1]);
  return failures == 0 ? 0 : 1;
}
