// A session's scores for users without history: the popularity of items.
#include "runtime/inference/session.h"

namespace wisp {

Status Session::FindPopular() {
  if (!popular_.empty()) return OkStatus();
  RecordContext context{.weights = weights_.view(), .buffers = buffers_, .cache = &cache_, .helpers = helpers_.get()};
  encoded_.clear();
  std::vector<float> popular(scores_.size());
  graph_->ScoreColdStart(context, file_.lists(), is_host() ? popular.data() : on_device_->data(), popular.data());
  WISP_RETURN_IF_ERROR(Arrived());
  popular_ = std::move(popular);
  return OkStatus();
}

}  // namespace wisp
