// dev.wisp.Native: models. Java code holds a lock while it uses a handle.
#include <algorithm>
#include <memory>

#include "calls.h"

namespace wisp::jni {
namespace {

// Reads a dev.wisp.OpenOptions; the adapter's path is valid as long as the fields.
wisp_open_options ReadOpenOptions(Fields& fields) {
  wisp_open_options options = WISP_INIT(wisp_open_options);
  options.backend = fields.Choice<wisp_backend>("backend", "Backend");
  options.verify = fields.Flag("verify") ? WISP_VERIFY_ALWAYS : WISP_VERIFY_NEVER;
  options.adapter_path = fields.Text("adapter");
  options.num_threads = fields.Count("threads");
  options.float16_cache = fields.Flag("float16Cache") ? 1 : 0;
  options.max_bytes = fields.LargeCount("maxBytes");
  return options;
}

// Calls `open`(&model), which throws on failure. `memory` may be null.
template <class Open>
jlong Opened(JNIEnv* env, jobject memory, Open&& open) {
  auto opened = std::make_unique<OpenModel>();
  if (memory != nullptr && (opened->memory = env->NewGlobalRef(memory)) == nullptr) throw std::bad_alloc();
  try {
    open(&opened->model);
  } catch (...) {
    env->DeleteGlobalRef(opened->memory);
    throw;
  }
  return ToHandle(opened.release());
}

jstring Version(JNIEnv* env, jclass) {
  return Guarded(env, [&] { return JavaText(env, wisp_version()); });
}

jlong OpenFile(JNIEnv* env, jclass, jstring path, jobject given) {
  return Guarded(env, [&] {
    Fields fields(env, given, "OpenOptions");
    const wisp_open_options options = ReadOpenOptions(fields);
    const std::string file = GetText(env, path, "path");
    return Opened(env, nullptr,
                  [&](wisp_model** model) { Check(env, wisp_model_open_with, file.c_str(), &options, model); });
  });
}

jlong OpenDescriptor(JNIEnv* env, jclass, jstring name, jint descriptor, jlong offset, jlong length, jobject given) {
  return Guarded(env, [&] {
    if (offset < 0 || length < 0)
      Refuse("a part of a file from " + std::to_string(offset) + " of " + std::to_string(length) +
             " bytes: both are at least 0");
    Fields fields(env, given, "OpenOptions");
    const wisp_open_options options = ReadOpenOptions(fields);
    const std::string file = GetText(env, name, "name");
    return Opened(env, nullptr, [&](wisp_model** model) {
      Check(env, wisp_model_open_descriptor, file.c_str(), descriptor, static_cast<uint64_t>(offset),
            static_cast<uint64_t>(length), &options, model);
    });
  });
}

// The address of a direct buffer; 0 for another buffer.
jlong Address(JNIEnv* env, jclass, jobject buffer) {
  return buffer == nullptr ? 0 : ToHandle(env->GetDirectBufferAddress(buffer));
}

// The buffer is kept until the model is closed. Java code must not change it.
jlong OpenMemory(JNIEnv* env, jclass, jstring name, jobject buffer, jlong start, jlong size, jobject given) {
  return Guarded(env, [&] {
    if (buffer == nullptr) Refuse("buffer must not be null");
    const auto* bytes = static_cast<const char*>(env->GetDirectBufferAddress(buffer));
    const jlong capacity = env->GetDirectBufferCapacity(buffer);
    if (bytes == nullptr || start < 0 || size < 0 || start > capacity || size > capacity - start)
      Refuse("a buffer of " + std::to_string(capacity) + " bytes has no " + std::to_string(size) + " from " +
             std::to_string(start) + " on");
    Fields fields(env, given, "OpenOptions");
    const wisp_open_options options = ReadOpenOptions(fields);
    const std::string file = GetText(env, name, "name");
    return Opened(env, buffer, [&](wisp_model** model) {
      Check(env, wisp_model_open_memory, file.c_str(), static_cast<const void*>(bytes + start),
            static_cast<size_t>(size), &options, model);
    });
  });
}

void CloseModel(JNIEnv* env, jclass, jlong handle) {
  if (handle == 0) return;
  const std::unique_ptr<OpenModel> opened(ToPointer<OpenModel>(handle));
  wisp_model_close(opened->model);
  env->DeleteGlobalRef(opened->memory);
}

jlong PlanMemory(JNIEnv* env, jclass, jstring path, jobject given) {
  return Guarded(env, [&] {
    Fields fields(env, given, "OpenOptions");
    const wisp_open_options options = ReadOpenOptions(fields);
    wisp_model_memory memory = WISP_INIT(wisp_model_memory);
    Check(env, wisp_model_plan_memory_with, GetText(env, path, "path").c_str(), &options, &memory);
    return static_cast<jlong>(memory.total_bytes);
  });
}

jobject Info(JNIEnv* env, jclass, jlong handle) {
  return Guarded(env, [&] {
    wisp_model_info info = WISP_INIT(wisp_model_info);
    Check(env, wisp_model_info_read, ToModel(handle), &info);
    jobject result = New(env, Made::kModelInfo, static_cast<jint>(info.num_items), static_cast<jint>(info.max_length),
                         static_cast<jint>(info.width), static_cast<jint>(info.num_blocks),
                         static_cast<jint>(info.num_retired), static_cast<jint>(info.num_provenance),
                         static_cast<jint>(info.format), static_cast<jlong>(info.content_hash),
                         static_cast<jlong>(info.file_bytes), static_cast<jboolean>(info.allow_seen != 0));
    CheckPending(env);
    return result;
  });
}

jint FindItem(JNIEnv* env, jclass, jlong handle, jstring key) {
  return Guarded(env,
                 [&]() -> jint { return wisp_model_find_item(ToModel(handle), GetText(env, key, "key").c_str()); });
}

jobjectArray GetItemTexts(JNIEnv* env, jlong handle, jintArray items,
                          const char* (*text_of)(const wisp_model*, int32_t)) {
  return Guarded(env, [&] {
    const auto* model = ToModel(handle);
    const std::vector<jint> wanted = GetItems(env, items, "items");
    jobjectArray result = env->NewObjectArray(static_cast<jsize>(wanted.size()), Known().string, nullptr);
    CheckPending(env);
    for (size_t i = 0; i < wanted.size(); ++i) {
      jstring text = JavaText(env, text_of(model, wanted[i]));
      env->SetObjectArrayElement(result, static_cast<jsize>(i), text);
      CheckPending(env);
      env->DeleteLocalRef(text);
    }
    return result;
  });
}

jobjectArray Keys(JNIEnv* env, jclass, jlong model, jintArray items) {
  return GetItemTexts(env, model, items, wisp_model_item_key);
}

jobjectArray Names(JNIEnv* env, jclass, jlong model, jintArray items) {
  return GetItemTexts(env, model, items, wisp_model_item_name);
}

// Returns the items, best first, and writes their scores to `scores`, whose length is the largest number of items.
jintArray Recommend(JNIEnv* env, jclass, jlong handle, jintArray history, jintArray excluded, jintArray candidates,
                    jint allow_seen, jfloatArray scores) {
  return Guarded(env, [&] {
    auto* model = ToModel(handle);
    if (scores == nullptr) Refuse("scores must not be null");
    const std::vector<jint> past = GetItems(env, history, "history");
    std::vector<jint> without, among;
    wisp_recommend_options options = WISP_INIT(wisp_recommend_options);
    options.allow_seen = allow_seen;
    if (excluded != nullptr) {
      without = GetItems(env, excluded, "excluded");
      options.excluded = without.data();
      options.num_excluded = without.size();
    }
    if (candidates != nullptr) {
      among = GetItems(env, candidates, "candidates");
      options.num_candidates = among.size();
      if (among.empty()) among.push_back(0);  // an empty list needs an address, to differ from no list
      options.candidates = among.data();
    }
    size_t count = static_cast<size_t>(env->GetArrayLength(scores));
    std::vector<wisp_recommendation> best(std::max<size_t>(count, 1));  // not empty, so that it has an address
    Check(env, wisp_recommend, model, past.data(), past.size(), &options, best.data(), &count);
    std::vector<jint> items(count);
    std::vector<jfloat> marks(count);
    for (size_t i = 0; i < count; ++i) items[i] = best[i].item, marks[i] = best[i].score;
    jintArray result = env->NewIntArray(static_cast<jsize>(count));
    CheckPending(env);
    env->SetIntArrayRegion(result, 0, static_cast<jsize>(count), items.data());
    env->SetFloatArrayRegion(scores, 0, static_cast<jsize>(count), marks.data());
    CheckPending(env);
    return result;
  });
}

}  // namespace

bool RegisterModel(JNIEnv* env, jclass native) {
  const JNINativeMethod methods[] = {
      Native("version", "()Ljava/lang/String;", Version),
      Native("openFile", "(Ljava/lang/String;Ldev/wisp/OpenOptions;)J", OpenFile),
      Native("openDescriptor", "(Ljava/lang/String;IJJLdev/wisp/OpenOptions;)J", OpenDescriptor),
      Native("address", "(Ljava/nio/ByteBuffer;)J", Address),
      Native("openMemory", "(Ljava/lang/String;Ljava/nio/ByteBuffer;JJLdev/wisp/OpenOptions;)J", OpenMemory),
      Native("closeModel", "(J)V", CloseModel),
      Native("planMemory", "(Ljava/lang/String;Ldev/wisp/OpenOptions;)J", PlanMemory),
      Native("info", "(J)Ldev/wisp/ModelInfo;", Info),
      Native("findItem", "(JLjava/lang/String;)I", FindItem),
      Native("keys", "(J[I)[Ljava/lang/String;", Keys),
      Native("names", "(J[I)[Ljava/lang/String;", Names),
      Native("recommend", "(J[I[I[II[F)[I", Recommend),
  };
  return env->RegisterNatives(native, methods, std::size(methods)) == JNI_OK;
}

}  // namespace wisp::jni
