#include "calls.h"

namespace wisp::jni {

void Throw(JNIEnv* env, const Error& error) {
  if (env->ExceptionCheck() == JNI_TRUE) return;
  try {
    jstring sentence = JavaText(env, error.sentence.c_str());
    jobject exception = New(env, Made::kException, static_cast<jint>(error.code), sentence);
    if (exception != nullptr) env->Throw(static_cast<jthrowable>(exception));
  } catch (const Pending&) {  // Java had no memory for the sentence, and its own error is pending
  } catch (const std::bad_alloc&) {
    ThrowOutOfMemory(env);
  }
}

void ThrowOutOfMemory(JNIEnv* env) {
  if (env->ExceptionCheck() == JNI_FALSE) env->ThrowNew(Known().out_of_memory, "wisp: out of memory");
}

std::vector<jint> GetItems(JNIEnv* env, jintArray array, const char* name) {
  if (array == nullptr) Refuse(std::string(name) + " must not be null");
  std::vector<jint> items(static_cast<size_t>(env->GetArrayLength(array)));
  env->GetIntArrayRegion(array, 0, static_cast<jsize>(items.size()), items.data());
  CheckPending(env);
  return items;
}

std::vector<std::string> GetTexts(JNIEnv* env, jobjectArray array, const char* name) {
  if (array == nullptr) Refuse(std::string(name) + " must not be null");
  std::vector<std::string> texts(static_cast<size_t>(env->GetArrayLength(array)));
  for (size_t i = 0; i < texts.size(); ++i) {
    auto* text = static_cast<jstring>(env->GetObjectArrayElement(array, static_cast<jsize>(i)));
    CheckPending(env);
    texts[i] = GetText(env, text, name);
    env->DeleteLocalRef(text);
  }
  return texts;
}

// ---- Options

Fields::Fields(JNIEnv* env, jobject object, const char* what) : env_(env), object_(object), what_(what) {
  if (object == nullptr) Refuse(std::string(what) + " must not be null");
  type_ = env->GetObjectClass(object);
}

jfieldID Fields::Field(const char* name, const char* signature) {
  jfieldID field = env_->GetFieldID(type_, name, signature);
  CheckPending(env_);
  return field;
}

const char* Fields::Text(const char* name) {
  auto* text = static_cast<jstring>(env_->GetObjectField(object_, Field(name, "Ljava/lang/String;")));
  if (text == nullptr) return nullptr;
  texts_.push_back(GetText(env_, text, name));
  env_->DeleteLocalRef(text);
  return texts_.back().c_str();
}

double Fields::Real(const char* name) { return env_->GetDoubleField(object_, Field(name, "D")); }

int64_t Fields::Number(const char* name) { return env_->GetLongField(object_, Field(name, "J")); }

uint64_t Fields::LargeCount(const char* name) {
  const int64_t number = Number(name);
  if (number < 0)
    Refuse(std::string(what_) + ": " + name + " is " + std::to_string(number) + ", allowed is a number from 0 on");
  return static_cast<uint64_t>(number);
}

uint32_t Fields::Count(const char* name) {
  const jint number = env_->GetIntField(object_, Field(name, "I"));
  if (number < 0)
    Refuse(std::string(what_) + ": " + name + " is " + std::to_string(number) + ", allowed is a number from 0 on");
  return static_cast<uint32_t>(number);
}

bool Fields::Flag(const char* name) { return env_->GetBooleanField(object_, Field(name, "Z")) == JNI_TRUE; }

int32_t Fields::ReadEnumNumber(const char* name, const char* type) {
  const std::string signature = "Ldev/wisp/" + std::string(type) + ";";
  jobject value = env_->GetObjectField(object_, Field(name, signature.c_str()));
  if (value == nullptr) Refuse(std::string(what_) + ": " + name + " must not be null");
  jclass type_of_value = env_->GetObjectClass(value);
  jfieldID number = env_->GetFieldID(type_of_value, "number", "I");
  CheckPending(env_);
  const jint result = env_->GetIntField(value, number);
  env_->DeleteLocalRef(type_of_value);
  env_->DeleteLocalRef(value);
  return result;
}

// ---- Callbacks

namespace {

const Callback& GetCallback(const void* data) { return *static_cast<const Callback*>(data); }

int Progress(const wisp_progress* progress, void* data) {
  const Callback& to = GetCallback(data);
  if (to.env->ExceptionCheck() == JNI_TRUE) return 1;
  const jboolean goes_on =
      to.env->CallBooleanMethod(to.object, Known().progress_continue, static_cast<jlong>(progress->step),
                                static_cast<jlong>(progress->num_steps), progress->loss, progress->epsilon);
  return to.env->ExceptionCheck() == JNI_TRUE || goes_on == JNI_FALSE ? 1 : 0;
}

void Log(void* data, wisp_log_level level, const char* sentence) {
  const Callback& to = GetCallback(data);
  if (to.env->ExceptionCheck() == JNI_TRUE) return;
  // An exception stays pending, and the next callback stops the run.
  Guarded(to.env, [&] {
    jstring text = JavaText(to.env, sentence);
    to.env->CallVoidMethod(to.object, Known().logger_write, static_cast<jboolean>(level == WISP_LOG_WARNING), text);
    to.env->DeleteLocalRef(text);
  });
}

int ReadAnchor(void* data, uint8_t* bytes, size_t capacity, size_t* length) {
  const Callback& to = GetCallback(data);
  if (to.env->ExceptionCheck() == JNI_TRUE) return 1;
  auto* array = static_cast<jbyteArray>(to.env->CallObjectMethod(to.object, Known().anchor_read));
  if (to.env->ExceptionCheck() == JNI_TRUE) return 1;
  if (array == nullptr) {
    Throw(to.env, {WISP_INVALID_ARGUMENT, "Anchor.read gave null; it gives an empty array where nothing was written"});
    return 1;
  }
  const auto size = static_cast<size_t>(to.env->GetArrayLength(array));
  if (size > capacity) {
    Throw(to.env, {WISP_INVALID_DATA, "Anchor.read gave " + std::to_string(size) + " bytes; at most " +
                                          std::to_string(capacity) + " were ever written"});
  } else {
    to.env->GetByteArrayRegion(array, 0, static_cast<jsize>(size), reinterpret_cast<jbyte*>(bytes));
    *length = size;
  }
  to.env->DeleteLocalRef(array);
  return to.env->ExceptionCheck() == JNI_TRUE ? 1 : 0;
}

int WriteAnchor(void* data, const uint8_t* bytes, size_t length) {
  const Callback& to = GetCallback(data);
  if (to.env->ExceptionCheck() == JNI_TRUE) return 1;
  jbyteArray array = to.env->NewByteArray(static_cast<jsize>(length));
  if (array == nullptr) return 1;
  to.env->SetByteArrayRegion(array, 0, static_cast<jsize>(length), reinterpret_cast<const jbyte*>(bytes));
  to.env->CallVoidMethod(to.object, Known().anchor_write, array);
  to.env->DeleteLocalRef(array);
  return to.env->ExceptionCheck() == JNI_TRUE ? 1 : 0;
}

}  // namespace

wisp_progress_callback GetProgress(const Callback& progress) { return progress.object == nullptr ? nullptr : Progress; }

wisp_logger MakeLogger(Callback& logger) {
  wisp_logger given = WISP_INIT(wisp_logger);
  given.write = Log;
  given.data = &logger;
  return given;
}

Anchor::Anchor(JNIEnv* env, jobject object) : callback_{env, object}, anchor_(WISP_INIT(wisp_anchor)) {
  if (object == nullptr) return;
  anchor_.read = ReadAnchor;
  anchor_.write = WriteAnchor;
  anchor_.user_data = &callback_;
  anchor_.begin = env->CallBooleanMethod(object, Known().anchor_begin) == JNI_TRUE ? 1 : 0;
  CheckPending(env);
}

}  // namespace wisp::jni
