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
]
