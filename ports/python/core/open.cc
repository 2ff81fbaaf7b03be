// Reads the options of opening a model.
#include <cstring>

#include "ports/python/core/model.h"

namespace wisp_python {

const wisp_device* ChooseDevice(Options& given, wisp_device& device) {
  device.name = given.Text("device");
  device.module = given.Path("device_module");
  device.arithmetic = given.Text("arithmetic");
  device.max_bytes = given.Count<uint64_t>("device_bytes");
  return device.name == nullptr ? nullptr : &device;
}

OpenArguments::OpenArguments(Dict given, const char* called, From from) : given_(std::move(given), called) {
  if (from == From::kPath) path_ = given_.Path("path");
  options_.backend = given_.Choice<wisp_backend>(
      "backend", {{"simd", WISP_BACKEND_SIMD}, {"xnnpack", WISP_BACKEND_XNNPACK}, {"int8", WISP_BACKEND_INT8}});
  options_.verify = given_.Choice<wisp_verify>(
      "verify", {{"always", WISP_VERIFY_ALWAYS}, {"once", WISP_VERIFY_ONCE}, {"never", WISP_VERIFY_NEVER}});
  const nb::object verified = given_.Value("verified");
  if (options_.verify == WISP_VERIFY_ONCE && !verified.is_none()) {
    if (!kept_.Take(verified, PyBUF_WRITABLE) || kept_.view().len != sizeof(verified_))
      RaiseType(std::string(called) + ": verified is " + Shown(verified) + "; allowed is a bytearray of " +
                std::to_string(sizeof(verified_)) + " bytes");
    std::memcpy(&verified_, kept_.view().buf, sizeof(verified_));
    options_.verified = &verified_;
  }
  options_.adapter_path = given_.Path("adapter");
  options_.num_threads = given_.Count<uint32_t>("num_threads");
  options_.float16_cache = given_.Flag("float16_cache");
  options_.max_bytes = given_.Count<uint64_t>("max_bytes");
  options_.device = ChooseDevice(given_, device_);
  options_.one_history_on_device = given_.Flag("one_history_on_device");
  given_.End();
}

void OpenArguments::Finish() const {
  if (options_.verified != nullptr) std::memcpy(kept_.view().buf, &verified_, sizeof(verified_));
}

RecommendArguments::RecommendArguments(nb::handle exclude, nb::handle candidates, nb::handle allow_seen)
    : exclude_({"exclude"}, exclude), candidates_({"candidates"}, candidates) {
  options_.excluded = exclude_.data();
  options_.num_excluded = exclude_.size();
  options_.candidates = candidates_.data();
  options_.num_candidates = candidates_.size();
  // 0 in the C interface means the model's own rule, which is None here.
  if (!allow_seen.is_none()) options_.allow_seen = Truth("allow_seen", allow_seen) ? 1 : 2;
}

}  // namespace wisp_python
