// Whether what is sampled from a model must be paid for, read from the model's provenance.
//
// Sampling from weights that were trained with a guarantee is post-processing and costs nothing. Weights trained
// without one (or with a weaker one than is wanted) must be sampled by a PrivateSampler that charges
// (private_sampling.h).
//
//   const DecodingNeed need = NeedOf(session.file(), {.public_datasets = shipped});
//   if (need.kind == DecodingNeed::Kind::kCharge) Tell(need.reason);
//
// What it is not: proof. It believes what the file says; a file says what its writer knew.
#ifndef WISP_RUNTIME_DECODING_DECODING_NEED_H_
#define WISP_RUNTIME_DECODING_DECODING_NEED_H_

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/model/model_file.h"
#include "runtime/privacy/accounting/mechanism.h"

namespace wisp {

struct DecodingNeed {
  enum class Kind { kFree, kCharge } kind = Kind::kCharge;
  std::string reason = "nobody has looked at the provenance of the weights";
  // kCharge: the data sets that draws would show, by name, each once; an empty name is data that nobody named. Draws
  // are paid for from the ledger of the one.
  std::vector<std::string> datasets = {};
};

struct DecodingPolicy {
  // Labels (ProvenanceEntry::dataset) that the app declares to be public data. A model file has no say in this: nothing
  // in it marks data as public. Entries without a label, or with kUnknownDataset, are never public.
  std::span<const std::string> public_datasets = {};
  // Set: the entries on private data must give this together (epsilons and deltas added up, one privacy unit and
  // adjacency).
  std::optional<privacy::EpsilonDelta> wanted = std::nullopt;
  // Above 0: a guarantee at a delta of 1 over it, or more, counts as none.
  uint64_t num_records_public = 0;
};

// kFree if every entry that is not on public data states a finite epsilon, from secure noise, by mechanisms it names,
// and all of them together are as good as `wanted`. kCharge where nothing is known of the weights: no entries at all,
// or a first one that began with another model, which must have been described before it.
DecodingNeed NeedOf(std::span<const ProvenanceEntry> provenance, const DecodingPolicy& policy = {});
// The same, and the output bias: exact counts are covered by no mechanism, so with them the first entry, whose data was
// counted, must be on public data.
DecodingNeed NeedOf(const ModelFile& file, const DecodingPolicy& policy = {});

// The name of the data set whose ledger pays for draws; empty where nobody knows it. kPrivacyRefused where there are
// several: a ledger pays for one, and what draws show of the others would be counted nowhere.
Result<std::string> DatasetToCharge(const DecodingNeed& need);

}  // namespace wisp

#endif  // WISP_RUNTIME_DECODING_DECODING_NEED_H_
