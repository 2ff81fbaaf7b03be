// Audits observe steps only on the processor, because they read and write a trainer's memory.
#ifndef WISP_RUNTIME_TRAIN_AUDIT_AUDIT_DEVICE_H_
#define WISP_RUNTIME_TRAIN_AUDIT_AUDIT_DEVICE_H_

#include "runtime/train/options.h"

namespace wisp {

inline Status RefuseDevice(const TrainingOptions& o) {
  if (o.device.memory.is_host()) return OkStatus();
  return Unsupported("an audit on a device (", o.device.ops->name, ") is not offered: audit on the processor");
}

}  // namespace wisp

#endif  // WISP_RUNTIME_TRAIN_AUDIT_AUDIT_DEVICE_H_
