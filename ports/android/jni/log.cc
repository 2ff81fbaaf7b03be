// dev.wisp.Native: the log of events. Java code holds a lock while it uses a handle.
#include "calls.h"

namespace wisp::jni {
namespace {

jlong OpenLog(JNIEnv* env, jclass, jstring path) {
  return Guarded(env, [&] {
    wisp_log* log = nullptr;
    Check(env, wisp_log_open, GetText(env, path, "path").c_str(), &log);
    return ToHandle(log);
  });
}

void CloseLog(JNIEnv*, jclass, jlong log) { wisp_log_close(reinterpret_cast<wisp_log*>(static_cast<intptr_t>(log))); }

void Append(JNIEnv* env, jclass, jlong handle, jobjectArray users, jobjectArray items, jlongArray times) {
  Guarded(env, [&] {
    auto* log = ToPointer<wisp_log>(handle);
    const std::vector<std::string> user_of = GetTexts(env, users, "users"), item_of = GetTexts(env, items, "items");
    if (times == nullptr) Refuse("times must not be null");
    std::vector<jlong> time_of(static_cast<size_t>(env->GetArrayLength(times)));
    if (user_of.size() != time_of.size() || item_of.size() != time_of.size())
      Refuse("events: " + std::to_string(user_of.size()) + " users, " + std::to_string(item_of.size()) + " items and " +
             std::to_string(time_of.size()) + " times; each event has one of each");
    env->GetLongArrayRegion(times, 0, static_cast<jsize>(time_of.size()), time_of.data());
    CheckPending(env);
    std::vector<wisp_event> events(time_of.size());
    for (size_t i = 0; i < events.size(); ++i) events[i] = {user_of[i].c_str(), item_of[i].c_str(), time_of[i]};
    Check(env, wisp_log_append_all, log, events.data(), events.size());
  });
}

// Returns at most `most` items.
jintArray History(JNIEnv* env, jclass, jlong handle, jlong model, jstring user, jint most) {
  return Guarded(env, [&] {
    auto* log = ToPointer<wisp_log>(handle);
    if (most < 0) Refuse("a history of " + std::to_string(most) + " items; allowed is a number from 0 on");
    std::vector<jint> items(static_cast<size_t>(most));
    size_t count = items.size();
    Check(env, wisp_log_history, log, ToModel(model), GetText(env, user, "user").c_str(), items.data(), &count);
    jintArray result = env->NewIntArray(static_cast<jsize>(count));
    CheckPending(env);
    env->SetIntArrayRegion(result, 0, static_cast<jsize>(count), items.data());
    return result;
  });
}

jlong Erase(JNIEnv* env, jclass, jlong handle, jstring user) {
  return Guarded(env, [&] {
    uint64_t erased = 0;
    Check(env, wisp_log_erase, ToPointer<wisp_log>(handle), GetText(env, user, "user").c_str(), &erased);
    return static_cast<jlong>(erased);
  });
}

jlong Prune(JNIEnv* env, jclass, jlong handle, jobject given) {
  return Guarded(env, [&] {
    Fields fields(env, given, "PruneOptions");
    wisp_prune_options options = WISP_INIT(wisp_prune_options);
    options.unit = fields.Choice<wisp_unit>("unit", "PrivacyUnit");
    options.has_before = fields.Flag("hasBefore") ? 1 : 0;
    options.before = fields.Number("beforeTime");
    options.newest_per_user = fields.LargeCount("newestPerUser");
    options.session_gap = fields.Number("sessionGapSeconds");
    options.times_per_second = fields.Count("timesPerSecond");
    uint64_t pruned = 0;
    Check(env, wisp_log_prune, ToPointer<wisp_log>(handle), &options, &pruned);
    return static_cast<jlong>(pruned);
  });
}

jobject Counts(JNIEnv* env, jclass, jlong handle) {
  return Guarded(env, [&] {
    wisp_log_counts counts = WISP_INIT(wisp_log_counts);
    Check(env, wisp_log_count, ToPointer<const wisp_log>(handle), &counts);
    jobject result = New(env, Made::kLogCounts, static_cast<jlong>(counts.events), static_cast<jlong>(counts.users),
                         static_cast<jlong>(counts.items), static_cast<jlong>(counts.oldest),
                         static_cast<jlong>(counts.newest), static_cast<jlong>(counts.unreadable));
    CheckPending(env);
    return result;
  });
}

// One user a line.
jstring Users(JNIEnv* env, jclass, jlong handle, jstring after, jint limit) {
  return Guarded(env, [&] {
    const auto* log = ToPointer<const wisp_log>(handle);
    if (limit < 0) Refuse("at most " + std::to_string(limit) + " users; allowed is a number from 0 on");
    const std::string from = GetText(env, after, "after");
    const std::string text = WholeText([&](char* room, size_t capacity, size_t* needed) {
      Check(env, wisp_log_users, log, from.c_str(), static_cast<size_t>(limit), room, capacity, needed);
    });
    return JavaText(env, text.c_str());
  });
}

}  // namespace

bool RegisterLog(JNIEnv* env, jclass native) {
  const JNINativeMethod methods[] = {
      Native("openLog", "(Ljava/lang/String;)J", OpenLog),
      Native("closeLog", "(J)V", CloseLog),
      Native("append", "(J[Ljava/lang/String;[Ljava/lang/String;[J)V", Append),
      Native("history", "(JJLjava/lang/String;I)[I", History),
      Native("erase", "(JLjava/lang/String;)J", Erase),
      Native("prune", "(JLdev/wisp/PruneOptions;)J", Prune),
      Native("counts", "(J)Ldev/wisp/LogCounts;", Counts),
      Native("users", "(JLjava/lang/String;I)Ljava/lang/String;", Users),
  };
  return env->RegisterNatives(native, methods, std::size(methods)) == JNI_OK;
}

}  // namespace wisp::jni
