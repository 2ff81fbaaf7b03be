/* wisp: nightly training on a device. Plan what a year of private personalisation may cost, call one function for each
 * run, serve the personalised model only if it was found better than the base, maintain the log. Conventions: wisp.h.
 *
 *   wisp_plan_options plan = WISP_INIT(wisp_plan_options);   at each start: makes the plan, or finds it
 *   ...
 *   wisp_plan_make(&plan, NULL, &error);
 *   wisp_run_options run = WISP_INIT(wisp_run_options);      each night, in a thread of the app's
 *   ...
 *   wisp_run_result result = WISP_INIT(wisp_run_result);
 *   if (wisp_run_planned(&run, &result, &error) == WISP_OK && result.changed) open run.output_path again;
 *
 * A model that is open stays as it is while a run replaces its file.
 *
 * All of it is in libwisp alone, not in the library that only recommends. */
#ifndef WISP_PORTS_C_WISP_DEPLOYMENT_H_
#define WISP_PORTS_C_WISP_DEPLOYMENT_H_

#include "wisp_embed.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Plan (in libwisp alone) ------------------------------------------------------------------------------------ */

/* Selects who decides whether a personalised model is better than the base. */
typedef enum wisp_evaluation WISP_ENUM_TYPE {
  /* by events later than all that trained: the gains of all records are summed with noise and charged, within the
   * plan's epsilon */
  WISP_EVALUATION_PRIVATE = 0,
  /* the same without noise and without a charge. Whoever sees which model is served, or its recommendations, learns
   * something about the records: for models that never leave the device */
  WISP_EVALUATION_LOCAL = 1,
  WISP_EVALUATION_NONE = 2 /* no evaluation: the newest model is served, better or not */
} wisp_evaluation;

typedef struct wisp_plan_options { /* what a plan may cost, and how it is carried out */
  size_t size;
  const char* model_path;  /* the base, as shipped */
  const char* ledger_path; /* created if absent; a plan is written before the first charge, or never */
  /* name of the data set in ledger and provenance, the same each time; required */
  const char* dataset;
  double epsilon;              /* of the whole plan, for every record; required, 1e-6 to 100 */
  double delta;                /* required; limits as in wisp_personalise_options.delta */
  uint32_t num_records_public; /* a number of records that anybody may know; required */
  uint32_t runs;               /* number of runs; required */
  wisp_unit unit;              /* required: defines one record, which is protected as a whole */
  uint32_t times_per_second;   /* how many of the log's time values make a second, whatever the unit; 0: 1 */
  int64_t session_gap;         /* seconds; WISP_UNIT_SESSION: required; otherwise 0 */
  wisp_evaluation evaluation;  /* who decides which model is served */
  uint32_t evaluations;        /* runs that evaluate; 0: 12, or fewer if trains_until is set and records are few */
  uint64_t steps_per_run;      /* 0: 30 passes over the records in all runs together */
  uint32_t expected_batch;     /* 0: a quarter of the records, 64 to 4096 */
  uint32_t num_threads;        /* threads of the measurement; 0: min(4, processors) */
  double learning_rate;        /* 0: derived from the noise, 0.01 at most */
  /* events of a record, a public guess; 0: 10, and the measurement takes as many as a model reads */
  uint32_t typical_events;
  int32_t dry_run;           /* 1: write nothing */
  int32_t measure;           /* 1: fill the seconds of the plan, which takes two seconds */
  int32_t other_data;        /* 1: a data set of this name in the model's provenance is a different one */
  const wisp_anchor* anchor; /* of the ledger; NULL: none */
  /* seconds since 1970: later events evaluate and never train. For a log that does not grow. 0: each
   * evaluation uses what came after the one before it, which trains from then on (docs/personalise.md) */
  int64_t trains_until;
  /* the file that runs write. If files of runs lie here but the ledger is gone, a new plan is refused: it would
   * forget what was spent. NULL: no such check */
  const char* output_path;
  int32_t replace; /* 1: replaces another plan if nothing was charged under it; 0: another plan is refused */
  /* number of records when the plan begins, as anybody may know it; num_records_public is then the number at its end,
   * and runs share the steps in proportion. 0: all records are there from the first run on */
  uint32_t num_records_at_start;
  /* seconds between runs, 86400 for a day: a run waits for half of it (wisp_run_options.early); 0: it never waits */
  uint64_t every;
} wisp_plan_options;

/* The gain that may be expected. */
typedef enum wisp_outlook WISP_ENUM_TYPE {
  WISP_OUTLOOK_GAIN = 0, /* at this noise a clear gain was measured */
  WISP_OUTLOOK_SOME_GAIN = 1,
  WISP_OUTLOOK_HOPELESS = 2, /* at this noise no gain was measured: the base is the better model */
  /* there are too few events for each item: a gain was measured only if the base lacked items that people choose */
  WISP_OUTLOOK_NEW_ITEMS = 3
} wisp_outlook;

typedef struct wisp_plan { /* the plan that follows from the options */
  size_t size;
  uint32_t runs, evaluations; /* runs; runs that evaluate */
  uint64_t steps_per_run;     /* steps of a run, on average */
  uint32_t expected_batch;    /* of the public number of records */
  wisp_outlook outlook;       /* by the gain of the nearest measured deployment; docs/personalise.md */
  /* noise multipliers; evaluation_noise is 0 without evaluation or with a local one */
  double training_noise, evaluation_noise;
  double noise_to_signal; /* docs/personalise.md explains it */
  /* the smallest gain, in NDCG@10 of the lists that are shown, that is detected in four of five plans; NaN: none can
   * be, so no decision is possible and the base stays served */
  double found_gain;
  uint64_t bytes; /* bytes that a run holds while it steps, beside the log */
  /* with `measure`, on this device: processor time of all threads, and wall time; else 0 */
  double cpu_seconds_of_run, seconds_of_run, cpu_seconds_of_evaluation, seconds_of_evaluation;
  int32_t was_there; /* 1: the ledger already had the plan, and nothing was written */
  int32_t not_read;
  double noise_of_an_item; /* the noise of one item's row relative to what its events say; docs/personalise.md */
  /* releases of the counts of which item follows which; 0: none. They take this share of the plan's budget */
  uint64_t succession_releases;
  double succession_share, succession_noise; /* noise multiplier of a release */
  double succession_signal;                  /* an item's counts in a release, beside its noise */
  /* releases of the weight of the output bias; 0: none. They take this share of the plan's budget */
  uint64_t bias_weight_releases;
  double bias_weight_share, bias_weight_noise; /* noise multiplier of a release */
} wisp_plan;

/* Finds the noise and writes the plan into the ledger. Reads no event. `plan` may be NULL. Call it at each start: if
 * the ledger already has the requested plan, it fills `plan` from it and writes nothing, also when runs have run or
 * the plan was changed. Options that are 0 keep their value of the existing plan. After a kill, a full disk or an error
 * of any kind the ledger has no plan, and the next call writes it. WISP_PRIVACY_REFUSED: the ledger has another plan
 * (the sentence names what differs) or charges without a plan; the ledger is gone, and output_path shows that there was
 * one; or no noise meets the epsilon. */
WISP_API wisp_code wisp_plan_make(const wisp_plan_options* options, wisp_plan* plan, wisp_error* error);

/* Changes the plan for the runs that are left: `runs` of them are to come. Reads model_path, ledger_path, anchor,
 * runs, every, steps_per_run, expected_batch, num_records_public, learning_rate and dry_run; options that are 0 stay as
 * they are. Another schedule costs nothing. Another batch or number of records costs noise: `noise_factor`, which may
 * be NULL, is the factor by which the noise of a step grows. WISP_PRIVACY_REFUSED: the ledger has no plan; nothing was
 * charged yet, so wisp_plan_make can make another; or too much of the limit is spent. */
WISP_API wisp_code wisp_plan_change(const wisp_plan_options* options, wisp_plan* plan, double* noise_factor,
                                    wisp_error* error);

/* The budget that is left, in numbers. Reading it costs nothing beyond the plan's epsilon. */
typedef struct wisp_budget {
  size_t size;
  /* of everything so far at `delta`, an upper bound; HUGE_VAL: it cannot be bounded. Under a plan with no charge beside
   * it, this is the epsilon of the whole plan, from the first charge on; a single run is a plan too, of its steps */
  double epsilon_stated;
  double delta;         /* the limit's delta, or the one asked for */
  double epsilon_limit; /* NaN: the ledger has no limit */
  int32_t has_plan;     /* 1: the ledger has a plan of runs, and the next three are its */
  int32_t not_read;
  /* left of the plan as written; once other runs or samples were charged beside it, fewer may fit the limit.
   * Evaluations are counted only for WISP_EVALUATION_PRIVATE */
  uint64_t runs_left, steps_left, evaluations_left;
  uint64_t succession_releases_left, bias_weight_releases_left; /* with has_plan */
  /* if epsilon_stated is that of a plan which is not used up: the epsilon of what was charged so far. It holds only if
   * nobody stopped because of what training showed. NaN: epsilon_stated is of what was charged, and of nothing else */
  double epsilon_charged;
} wisp_budget;

/* `delta` is used if the ledger has no limit. `anchor` may be NULL. */
WISP_API wisp_code wisp_budget_read(const char* ledger_path, const wisp_anchor* anchor, double delta,
                                    wisp_budget* budget, wisp_error* error);

typedef struct wisp_spent { /* the budget after one of the ledger's charges */
  size_t size;
  const char* time_utc;                   /* of the charge: 2026-05-01T12:00:00.000000Z */
  uint64_t charges;                       /* so many charges by then */
  double epsilon_stated, epsilon_charged; /* as in wisp_budget */
} wisp_spent;
/* Receives one point of a ledger's history, valid during the call. Returns 0 to end. */
typedef int32_t (*wisp_on_spent)(void* user_data, const wisp_spent* spent);
/* Passes at most `most_points` points (0: 50), spread evenly over the charges, to `on_spent`, the oldest first. Each
 * takes the accountant up to a second. `delta` and `anchor` as in wisp_budget_read. */
WISP_API wisp_code wisp_budget_history(const char* ledger_path, const wisp_anchor* anchor, double delta,
                                       uint32_t most_points, wisp_on_spent on_spent, void* user_data,
                                       wisp_error* error);

/* ---- Runs (in libwisp alone) ---------------------------------------------------------------------------------- */

typedef struct wisp_run_options { /* options of one run */
  size_t size;
  const char* model_path; /* the base, as shipped */
  const char* log_path;   /* SQLite file with events */
  /* the model that people are served; the base at first. Beside it lie .candidate, .checkpoint, .start, .local and
   * .lock, private like the log */
  const char* output_path;
  const char* ledger_path;         /* the ledger that has the plan */
  const char* dataset;             /* NULL: the ledger's data set */
  uint32_t num_threads;            /* at most 1024; 0: min(4, processors); may differ from run to run */
  int32_t other_data;              /* 1: a data set of this name in the model's provenance is a different one */
  wisp_progress_callback progress; /* called after each step; NULL: none */
  void* user_data;
  wisp_run_tasks run_tasks; /* if given, the library creates no thread */
  void* run_tasks_data;
  const wisp_anchor* anchor;              /* of the ledger; NULL: none */
  const wisp_device* device;              /* as wisp_personalise_options.device */
  const struct wisp_allocator* allocator; /* allocates training's large buffers (wisp_embed.h); NULL: the system's */
  /* WISP_INVALID_ARGUMENT, before anything is charged, if a run would hold more (wisp_plan.bytes); 0: no limit */
  uint64_t max_bytes;
  const wisp_logger* logger;         /* NULL: none */
  wisp_cancelled_callback cancelled; /* as wisp_personalise_options.cancelled */
  int32_t early;                     /* 1: runs although half of the plan's `every` has not passed since the last run */
  int32_t not_read;
} wisp_run_options;

/* The model that lies at output_path. */
typedef enum wisp_served WISP_ENUM_TYPE {
  WISP_SERVED_BASE = 0,
  WISP_SERVED_EARLIER = 1, /* a candidate that was found better, or the base with another weight of its bias */
  WISP_SERVED_NEWEST = 2
} wisp_served;

/* The outcome of evaluating the candidate against the base. */
typedef enum wisp_verdict WISP_ENUM_TYPE {
  WISP_VERDICT_UNDECIDED = 0,
  WISP_VERDICT_BETTER = 1,
  WISP_VERDICT_WORSE = 2
} wisp_verdict;

typedef struct wisp_run_result { /* the outcome of a run */
  size_t size;
  /* With WISP_EVALUATION_LOCAL `served`, `changed` and `verdict` are local only: not private, do not send them
   * anywhere. */
  wisp_served served;   /* the model that is served after this run */
  int32_t changed;      /* 1: the file at output_path was replaced */
  int32_t evaluated;    /* 1: this run evaluated the candidate */
  wisp_verdict verdict; /* after the newest evaluation */
  int32_t on_device;    /* 1: on options.device; 0: on the processor */
  int32_t not_read;
  uint64_t steps; /* steps of this run; 0: the plan has none left */
  /* steps of the candidate over all runs. It counts from 0 again after a lost checkpoint, a rebase, or a change of the
   * plan that costs noise, although what was learned stays */
  uint64_t steps_of_model;
  uint64_t runs_left, steps_left, evaluations_left; /* left of the plan */
  /* The next fields are counted on the log. Local only: not private, do not send them anywhere. */
  uint64_t num_events, unknown_events, unknown_items, bad_rows, num_records; /* as in wisp_personalise_result */
} wisp_run_result;

/* One run of the plan: resumes the training of the run before, evaluates when an evaluation is due, and replaces the
 * file at output_path if a candidate, or a weight of the base's bias, was found better. It may be stopped at any
 * moment, by `progress` or by the system: what was paid for is kept, and the next call resumes. A damaged file beside
 * output_path, or a damaged output, ends nothing: a warning of `logger` says what was found and how the run continues.
 * A warning also says that training starts over although steps were trained before. WISP_TOO_EARLY: the steps
 * of a run were charged less than half of the plan's `every` ago, and nothing is charged now. WISP_PRIVACY_REFUSED: the
 * ledger has no plan, or did not pay for the candidate. WISP_INVALID_DATA: the base or the ledger is damaged. WISP_IO:
 * another run runs on the same output. `result` may be NULL. */
WISP_API wisp_code wisp_run_planned(const wisp_run_options* options, wisp_run_result* result, wisp_error* error);

/* The quality of a model on a log: for each user, whether the last item is in the list of ten that wisp_recommend gives
 * after the events before it, and at which rank. The model says whether that list may hold items of the history
 * (wisp_model_info.allow_seen). Local only: not private, do not send it anywhere. */
typedef struct wisp_quality {
  size_t size;
  double ndcg_at_10, hit_at_10; /* means over users, from 0 to 1 */
  uint64_t num_users;           /* users with three events or more that the model knows */
} wisp_quality;
/* Reads both files and fills `quality`. `num_threads` as in wisp_batch_options. */
WISP_API wisp_code wisp_evaluate(const char* model_path, const char* log_path, uint32_t num_threads,
                                 wisp_quality* quality, wisp_error* error);

/* ---- New bases and items (in libwisp alone) --------------------------------------------------------------------- */

typedef struct wisp_rebase_options { /* the files of a new base */
  size_t size;
  const char* from_path;   /* the previous base; required */
  const char* to_path;     /* the new base; required */
  const char* output_path; /* wisp_run_options.output_path; required */
  const char* ledger_path; /* the plan's ledger, which is read only; required */
  /* 1: what was learned and is served is given up where it could never be served on the new base; 0: that is refused */
  int32_t start_over;
  int32_t not_read;
} wisp_rebase_options;

typedef struct wisp_rebase_result { /* what was carried over */
  size_t size;
  /* 0: nothing was learned yet or, with start_over, it could not be carried over or not be served: training then starts
   * over with what the plan has left */
  int32_t carried;
  uint32_t shared_items; /* items of both bases */
  uint32_t lost_items;   /* items of the old base alone: what was learned of them is lost */
  int32_t not_read;
} wisp_rebase_result;

/* For an app update with a new base: carries what was learned in output_path over to it, by the items' keys, and serves
 * the new base until an evaluation finds the carried model better. Runs must name the new base from then on. Nothing
 * is charged, and what was spent stays spent. The call may be repeated after a power cut. WISP_INVALID_ARGUMENT: what
 * was learned would be lost, because it cannot be carried over or the plan has no step or evaluation left, and
 * start_over is 0; nothing has changed, so keep the previous base. `result` may be NULL. */
WISP_API wisp_code wisp_rebase(const wisp_rebase_options* options, wisp_rebase_result* result, wisp_error* error);

/* wisp_rebase for an adapter (wisp_personalise_options.adapter_rank) that was trained beside from_path: writes an
 * adapter for to_path to `out_path`. It is not evaluated. WISP_INVALID_ARGUMENT: the bases differ in more than their
 * items, or the new one was not trained from the old one. */
WISP_API wisp_code wisp_rebase_adapter(const char* from_path, const char* adapter_path, const char* to_path,
                                       const char* out_path, wisp_error* error);

typedef struct wisp_new_item { /* an item to add to a catalogue */
  const char* key;             /* must be new in the model */
  const char* name;            /* for people; NULL: the key */
  /* key of a similar item, whose row is copied; NULL: the mean row of items that share words of its name, or of all
   * items */
  const char* like;
} wisp_new_item;

/* Writes a base with more items to `out_path`; they follow the existing ones. What is given here about an item is
 * public. Until a run has trained a new item, it is not recommended, and histories are read without it, so people are
 * served as before; a run that trains an adapter trains no item. Carry personalised models over with wisp_rebase. */
WISP_API wisp_code wisp_catalogue_add(const char* model_path, const wisp_new_item* items, size_t count,
                                      const char* out_path, wisp_error* error);

/* Writes a base that never recommends these items, which keep their rows and may appear in histories; with `restore`
 * (1) a base that offers them again. Treat it as a new base: carry personalised models over with wisp_rebase.
 * WISP_INVALID_ARGUMENT: the model lacks a key, or no item would be left to recommend. */
WISP_API wisp_code wisp_catalogue_retire(const char* model_path, const char* const* item_keys, size_t count,
                                         int32_t restore, const char* out_path, wisp_error* error);

/* ---- Keeping a log (in libwisp alone) --------------------------------------------------------------------------- */

typedef struct wisp_event { /* one event of a user with an item */
  const char* user;         /* who it was */
  const char* item_key;     /* what was chosen */
  int64_t time;             /* in any unit that increases */
} wisp_event;

/* Appends all events or none, with one write to the disk. */
WISP_API wisp_code wisp_log_append_all(wisp_log* log, const wisp_event* events, size_t count, wisp_error* error);

/* Receives an event of a log; its strings are valid during the call. Returns 0 to end. */
typedef int32_t (*wisp_on_event)(void* user_data, const wisp_event* event);
/* Passes the user's events to `on_event`, oldest first; dates are converted to seconds. Local only: not private. */
WISP_API wisp_code wisp_log_events(const wisp_log* log, const char* user, wisp_on_event on_event, void* user_data,
                                   wisp_error* error);

/* Deletes all events of the user and overwrites them; *erased, which may be NULL, is their number. Models keep what
 * they learned from them, under their guarantee. To delete that too, delete the output with the files beside it: the
 * next run then starts over from the base, with what is left of the plan and of its evaluations. */
WISP_API wisp_code wisp_log_erase(wisp_log* log, const char* user, uint64_t* erased, wisp_error* error);

typedef struct wisp_prune_options { /* which events are deleted */
  size_t size;
  int32_t has_before;        /* 1: delete events before `before` */
  wisp_unit unit;            /* as in the plan; required */
  int64_t before;            /* in the log's own time unit */
  uint64_t newest_per_user;  /* WISP_UNIT_USER: keep this many of each user; 0: all */
  int64_t session_gap;       /* as wisp_plan_options */
  uint32_t times_per_second; /* as wisp_plan_options */
  int32_t not_read;
} wisp_prune_options;

/* Deletes old events: for users their older events, for sessions and days whole ones. What is kept of a record never
 * depends on other records. *pruned, which may be NULL, is the number of deleted events. */
WISP_API wisp_code wisp_log_prune(wisp_log* log, const wisp_prune_options* options, uint64_t* pruned,
                                  wisp_error* error);

/* Counts of what a log holds. Local only: not private. */
typedef struct wisp_log_counts {
  size_t size;
  uint64_t events, users, items; /* numbers of each */
  int64_t oldest, newest;        /* times; 0 in an empty log */
  uint64_t unreadable;           /* events whose user, item or time training cannot read */
} wisp_log_counts;
/* Fills `counts`. */
WISP_API wisp_code wisp_log_count(const wisp_log* log, wisp_log_counts* counts, wisp_error* error);

/* Lists at most `limit` users, by key, starting behind `after` ("": from the first), each on a line of its own. `text`
 * as in wisp_privacy_statement. Local only: not private. */
WISP_API wisp_code wisp_log_users(const wisp_log* log, const char* after, size_t limit, char* text, size_t capacity,
                                  size_t* needed, wisp_error* error);

#ifdef __cplusplus
}
#endif

#endif /* WISP_PORTS_C_WISP_DEPLOYMENT_H_ */
