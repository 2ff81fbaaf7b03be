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
 *     draws that cost refuse there (WISP_INVALID_ARGUMENT): open them anew.
 *   - Structs that may grow begin with `size`: set it with WISP_INIT(type), which also zeroes the rest; zero means
 *     "default" for every field unless said otherwise. A result struct is filled as far as its size goes, never beyond.
 *     A size that no version ever had (below 8, no multiple of its alignment), and an enum's value that is not listed,
 *     are WISP_INVALID_ARGUMENT.
 *   - Strings are UTF-8 and belong to the caller (arguments) or to the handle (results, valid until it is closed).
 *   - The library that only recommends (libwisp-runtime) has wisp_version and the part "Model", no more. That of texts
 *     (libwisp-text) has the part "Texts" of wisp_text.h besides. What is marked "in libwisp alone" is missing there.
 *   - Items have an index 0 .. n-1 in the model and a key, the name they carry in the app's own data.
 *
 * A program: example.c. Models in memory, allocators, what a model is: wisp_embed.h. A device's life: wisp_life.h. */
#ifndef WISP_PORTS_C_WISP_H_
#define WISP_PORTS_C_WISP_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
/* WISP_INIT's function where there are no designated initializers. */
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
#define WISP_API __attribute__((visibility("default"))) /* what the library shows */
#endif

#ifdef __cplusplus
#define WISP_INIT(type) (wisp_initialised<type>())
/* In C++ too any number may be passed, and is refused if not listed. Four bytes, as in C. */
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
  WISP_CANCELLED = 7         /* the progress callback asked to stop */
} wisp_code;

typedef struct wisp_error { /* why a call failed */
  wisp_code code;           /* what the call returned as well */
  char message[1024];       /* cut at a character boundary if longer */
} wisp_error;

/* "0.1.0". Never NULL. */
WISP_API const char* wisp_version(void);

/* ---- Model ------------------------------------------------------------------------------------------------------ */

typedef struct wisp_model wisp_model; /* an open model */

/* Maps the file read-only and checks it, its weights included: one reading of the file (wisp_verify has other choices).
 * The file must not be changed in place while open (replacing it is fine). */
WISP_API wisp_code wisp_model_open(const char* path, wisp_model** model, wisp_error* error);
WISP_API void wisp_model_close(wisp_model* model); /* what it gave is no longer valid */

/* What computes on the processor. */
typedef enum wisp_backend WISP_ENUM_TYPE {
  WISP_BACKEND_SIMD = 0,    /* our own kernels in float, the fastest set that the processor has; the default */
  WISP_BACKEND_XNNPACK = 1, /* linear layers through XNNPACK; not in every build, and not for wisp_recommend_batch */
  /* linear layers over 8-bit integers: faster, a quarter of the bytes, scores a little off (docs/small-models.md) */
  WISP_BACKEND_INT8 = 2
} wisp_backend;

/* Whether the weights are looked at when a model is opened: each tensor against its checksum, and that every number is
 * finite. That finds damage, not forgery. Everything else in the file is always checked. */
typedef enum wisp_verify WISP_ENUM_TYPE {
  WISP_VERIFY_DEFAULT = 0, /* as WISP_VERIFY_ALWAYS */
  WISP_VERIFY_ALWAYS = 1,
  /* unless `verified` says that this very file was found whole before: for a fast start with large models */
  WISP_VERIFY_ONCE = 2,
  /* a damaged weight may then change what is recommended; 8-bit weights are verified nevertheless */
  WISP_VERIFY_NEVER = 3
} wisp_verify;

/* What is remembered of a file that was found whole, and of its adapter: its contents' hash, size, time of change,
 * place. Belongs to the app, which keeps it from one start to the next (with its settings, say); zeros at first.
 * Damage that leaves the file's time as it is stays unseen. */
typedef struct wisp_verified {
  uint64_t words[4]; /* for the library alone */
} wisp_verified;

/* One task of the library, for a thread of the app: task(task_data, i). */
typedef void (*wisp_task)(void* task_data, size_t index);
/* The app's own threads: calls task(task_data, 0) .. task(task_data, num_tasks - 1), each once, on any threads, and
 * returns when all are done. What is left out is done on the caller's thread, what is called twice is not done again.
 * No call may come after the function that was given the threads has returned. The threads need 256 KB of stack. */
typedef void (*wisp_run_tasks)(void* user_data, size_t num_tasks, wisp_task task, void* task_data);

/* A device to compute on in place of the processor (docs/cuda.md). */
typedef struct wisp_device {
  size_t size;
  const char* name;   /* "cuda": an NVIDIA GPU, the first that the driver shows; "cpu" */
  const char* module; /* file of its kernels; NULL: libwisp_cuda.so beside this library, or where the system looks */
  /* of its memory that this process may take, in all calls: the last number counts. 0: as before, at first all */
  uint64_t max_bytes;
  /* what its matrix products multiply; NULL: "float32". "tf32", and to recommend also "float16", "bfloat16" and
   * "int8", are faster and slightly off (docs/cuda.md, "arithmetic") */
  const char* arithmetic;
} wisp_device;

typedef struct wisp_open_options { /* how a model is opened */
  size_t size;
  wisp_backend backend; /* what computes */
  wisp_verify verify;   /* whether weights are looked at */
  /* WISP_VERIFY_ONCE: required, read, and filled once the file was found whole; otherwise not read */
  wisp_verified* verified;
  /* an adapter that was trained beside the model (wisp_personalise with adapter_rank); NULL: none */
  const char* adapter_path;
  /* for one history of wisp_recommend: its positions are shared among so many threads, the caller's among them, where
   * there is enough to do for each. The same scores, to the bit. At most 1024; 0 and 1: the caller's alone. Not with
   * WISP_BACKEND_XNNPACK. Threads that are made sleep between calls. wisp_recommend_batch has its own */
  uint32_t num_threads;
  int32_t half_cache; /* 1: keys and values as 16-bit floats, slightly off; not on a device, nor with Re-Attention */
  wisp_run_tasks run_tasks; /* if given, the library creates no thread; called some times for each block */
  void* run_tasks_data;     /* both are used until the model is closed */
  /* NULL: the processor. Where there is no such device the model is opened on the processor: wisp_model_on_device says
   * where it is. On a device it recommends, alone and in batches; with WISP_BACKEND_SIMD, whose place its own kernels
   * take; num_threads is not read there. A device that has no room or fails is WISP_IO: it is not used again in this
   * process */
  const wisp_device* device;
  const struct wisp_allocator* allocator; /* of large buffers (wisp_embed.h); NULL: the system's */
  uint64_t max_bytes; /* WISP_INVALID_ARGUMENT where wisp_model_memory.total_bytes would be more; 0: no ceiling */
} wisp_open_options;

/* wisp_model_open with a choice; `options` may be NULL. WISP_UNSUPPORTED for a backend that this build or processor has
 * not. A model with another one than the default is not for recommending privately. */
WISP_API wisp_code wisp_model_open_with(const char* path, const wisp_open_options* options, wisp_model** model,
                                        wisp_error* error);

/* Bytes that wisp_model_open will hold, exact but for the layers themselves: less than 1 KB for each tensor. */
typedef struct wisp_model_memory {
  size_t size;
  uint64_t file_bytes;           /* mapped: clean pages that the system shares and may drop */
  uint64_t activation_bytes;     /* one history, with its keys and values; and of each thread beside the caller's */
  uint64_t packed_weights_bytes; /* matrices and output table in the order in which products read them */
  uint64_t score_bytes;          /* of lists of results */
  uint64_t name_bytes;           /* the items' keys and names */
  uint64_t total_bytes;          /* of all but the file */
  uint64_t device_bytes;         /* of these, in a device's memory, the file's weights among them; 0 without a device */
  uint64_t newcomer_bytes;       /* beside these, from the first history of none on */
} wisp_model_memory;

/* What the model in that file will take on this device. Reads its description, not its weights, and allocates none of
 * what it counts. Set memory->size with WISP_INIT. */
WISP_API wisp_code wisp_model_plan_memory(const char* path, wisp_model_memory* memory, wisp_error* error);
/* The same of wisp_model_open_with; of XNNPACK without what it keeps of its own. */
WISP_API wisp_code wisp_model_plan_memory_with(const char* path, const wisp_open_options* options,
                                               wisp_model_memory* memory, wisp_error* error);

/* 1: on wisp_open_options.device; 0: on the processor. */
WISP_API int32_t wisp_model_on_device(const wisp_model* model);
WISP_API size_t wisp_model_num_items(const wisp_model* model); /* retired ones included */
/* The item's index, or -1 if the model does not know the key. */
WISP_API int32_t wisp_model_find_item(const wisp_model* model, const char* key);
/* "" if the model carries none, or for an index out of range. Valid until the model is closed. */
WISP_API const char* wisp_model_item_key(const wisp_model* model, int32_t item);
WISP_API const char* wisp_model_item_name(const wisp_model* model, int32_t item); /* the same, for people */

typedef struct wisp_recommendation { /* one line of a list */
  int32_t item;                      /* its index */
  float score;                       /* comparable within one call only */
} wisp_recommendation;

typedef struct wisp_recommend_options { /* what may be recommended */
  size_t size;
  const int32_t* excluded;   /* never recommended */
  size_t num_excluded;       /* of `excluded` */
  const int32_t* candidates; /* if given, only these are considered: not NULL with num_candidates 0 is nothing at all */
  size_t num_candidates;     /* of `candidates` */
  int32_t allow_seen;        /* items of the history come back: 0: as the model says (wisp_model_info), 1: yes, 2: no */
} wisp_recommend_options;

/* Writes the best `*count` items after `history` (oldest first) to `out`, best first, and their number, which may be
 * smaller, to `*count`. Without any (num_history 0): what is popular, as the model knows it, for a newcomer. `options`
 * may be NULL. WISP_INVALID_DATA where a score is not finite, which damaged weights make. Retired items never come. */
WISP_API wisp_code wisp_recommend(wisp_model* model, const int32_t* history, size_t num_history,
                                  const wisp_recommend_options* options, wisp_recommendation* out, size_t* count,
                                  wisp_error* error);

typedef struct wisp_batch_options { /* how a batch is computed */
  size_t size;
  uint32_t num_threads;     /* at most 1024, and no more are made than there are histories; 0: min(4, processors) */
  wisp_run_tasks run_tasks; /* if given, the library creates no thread */
  void* run_tasks_data;
} wisp_batch_options;

/* The same as wisp_recommend for several histories in one call: histories[i] has lengths[i] items, one at least. The
 * best `count` of history i are written from out[i * count] on, and their number, which may be smaller, to found[i]:
 * what wisp_recommend gives, to the bit. A `count` above the model's items asks for all of them: beyond those nothing
 * is written, so `out` has room for (num_histories - 1) * count + min(count, items). `options` and `how` may be NULL;
 * without `how` no thread is created. An error names the first history that is wrong. The first call makes the buffers
 * it needs; they are kept until the model is closed, `how` changes or more histories need more threads. */
WISP_API wisp_code wisp_recommend_batch(wisp_model* model, const int32_t* const* histories, const size_t* lengths,
                                        size_t num_histories, const wisp_recommend_options* options,
                                        const wisp_batch_options* how, size_t count, wisp_recommendation* out,
                                        size_t* found, wisp_error* error);

/* ---- The ledger's anchor (in libwisp alone) --------------------------------------------------------------------- */

/* How far the ledger has got, kept where nobody who restores files restores it too: the platform's key store, say. With
 * it an old copy of a ledger that was put back is noticed, and refused: WISP_PRIVACY_REFUSED. It is no proof against
 * who can change both. Always give it, or never: a ledger that has gone on without its anchor is ahead of it, which is
 * allowed. One anchor for each ledger. */
enum { WISP_ANCHOR_BYTES = 64 }; /* the most that is kept */

typedef struct wisp_anchor { /* callbacks of the app that keep it */
  size_t size;
  /* Copies what was written last to `bytes`, which has room for `capacity`, and its length to `*length`: 0 where
   * nothing was. Called before each charge at least. Returns 0; anything else is WISP_IO. */
  int (*read)(void* user_data, uint8_t* bytes, size_t capacity, size_t* length);
  /* Keeps `length` bytes in the place of those before, whole or not at all; on return they last. Called once for each
   * charge, limit and plan. Returns 0; anything else is WISP_IO, and what was charged stays charged. */
  int (*write)(void* user_data, const uint8_t* bytes, size_t length);
  void* user_data;
  /* 1: there may be no anchor yet though something was charged, else refused: for the first time, then 0 */
  int32_t begin;
  int32_t not_read;
} wisp_anchor;

/* ---- Recommending privately (in libwisp alone) ------------------------------------------------------------------ */

/* What is protected as a whole: one record is all events of one unit, and nothing of another. wisp_personalise makes
 * the records; a person's part in each is one clipped gradient. On one person's device: docs/privacy.md. */
typedef enum wisp_unit WISP_ENUM_TYPE {
  WISP_UNIT_USER = 1, /* everything one user of the log did */
  /* events of one user without a pause longer than session_gap: one session, not the person */
  WISP_UNIT_SESSION = 2,
  WISP_UNIT_DAY = 3, /* events of one user on one day, by UTC: one day, not the person */
  /* one event or one text. Refused by wisp_personalise: a recommender learns what follows what */
  WISP_UNIT_INTERACTION = 4
} wisp_unit;

/* For weights that were fine-tuned without a guarantee: items are drawn instead of ranked, and the ledger of the data
 * is charged before each draw. What is protected are the records the weights learned from; not the history given here,
 * the candidates and the number of items. Only items come out, in the order they were drawn: no scores. Weights whose
 * provenance carries a guarantee for everything, or comes from public data alone, are drawn from freely: nothing is
 * charged and no ledger is needed. */
typedef struct wisp_private_recommender wisp_private_recommender;

/* How draws are made private. */
typedef enum wisp_decoding WISP_ENUM_TYPE {
  WISP_DECODING_DEFAULT = 0, /* anchored if there is a base model, else mixed */
  WISP_DECODING_MIXED = 1,   /* the model with probability lambda, else uniform */
  WISP_DECODING_ANCHORED = 2 /* the base model, moved by the fine-tuned one by at most `clip` logits */
} wisp_decoding;

typedef struct wisp_private_options { /* how items are drawn, and what that may cost */
  size_t size;
  wisp_decoding decoding; /* mixed or anchored */
  /* of the data the model learned from, by name; required where draws are charged; made if absent */
  const char* ledger_path;
  wisp_model* base_model; /* the public model, as shipped, with the same items; must stay open; may be NULL if mixed */
  /* Data sets of the models' provenance that are public, by label: the app's word. The base must be free under it. */
  const char* const* public_datasets;
  size_t num_public_datasets; /* of `public_datasets` */
  /* Exactly one of the next four where draws are charged. */
  double lambda;           /* mixed: above 0 and below 1 */
  double clip;             /* anchored: above 0 */
  double epsilon_per_draw; /* at delta 0 */
  /* of `lifetime_draws` draws together, at `delta`: over all calls there will ever be. It becomes the limit of a ledger
   * that has none and on which nothing was spent; one with spendings needs a limit */
  double epsilon;
  double delta;            /* with epsilon or budget_epsilon */
  uint64_t lifetime_draws; /* with epsilon */
  /* limit over everything ever done with this data; 0: the limit already in the ledger, or none */
  double budget_epsilon;
  /* a number of records that may be known to anybody: delta must be below 1 over it, at most 1e-3, and at most 1e-5
   * where those are ten or fewer; 0: unknown, then as with 10,000 */
  uint32_t num_records_public;
  /* 1: a delta up to 1 / num_records_public is accepted, as papers have it; not with ten records or fewer */
  int32_t allow_large_delta;
  double temperature;        /* 0: 1 */
  uint32_t top_k;            /* mixed: only so many of the model's best, before mixing; 0: all */
  double top_p;              /* mixed: then the fewest that hold this share, before mixing; 0: all */
  uint32_t draws_per_charge; /* a charge is one write to disk; what was charged is spent, drawn or not; 0: 1 */
  int32_t not_read;          /* where older callers have padding */
  /* 1: a data set of the ledger's name in the models' provenance is another one. 0: a ledger that lacks what they have
   * spent on its data set is refused */
  int32_t other_data;
  const wisp_anchor* anchor; /* of the ledger; its callbacks are called until the recommender is closed; NULL: none */
  /* what was chosen by looking at the same data without a charge, in words for the statement; NULL: nothing */
  const char* uncharged_tuning;
  /* of a ledger that is made; 0: WISP_UNIT_USER, of texts WISP_UNIT_INTERACTION; statements say that nobody chose it */
  wisp_unit unit;
  int32_t not_read_either; /* keeps the size a multiple of 8 */
} wisp_private_options;

/* `model` must stay open until the recommender is closed, and both are used by one thread at a time.
 * WISP_PRIVACY_REFUSED: the sentence says what has no guarantee, or that a ledger is needed. WISP_UNSUPPORTED: a model,
 * or a base, that was not opened with the default backend. */
WISP_API wisp_code wisp_private_recommender_open(wisp_model* model, const wisp_private_options* options,
                                                 wisp_private_recommender** recommender, wisp_error* error);
WISP_API void wisp_private_recommender_close(wisp_private_recommender* recommender); /* before its models */
/* 1: draws are free; 0: they are charged. */
WISP_API int32_t wisp_private_recommender_is_free(const wisp_private_recommender* recommender);

/* Draws at most `*count` distinct items after `history` to `items`, and their number to `*count`. `options` may be
 * NULL; its candidates must be public. WISP_PRIVACY_REFUSED when the budget is spent: then nothing was drawn. */
WISP_API wisp_code wisp_private_recommend(wisp_private_recommender* recommender, const int32_t* history,
                                          size_t num_history, const wisp_recommend_options* options, int32_t* items,
                                          size_t* count, wisp_error* error);

/* ---- Log of events, one SQLite file (in libwisp alone) ---------------------------------------------------------- */

typedef struct wisp_log wisp_log; /* an open log */

/* Opens the file, or makes it. Table events(user TEXT, item TEXT, time INTEGER). `path` is a file's name: "",
 * ":memory:" and what begins with "file:" are refused ("./file:x" is a name). A table that is there already may have
 * more columns, with constants for defaults. Nothing that the file says is run: no trigger fires, no CHECK is asked,
 * and a view is refused (WISP_INVALID_DATA). */
WISP_API wisp_code wisp_log_open(const char* path, wisp_log** log, wisp_error* error);
WISP_API void wisp_log_close(wisp_log* log); /* nothing is lost: each append is on disk */
/* Appends one event; on disk when the call returns. `time` in any unit that grows. */
WISP_API wisp_code wisp_log_append(wisp_log* log, const char* user, const char* item_key, int64_t time,
                                   wisp_error* error);
/* The user's items that `model` knows, oldest first: the newest `*count` to `items`, their number to `*count`. */
WISP_API wisp_code wisp_log_history(wisp_log* log, const wisp_model* model, const char* user, int32_t* items,
                                    size_t* count, wisp_error* error);

/* ---- Private fine-tuning (in libwisp alone) --------------------------------------------------------------------- */

/* What the device is, in words, as wisp_privacy_statement gives its text. WISP_UNSUPPORTED, with the reason, where
 * there is none: this library has no part for it, or there is no module, no driver, or no GPU that the module has code
 * for. Once it is open it stays so until the process ends. */
WISP_API wisp_code wisp_device_describe(const wisp_device* device, char* text, size_t capacity, size_t* needed,
                                        wisp_error* error);

typedef struct wisp_progress { /* where a run is */
  size_t size;
  uint64_t step, num_steps; /* taken so far; of the whole run */
  double loss;              /* mean per position; local only: not private, do not send it anywhere */
  double epsilon;           /* spent by this run so far; NaN while not yet known */
} wisp_progress;

/* Return 0 to go on, anything else to stop. Called on the caller's thread. */
typedef int (*wisp_progress_callback)(const wisp_progress* progress, void* user_data);

typedef struct wisp_personalise_options { /* one private run */
  size_t size;
  const char* model_path;  /* the model to start from */
  const char* log_path;    /* SQLite file with events */
  const char* output_path; /* the fine-tuned model; may be model_path: replaced in one step at the end */
  const char* ledger_path; /* the data set's privacy ledger; made by the first charge if absent; never delete it */
  double epsilon;          /* of this run, or of all planned_runs; required, 1e-6 to 100 */
  /* required; below 1 / num_users_public, at most 1e-3, and at most 1e-5 where those are ten or fewer */
  double delta;
  /* a number of records (users, or what `unit` says) that may be known to anybody; sampling follows from it; required.
   * 1: that one is hidden whole, and the model can learn almost nothing */
  uint32_t num_users_public;
  /* limit over everything ever done with this data; 0: the limit already in the ledger, or none */
  double budget_epsilon;
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
  int32_t other_data; /* 1: a data set of this name in the model's provenance is another one */
  int32_t not_read;   /* where older callers have padding */
  /* required; a caller whose struct ends before it has WISP_UNIT_USER, and the statement says that nobody chose it */
  wisp_unit unit;
  /* so many of the log's times make a second, since 1970, with any unit; 0: 1; 1000: milliseconds */
  uint32_t times_per_second;
  int64_t session_gap; /* seconds; WISP_UNIT_SESSION: required, a public constant such as 1800; otherwise 0 */
  /* a file of the app's, private like the log; NULL: none, and a run that is stopped has to be paid for anew */
  const char* checkpoint_path;
  uint64_t checkpoint_every; /* steps; 0: at the end of each charge */
  const wisp_anchor* anchor; /* of the ledger; its callbacks are called until the call returns; NULL: none */
  /* what was chosen by looking at the same data without a charge, in words for the statement; NULL: nothing */
  const char* uncharged_tuning;
  /* 0 or 1: none. So many runs with these options, fixed before the first charge to the ledger: `epsilon` is that of
   * all of them together, by PLD, however they are spread and whatever they show. Given with each of them */
  uint32_t planned_runs;
  /* 0: all weights train, or the adapter at adapter_path where one is given. 1 and more: the model stays as it is, and
   * beside each matrix of its blocks two of this rank train instead (low-rank adaptation): a small part of memory,
   * noise and file. output_path is then the file of the adapter, for wisp_open_options.adapter_path; model_path must
   * be kept for it */
  uint32_t adapter_rank;
  /* start from model_path and this adapter of it, which is trained further; with adapter_rank the same; NULL: none */
  const char* adapter_path;
  /* NULL: the processor. Where there is no such device the run goes on on the processor: wisp_device_describe says why,
   * wisp_personalise_result.on_device what it ran on. With num_threads threads of the host beside it */
  const wisp_device* device;
} wisp_personalise_options;

typedef struct wisp_personalise_result { /* what a run did */
  size_t size;
  uint64_t num_steps; /* taken */
  /* What may be stated of this run, at `delta`: by itself where its steps were fixed when it began and all were taken;
   * of a run that was gone on with, or ended early, the ledger's figure, which is larger */
  double epsilon;
  double noise_multiplier; /* standard deviation of the noise over clipping_norm */
  /* From here on counted on the log. Local only: not private, do not send it anywhere. */
  uint64_t num_records;       /* trained on */
  uint64_t records_too_short; /* left out: of fewer than two events that the model knows */
  uint64_t gradients_dropped; /* how often a record was left out of a step, for a gradient that could not be bounded */
  uint64_t num_events;        /* in the log */
  uint64_t unknown_events;    /* left out: of items that the model does not know */
  uint64_t unknown_items;     /* how many such items */
  /* From here on public again. */
  /* above num_steps: a run that was gone on with ended early, with the steps that the ledger's limit still allowed */
  uint64_t planned_steps;
  uint64_t resumed_from; /* the step of the checkpoint that was gone on from; 0: there was none */
  /* Counted on the log again, local only. */
  uint64_t bad_rows; /* left out: without a user, an item or a time that can be one */
  /* And public. */
  int32_t checkpoint_failed; /* 1: the last checkpoint could not be written. The run went on without */
  int32_t on_device;         /* 1: on options.device; 0: on the processor */
} wisp_personalise_result;

/* Bytes that wisp_personalise will hold while it steps, were the log to hold the events of `num_users_public` users;
 * exact but for small objects (less than 2 KB for each tensor and 8 KB for each thread), the events themselves and the
 * ledger. Before the first step, between charges and at the end the accountant takes about 40 bytes for each point of
 * its grid (25 MB were seen, some 35 are the most), and gives them back. Before the first step a start whose weights
 * are not floats is held as floats, twice for a moment. Not for encoders and classifiers: they are refused. */
typedef struct wisp_personalise_memory {
  size_t size;
  uint64_t weight_bytes;          /* that train, as floats; beside the start, which is mapped */
  uint64_t packed_weights_bytes;  /* matrices in the order in which products read them */
  uint64_t optimizer_bytes;       /* what it keeps of each weight */
  uint64_t gradient_sum_bytes;    /* exact sums of a batch */
  uint64_t activation_bytes;      /* of one record for each thread */
  uint64_t record_gradient_bytes; /* of one record for each thread */
  uint64_t list_bytes;            /* of records and batches */
  uint64_t total_bytes;           /* of all these */
} wisp_personalise_memory;

/* Reads model_path, num_users_public, num_threads and device, of the model its description; spends nothing. On a
 * device: its memory and the host's together, of as many records as pass at once. Set memory->size with WISP_INIT. */
WISP_API wisp_code wisp_personalise_plan_memory(const wisp_personalise_options* options,
                                                wisp_personalise_memory* memory, wisp_error* error);

/* Fine-tunes with DP-SGD (record = one unit of the log; Poisson sampling; exact discrete Gaussian noise from the
 * operating system's randomness). Every step is charged to the ledger before its noise is drawn. `result` may be NULL.
 * When cancelled or failed, no model is written and what was charged stays charged. With a checkpoint_path the run is
 * saved there every checkpoint_every steps, when it is cancelled, and before the model is written; a process that is
 * killed loses what came after the last of these. The next call with the same path and the same options goes on from
 * there, pays for the steps that are left, and removes the file once the model is written. What was charged and not
 * used before the run stopped stays spent: where the ledger's limit has no room for all steps that are left, the run
 * ends with those that it allows (planned_steps). A checkpoint of other options or another model is refused and stays:
 * delete it to begin anew. It learned from the log: keep it as private. WISP_IO, before a charge, while another run is
 * to write the same output or checkpoint. WISP_PRIVACY_REFUSED, before a charge, for a model imported from data
 * nobody named, and for a budget below what is spent. */
WISP_API wisp_code wisp_personalise(const wisp_personalise_options* options, wisp_personalise_result* result,
                                    wisp_error* error);

/* ---- Statement (in libwisp alone) ------------------------------------------------------------------------------- */

/* For people, or for programs. */
typedef enum wisp_statement_format WISP_ENUM_TYPE {
  WISP_STATEMENT_TEXT = 0,
  WISP_STATEMENT_JSON = 1
} wisp_statement_format;

/* The privacy statement over everything in the ledger, at `delta`. Copies at most `capacity` bytes with the final zero
 * to `text` (which may be NULL when capacity is 0) and the size needed, zero included, to `*needed`. */
WISP_API wisp_code wisp_privacy_statement(const char* ledger_path, double delta, wisp_statement_format format,
                                          char* text, size_t capacity, size_t* needed, wisp_error* error);
/* The same held against the ledger's anchor: an old copy of the ledger is WISP_PRIVACY_REFUSED, not stated. */
WISP_API wisp_code wisp_privacy_statement_anchored(const char* ledger_path, const wisp_anchor* anchor, double delta,
                                                   wisp_statement_format format, char* text, size_t capacity,
                                                   size_t* needed, wisp_error* error);

#ifdef __cplusplus
}
#endif

#endif /* WISP_PORTS_C_WISP_H_ */
