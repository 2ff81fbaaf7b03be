/* wisp: models that are not files of their own (an asset of an Android package, a buffer), an allocator and a limit on
 * memory, and the properties of an open model. Conventions: wisp.h. All of it is also in the library that only
 * recommends (libwisp-runtime).
 *
 *   int fd = AAsset_openFileDescriptor64(asset, &offset, &length);
 *   wisp_open_options options = WISP_INIT(wisp_open_options);
 *   options.max_bytes = 64 << 20;
 *   wisp_model_open_descriptor("cafe.wisp", fd, offset, length, &options, &model, &error);
 *   close(fd);
 */
#ifndef WISP_PORTS_C_WISP_EMBED_H_
#define WISP_PORTS_C_WISP_EMBED_H_

#include "wisp.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Opens a model from memory, which is read in place: it must start on a multiple of 64 bytes, stay unchanged, and
 * outlive the model. `name` is used in messages. `options` may be NULL. WISP_INVALID_ARGUMENT: the memory is not
 * aligned so; or WISP_VERIFY_ONCE, which is for files with a path. */
WISP_API wisp_code wisp_model_open_memory(const char* name, const void* bytes, size_t num_bytes,
                                          const wisp_open_options* options, wisp_model** model, wisp_error* error);

/* Opens `length` bytes from `offset` on of an open file; 0: to its end. `descriptor` is POSIX's, on Windows the low
 * half of a HANDLE. The bytes are mapped, or copied if `offset` is no multiple of 64 (zipalign -p 4 leaves assets so);
 * a copy takes as much memory again and counts for max_bytes. The descriptor stays the caller's, who may close it at
 * once. The file must not be changed in place. Otherwise as wisp_model_open_memory. */
WISP_API wisp_code wisp_model_open_descriptor(const char* name, int descriptor, uint64_t offset, uint64_t length,
                                              const wisp_open_options* options, wisp_model** model, wisp_error* error);

/* Allocates the model's large buffers: activations, packed weights, key/value caches. Names, scores (5 bytes an item),
 * lists of results, and the popular items for an empty history (wisp_model_memory.cold_start_bytes) come from the C++
 * library's allocator. `allocate` returns `bytes` bytes that start on a multiple of `alignment`, or NULL, which is
 * WISP_INTERNAL ("out of memory"). Both functions are called on the thread that opens, uses or closes the model. */
typedef struct wisp_allocator {
  size_t size;
  void* (*allocate)(void* data, size_t bytes, size_t alignment); /* NULL: no memory left */
  void (*release)(void* data, void* memory, size_t bytes);       /* frees what allocate returned, with its size */
  void* data;                                                    /* must outlive the model */
} wisp_allocator;

/* Sentences about what a run does, for an app's own log. They follow from the plan, the ledger and the released
 * models alone, so they are no more private than these. With WISP_EVALUATION_LOCAL they do not say which model is
 * served. */
typedef enum wisp_log_level WISP_ENUM_TYPE {
  WISP_LOG_INFO = 0,
  WISP_LOG_WARNING = 1 /* something did not go as asked: no device, no room for a checkpoint, a budget at its end */
} wisp_log_level;
typedef struct wisp_logger { /* receives a run's sentences */
  size_t size;
  void (*write)(void* data, wisp_log_level level, const char* sentence); /* called on the thread of the run */
  void* data;                                                            /* given to `write` */
} wisp_logger;

/* The properties of an open model. */
typedef struct wisp_model_info {
  size_t size;
  uint32_t num_items;         /* retired ones included */
  uint32_t max_length;        /* newest events of a history that the model reads */
  uint32_t width, num_blocks; /* of its vectors; of the Transformer */
  uint32_t num_retired;       /* items that are never recommended */
  uint32_t num_provenance;    /* runs that changed the weights: wisp_model_provenance */
  uint32_t format;            /* format version of the file */
  int32_t has_keys;           /* 1: items carry the app's keys */
  uint64_t content_hash;      /* equal files have equal hashes; with an adapter, of both files */
  uint64_t file_bytes;        /* the file's size */
  int32_t allow_seen;         /* 1: lists may hold items of the history, as the model's maker chose */
  int32_t not_read;
} wisp_model_info;
/* Fills `info`, whose size WISP_INIT has set. */
WISP_API wisp_code wisp_model_info_read(const wisp_model* model, wisp_model_info* info, wisp_error* error);

/* One run that changed the weights. Strings are valid until the model is closed, and "" where nothing is known. */
typedef struct wisp_provenance {
  size_t size;
  const char* description;  /* what kind of run it was */
  const char* mechanisms;   /* its private releases, a sentence a line; "": no private mechanism */
  double epsilon;           /* NaN: no guarantee */
  double delta;             /* the delta of epsilon */
  const char* accountant;   /* how epsilon was computed */
  const char* privacy_unit; /* definition of one record */
  const char* adjacency;    /* which data sets count as neighbours */
  const char* sampling;     /* how batches were sampled */
  const char* dataset;      /* name of the data set */
  const char* date;         /* ISO 8601 */
  uint64_t steps;           /* steps of the run */
  uint64_t base_hash;       /* content hash of the model that the run started from; 0: none */
  int32_t secure_noise;     /* 1: noise came from the secure generator; without it there is no guarantee */
  int32_t not_read;
} wisp_provenance;
/* `index` runs from 0, the oldest run, to num_provenance - 1. */
WISP_API wisp_code wisp_model_provenance(wisp_model* model, uint32_t index, wisp_provenance* provenance,
                                         wisp_error* error);

/* Vectors and scores, for uses beside a list: items alike, an index, an evaluation. They say no less of a log than the
 * model does. Each function fills its array, whose `capacity` is in floats and must be exactly what it needs. */

/* Writes the scores of all items after `history`, as wisp_recommend orders them: num_items floats. Items that no list
 * holds, retired ones for example, have scores too. An empty history (cold start) gets the items' popularity. */
WISP_API wisp_code wisp_score(wisp_model* model, const int32_t* history, size_t num_history, float* scores,
                              size_t capacity, wisp_error* error);
/* Writes the vector after `history`: wisp_model_info.width floats. An item's score is its vector's product with this
 * one, or with a temperature their cosine over it, and the item's bias. WISP_INVALID_ARGUMENT: no item of the history
 * was learned. */
WISP_API wisp_code wisp_history_vector(wisp_model* model, const int32_t* history, size_t num_history, float* vector,
                                       size_t capacity, wisp_error* error);
/* Writes the vectors by which items are scored, one after another: num_items times width floats. */
WISP_API wisp_code wisp_item_vectors(const wisp_model* model, float* vectors, size_t capacity, wisp_error* error);

#ifdef __cplusplus
}
#endif

#endif  // WISP_PORTS_C_WISP_EMBED_H_
