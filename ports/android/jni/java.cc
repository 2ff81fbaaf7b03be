#include "java.h"

namespace wisp::jni {
namespace {

// Never freed: Android keeps a library that it has loaded until the process ends.
Java java;

// Null, with a pending exception, if there is no such class.
jclass Find(JNIEnv* env, const char* name) {
  jclass local = env->FindClass(name);
  if (local == nullptr) return nullptr;
  auto* global = static_cast<jclass>(env->NewGlobalRef(local));
  env->DeleteLocalRef(local);
  return global;
}

// The class need not be kept: its methods stay while Java's code is loaded, which lives as long as this library.
jmethodID Method(JNIEnv* env, const char* type, const char* name, const char* signature) {
  jclass found = env->FindClass(type);
  if (found == nullptr) return nullptr;
  jmethodID method = env->GetMethodID(found, name, signature);
  env->DeleteLocalRef(found);
  return method;
}

struct MadeSpec {
  Made which;
  const char* type;
  const char* signature;
};

// Arguments are in the order of the classes in src/main/kotlin.
constexpr MadeSpec kMade[] = {
    {Made::kException, "dev/wisp/WispException", "(ILjava/lang/String;)V"},
    {Made::kModelInfo, "dev/wisp/ModelInfo", "(IIIIIIIJJZ)V"},
    {Made::kPersonaliseResult, "dev/wisp/PersonaliseResult", "(JJJDDJJJJJJJZ)V"},
    {Made::kPlan, "dev/wisp/Plan", "(IIJIIDDDDJDDZJDDDJDD)V"},
    {Made::kPlannedRunResult, "dev/wisp/PlannedRunResult", "(IZZIJJJJJJJJJJ)V"},
    {Made::kBudget, "dev/wisp/Budget", "(DDDZJJJJJ)V"},
    {Made::kQuality, "dev/wisp/Quality", "(DDJ)V"},
    {Made::kRebaseResult, "dev/wisp/RebaseResult", "(ZII)V"},
    {Made::kLogCounts, "dev/wisp/LogCounts", "(JJJJJJ)V"},
    {Made::kFleetProgress, "dev/wisp/FleetProgress", "(IIID)V"},
};
static_assert(std::size(kMade) == static_cast<size_t>(Made::kNumMade));

}  // namespace

bool LookUp(JNIEnv* env) {
  for (const MadeSpec& made : kMade) {
    Constructor& constructor = java.made[static_cast<size_t>(made.which)];
    if ((constructor.type = Find(env, made.type)) == nullptr) return false;
    if ((constructor.init = env->GetMethodID(constructor.type, "<init>", made.signature)) == nullptr) return false;
  }
  return (java.string = Find(env, "java/lang/String")) != nullptr &&
         (java.out_of_memory = Find(env, "java/lang/OutOfMemoryError")) != nullptr &&
         (java.progress_continue = Method(env, "dev/wisp/Native$Progress", "mayContinue", "(JJDD)Z")) != nullptr &&
         (java.anchor_read = Method(env, "dev/wisp/Anchor", "read", "()[B")) != nullptr &&
         (java.anchor_write = Method(env, "dev/wisp/Anchor", "write", "([B)V")) != nullptr &&
         (java.anchor_begin = Method(env, "dev/wisp/Anchor", "getBegin", "()Z")) != nullptr &&
         (java.logger_write = Method(env, "dev/wisp/Native$Logger", "write", "(ZLjava/lang/String;)V")) != nullptr &&
         (java.fleet_post = Method(env, "dev/wisp/Native$Transport", "post",
                                   "(Ljava/lang/String;Ljava/lang/String;[BJ[D)I")) != nullptr &&
         (java.fleet_sign = Method(env, "dev/wisp/Native$Transport", "sign", "([B)[B")) != nullptr &&
         (java.fleet_verify = Method(env, "dev/wisp/Native$Transport", "verify", "(Ljava/lang/String;[B[B)Z")) !=
             nullptr &&
         (java.fleet_pause = Method(env, "dev/wisp/Native$Transport", "pause", "(D)Z")) != nullptr;
}

const Java& Known() { return java; }

}  // namespace wisp::jni
