#include "runtime/core/devices.h"

#ifdef WISP_HAS_MODULES
#include "kernels/module/module.h"
#endif

namespace wisp {
namespace {

Result<kernels::Arithmetic> ChooseArithmetic(const DeviceOptions& o) {
  using kernels::Arithmetic;
  constexpr struct {
    const char* name;
    Arithmetic arithmetic;
  } kAll[] = {{"float32", Arithmetic::kFloat32},
              {"tf32", Arithmetic::kTf32},
              {"float16", Arithmetic::kFloat16},
              {"bfloat16", Arithmetic::kBfloat16},
              {"int8", Arithmetic::kInt8}};
  for (const auto& a : kAll) {
    if (o.arithmetic != a.name) continue;
    const bool trains = a.arithmetic == Arithmetic::kFloat32 || a.arithmetic == Arithmetic::kTf32;
    if (trains || o.use == DeviceUse::kInference) return a.arithmetic;
    return InvalidArgument("the arithmetic ", a.name, " is for inference only: a device trains in float32 or tf32");
  }
  return InvalidArgument("a device's arithmetic is '", o.arithmetic,
                         "', allowed are float32, tf32, float16, bfloat16 and int8");
}

Result<OpenedDevice> OpenProcessor(kernels::Arithmetic arithmetic) {
  if (arithmetic == kernels::Arithmetic::kFloat32) return OpenedDevice();
  return InvalidArgument("the processor's arithmetic is float32: others are for a device, such as cuda; the ",
                         "processor's 8-bit integers are a backend, int8");
}

}  // namespace

#ifdef WISP_HAS_MODULES

namespace {

const char* CountMemory(const kernels::DeviceFacts& facts) {
  if (!facts.shares_memory) return ")";
  return facts.is_managed ? ", managed memory, shared with the processor)" : ", memory shared with the processor)";
}

std::string Describe(const std::string& name, const kernels::DeviceFacts& facts) {
  constexpr uint64_t kMegabyte = 1'000'000;
  return name + " (" + facts.name + ", " + std::to_string(facts.free_bytes / kMegabyte) + " of " +
         std::to_string(facts.total_bytes / kMegabyte) + " MB free" + CountMemory(facts);
}

}  // namespace

Result<OpenedDevice> OpenDevice(const DeviceOptions& o) {
  WISP_ASSIGN_OR_RETURN(const kernels::Arithmetic arithmetic, ChooseArithmetic(o));
  if (o.name == "cpu") return OpenProcessor(arithmetic);
  const kernels::OpenedModule opened = kernels::OpenModule({.name = o.name, .file = o.module});
  if (opened.is_wrong) return InvalidArgument("the device ", o.name, " cannot be opened: ", opened.why);
  if (opened.module == nullptr) return Unsupported("there is no device ", o.name, ": ", opened.why);
  if (o.max_bytes > 0) opened.module->limit(o.max_bytes);
  const kernels::OpTable& ops = opened.module->ops(arithmetic);
  return OpenedDevice{.device = kernels::Device(ops, kernels::Memory(opened.module->memory(), nullptr)),
                      .arithmetic = arithmetic,
                      .description = Describe(ops.name, opened.module->facts())};
}

#else

Result<OpenedDevice> OpenDevice(const DeviceOptions& o) {
  WISP_ASSIGN_OR_RETURN(const kernels::Arithmetic arithmetic, ChooseArithmetic(o));
  if (o.name == "cpu") return OpenProcessor(arithmetic);
  return Unsupported("there is no device ", o.name, ": this build has none but the processor");
}

#endif

Result<OpenedDevice> OpenDeviceOrProcessor(const DeviceOptions& options) {
  Result<OpenedDevice> opened = OpenDevice(options);
  if (opened.ok() || opened.status().code() != StatusCode::kUnsupported) return opened;
  return OpenedDevice{.missing = opened.status().message()};
}

}  // namespace wisp
