/* wisp: load a recommender, run it, fine-tune it privately on the device. The stable C interface.
 *
 * Conventions
 *   - Every function that can fail returns a wisp_code and fills `error` (which may be NULL) with a sentence that names
 *     the file, the value and what is allowed. On failure outputs are untouched, files are untouched, and nothing is
 *     spent from the privacy budget unless the sentence says so.
 *   - Handles are opaque, made by *_open and released by *_close (NULL is allowed there). A handle is used by one
 *     thread at a time; different handles are independent. The library has no global state, prints nothing, never
 *     exits, and lets no C++ exception out.
 *   - After fork() the child may close every handle, and use models that are on the processor, on one thread. Logs and
 *     charged samples refuse to work there (WISP_INVALID_ARGUMENT): open them again.
 *   - Structs that may grow begin with `size`: set it with WISP_INIT(type), which also zeroes the rest; zero means
 *     "default" for every field unless said otherwise. A result struct is filled up to its size, never beyond.
 *     A size that no version ever had (below 8, or no multiple of its alignment) is WISP_INVALID_ARGUMENT, and so is an
 *     enum value that is not listed.
 *   - Strings are UTF-8 and belong to the caller (arguments) or to the handle (results, valid until it is closed).
 *   - The library that only recommends (libwisp-runtime) has wisp_version and the part "Model". The library for texts
 *     (libwisp-text) also has the part "Texts" of wisp_text.h. Parts marked "in libwisp alone" are missing in both.
 *   - Items have an index 0 .. n-1 in the model and a key, the name they carry in the app's own data.
 *
 * A whole program: example.c. Models in memory, allocators, model information: wisp_embed.h. Nightly training:
 * wisp_deployment.h. */
#ifndef WISP_PORTS_C_WISP_H_
#define WISP_PORTS_C_WISP_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
/* WISP_INIT calls this in C++, which had no designated initializers before C++20. */
template <class Options>
inline Options wisp_initialised() {
  Options options = Options();
  options.size = sizeof(Options);
  return options;
}
extern "C" {
#endif

#if defined(_WIN32)
#define WISP_API __declspec(dllexport)
#else
#define WISP_API __attribute__((visibility("default"))) /* exports a symbol */
#endif

#ifdef __cplusplus
#define WISP_INIT(type) (wisp_initialised<type>())
/* An enum has four bytes, as in C. In C++ too any number can then be passed; one that is not listed is refused. */
#define WISP_ENUM_TYPE : int32_t
#else
#define WISP_INIT(type) ((type){.size = sizeof(type)}) /* a struct with its size set; the rest is zero */
#define WISP_ENUM_TYPE                                 /* the type of an enum; in C it needs none */
#endif

/* How a call ended. */
typedef enum wisp_code WISP_ENUM_TYPE {
  WISP_OK = 0,
  WISP_INTERNAL = 1,         /* out of memory, or a defect of the library */
  WISP_INVALID_ARGUMENT = 2, /* asked for something that does not exist or is out of range */
  WISP_INVALID_DATA = 3,     /* a file or a record is malformed */
  WISP_PRIVACY_REFUSED = 4,  /* the request has no guarantee, or would pass the budget */
  WISP_IO = 5,               /* the operating system refused */
  WISP_UNSUPPORTED = 6,      /* from a newer version, or not in this build */
  WISP_CANCELLED = 7,        /* the progress callback asked to stop */
  WISP_TOO_EARLY = 8         /* a planned run came before its time */
} wisp_code;

typedef struct wisp_error { /* why a call failed */
  wisp_code code;           /* what the call returned as well */
  char message[1024];       /* cut at a character boundary if longer */
} wisp_error;

/* "0.1.0". Never NULL. */
WISP_API const char* wisp_version(void);

/* ---- Model ------------------------------------------------------------------------------------------------------ */

typedef struct wisp_model wisp_model; /* an open model */

/* Maps the file read-only and verifies it, weights included, which reads the whole file once (wisp_verify has other
 * choices). The file must not be changed in place while open (replacing it is fine). */
WISP_API wisp_code wisp_model_open(const char* path, wisp_model** model, wisp_error* error);
WISP_API void wisp_model_close(wisp_model* model); /* strings that it returned become invalid */

/* Selects the kernels that compute on the processor. */
typedef enum wisp_backend WISP_ENUM_TYPE {
  WISP_BACKEND_SIMD = 0,    /* our own float kernels, in the processor's fastest instruction set; the default */
  WISP_BACKEND_XNNPACK = 1, /* linear layers through XNNPACK; not in every build, and not for wisp_recommend_batch */
  /* linear layers over 8-bit integers: faster, a quarter of the bytes, scores slightly off (docs/small-models.md) */
  WISP_BACKEND_INT8 = 2
} wisp_backend;

/* When weights are verified as a model is opened: each tensor against its checksum, and every number for being finite.
 * This finds damage, not forgery. Everything else in the file is always checked. */
typedef enum wisp_verify WISP_ENUM_TYPE {
  WISP_VERIFY_DEFAULT = 0, /* as WISP_VERIFY_ALWAYS */
  WISP_VERIFY_ALWAYS = 1,
  /* skipped if `verified` says that this very file was verified before: for a fast start with large models */
  WISP_VERIFY_ONCE = 2,
  /* a damaged weight may then change recommendations; 8-bit weights are verified nevertheless */
  WISP_VERIFY_NEVER = 3
} wisp_verify;

/* A record that a file, and its adapter, passed verification: content hash, size, modification time, place. The app
 * stores it between starts (with its settings, say) and passes zeros at first. Damage that leaves the file's
 * modification time unchanged is not noticed. */
typedef struct wisp_verified {
  uint64_t words[4]; /* for the library alone */
} wisp_verified;

/* A task that the library asks a thread of the app to run: task(task_data, i). */
typedef void (*wisp_task)(void* task_data, size_t index);
/* The app runs tasks on its own threads, with 256 KB of stack: task(task_data, 0) .. task(task_data, num_tasks - 1),
 * each once; returns when all are done. An index left out runs on the caller's thread; a repeated one does not run
 * again. `task` must not be called once the library function that was given run_tasks has returned. */
typedef void (*wisp_run_tasks)(void* user_data, size_t num_tasks, wisp_task task, void* task_data);

/* A device to compute on in place of the processor (docs/cuda.md). */
typedef struct wisp_device {
  size_t size;
  const char* name;   /* "cuda": an NVIDIA GPU, the first that the driver lists; or "cpu" */
  const char* module; /* file of its kernels; NULL: libwisp_cuda.so beside this library, or where the system looks */
  /* bytes of its memory that this process may use in all calls; the latest value applies. 0: unchanged, at first all */
  uint64_t max_bytes;
  /* number format of matrix products; NULL: "float32". "tf32" is faster and slightly less exact (docs/cuda.md,
   * "arithmetic"); so are "float16", "bfloat16" and "int8", which only recommending accepts */
  const char* arithmetic;
} wisp_device;

typedef struct wisp_open_options { /* how a model is opened */
  size_t size;
  wisp_backend backend; /* what computes */
  wisp_verify verify;   /* when weights are verified */
  /* required with WISP_VERIFY_ONCE, which reads it and fills it once the file is verified; otherwise not read */
  wisp_verified* verified;
  /* adapter that was trained for this model (wisp_personalise with adapter_rank); NULL: none */
  const char* adapter_path;
  /* threads that share the positions of one history in wisp_recommend, the caller's included, where there is enough
   * work for each; scores stay the same to the bit. At most 1024; 0 and 1: the caller's alone. Not with
   * WISP_BACKEND_XNNPACK. Idle threads sleep between calls. wisp_recommend_batch has its own number */
  uint32_t num_threads;
  int32_t float16_cache;    /* 1: float16 key/value cache, slightly less exact; not on a device or with Re-Attention */
  wisp_run_tasks run_tasks; /* if given, the library creates no thread; called several times a block */
  void* run_tasks_data;     /* run_tasks and its data are used until the model is closed */
  /* NULL: the processor, and so where the device does not exist: see wisp_model_on_device. A device recommends with its
   * own kernels in place of WISP_BACKEND_SIMD, the only backend allowed with it; num_threads is the processor's. A
   * device that fails or runs out of memory is WISP_IO, and is not used again in this process */
  const wisp_device* device;
  const struct wisp_allocator* allocator; /* allocates large buffers (wisp_embed.h); NULL: the system's */
  uint64_t max_bytes;            /* WISP_INVALID_ARGUMENT if wisp_model_memory.total_bytes would be more; 0: no limit */
  int32_t one_history_on_device; /* 1: wisp_recommend uses `device`; 0: it, or the processor if measured to be faster */
} wisp_open_options;

/* wisp_model_open with options, which may be NULL. WISP_UNSUPPORTED: this build or processor lacks the backend. Private
 * recommending accepts only models with the default backend. */
WISP_API wisp_code wisp_model_open_with(const char* path, const wisp_open_options* options, wisp_model** model,
                                        wisp_error* error);

/* Bytes that wisp_model_open will hold, exact but for the layer objects: less than 1 KB for each tensor. */
typedef struct wisp_model_memory {
  size_t size;
  uint64_t file_bytes;           /* mapped: clean pages that the system shares and may drop */
  uint64_t activation_bytes;     /* of one history, key/value cache included; and of each thread beside the caller's */
  uint64_t packed_weights_bytes; /* matrices and output table, in the layout that products read */
  uint64_t score_bytes;          /* scores and lists of results */
  uint64_t name_bytes;           /* the items' keys and names */
  uint64_t total_bytes;          /* everything but the file */
  uint64_t device_bytes; /* the part of these in a device's memory, the file's weights included; 0 without a device */
  uint64_t cold_start_bytes; /* in addition, from the first empty history (cold start) on */
} wisp_model_memory;

/* Plans the memory of the model in that file on this device. Reads the description, not the weights, and allocates
 * nothing of what it counts. Set memory->size with WISP_INIT. */
WISP_API wisp_code wisp_model_plan_memory(const char* path, wisp_model_memory* memory, wisp_error* error);
/* wisp_model_plan_memory for wisp_model_open_with. Memory that XNNPACK allocates itself is not counted. */
WISP_API wisp_code wisp_model_plan_memory_with(const char* path, const wisp_open_options* options,
                                               wisp_model_memory* memory, wisp_error* error);

/* 1: on wisp_open_options.device; 2: batches there, single histories on the processor; 0: on the processor. */
WISP_API int32_t wisp_model_on_device(const wisp_model* model);
WISP_API size_t wisp_model_num_items(const wisp_model* model); /* retired items included */
/* The item's index, or -1 if the model does not know the key. */
WISP_API int32_t wisp_model_find_item(const wisp_model* model, const char* key);
/* An item's key: "" if unknown or out of range. Valid until the model is closed. */
WISP_API const char* wisp_model_item_key(const wisp_model* model, int32_t item);
WISP_API const char* wisp_model_item_name(const wisp_model* model, int32_t item); /* its name for people, likewise */

typedef struct wisp_recommendation { /* one item of a list */
  int32_t item;                      /* its index */
  float score;                       /* comparable within one call only */
} wisp_recommendation;

typedef struct wisp_recommend_options { /* what may be recommended */
  size_t size;
  const int32_t* excluded;   /* never recommended */
  size_t num_excluded;       /* of `excluded` */
  const int32_t* candidates; /* if given, only these; not NULL with num_candidates 0: nothing is recommended */
  size_t num_candidates;     /* of `candidates` */
  int32_t allow_seen; /* items of the history may come again: 0: as the model says (wisp_model_info), 1: yes, 2: no */
} wisp_recommend_options;

/* Writes the best `*count` items after `history` (oldest first) to `out`, best first, and their number, perhaps
 * smaller, to `*count`. An empty history (cold start) gets the model's popular items. `options` may be NULL.
 * WISP_INVALID_DATA: a score is not finite, as with damaged weights. Retired items are never recommended. */
WISP_API wisp_code wisp_recommend(wisp_model* model, const int32_t* history, size_t num_history,
                                  const wisp_recommend_options* options, wisp_recommendation* out, size_t* count,
                                  wisp_error* error);

typedef struct wisp_batch_options { /* how a batch is computed */
  size_t size;
  uint32_t num_threads;     /* at most 1024, and at most one per history is created; 0: min(4, processors) */
  wisp_run_tasks run_tasks; /* if given, the library creates no thread */
  void* run_tasks_data;
} wisp_batch_options;

/* wisp_recommend for several histories in one call, with the same results to the bit. histories[i] has lengths[i]
 * items, at least one. Its best `count` items are written from out[i * count] on, their number, perhaps smaller, to
 * found[i]. A `count` above the model's number of items asks for all of them; nothing is written beyond those, so `out`
 * needs (num_histories - 1) * count + min(count, items) entries. `options` and `how` may be NULL; without `how` no
 * thread is created. An error names the first wrong history. The first call allocates buffers, which are kept until the
 * model is closed, `how` changes, or more histories need more threads. */
WISP_API wisp_code wisp_recommend_batch(wisp_model* model, const int32_t* const* histories, const size_t* lengths,
                                        size_t num_histories, const wisp_recommend_options* options,
                                        const wisp_batch_options* how, size_t count, wisp_recommendation* out,
                                        size_t* found, wisp_error* error);

/* ---- The ledger's anchor (in libwisp alone) --------------------------------------------------------------------- */

/* How far the ledger has got, stored where restoring files does not restore it too: the platform's key store, say. If
 * an old copy of the ledger is put back, or the ledger is charged without the anchor that it has, that is refused:
 * WISP_PRIVACY_REFUSED. It does not help against somebody who can change both. Each ledger has an anchor of its own. */
enum { WISP_ANCHOR_BYTES = 64 }; /* most bytes of an anchor */

typedef struct wisp_anchor { /* callbacks of the app that keep it */
  size_t size;
  /* Copies the bytes of the last `write` to `bytes`, which has room for `capacity`, and their number to `*length`: 0 if
   * there was no `write`. Called at least before each charge. Returns 0; anything else is WISP_IO. */
  int (*read)(void* user_data, uint8_t* bytes, size_t capacity, size_t* length);
  /* Replaces the stored bytes by these `length`, all or none; they are durable when it returns. Called once for each
   * charge, limit and plan. Returns 0; anything else is WISP_IO, and what was charged stays charged. */
  int (*write)(void* user_data, const uint8_t* bytes, size_t length);
  void* user_data;
  /* 1: a ledger with charges may lack its anchor, at first or if it was lost, which its statement shows; 0: never */
  int32_t begin;
  int32_t not_read;
} wisp_anchor;

/* ---- Recommending privately (in libwisp alone) ------------------------------------------------------------------ */

/* The privacy unit, protected as a whole: one record is all events of one unit, and no event of another. A record adds
 * one clipped gradient to a step of wisp_personalise. On one person's device: docs/privacy.md. */
typedef enum wisp_unit WISP_ENUM_TYPE {
  WISP_UNIT_USER = 1, /* everything that one user of the log did */
  /* events of one user without a pause longer than session_gap: protects one session, not the person */
  WISP_UNIT_SESSION = 2,
  WISP_UNIT_DAY = 3, /* events of one user on one UTC day: protects one day, not the person */
  /* one event or one text. wisp_personalise refuses it, because a recommender learns from sequences of events */
  WISP_UNIT_INTERACTION = 4
} wisp_unit;

/* For weights that were fine-tuned without a guarantee: items are sampled instead of ranked, and the ledger of the data
 * is charged before each sample. This protects the records that the weights learned from, not the history given here,
 * the candidates or the number of items. Only items come out, in the order they were sampled, without scores. Samples
 * are free if the weights' provenance has a guarantee for everything or names public data alone: nothing is charged and
 * no ledger is needed. */
typedef struct wisp_private_recommender wisp_private_recommender;

/* How samples are made private. */
typedef enum wisp_decoding WISP_ENUM_TYPE {
  WISP_DECODING_DEFAULT = 0, /* anchored if there is a base model, else mixed */
  WISP_DECODING_MIXED = 1,   /* the model with probability lambda, else uniform */
  WISP_DECODING_ANCHORED = 2 /* the base model, moved by the fine-tuned one by at most `clip` logits */
} wisp_decoding;

typedef struct wisp_private_options { /* how items are sampled, and what may be spent */
  size_t size;
  wisp_decoding decoding;  /* mixed or anchored */
  const char* ledger_path; /* of the data that the model learned from; required if charged; created if absent */
  wisp_model* base_model;  /* the public model, as shipped, with the same items; must stay open; may be NULL if mixed */
  /* Labels of data sets in the models' provenance that are public, on the app's word. They must make the base free. */
  const char* const* public_datasets;
  size_t num_public_datasets; /* of `public_datasets` */
  /* Set exactly one of the next four where samples are charged. */
  double lambda;             /* mixed: above 0 and below 1 */
  double clip;               /* anchored: above 0 */
  double epsilon_per_sample; /* at delta 0 */
  /* of `planned_samples` samples together, at `delta`: over all calls there will ever be. It becomes the limit of a
   * ledger that has no limit and no charge; a ledger with charges must already have a limit */
  double epsilon;
  double delta;             /* with epsilon or budget_epsilon */
  uint64_t planned_samples; /* with epsilon */
  double budget_epsilon;    /* limit over everything ever done with this data; 0: that in the ledger, or none */
  /* a number of records that anybody may know: delta must be below 1 over it, at most 1e-3, and at most 1e-5 with ten
   * records or fewer; 0: unknown, treated as 10,000 */
  uint32_t num_records_public;
  /* 1: accept a delta up to 1 / num_records_public, as papers use; not with ten records or fewer */
  int32_t allow_large_delta;
  double temperature;          /* 0: 1 */
  uint32_t top_k;              /* mixed: keep the model's best so many, before mixing; 0: all */
  double top_p;                /* mixed: then keep the fewest with this probability together, before mixing; 0: all */
  uint32_t samples_per_charge; /* a charge is one write to disk; charged samples are spent even if unused; 0: 1 */
  int32_t not_read;            /* reserved */
  /* 1: a data set of the ledger's name in the models' provenance is a different one. 0: a ledger that lacks what the
   * models have spent on its data set is refused */
  int32_t other_data;
  const wisp_anchor* anchor; /* of the ledger; its callbacks are called until the recommender is closed; NULL: none */
  /* choices made by looking at the same data without a charge, in words for the statement; NULL: none */
  const char* uncharged_tuning;
  /* of a new ledger; 0: WISP_UNIT_USER, for texts WISP_UNIT_INTERACTION, and statements say that nobody chose it */
  wisp_unit unit;
  int32_t not_read_either; /* keeps the size a multiple of 8 */
} wisp_private_options;

/* `model` must stay open until the recommender is closed, and both are used by one thread at a time.
 * WISP_PRIVACY_REFUSED: the sentence says what has no guarantee, or that a ledger is needed. WISP_UNSUPPORTED: a model,
 * or a base, that was not opened with the default backend. */
WISP_API wisp_code wisp_private_recommender_open(wisp_model* model, const wisp_private_options* options,
                                                 wisp_private_recommender** recommender, wisp_error* error);
WISP_API void wisp_private_recommender_close(wisp_private_recommender* recommender); /* close it before its models */
/* 1: samples are free; 0: they are charged. */
WISP_API int32_t wisp_private_recommender_is_free(const wisp_private_recommender* recommender);

/* Writes at most `*count` distinct items, sampled after `history`, to `items`, and their number to `*count`. `options`
 * may be NULL; its candidates must be public. WISP_PRIVACY_REFUSED: the budget is spent, and nothing was sampled. */
WISP_API wisp_code wisp_private_recommend(wisp_private_recommender* recommender, const int32_t* history,
                                          size_t num_history, const wisp_recommend_options* options, int32_t* items,
                                          size_t* count, wisp_error* error);

/* ---- Log of events, one SQLite file (in libwisp alone) ---------------------------------------------------------- */

typedef struct wisp_log wisp_log; /* an open log */

/* Opens or creates the file, with the table events(user TEXT, item TEXT, time INTEGER). `path` is a file's name: "",
 * ":memory:" and what begins with "file:" are refused ("./file:x" is a name). An existing table may have more columns,
 * with constants for defaults. Nothing that the file contains is run: no trigger fires, no CHECK is evaluated, and a
 * view is refused (WISP_INVALID_DATA). */
WISP_API wisp_code wisp_log_open(const char* path, wisp_log** log, wisp_error* error);
WISP_API void wisp_log_close(wisp_log* log); /* nothing is lost: each append is on disk */
/* Appends one event; it is on disk when the call returns. `time` is in any unit that increases. */
WISP_API wisp_code wisp_log_append(wisp_log* log, const char* user, const char* item_key, int64_t time,
                                   wisp_error* error);
/* Writes the user's newest `*count` items that `model` knows to `items`, oldest first, and their number to `*count`. */
WISP_API wisp_code wisp_log_history(wisp_log* log, const wisp_model* model, const char* user, int32_t* items,
                                    size_t* count, wisp_error* error);

/* ---- Private fine-tuning (in libwisp alone) --------------------------------------------------------------------- */

/* Describes the device in words; `text` as in wisp_privacy_statement. WISP_UNSUPPORTED, with the reason: this library
 * was built without it, or there is no module, no driver, or no GPU that the module has code for. A device that was
 * opened stays open until the process ends. */
WISP_API wisp_code wisp_device_describe(const wisp_device* device, char* text, size_t capacity, size_t* needed,
                                        wisp_error* error);

typedef struct wisp_progress { /* how far a run has got */
  size_t size;
  uint64_t step, num_steps; /* steps taken so far, and of the whole run */
  double loss;              /* mean per position; local only: not private, do not send it anywhere */
  double epsilon;           /* spent by this run so far; NaN while not yet known */
} wisp_progress;

/* Returns 0 to continue, else stops. Called on the caller's thread. */
typedef int (*wisp_progress_callback)(const wisp_progress* progress, void* user_data);
/* Asked now and then, on a thread that runs tasks: 0 continues, else the run stops, mostly within a second. */
typedef int (*wisp_cancelled_callback)(void* user_data);

typedef struct wisp_personalise_options { /* one private run */
  size_t size;
  const char* model_path;  /* the model to start from */
  const char* log_path;    /* SQLite file with events */
  const char* output_path; /* the fine-tuned model; may be model_path: replaced atomically at the end */
  const char* ledger_path; /* the data set's privacy ledger; created by the first charge if absent; never delete it */
  double epsilon;          /* of this run, or of all planned_runs together; required, 1e-6 to 100 */
  /* required; below 1 / num_records_public, at most 1e-3, and at most 1e-5 with ten users or fewer */
  double delta;
  /* a number of records (users, or what `unit` says) that anybody may know; sampling follows from it; required. 1: that
   * record is hidden whole, and the model can learn almost nothing */
  uint32_t num_records_public;
  double budget_epsilon;           /* limit over everything ever done with this data; 0: that in the ledger, or none */
  uint32_t expected_batch;         /* 0: 64 */
  double epochs;                   /* 0: 20 */
  double learning_rate;            /* up to 1; 0: 0.003 */
  double clipping_norm;            /* 0: 1 */
  uint32_t num_threads;            /* at most 1024; 0: min(4, processors) */
  wisp_progress_callback progress; /* called after each step; NULL: none */
  void* user_data;
  wisp_run_tasks run_tasks; /* if given, the library creates no thread; the model's bits depend on num_threads alone */
  void* run_tasks_data;
  /* name of the data set in ledger and provenance: the same each time; NULL: the log's file name */
  const char* dataset;
  int32_t other_data; /* 1: a data set of this name in the model's provenance is a different one */
  int32_t not_read;   /* reserved */
  /* required */
  wisp_unit unit;
  /* how many of the log's time values make a second since 1970, for any unit; 0: 1; 1000: milliseconds */
  uint32_t times_per_second;
  int64_t session_gap; /* seconds; WISP_UNIT_SESSION: required, a public constant such as 1800; otherwise 0 */
  /* a file of the app's, private like the log; NULL: none, and a stopped run must be paid for again */
  const char* checkpoint_path;
  uint64_t checkpoint_every; /* steps between checkpoints; 0: at the end of each charge */
  const wisp_anchor* anchor; /* of the ledger; its callbacks are called until the call returns; NULL: none */
  /* choices made by looking at the same data without a charge, in words for the statement; NULL: none */
  const char* uncharged_tuning;
  /* 0 or 1: a single run. More: the number of runs with these options, fixed before the first charge to the ledger and
   * given with each. `epsilon` is then that of all together, by PLD, however they are spread and whatever they show */
  uint32_t planned_runs;
  /* 0: all weights train, or the adapter at adapter_path if given. 1 and more: low-rank adaptation. The model stays
   * fixed, and beside each matrix of its blocks two matrices of this rank train: a small part of memory, noise and file
   * size. output_path is then the adapter's file, for wisp_open_options.adapter_path; keep model_path for it */
  uint32_t adapter_rank;
  /* adapter of model_path that is trained further; adapter_rank is then 0 or the adapter's own rank; NULL: none */
  const char* adapter_path;
  /* NULL: the processor. Without such a device the run uses the processor: wisp_device_describe says why,
   * wisp_personalise_result.on_device where it ran. num_threads threads of the host work beside a device */
  const wisp_device* device;
  wisp_cancelled_callback cancelled; /* gets user_data; a long step is given up, but stays charged; NULL: none */
} wisp_personalise_options;

typedef struct wisp_personalise_result { /* the outcome of a run */
  size_t size;
  uint64_t num_steps; /* steps taken */
  /* The epsilon that may be stated for this run, at `delta`: its own if its steps were fixed at the start and all were
   * taken; the ledger's figure, which is larger, if it was resumed or ended early */
  double epsilon;
  double noise_multiplier; /* standard deviation of the noise over clipping_norm */
  /* The next fields are counted on the log. Local only: not private, do not send them anywhere. */
  uint64_t num_records;       /* records trained on */
  uint64_t records_too_short; /* left out: fewer than two events that the model knows */
  uint64_t gradients_dropped; /* times a record was left out of a step: its gradient could not be bounded */
  uint64_t num_events;        /* in the log */
  uint64_t unknown_events;    /* left out: their items are unknown to the model */
  uint64_t unknown_items;     /* how many such items */
  /* The next fields are public again. */
  /* more than num_steps if a resumed run ended early, with the steps that the ledger's limit still allowed */
  uint64_t planned_steps;
  uint64_t resumed_from; /* step of the checkpoint that the run resumed from; 0: none */
  /* This field is counted on the log again, local only. */
  uint64_t bad_rows; /* left out: user, item or time is missing or invalid */
  /* The next fields are public. */
  int32_t checkpoint_failed; /* 1: the last checkpoint could not be written, and the run continued without it */
  int32_t on_device;         /* 1: on options.device; 0: on the processor */
} wisp_personalise_result;

/* Bytes that wisp_personalise will hold while it steps if the log holds the events of `num_records_public` users; exact
 * but for small objects (less than 2 KB for each tensor and 8 KB for each thread), the events themselves and the
 * ledger. Before the first step, between charges and at the end the accountant takes about 40 bytes for each point of
 * its grid (25 MB were seen, some 35 are the most), and frees them. Before the first step a start model whose weights
 * are not floats is held as floats, for a moment twice. Encoders and classifiers are refused. */
typedef struct wisp_personalise_memory {
  size_t size;
  uint64_t weight_bytes;          /* weights that train, as floats; beside the start model, which is mapped */
  uint64_t packed_weights_bytes;  /* matrices in the layout that products read */
  uint64_t optimizer_bytes;       /* the optimizer's state of each weight */
  uint64_t gradient_sum_bytes;    /* exact sums of a batch */
  uint64_t activation_bytes;      /* of one record for each thread */
  uint64_t record_gradient_bytes; /* of one record for each thread */
  uint64_t list_bytes;            /* of records and batches */
  uint64_t total_bytes;           /* the sum of all these */
} wisp_personalise_memory;

/* Reads num_records_public, num_threads, device and model_path, of the model only its description; spends nothing. On a
 * device it counts its memory and the host's, for as many records as pass at once. Set memory->size with WISP_INIT. */
WISP_API wisp_code wisp_personalise_plan_memory(const wisp_personalise_options* options,
                                                wisp_personalise_memory* memory, wisp_error* error);

/* Fine-tunes with DP-SGD (record = one unit of the log; Poisson sampling; exact discrete Gaussian noise from the
 * operating system's randomness). Every step is charged to the ledger before its noise is drawn. `result` may be
 * NULL. When cancelled or failed, no model is written and what was charged stays charged. With a checkpoint_path the
 * run is saved there every checkpoint_every steps, when it is cancelled, and before the model is written; a process
 * that is killed loses what came after the last of these. The next call with the same path and options resumes there,
 * pays for the steps that are left, and removes the file once the model is written. What was charged but unused when
 * the run stopped stays spent. If the ledger's limit has no room for all steps that are left, the run ends with those
 * that it allows (planned_steps). A checkpoint of other options or another model is refused and stays: delete it to
 * start over. A checkpoint learned from the log: keep it as private. WISP_IO, before a charge: another run will write
 * the same output or checkpoint. WISP_PRIVACY_REFUSED, before a charge: a model imported from data that nobody named,
 * or a budget below what is spent. */
WISP_API wisp_code wisp_personalise(const wisp_personalise_options* options, wisp_personalise_result* result,
                                    wisp_error* error);

/* ---- Statement (in libwisp alone) ------------------------------------------------------------------------------- */

/* The statement is written for people, or for programs. */
typedef enum wisp_statement_format WISP_ENUM_TYPE {
  WISP_STATEMENT_TEXT = 0,
  WISP_STATEMENT_JSON = 1
} wisp_statement_format;

/* The privacy statement over everything in the ledger, at `delta`. Copies at most `capacity` bytes with the final zero
 * to `text` (which may be NULL when capacity is 0) and the size needed, zero included, to `*needed`. */
WISP_API wisp_code wisp_privacy_statement(const char* ledger_path, double delta, wisp_statement_format format,
                                          char* text, size_t capacity, size_t* needed, wisp_error* error);
/* wisp_privacy_statement that also checks the ledger's anchor: an old copy is WISP_PRIVACY_REFUSED, not stated. */
WISP_API wisp_code wisp_privacy_statement_anchored(const char* ledger_path, const wisp_anchor* anchor, double delta,
                                                   wisp_statement_format format, char* text, size_t capacity,
                                                   size_t* needed, wisp_error* error);

#ifdef __cplusplus
}
#endif

#endif /* WISP_PORTS_C_WISP_H_ */
