#include "runtime/train/run/job_successions.h"

#include <bit>

#include "runtime/layers/packed_weights.h"

namespace wisp {
namespace {

using privacy::Mechanism;
using privacy::RandomStream;

Result<uint64_t> CountReleased(const privacy::Ledger& ledger, const Mechanism& planned) {
  WISP_ASSIGN_OR_RETURN(const std::vector<privacy::LedgerEntry> entries, ledger.Entries());
  uint64_t released = 0;
  for (const privacy::LedgerEntry& e : entries) {
    if (e.purpose == kSuccessionsPurpose && e.mechanism.DiffersInStepsOnly(planned)) released += e.mechanism.steps();
  }
  return released;
}

}  // namespace

std::vector<uint32_t> PackSuccessions(std::span<const Succession> successions) {
  std::vector<uint32_t> words;
  for (const Succession& s : successions) {
    const auto score = std::bit_cast<uint32_t>(s.score);
    words.insert(words.end(), {static_cast<uint32_t>(s.from), static_cast<uint32_t>(s.to), score});
  }
  return words;
}

std::vector<Succession> UnpackSuccessions(std::span<const uint32_t> words) {
  std::vector<Succession> successions;
  for (size_t i = 0; i + 2 < words.size(); i += 3)
    successions.push_back(
        {static_cast<int32_t>(words[i]), static_cast<int32_t>(words[i + 1]), std::bit_cast<float>(words[i + 2])});
  return successions;
}

Result<std::vector<Succession>> ReleaseSuccessions(std::span<const Record> records, const Architecture& a,
                                                   std::span<const float> weights, const ModelLists& lists,
                                                   const SuccessionOptions& options, RandomStream& noise) {
  WISP_ASSIGN_OR_RETURN(const std::vector<SuccessionCount> counts,
                        PrivateSuccessions(records, a.num_items, options, noise));
  const kernels::Device host(kernels::BestOps());
  const ParameterSource start(weights.data());
  const auto graph = MakeModelView(a, host, {.use = GraphUse::kInference, .head = HeadPackingFor(*host.ops, a, start)});
  const PackedWeights packed(*graph, start);
  return ScoreSuccessions(*graph, packed.view(), lists, counts, options.noise_multiplier);
}

Result<std::optional<std::vector<Succession>>> ReleaseSuccessionsIfDue(const TrainingJob& job,
                                                                       std::span<const Record> records,
                                                                       const TrainingOptions& options,
                                                                       const Trainer& trainer) {
  std::optional<std::vector<Succession>> successions;
  const SuccessionReleases& s = job.successions;
  if (s.releases == 0) return successions;
  const Architecture& a = job.spec.architecture;
  const PrivateTraining& p = options.privacy;
  const SuccessionOptions release{
      .noise_multiplier = s.noise_multiplier, .ledger = p.ledger, .run = trainer.run(), .part = p.part};
  const auto kind = p.reproducible_seed ? privacy::NoiseKind::kReproducible : privacy::NoiseKind::kSecure;
  WISP_ASSIGN_OR_RETURN(const privacy::ChargeRequest all, SuccessionCharge(release, a.num_items, kind, s.releases));
  WISP_ASSIGN_OR_RETURN(const uint64_t released, CountReleased(*p.ledger, all.mechanism));
  if (released >= s.releases || trainer.step() * s.releases < released * options.num_steps) return successions;
  RandomStream noise = RandomStream::Reproducible(p.reproducible_seed.value_or(0) + 2, privacy::StreamPurpose::kNoise);
  if (!p.reproducible_seed) {
    WISP_ASSIGN_OR_RETURN(noise, RandomStream::Secure());
  }
  WISP_ASSIGN_OR_RETURN(successions, ReleaseSuccessions(records, a, job.start_weights, s.lists, release, noise));
  return successions;
}

Result<std::vector<Mechanism>> SuccessionMechanisms(const privacy::Ledger& ledger, const std::string& run) {
  WISP_ASSIGN_OR_RETURN(const std::vector<privacy::LedgerEntry> entries, ledger.Entries());
  std::vector<Mechanism> mechanisms;
  for (const privacy::LedgerEntry& e : entries) {
    if (e.purpose == kSuccessionsPurpose && e.run == run) mechanisms.push_back(e.mechanism);
  }
  return mechanisms;
}

}  // namespace wisp
