// dev.wisp.Native: training on the log. Callbacks run on the thread of the call; the library's own threads never use
// Java.
#include "calls.h"

namespace wisp::jni {
namespace {

// Reads a dev.wisp.PersonaliseOptions; texts are valid as long as the fields.
wisp_personalise_options ReadPersonaliseOptions(Fields& fields) {
  wisp_personalise_options options = WISP_INIT(wisp_personalise_options);
  options.model_path = fields.Text("model");
  options.log_path = fields.Text("log");
  options.output_path = fields.Text("output");
  options.ledger_path = fields.Text("ledger");
  options.checkpoint_path = fields.Text("checkpoint");
  options.adapter_path = fields.Text("adapter");
  options.dataset = fields.Text("dataset");
  options.uncharged_tuning = fields.Text("unchargedTuning");
  options.unit = fields.Choice<wisp_unit>("unit", "PrivacyUnit");
  options.epsilon = fields.Real("epsilon");
  options.delta = fields.Real("delta");
  options.budget_epsilon = fields.Real("budgetEpsilon");
  options.epochs = fields.Real("epochs");
  options.learning_rate = fields.Real("learningRate");
  options.clipping_norm = fields.Real("clippingNorm");
  options.num_records_public = fields.Count("numRecordsPublic");
  options.expected_batch = fields.Count("expectedBatch");
  options.num_threads = fields.Count("threads");
  options.planned_runs = fields.Count("plannedRuns");
  options.adapter_rank = fields.Count("adapterRank");
  options.times_per_second = fields.Count("timesPerSecond");
  options.session_gap = fields.Number("sessionGapSeconds");
  options.checkpoint_every = fields.LargeCount("checkpointEvery");
  options.other_data = fields.Flag("otherData") ? 1 : 0;
  return options;
}

jobject Personalise(JNIEnv* env, jclass, jobject given, jobject anchor_object, jobject progress_object) {
  return Guarded(env, [&] {
    Fields fields(env, given, "PersonaliseOptions");
    wisp_personalise_options options = ReadPersonaliseOptions(fields);
    const Anchor anchor(env, anchor_object);
    options.anchor = anchor.get();
    Callback progress{env, progress_object};
    options.progress = GetProgress(progress);
    options.user_data = &progress;
    wisp_personalise_result r = WISP_INIT(wisp_personalise_result);
    Check(env, wisp_personalise, &options, &r);
    jobject result =
        New(env, Made::kPersonaliseResult, static_cast<jlong>(r.num_steps), static_cast<jlong>(r.planned_steps),
            static_cast<jlong>(r.resumed_from), r.epsilon, r.noise_multiplier, static_cast<jlong>(r.num_records),
            static_cast<jlong>(r.records_too_short), static_cast<jlong>(r.gradients_dropped),
            static_cast<jlong>(r.num_events), static_cast<jlong>(r.unknown_events), static_cast<jlong>(r.unknown_items),
            static_cast<jlong>(r.bad_rows), static_cast<jboolean>(r.checkpoint_failed != 0));
    CheckPending(env);
    return result;
  });
}

jlong PersonaliseMemory(JNIEnv* env, jclass, jobject given) {
  return Guarded(env, [&] {
    Fields fields(env, given, "PersonaliseOptions");
    const wisp_personalise_options options = ReadPersonaliseOptions(fields);
    wisp_personalise_memory memory = WISP_INIT(wisp_personalise_memory);
    Check(env, wisp_personalise_plan_memory, &options, &memory);
    return static_cast<jlong>(memory.total_bytes);
  });
}

jobject PlannedRun(JNIEnv* env, jclass, jobject given, jobject anchor_object, jobject progress_object,
                   jobject logger_object) {
  return Guarded(env, [&] {
    Fields fields(env, given, "PlannedRunOptions");
    wisp_run_options options = WISP_INIT(wisp_run_options);
    options.model_path = fields.Text("model");
    options.log_path = fields.Text("log");
    options.output_path = fields.Text("output");
    options.ledger_path = fields.Text("ledger");
    options.dataset = fields.Text("dataset");
    options.num_threads = fields.Count("threads");
    options.other_data = fields.Flag("otherData") ? 1 : 0;
    options.max_bytes = fields.LargeCount("maxBytes");
    const Anchor anchor(env, anchor_object);
    options.anchor = anchor.get();
    Callback progress{env, progress_object}, log{env, logger_object};
    options.progress = GetProgress(progress);
    options.user_data = &progress;
    const wisp_logger logger = MakeLogger(log);
    if (logger_object != nullptr) options.logger = &logger;
    wisp_run_result r = WISP_INIT(wisp_run_result);
    Check(env, wisp_run_planned, &options, &r);
    jobject result = New(
        env, Made::kPlannedRunResult, static_cast<jint>(r.served), static_cast<jboolean>(r.changed != 0),
        static_cast<jboolean>(r.evaluated != 0), static_cast<jint>(r.verdict), static_cast<jlong>(r.steps),
        static_cast<jlong>(r.steps_of_model), static_cast<jlong>(r.runs_left), static_cast<jlong>(r.steps_left),
        static_cast<jlong>(r.evaluations_left), static_cast<jlong>(r.num_events), static_cast<jlong>(r.unknown_events),
        static_cast<jlong>(r.unknown_items), static_cast<jlong>(r.bad_rows), static_cast<jlong>(r.num_records));
    CheckPending(env);
    return result;
  });
}

}  // namespace

bool RegisterTraining(JNIEnv* env, jclass native) {
  const JNINativeMethod methods[] = {
      Native("personalise",
             "(Ldev/wisp/PersonaliseOptions;Ldev/wisp/Anchor;Ldev/wisp/Native$Progress;)Ldev/wisp/PersonaliseResult;",
             Personalise),
      Native("personaliseMemory", "(Ldev/wisp/PersonaliseOptions;)J", PersonaliseMemory),
      Native("runPlanned",
             "(Ldev/wisp/PlannedRunOptions;Ldev/wisp/Anchor;Ldev/wisp/Native$Progress;Ldev/wisp/Native$Logger;)"
             "Ldev/wisp/PlannedRunResult;",
             PlannedRun),
  };
  return env->RegisterNatives(native, methods, std::size(methods)) == JNI_OK;
}

}  // namespace wisp::jni
