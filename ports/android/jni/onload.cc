// The library exports this function alone. Java calls it after loading the library, and it registers all others. So no
// name of a Java method is a symbol, and a method that Java code lacks is found at once.
#include "java.h"

extern "C" JNIEXPORT jint JNICALL JNI_OnLoad(JavaVM* vm, void*) {
  JNIEnv* env = nullptr;
  if (vm->GetEnv(reinterpret_cast<void**>(&env), JNI_VERSION_1_6) != JNI_OK) return JNI_ERR;
  jclass native = env->FindClass("dev/wisp/Native");
  if (native == nullptr) return JNI_ERR;
  using namespace wisp::jni;
  const bool ready = LookUp(env) && RegisterModel(env, native) && RegisterLog(env, native) &&
                     RegisterTraining(env, native) && RegisterDeployment(env, native) && RegisterFleet(env, native);
  env->DeleteLocalRef(native);
  return ready ? JNI_VERSION_1_6 : JNI_ERR;
}
