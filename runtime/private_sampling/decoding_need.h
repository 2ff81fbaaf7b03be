// Decides from a model's provenance if sampling from the model must be charged.
//
// Sampling from weights that were trained with a guarantee is post-processing and costs nothing. Weights trained
// without one, or with a weaker one than is wanted, must be sampled by a PrivateSampler, which charges
// (private_sampling.h).
//
//   const DecodingNeed need = FindNeed(session.file(), {.public_datasets = shipped});
//   if (need.kind == DecodingNeed::Kind::kCharge) Tell(need.reason);
//
// This is no proof: it believes the file, and a file says what its writer knew.
#ifndef WISP_RUNTIME_PRIVATE_SAMPLING_DECODING_NEED_H_
#define WISP_RUNTIME_PRIVATE_SAMPLING_DECODING_NEED_H_

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
  // kCharge: the names of the data sets that samples would reveal, each once. An empty name is data that nobody named.
  // Samples are charged to the ledger of the one data set.
  std::vector<std::string> datasets = {};
};

struct DecodingPolicy {
  // Labels (ProvenanceEntry::dataset) that the app declares to be public data. Nothing in a model file can mark data as
  // public. Entries without a label, or with kUnknownDataset, are never public.
  std::span<const std::string> public_datasets = {};
  // If set, the entries on private data must together give this guarantee. Epsilons and deltas are added up; the
  // privacy unit and the adjacency must be equal.
  std::optional<privacy::EpsilonDelta> wanted = std::nullopt;
  // Above 0: an entry whose delta is 1 over this number, or more, does not count as a guarantee.
  uint64_t num_records_public = 0;
};

// kFree if every entry on private data states a finite epsilon, from secure noise and named mechanisms, and all
// together are as good as `wanted`. kCharge otherwise, also if nothing is known of the weights: there are no entries,
// or the first entry began with another model, which an earlier entry should have described.
DecodingNeed FindNeed(std::span<const ProvenanceEntry> provenance, const DecodingPolicy& policy = {});
// Considers the output bias too. No mechanism covers exact counts, so with them the first entry, whose data was
// counted, must be on public data.
DecodingNeed FindNeed(const ModelFile& file, const DecodingPolicy& policy = {});

// The name of the data set whose ledger pays for samples; empty if it is unknown. kPrivacyRefused: there are several. A
// ledger pays for one data set, so what samples reveal of the others would not be counted.
Result<std::string> DatasetToCharge(const DecodingNeed& need);

}  // namespace wisp

#endif  // WISP_RUNTIME_PRIVATE_SAMPLING_DECODING_NEED_H_
