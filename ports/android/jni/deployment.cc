// dev.wisp.Native: the plan of runs, its budget and statement, and new bases.
#include "calls.h"

namespace wisp::jni {
namespace {

wisp_plan_options ReadPlanOptions(Fields& fields) {
  wisp_plan_options options = WISP_INIT(wisp_plan_options);
  options.model_path = fields.Text("model");
  options.ledger_path = fields.Text("ledger");
  options.dataset = fields.Text("dataset");
  options.epsilon = fields.Real("epsilon");
  options.delta = fields.Real("delta");
  options.learning_rate = fields.Real("learningRate");
  options.num_records_public = fields.Count("numRecordsPublic");
  options.runs = fields.Count("runs");
  options.unit = fields.Choice<wisp_unit>("unit", "PrivacyUnit");
  options.evaluation = fields.Choice<wisp_evaluation>("evaluation", "Evaluation");
  options.evaluations = fields.Count("evaluations");
  options.steps_per_run = fields.LargeCount("stepsPerRun");
  options.expected_batch = fields.Count("expectedBatch");
  options.num_threads = fields.Count("threads");
  options.typical_events = fields.Count("typicalEvents");
  options.times_per_second = fields.Count("timesPerSecond");
  options.session_gap = fields.Number("sessionGapSeconds");
  options.dry_run = fields.Flag("dryRun") ? 1 : 0;
  options.measure = fields.Flag("measure") ? 1 : 0;
  options.other_data = fields.Flag("otherData") ? 1 : 0;
  options.trains_until = fields.Number("trainsUntil");
  options.output_path = fields.Text("output");
  options.replace = fields.Flag("replace") ? 1 : 0;
  options.num_records_at_start = fields.Count("numRecordsAtStart");
  return options;
}

jobject Plan(JNIEnv* env, jclass, jobject given, jobject anchor_object) {
  return Guarded(env, [&] {
    Fields fields(env, given, "PlanOptions");
    wisp_plan_options options = ReadPlanOptions(fields);
    const Anchor anchor(env, anchor_object);
    options.anchor = anchor.get();
    wisp_plan p = WISP_INIT(wisp_plan);
    Check(env, wisp_plan_make, &options, &p);
    jobject result =
        New(env, Made::kPlan, static_cast<jint>(p.runs), static_cast<jint>(p.evaluations),
            static_cast<jlong>(p.steps_per_run), static_cast<jint>(p.expected_batch), static_cast<jint>(p.outlook),
            p.training_noise, p.evaluation_noise, p.noise_to_signal, p.found_gain, static_cast<jlong>(p.bytes),
            p.seconds_of_run, p.seconds_of_evaluation, static_cast<jboolean>(p.was_there != 0),
            static_cast<jlong>(p.succession_releases), p.succession_share, p.succession_noise, p.succession_signal,
            static_cast<jlong>(p.bias_weight_releases), p.bias_weight_share, p.bias_weight_noise);
    CheckPending(env);
    return result;
  });
}

jobject Budget(JNIEnv* env, jclass, jstring ledger, jobject anchor_object, jdouble delta) {
  return Guarded(env, [&] {
    const Anchor anchor(env, anchor_object);
    wisp_budget b = WISP_INIT(wisp_budget);
    Check(env, wisp_budget_read, GetText(env, ledger, "ledger").c_str(), anchor.get(), delta, &b);
    jobject result =
        New(env, Made::kBudget, b.epsilon_stated, b.delta, b.epsilon_limit, static_cast<jboolean>(b.has_plan != 0),
            static_cast<jlong>(b.runs_left), static_cast<jlong>(b.steps_left), static_cast<jlong>(b.evaluations_left),
            static_cast<jlong>(b.succession_releases_left), static_cast<jlong>(b.bias_weight_releases_left));
    CheckPending(env);
    return result;
  });
}

jstring Statement(JNIEnv* env, jclass, jstring ledger, jobject anchor_object, jdouble delta, jboolean json) {
  return Guarded(env, [&] {
    const std::string path = GetText(env, ledger, "ledger");
    const Anchor anchor(env, anchor_object);
    const wisp_statement_format format = json == JNI_TRUE ? WISP_STATEMENT_JSON : WISP_STATEMENT_TEXT;
    const std::string text = WholeText([&](char* room, size_t capacity, size_t* needed) {
      if (anchor.get() == nullptr) {
        Check(env, wisp_privacy_statement, path.c_str(), delta, format, room, capacity, needed);
      } else {
        Check(env, wisp_privacy_statement_anchored, path.c_str(), anchor.get(), delta, format, room, capacity, needed);
      }
    });
    return JavaText(env, text.c_str());
  });
}

jobject Evaluate(JNIEnv* env, jclass, jstring model, jstring log, jint threads) {
  return Guarded(env, [&] {
    if (threads < 0) Refuse("threads is " + std::to_string(threads) + ", allowed is a number from 0 on");
    wisp_quality quality = WISP_INIT(wisp_quality);
    Check(env, wisp_evaluate, GetText(env, model, "model").c_str(), GetText(env, log, "log").c_str(),
          static_cast<uint32_t>(threads), &quality);
    jobject result =
        New(env, Made::kQuality, quality.ndcg_at_10, quality.hit_at_10, static_cast<jlong>(quality.num_users));
    CheckPending(env);
    return result;
  });
}

jobject Rebase(JNIEnv* env, jclass, jstring from, jstring to, jstring output, jstring ledger, jboolean start_over) {
  return Guarded(env, [&] {
    const std::string from_path = GetText(env, from, "from"), to_path = GetText(env, to, "to"),
                      output_path = GetText(env, output, "output"), ledger_path = GetText(env, ledger, "ledger");
    wisp_rebase_options o = WISP_INIT(wisp_rebase_options);
    o.from_path = from_path.c_str();
    o.to_path = to_path.c_str();
    o.output_path = output_path.c_str();
    o.ledger_path = ledger_path.c_str();
    o.start_over = start_over == JNI_TRUE ? 1 : 0;
    wisp_rebase_result r = WISP_INIT(wisp_rebase_result);
    Check(env, wisp_rebase, &o, &r);
    jobject result = New(env, Made::kRebaseResult, static_cast<jboolean>(r.carried != 0),
                         static_cast<jint>(r.shared_items), static_cast<jint>(r.lost_items));
    CheckPending(env);
    return result;
  });
}

}  // namespace

bool RegisterDeployment(JNIEnv* env, jclass native) {
  const JNINativeMethod methods[] = {
      Native("plan", "(Ldev/wisp/PlanOptions;Ldev/wisp/Anchor;)Ldev/wisp/Plan;", Plan),
      Native("budget", "(Ljava/lang/String;Ldev/wisp/Anchor;D)Ldev/wisp/Budget;", Budget),
      Native("statement", "(Ljava/lang/String;Ldev/wisp/Anchor;DZ)Ljava/lang/String;", Statement),
      Native("evaluate", "(Ljava/lang/String;Ljava/lang/String;I)Ldev/wisp/Quality;", Evaluate),
      Native("rebase",
             "(Ljava/lang/String;Ljava/lang/String;Ljava/lang/String;Ljava/lang/String;Z)Ldev/wisp/RebaseResult;",
             Rebase),
  };
  return env->RegisterNatives(native, methods, std::size(methods)) == JNI_OK;
}

}  // namespace wisp::jni
