// dev.wisp.Native: a device of a fleet. Java code holds a lock while it uses a handle. Callbacks run on the thread of
// the call; once one has thrown, Java is not called again, and the exception comes out of the call.
#include <wisp/wisp_fleet.h>

#include <memory>

#include "calls.h"

// A libwisp that was built without fleets lacks these.
#pragma weak wisp_fleet_open
#pragma weak wisp_fleet_work
#pragma weak wisp_fleet_close

namespace wisp::jni {
namespace {

// An object that is called in several calls from Java; each of them is on a thread of its own.
struct KeptCallback : Callback {
  KeptCallback(JNIEnv* env, jobject given) : Callback{env, given == nullptr ? nullptr : env->NewGlobalRef(given)} {
    if (given != nullptr && object == nullptr) throw std::bad_alloc();
  }
  KeptCallback(const KeptCallback&) = delete;
  KeptCallback& operator=(const KeptCallback&) = delete;
  ~KeptCallback() { env->DeleteGlobalRef(object); }
};

// The target of a fleet's handle.
struct OpenFleet {
  OpenFleet(JNIEnv* env, jobject given_transport, jobject given_anchor, jobject given_records_anchor,
            jobject given_logger)
      : transport(env, given_transport),
        logger(env, given_logger),
        kept_anchor(env, given_anchor),
        kept_records_anchor(env, given_records_anchor),
        anchor(env, kept_anchor.object),
        records_anchor(env, kept_records_anchor.object) {}
  OpenFleet(const OpenFleet&) = delete;
  OpenFleet& operator=(const OpenFleet&) = delete;
  ~OpenFleet() { wisp_fleet_close(fleet); }

  void Enter(JNIEnv* env) {
    for (Callback* callback : {&transport, &logger, &kept_anchor, &kept_records_anchor}) callback->env = env;
    anchor.Enter(env);
    records_anchor.Enter(env);
  }

  KeptCallback transport, logger, kept_anchor, kept_records_anchor;
  Anchor anchor, records_anchor;
  wisp_fleet* fleet = nullptr;
};

// ---- Callbacks

// Where the bytes of a server's answer go.
struct Answer {
  wisp_fleet_sink sink;
  void* sink_data;
};

// Runs `work`(env, object) of a callback; its local references end with it. False if Java has thrown, now or before.
template <class Work>
bool Called(void* data, Work&& work) {
  constexpr jint kLocals = 8;
  const auto& [env, object] = *static_cast<const Callback*>(data);
  if (env->ExceptionCheck() == JNI_TRUE || env->PushLocalFrame(kLocals) != 0) return false;
  Guarded(env, [&work, env = env, object = object] { work(env, object); });
  env->PopLocalFrame(nullptr);
  return env->ExceptionCheck() == JNI_FALSE;
}

jbyteArray ToArray(JNIEnv* env, const void* bytes, size_t size) {
  jbyteArray array = env->NewByteArray(static_cast<jsize>(size));
  CheckPending(env);
  env->SetByteArrayRegion(array, 0, static_cast<jsize>(size), static_cast<const jbyte*>(bytes));
  return array;
}

// Where Java has thrown, the same call may go well later: so the library gives up nothing.
int Post(void* data, const char* url, const char* headers, const void* body, size_t body_bytes, wisp_fleet_sink sink,
         void* sink_data, int32_t* status, double* server_time) {
  constexpr int kLater = 1;
  Answer answer{sink, sink_data};
  jint ended = kLater;
  const bool well = Called(data, [&](JNIEnv* env, jobject object) {
    jstring to = JavaText(env, url), lines = JavaText(env, headers);
    jbyteArray bytes = ToArray(env, body, body_bytes);
    jdouble reply[2] = {};
    jdoubleArray told = env->NewDoubleArray(std::size(reply));
    CheckPending(env);
    ended = env->CallIntMethod(object, Known().fleet_post, to, lines, bytes, ToHandle(&answer), told);
    CheckPending(env);
    env->GetDoubleArrayRegion(told, 0, std::size(reply), reply);
    *status = static_cast<int32_t>(reply[0]);
    *server_time = reply[1];
  });
  return well ? ended : kLater;
}

int Sign(void* data, const void* message, size_t message_bytes, uint8_t* der, size_t capacity, size_t* length) {
  const bool well = Called(data, [&](JNIEnv* env, jobject object) {
    jbyteArray bytes = ToArray(env, message, message_bytes);
    auto* signature = static_cast<jbyteArray>(env->CallObjectMethod(object, Known().fleet_sign, bytes));
    CheckPending(env);
    if (signature == nullptr) Refuse("FleetTransport.sign gave null");
    const auto size = static_cast<size_t>(env->GetArrayLength(signature));
    if (size > capacity)
      Refuse("FleetTransport.sign gave " + std::to_string(size) + " bytes, allowed are " + std::to_string(capacity));
    env->GetByteArrayRegion(signature, 0, static_cast<jsize>(size), reinterpret_cast<jbyte*>(der));
    *length = size;
  });
  return well ? 0 : 1;
}

int Verify(void* data, const char* key_pem, const void* message, size_t message_bytes, const uint8_t* der,
           size_t length) {
  bool is_signed = false;
  const bool well = Called(data, [&](JNIEnv* env, jobject object) {
    jstring key = JavaText(env, key_pem);
    jbyteArray bytes = ToArray(env, message, message_bytes), signature = ToArray(env, der, length);
    is_signed = env->CallBooleanMethod(object, Known().fleet_verify, key, bytes, signature) == JNI_TRUE;
  });
  return well && is_signed ? 0 : 1;
}

int Wait(void* data, double seconds) {
  bool goes_on = false;
  const bool well = Called(data, [&](JNIEnv* env, jobject object) {
    goes_on = env->CallBooleanMethod(object, Known().fleet_pause, seconds) == JNI_TRUE;
  });
  return well && goes_on ? 0 : 1;
}

// ---- Functions

jlong Open(JNIEnv* env, jclass, jobject given, jstring public_key_pem, jobject transport_object, jobject anchor,
           jobject records_anchor, jobject logger_object) {
  return Guarded(env, [&] {
    if (wisp_fleet_open == nullptr) throw Error{WISP_UNSUPPORTED, "this build of the library has no fleets"};
    Fields fields(env, given, "FleetOptions");
    if (transport_object == nullptr) Refuse("transport must not be null");
    const std::string key = GetText(env, public_key_pem, "publicKeyPem");
    auto opened = std::make_unique<OpenFleet>(env, transport_object, anchor, records_anchor, logger_object);
    wisp_fleet_transport transport = WISP_INIT(wisp_fleet_transport);
    transport.user_data = static_cast<Callback*>(&opened->transport);
    transport.post = Post;
    transport.sign = Sign;
    transport.verify = Verify;
    transport.wait = Wait;
    transport.public_key_pem = key.c_str();
    wisp_fleet_options options = WISP_INIT(wisp_fleet_options);
    options.policy_path = fields.Text("policy");
    options.model_path = fields.Text("model");
    options.log_path = fields.Text("log");
    options.ledger_path = fields.Text("ledger");
    options.output_path = fields.Text("output");
    options.reply_path = fields.Text("reply");
    options.unit = fields.Choice<wisp_unit>("unit", "PrivacyUnit");
    options.times_per_second = fields.Count("timesPerSecond");
    options.session_gap = fields.Number("sessionGapSeconds");
    options.ask_seconds = fields.Real("askSeconds");
    options.records_ledger_path = fields.Text("recordsLedger");
    options.dataset = fields.Text("dataset");
    options.anchor = opened->anchor.get();
    options.records_anchor = opened->records_anchor.get();
    options.transport = &transport;
    const wisp_logger logger = MakeLogger(opened->logger);
    if (logger_object != nullptr) options.logger = &logger;
    Check(env, wisp_fleet_open, &options, &opened->fleet);
    return ToHandle(opened.release());
  });
}

jobject Work(JNIEnv* env, jclass, jlong handle, jdouble seconds) {
  return Guarded(env, [&] {
    auto* opened = ToPointer<OpenFleet>(handle);
    opened->Enter(env);
    wisp_fleet_result r = WISP_INIT(wisp_fleet_result);
    Check(env, wisp_fleet_work, opened->fleet, seconds, &r);
    jobject result = New(env, Made::kFleetProgress, static_cast<jint>(r.answers), static_cast<jint>(r.participations),
                         static_cast<jint>(r.most_participations), r.wait_seconds);
    CheckPending(env);
    return result;
  });
}

void Close(JNIEnv* env, jclass, jlong handle) {
  if (handle == 0) return;
  const std::unique_ptr<OpenFleet> opened(ToPointer<OpenFleet>(handle));
  opened->Enter(env);
}

jboolean TakeAnswer(JNIEnv* env, jclass, jlong handle, jbyteArray bytes, jint length) {
  return Guarded(env, [&]() -> jboolean {
    const auto* answer = ToPointer<const Answer>(handle);
    if (bytes == nullptr || length < 0 || length > env->GetArrayLength(bytes))
      Refuse("bytes must not be null, and must have " + std::to_string(length) + " bytes");
    std::vector<jbyte> taken(static_cast<size_t>(length));
    env->GetByteArrayRegion(bytes, 0, length, taken.data());
    return answer->sink(answer->sink_data, taken.data(), taken.size()) == 0;
  });
}

}  // namespace

bool RegisterFleet(JNIEnv* env, jclass native) {
  const JNINativeMethod methods[] = {
      Native("openFleet",
             "(Ldev/wisp/FleetOptions;Ljava/lang/String;Ldev/wisp/Native$Transport;Ldev/wisp/Anchor;Ldev/wisp/Anchor;"
             "Ldev/wisp/Native$Logger;)J",
             Open),
      Native("workFleet", "(JD)Ldev/wisp/FleetProgress;", Work),
      Native("closeFleet", "(J)V", Close),
      Native("takeAnswer", "(J[BI)Z", TakeAnswer),
  };
  return env->RegisterNatives(native, methods, std::size(methods)) == JNI_OK;
}

}  // namespace wisp::jni
