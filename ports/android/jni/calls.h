// Shared code of all functions of the port: errors that become Java exceptions, texts, arrays, options.
//
//   jlong OpenFile(JNIEnv* env, jclass, jstring path, jobject options) {
//     return Guarded(env, [&] {
//       wisp_model* model = nullptr;
//       Check(env, wisp_model_open_with, GetText(env, path, "path").c_str(), &given, &model);
//       return ToHandle(model);
//     });
//   }
//
// Within Guarded a failure is a C++ exception, which never leaves it: Java gets a WispException with the library's code
// and sentence, or the exception that a callback or Java itself has thrown.
#ifndef WISP_PORTS_ANDROID_JNI_CALLS_H_
#define WISP_PORTS_ANDROID_JNI_CALLS_H_

#include <jni.h>
#include <wisp/wisp_deployment.h>

#include <deque>
#include <exception>
#include <new>
#include <string>
#include <type_traits>
#include <vector>

#include "java.h"

namespace wisp::jni {

// Means that a Java exception is already pending.
struct Pending {};

struct Error {
  wisp_code code;
  std::string sentence;
};

[[noreturn]] inline void Refuse(std::string sentence) { throw Error{WISP_INVALID_ARGUMENT, std::move(sentence)}; }

inline void CheckPending(JNIEnv* env) {
  if (env->ExceptionCheck() == JNI_TRUE) throw Pending{};
}

// Makes an exception pending, unless one already is.
void Throw(JNIEnv* env, const Error& error);
void ThrowOutOfMemory(JNIEnv* env);

// Runs `work`, which returns a value for Java or nothing. Returns 0 or null if it failed.
template <class Work>
auto Guarded(JNIEnv* env, Work&& work) -> decltype(work()) {
  try {
    return work();
  } catch (const Pending&) {
  } catch (const Error& error) {
    Throw(env, error);
  } catch (const std::bad_alloc&) {
    ThrowOutOfMemory(env);
  } catch (const std::exception& exception) {
    Throw(env, {WISP_INTERNAL, exception.what()});
  }
  using Value = decltype(work());
  if constexpr (!std::is_void_v<Value>) return Value{};
}

// Calls a function of the C interface. An exception that a callback has thrown takes precedence over the library's
// sentence.
template <class Function, class... Arguments>
void Check(JNIEnv* env, Function function, Arguments... arguments) {
  wisp_error error;
  const wisp_code code = function(arguments..., &error);
  CheckPending(env);
  if (code != WISP_OK) throw Error{code, error.message};
}

// ---- Handles: pointers that Java stores as numbers, 0 once they are closed.

template <class Handle>
jlong ToHandle(Handle* handle) {
  return static_cast<jlong>(reinterpret_cast<intptr_t>(handle));
}

template <class Handle>
Handle* ToPointer(jlong number) {
  if (number == 0) Refuse("it is closed");
  return reinterpret_cast<Handle*>(static_cast<intptr_t>(number));
}

// The target of a recommender's handle. If the model was opened from bytes in a Java buffer, this object keeps the
// buffer alive: a field in Java that nobody reads may be optimised away, and the buffer with it.
struct OpenModel {
  wisp_model* model = nullptr;
  jobject memory = nullptr;  // a global reference; null for a file
};

inline wisp_model* ToModel(jlong number) { return ToPointer<OpenModel>(number)->model; }

// ---- Texts. Java's modified UTF-8 encodes zeros and characters beyond 16 bits differently, so texts pass as UTF-16.

// Refuses null, a zero character, and half of a surrogate pair; `name` is used in the message.
std::string GetText(JNIEnv* env, jstring text, const char* name);
// Invalid UTF-8 becomes U+FFFD. Throws Pending if Java has no memory.
jstring JavaText(JNIEnv* env, const char* text);

// Returns the whole of a text that `give`(room, capacity, needed) copies as far as it fits.
template <class Give>
std::string WholeText(Give&& give) {
  std::string text;
  size_t needed = 1;
  while (text.size() < needed) {
    text.resize(needed);
    give(text.data(), text.size(), &needed);
  }
  text.resize(needed - 1);
  return text;
}

// ---- Arrays are copied.

std::vector<jint> GetItems(JNIEnv* env, jintArray array, const char* name);
// Releases each string's reference before the next, so that a long array does not fill Java's reference table.
std::vector<std::string> GetTexts(JNIEnv* env, jobjectArray array, const char* name);

// ---- Options: the fields of a Kotlin object, by name.

class Fields {
 public:
  Fields(JNIEnv* env, jobject object, const char* what);
  Fields(const Fields&) = delete;
  Fields& operator=(const Fields&) = delete;

  const char* Text(const char* name);  // null stays null; valid as long as the fields
  double Real(const char* name);
  int64_t Number(const char* name);       // a Long
  uint64_t LargeCount(const char* name);  // a Long from 0 on
  uint32_t Count(const char* name);       // an Int from 0 on
  bool Flag(const char* name);
  // The number of an enum value whose class is dev.wisp.`type`.
  template <class Enum>
  Enum Choice(const char* name, const char* type) {
    return static_cast<Enum>(ReadEnumNumber(name, type));
  }

 private:
  jfieldID Field(const char* name, const char* signature);
  int32_t ReadEnumNumber(const char* name, const char* type);
  JNIEnv* const env_;
  const jobject object_;
  const char* const what_;
  jclass type_ = nullptr;  // a local reference, which ends with the call from Java
  std::deque<std::string> texts_;
};

// ---- Callbacks into Java, on the thread of the call. Once one has thrown, Java is not called again.

struct Callback {
  JNIEnv* env;
  jobject object;
};

// `object` may be null, for no callback.
wisp_progress_callback GetProgress(const Callback& progress);
wisp_logger MakeLogger(Callback& logger);

// An anchor that is stored by Java code; get() is null without one.
class Anchor {
 public:
  Anchor(JNIEnv* env, jobject object);
  Anchor(const Anchor&) = delete;
  Anchor& operator=(const Anchor&) = delete;
  // The thread that calls now, for an anchor that outlives the call which gave it.
  void Enter(JNIEnv* env) { callback_.env = env; }
  const wisp_anchor* get() const { return callback_.object == nullptr ? nullptr : &anchor_; }

 private:
  Callback callback_;
  wisp_anchor anchor_;
};

}  // namespace wisp::jni

#endif  // WISP_PORTS_ANDROID_JNI_CALLS_H_
