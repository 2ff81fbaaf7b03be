"""Faults of this folder's subject, for tests/mutants/run: name, function, expression, fault, tests that fail."""
from faults import table

FAULTS = [
    *table("runtime/device/device_scores.cc", [
        ("a-list-of-a-failed-device", "Recommend", "WISP_RETURN_IF_ERROR(WaitForDevice(device_));", "",
         "cuda_device_session_test:*"),
        ("a-device-forgets-what-was-seen", "MarkTaken", "TakeUnoffered(history,", "TakeUnoffered({},",
         "cuda_device_session_test:*"),
        ("candidates-allow-all-on-a-device", "MarkTaken",
         "options.candidates.empty() ? Offered::kAll : Offered::kNone", "Offered::kAll",
         "cuda_device_session_test:*"),
    ]),
    *table("runtime/device/device_batch.cc", [
        ("a-batch-of-a-failed-device", "RowsOnDevice::RecommendSome",
         "top_.Run(rows, count); WISP_RETURN_IF_ERROR(WaitForDevice(graph_->device()));", "top_.Run(rows, count);",
         "cuda_device_batch_test:*"),
        ("a-batch-forgets-what-was-seen", "RowsOnDevice::MarkTaken", "TakeUnoffered(history,", "TakeUnoffered({},",
         "cuda_device_batch_test:*"),
    ]),
    *table("runtime/device/one_history.cc", [
        ("the-slower-one-taken", "IsFasterForOne", "*there < *here", "*here < *there",
         "cuda_device_session_test:*OneHistory_isMeasured"),
        ("a-failed-device-measured", "IsFasterForOne", "return measured->status();", "return false;",
         "cuda_device_session_test:*OneHistory_aDevice*"),
        ("damage-said-at-opening", "IsFasterForOne",
         "if (measured->status().code() == StatusCode::kInvalidData) return false;", "",
         "cuda_device_session_test:*OneHistory_damaged*"),
    ]),
    *table("runtime/inference/session_setup.cc", [
        ("one-history-never-measured", "Session::Create", "if (options.one_history == OneHistory::kWhereFaster)",
         "if (false)", "cuda_device_session_test:*OneHistory_runs*"),
        ("one-history-not-planned", "Session::GetPlan", "Add(on_host, memory);", "",
         "cuda_device_session_test:*OneHistory_runs*"),
    ]),
    *table("runtime/device/absent/absent.cc", [
        ("a-left-out-device-taken", "CheckDevice",
         'return Unsupported("this build has no device but the processor (WISP_DEVICE is off), and ", '
         'device.ops->name, " has memory of its own");', "return (void)device, OkStatus();",
         "core/device_left_out_test:DeviceLeftOut.MemoryOfItsOwn_isRefused"),
    ]),
    *table("runtime/inference/session_setup.cc", [
        ("a-session-on-a-left-out-device", "ChooseDevice", "WISP_RETURN_IF_ERROR(CheckDevice(o.device));", "",
         "core/device_left_out_test:DeviceLeftOut.MemoryOfItsOwn_isRefused"),
    ]),
    *table("runtime/inference/batch_recommender.cc", [
        ("a-batch-on-a-left-out-device", "BatchRecommender::PlanMemory",
         "WISP_RETURN_IF_ERROR(CheckDevice(device));", "",
         "core/device_left_out_test:DeviceLeftOut.MemoryOfItsOwn_isRefused"),
    ]),
]
