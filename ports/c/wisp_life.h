/* wisp: a device's life. Plan what a year of private personalisation may cost, call one function at night, serve the
 * personalised model only where it was found better than the base; look after the log. Conventions as in wisp.h.
 *
 *   wisp_plan_options plan = WISP_INIT(wisp_plan_options);      at each start: makes the plan, or finds it
 *   ...
 *   wisp_plan_life(&plan, NULL, &error);
 *   wisp_night_options night = WISP_INIT(wisp_night_options);   every night, in a thread of the app's
 *   ...
 *   wisp_night_result result = WISP_INIT(wisp_night_result);
 *   if (wisp_personalise_night(&night, &result, &error) == WISP_OK && result.changed) open night.output_path anew;
 *
 * A model that is open goes on as it is while a night replaces its file.
 *
 * ---- A device's life (in libwisp alone) ------------------------------------------------------------------------- */
#ifndef WISP_PORTS_C_WISP_LIFE_H_
#define WISP_PORTS_C_WISP_LIFE_H_

#include "wisp_embed.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Plan (in libwisp alone) ------------------------------------------------------------------------------------ */

/* Who decides whether a personalised model is better than the base. */
typedef enum wisp_judge WISP_ENUM_TYPE {
  /* a share of the records, which do not train: their gains are summed with noise and charged. It costs nothing while
   * their total stays below that of the records that train */
  WISP_JUDGE_PRIVATE = 0,
  /* the same without noise and without a charge. Whoever sees which model is served, or what it recommends, learns
   * something of the records that judge: for models that never leave the device */
  WISP_JUDGE_LOCAL = 1,
  WISP_JUDGE_NONE = 2 /* nobody: the newest model is served, better or not */
} wisp_judge;

typedef struct wisp_plan_options { /* what a life may cost, and how it is lived */
  size_t size;
  const char* model_path;  /* the base, as shipped */
  const char* ledger_path; /* made if absent; a plan is written before its first charge, or never */
  /* name of the data set in ledger and provenance, the same each time; required */
  const char* dataset;
  double epsilon;              /* of the whole life, for every record; required, 1e-6 to 100 */
  double delta;                /* required, as wisp_personalise_options.delta */
  uint32_t num_records_public; /* so many records as may be known to anybody; required */
  uint32_t runs;               /* nights; required */
  wisp_unit unit;              /* required: what one record is, which is protected as a whole */
  uint32_t times_per_second;   /* how many of the log's times make a second, whatever the unit; 0: 1 */
  int64_t session_gap;         /* seconds; WISP_UNIT_SESSION: required; otherwise 0 */
  wisp_judge judge;            /* who decides what is served */
  uint32_t judgings;           /* 0: every night, up to 12 times */
  double judging_share;        /* of records that judge; 0: 0.2 */
  uint64_t steps_per_run;      /* 0: 30 passes over the records in the whole life */
  uint32_t expected_batch;     /* 0: a quarter of the records that train, 64 to 4096 */
  uint32_t num_threads;        /* of what is measured; 0: min(4, processors) */
  double learning_rate;        /* 0: it follows from the noise, 0.01 at most */
  uint32_t typical_events;     /* of a record: a public guess; 0: 10, for what is measured as many as are read */
  int32_t dry_run;             /* 1: write nothing */
  int32_t measure;             /* 1: fill the seconds of the plan, which takes two seconds */
  int32_t other_data;          /* 1: a data set of this name in the model's provenance is another one */
  const wisp_anchor* anchor;   /* of the ledger; NULL: none */
  /* events after this second since 1970 judge, and do not train: for a log that does not grow. 0: each judging is by
   * what came after the one before it, which trains from then on (docs/personalise.md) */
  int64_t trains_until;
  /* what nights write. Where the ledger is gone and files of nights lie here, a new plan is refused: it would forget
   * what was spent. NULL: not looked at */
  const char* output_path;
  int32_t replace; /* 1: another plan that nothing was charged under is replaced; 0: it is refused */
  /* so many records are there when the life begins, and num_records_public at its end, as anybody may know: nights then
   * share the steps by how many are there. 0: all of them from the first night on */
  uint32_t num_records_at_start;
} wisp_plan_options;

/* What may be hoped for. */
typedef enum wisp_outlook WISP_ENUM_TYPE {
  WISP_OUTLOOK_GAIN = 0, /* at this noise a clear gain was measured */
  WISP_OUTLOOK_SOME_GAIN = 1,
  WISP_OUTLOOK_HOPELESS = 2, /* and at this one none: the base is the better model */
  /* there are too few events for each item: a gain was measured only where the base lacked items that people choose */
  WISP_OUTLOOK_NEW_ITEMS = 3
} wisp_outlook;

typedef struct wisp_plan { /* what follows from the options */
  size_t size;
  uint32_t runs, judgings;                                         /* nights; those that judge */
  uint64_t steps_per_run;                                          /* of a night, on average */
  uint32_t expected_batch, records_that_train, records_that_judge; /* of the public number of records */
  wisp_outlook outlook;                                            /* from `noise_to_signal` and `noise_of_an_item` */
  double training_noise, judging_noise; /* multipliers; 0 of judging: nobody judges, or locally */
  double noise_to_signal;               /* what `outlook` follows from; docs/personalise.md */
  /* the smallest gain, in NDCG@10 of the lists that are shown, that is found in four lives of five; NaN: none is, so no
   * decision is possible and the base stays what is served */
  double found_gain;
  uint64_t bytes; /* that a night holds while it steps, beside the log */
  /* with `measure`, of this device: processor time of all threads, and time that passes; else 0 */
  double cpu_seconds_of_run, seconds_of_run, cpu_seconds_of_judging, seconds_of_judging;
  int32_t was_there; /* 1: the ledger had the plan, and nothing was written */
  int32_t not_read;
  double noise_of_an_item; /* the noise of one item's row against what its events say; docs/personalise.md */
} wisp_plan;

/* Finds the noise and writes the plan into the ledger. Reads no event. `plan` may be NULL. Call it at each start:
 * where the ledger has the plan that is asked for, it fills `plan` from it and writes nothing, also when nights have
 * run or the plan was changed. What is 0 stays as it was chosen. After a kill, a full disk or an error of any kind
 * the ledger has no plan, and the next call makes it. WISP_PRIVACY_REFUSED: the ledger has another plan (the sentence
 * names what differs) or charges without a plan; it is gone, and output_path shows that there was one; or no noise
 * meets the epsilon. */
WISP_API wisp_code wisp_plan_life(const wisp_plan_options* options, wisp_plan* plan, wisp_error* error);

/* Another plan for what is left of a life: `runs` of them are to come. Read are model_path, ledger_path, anchor, runs,
 * steps_per_run, expected_batch, num_records_public, learning_rate and dry_run; what is 0 stays as it is. Other times
 * cost nothing. Another batch or number of records costs noise: `noise_factor`, which may be NULL, is what the noise
 * of a step is multiplied by. WISP_PRIVACY_REFUSED: the ledger has no plan; or nothing was charged yet, so
 * wisp_plan_life can make another; or too much of the limit is spent. */
WISP_API wisp_code wisp_plan_change(const wisp_plan_options* options, wisp_plan* plan, double* noise_factor,
                                    wisp_error* error);

/* What is left, as numbers. Asking costs nothing beyond the plan's epsilon. */
typedef struct wisp_budget {
  size_t size;
  /* of everything so far at `delta`, an upper bound; HUGE_VAL: it cannot be bounded. Of a plan that nobody left it is
   * that of the whole plan, from the first charge on */
  double epsilon_stated;
  double delta;         /* that of the limit, or what was asked for */
  double epsilon_limit; /* NaN: the ledger has none */
  int32_t has_plan;     /* 1: the next three are of a plan for a life */
  int32_t not_read;
  /* of the plan as written; once other runs or draws were charged beside it, fewer may fit the limit. Judgings: of
   * WISP_JUDGE_PRIVATE, others are not counted */
  uint64_t runs_left, steps_left, judgings_left;
} wisp_budget;

/* `delta`: for a ledger without a limit. `anchor` may be NULL. */
WISP_API wisp_code wisp_budget_read(const char* ledger_path, const wisp_anchor* anchor, double delta,
                                    wisp_budget* budget, wisp_error* error);

/* ---- Nights (in libwisp alone) ---------------------------------------------------------------------------------- */

typedef struct wisp_night_options { /* one night */
  size_t size;
  const char* model_path; /* the base, as shipped */
  const char* log_path;   /* SQLite file with events */
  /* what people are served: the base at first. Beside it lie .candidate, .checkpoint, .start, .local and .lock,
   * private like the log */
  const char* output_path;
  const char* ledger_path;         /* with the plan */
  const char* dataset;             /* NULL: that of the ledger */
  uint32_t num_threads;            /* at most 1024; 0: min(4, processors); may differ from night to night */
  int32_t other_data;              /* 1: a data set of this name in the model's provenance is another one */
  wisp_progress_callback progress; /* called after each step; NULL: none */
  void* user_data;
  wisp_run_tasks run_tasks; /* if given, the library creates no thread */
  void* run_tasks_data;
  const wisp_anchor* anchor;              /* of the ledger; NULL: none */
  const wisp_device* device;              /* as wisp_personalise_options.device */
  const struct wisp_allocator* allocator; /* of training's large buffers (wisp_embed.h); NULL: the system's */
  /* WISP_INVALID_ARGUMENT, before anything is charged, where a run holds more (wisp_plan.bytes); 0: no ceiling */
  uint64_t max_bytes;
  const wisp_logger* logger; /* NULL: none */
} wisp_night_options;

/* Which model lies at output_path. */
typedef enum wisp_served WISP_ENUM_TYPE {
  WISP_SERVED_BASE = 0,
  WISP_SERVED_EARLIER = 1, /* a candidate that was found better; a newer one trains on */
  WISP_SERVED_NEWEST = 2
} wisp_served;

/* Of the candidate beside the base. */
typedef enum wisp_verdict WISP_ENUM_TYPE {
  WISP_VERDICT_UNDECIDED = 0,
  WISP_VERDICT_BETTER = 1,
  WISP_VERDICT_WORSE = 2
} wisp_verdict;

typedef struct wisp_night_result { /* what a night did */
  size_t size;
  /* With WISP_JUDGE_LOCAL `served`, `changed` and `verdict` are local only: not private, do not send them anywhere. */
  wisp_served served;   /* after this night */
  int32_t changed;      /* 1: the file at output_path is another one than before */
  int32_t judged;       /* 1: this night */
  wisp_verdict verdict; /* after the newest judging */
  int32_t on_device;    /* 1: on options.device; 0: on the processor */
  int32_t not_read;
  uint64_t steps;                                /* of this night; 0: the plan has none left */
  uint64_t steps_of_model;                       /* of the candidate in all */
  uint64_t runs_left, steps_left, judgings_left; /* of the plan */
  /* From here on counted on the log. Local only: not private, do not send it anywhere. */
  uint64_t num_events, unknown_events, unknown_items, bad_rows, num_records; /* as wisp_personalise_result */
} wisp_night_result;

/* One night of the plan: goes on with the training of the night before, judges when it is time, and replaces the file
 * at output_path where a candidate was found better than the base. It may be stopped at any moment, by `progress` or
 * by the system: what was paid for is kept, and the next call goes on. A damaged file beside output_path, or a damaged
 * output, ends nothing: a warning of `logger` says what was found and what goes on. So it does where training begins
 * anew though steps were trained before. WISP_PRIVACY_REFUSED: the ledger has no plan, or did not pay for the
 * candidate. WISP_INVALID_DATA: the base or the ledger is damaged.
 * WISP_IO: another night runs on the same output. `result` may be NULL. */
WISP_API wisp_code wisp_personalise_night(const wisp_night_options* options, wisp_night_result* result,
                                          wisp_error* error);

/* How good the model in a file is on a log: for each user, whether the last item stands in the list of ten that
 * wisp_recommend gives after the events before it, and where. Whether that list may hold items of the history the model
 * says (wisp_model_info.allow_seen). Local only: not private, do not send it anywhere. */
typedef struct wisp_quality {
  size_t size;
  double ndcg_at_10, hit_at_10; /* means over users, from 0 to 1 */
  uint64_t num_users;           /* of three events or more that the model knows */
} wisp_quality;
/* Reads both files and fills `quality`. `num_threads` as in wisp_batch_options. */
WISP_API wisp_code wisp_evaluate(const char* model_path, const char* log_path, uint32_t num_threads,
                                 wisp_quality* quality, wisp_error* error);

/* ---- New bases and items (in libwisp alone) --------------------------------------------------------------------- */

typedef struct wisp_rebase_result { /* what was carried over */
  size_t size;
  /* 0: nothing was learned yet, shapes differ in more than the number of items, or the new base was not trained from
   * the old one: training begins anew */
  int32_t carried;
  uint32_t shared_items; /* of both bases */
  uint32_t lost_items;   /* of the old base alone: what was learned of them is gone */
  int32_t not_read;
} wisp_rebase_result;

/* An app's update brings a new base: carries what was learned in output_path over to it, by the items' keys, and serves
 * the new base until a judging finds the carried model better. From then on nights name the new base. Nothing is
 * charged, and what was spent stays spent. May be done again after a power cut. `result` may be NULL. */
WISP_API wisp_code wisp_rebase(const char* from_path, const char* to_path, const char* output_path,
                               wisp_rebase_result* result, wisp_error* error);

/* The same for an adapter (wisp_personalise_options.adapter_rank) that was trained beside from_path: writes to
 * `out_path` one that stands beside to_path. Nobody judges it. WISP_INVALID_ARGUMENT: the bases differ in more than
 * their items, or the new one was not trained from the old one. */
WISP_API wisp_code wisp_rebase_adapter(const char* from_path, const char* adapter_path, const char* to_path,
                                       const char* out_path, wisp_error* error);

typedef struct wisp_new_item { /* an item for a catalogue */
  const char* key;             /* which no item has yet */
  const char* name;            /* for people; NULL: the key */
  /* key of an item that it is like, whose row it gets; NULL: a row of items that share words of its name, or of all */
  const char* like;
} wisp_new_item;

/* Writes a base with more items to `out_path`, behind those that it has. What is known of them is public. Until a run
 * has trained a new item it is not recommended, and histories are read without it: people are served as before.
 * Personalised models are carried over with wisp_rebase. */
WISP_API wisp_code wisp_catalogue_add(const char* model_path, const wisp_new_item* items, size_t count,
                                      const char* out_path, wisp_error* error);

/* Writes a base that never recommends these items, which keep their rows and may stand in histories; with `restore`
 * (1) one that offers them again. A new base as any other: carry personalised models over with wisp_rebase.
 * WISP_INVALID_ARGUMENT: a key that the model does not have, or nothing left to recommend. */
WISP_API wisp_code wisp_catalogue_retire(const char* model_path, const char* const* item_keys, size_t count,
                                         int32_t restore, const char* out_path, wisp_error* error);

/* ---- Keeping a log (in libwisp alone) --------------------------------------------------------------------------- */

typedef struct wisp_event { /* one thing that happened */
  const char* user;         /* who */
  const char* item_key;     /* with what */
  int64_t time;             /* in any unit that grows */
} wisp_event;

/* All of them or none, with one write to the disk. */
WISP_API wisp_code wisp_log_append_all(wisp_log* log, const wisp_event* events, size_t count, wisp_error* error);

/* Is told an event of a log, whose texts are valid while it runs; returns 0 to end. */
typedef int32_t (*wisp_on_event)(void* user_data, const wisp_event* event);
/* Tells what the user did, the oldest first; a date counts in seconds. Local only: not private. */
WISP_API wisp_code wisp_log_events(const wisp_log* log, const char* user, wisp_on_event on_event, void* user_data,
                                   wisp_error* error);

/* Takes all events of the user away and overwrites them; *erased, which may be NULL: how many. What models learned from
 * them stays in these, under their guarantee. To be rid of that too, delete the output with what lies beside it: the
 * next night begins with the base, with what the plan has left, and is judged anew. */
WISP_API wisp_code wisp_log_erase(wisp_log* log, const char* user, uint64_t* erased, wisp_error* error);

typedef struct wisp_prune_options { /* what is forgotten */
  size_t size;
  int32_t has_before;        /* 1: forget what is before `before` */
  wisp_unit unit;            /* as in the plan; required */
  int64_t before;            /* in the log's own times */
  uint64_t newest_per_user;  /* WISP_UNIT_USER: keep so many of each user; 0: all */
  int64_t session_gap;       /* as wisp_plan_options */
  uint32_t times_per_second; /* as wisp_plan_options */
  int32_t not_read;
} wisp_prune_options;

/* Forgets what is old: of users their older events, of sessions and days whole ones. Whether something stays never
 * depends on others. *pruned, which may be NULL: how many events. */
WISP_API wisp_code wisp_log_prune(wisp_log* log, const wisp_prune_options* options, uint64_t* pruned,
                                  wisp_error* error);

/* Local only: not private. */
typedef struct wisp_log_counts {
  size_t size;
  uint64_t events, users, items; /* how many */
  int64_t oldest, newest;        /* times; 0 in an empty log */
  uint64_t unreadable;           /* events whose user, item or time training cannot read */
} wisp_log_counts;
/* Counts what is in the log. */
WISP_API wisp_code wisp_log_count(const wisp_log* log, wisp_log_counts* counts, wisp_error* error);

/* At most `limit` users, by key, from the first behind `after` on ("": from the first), each on a line of its own. Text
 * as wisp_privacy_statement gives it. Local only: not private. */
WISP_API wisp_code wisp_log_users(const wisp_log* log, const char* after, size_t limit, char* text, size_t capacity,
                                  size_t* needed, wisp_error* error);

#ifdef __cplusplus
}
#endif

#endif /* WISP_PORTS_C_WISP_LIFE_H_ */
