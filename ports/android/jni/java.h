// Java classes and methods that the port uses, looked up once when the library is loaded. If one is missing, loading
// fails with Java's own error, so no later call can miss it.
#ifndef WISP_PORTS_ANDROID_JNI_JAVA_H_
#define WISP_PORTS_ANDROID_JNI_JAVA_H_

#include <jni.h>

#include <array>
#include <cstddef>
#include <iterator>

namespace wisp::jni {

// Objects that this library creates, each by the single constructor of its class.
enum class Made : size_t {
  kException,
  kModelInfo,
  kPersonaliseResult,
  kPlan,
  kPlannedRunResult,
  kBudget,
  kQuality,
  kRebaseResult,
  kLogCounts,
  kFleetProgress,
  kNumMade
};

struct Constructor {
  jclass type = nullptr;
  jmethodID init = nullptr;
};

struct Java {
  std::array<Constructor, static_cast<size_t>(Made::kNumMade)> made;
  jclass string = nullptr, out_of_memory = nullptr;
  jmethodID progress_continue = nullptr;
  jmethodID anchor_read = nullptr, anchor_write = nullptr, anchor_begin = nullptr;
  jmethodID logger_write = nullptr;
  jmethodID fleet_post = nullptr, fleet_sign = nullptr, fleet_verify = nullptr, fleet_pause = nullptr;
};

// False, with a pending Java exception, if something is missing.
bool LookUp(JNIEnv* env);
const Java& Known();

template <class... Values>
jobject New(JNIEnv* env, Made which, Values... values) {
  const Constructor& constructor = Known().made[static_cast<size_t>(which)];
  return env->NewObject(constructor.type, constructor.init, values...);
}

// Describes a function of Java's class dev.wisp.Native.
template <class Function>
JNINativeMethod Native(const char* name, const char* signature, Function* function) {
  return {const_cast<char*>(name), const_cast<char*>(signature), reinterpret_cast<void*>(function)};
}

// Each part of the port registers its own methods of dev.wisp.Native. False: a Java exception is pending.
bool RegisterModel(JNIEnv* env, jclass native);
bool RegisterLog(JNIEnv* env, jclass native);
bool RegisterTraining(JNIEnv* env, jclass native);
bool RegisterDeployment(JNIEnv* env, jclass native);
bool RegisterFleet(JNIEnv* env, jclass native);

}  // namespace wisp::jni

#endif  // WISP_PORTS_ANDROID_JNI_JAVA_H_
