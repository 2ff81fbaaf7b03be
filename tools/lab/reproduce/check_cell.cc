#include "tools/lab/reproduce/check_cell.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "runtime/train/run/job.h"
#include "tools/wisp/ledger_access.h"
#include "tools/wisp/temporary_folder.h"

namespace wisp::tools {
namespace {

constexpr uint32_t kSomeItems = 4096;  // if the table does not say how many

Status CheckGuarantee(const RunSpec& r) {
  if (!r.text && r.catalogue != RunSpec::Catalogue::kPublic)
    return PrivacyRefused("a private method needs \"catalogue\": \"public\" under data");
  WISP_RETURN_IF_ERROR(CheckPublicCatalogue(r));
  if (r.training.num_records_public == 0) return PrivacyRefused("a private method needs training.num_records_public");
  return CheckPrivacyGoal(r.goal, r.training.num_records_public);
}

Status Check(const Reproduction& table, const RunSpec& r) {
  TrainingOptions o = r.training;
  Architecture a = r.architecture;
  a.num_items = table.items > 0 ? table.items : std::max({kSomeItems, 2 * o.num_negatives, r.rows.count});
  const bool is_private = o.method != Method::kOrdinary;
  if (is_private) WISP_RETURN_IF_ERROR(CheckGuarantee(r));
  if (!is_private) o.num_records_public = table.users > 0 ? table.users : std::numeric_limits<uint32_t>::max();
  if (o.num_steps == 0) {
    WISP_ASSIGN_OR_RETURN(o.num_steps, EpochsToSteps(r.epochs, o.num_records_public, o.expected_batch));
    if (o.num_steps == 0) return InvalidData("it trains no steps: training needs epochs or steps");
  }
  WISP_ASSIGN_OR_RETURN(const TemporaryFolder folder, TemporaryFolder::Create());
  std::optional<privacy::Ledger> ledger;
  if (is_private) {
    WISP_ASSIGN_OR_RETURN(const privacy::RecordSpec record, MakeRecordSpec(r, {}));
    WISP_ASSIGN_OR_RETURN(privacy::Ledger opened,
                          privacy::Ledger::Open(folder.File("ledger"), {.dataset = "none", .record = record}));
    ledger.emplace(std::move(opened));
    o.privacy.ledger = &*ledger;
    o.privacy.noise_multiplier = r.goal.noise_multiplier.value_or(1.0);  // for a target any value serves
  }
  std::vector<int32_t> rows(std::min(r.rows.count, a.num_items));
  std::iota(rows.begin(), rows.end(), 0);
  o.sparse.rows = rows;
  WISP_RETURN_IF_ERROR(Validate(a));
  const std::vector<float> weights(FlatSize(ListParameters(a)));
  return Trainer::Check(a, weights, {}, o);
}

}  // namespace

Status CheckTrainingCell(const Reproduction& table, const ReproductionCell& cell) {
  const Status checked = Check(table, cell.recipe);
  return checked.ok() ? checked
                      : Status(checked.code(), table.name + ", cell " + cell.Name() + ": " + checked.message());
}

}  // namespace wisp::tools
