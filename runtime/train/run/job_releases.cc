#include "runtime/train/run/job_releases.h"

#include <algorithm>
#include <bit>

#include "runtime/layers/packed_weights.h"
#include "runtime/train/popularity.h"

namespace wisp {
namespace {

using privacy::Mechanism;
using privacy::RandomStream;

bool IsRelease(const privacy::LedgerEntry& e) {
  return e.purpose == kSuccessionsPurpose || e.purpose == kBiasWeightPurpose;
}

// A model on the host with these weights.
struct HostModel {
  HostModel(const Architecture& a, std::span<const float> flat)
      : source(flat.data()),
        graph(MakeModelView(a, kernels::Device(kernels::BestOps()),
                            {.use = GraphUse::kInference, .head = HeadPackingFor(kernels::BestOps(), a, source)})),
        weights(*graph, source) {}
  ParameterSource source;
  std::unique_ptr<const ModelView> graph;
  PackedWeights weights;
};

// The releases of one run.
class Releaser {
 public:
  Releaser(const TrainingJob& job, const TrainingOptions& options, Trainer& trainer)
      : job_(job), a_(job.spec.architecture), p_(options.privacy), options_(options), trainer_(trainer) {}

  Result<Released> Run(std::span<const Record> records) {
    Released released;
    if (const ReleasePlan& plan = job_.bias_weight; plan.releases > 0) {
      const BiasWeightOptions o{.noise_multiplier = plan.noise_multiplier,
                                .ledger = p_.ledger,
                                .run = trainer_.run(),
                                .base = is_start() ? options_.base_model_hash : job_.weighed.hash};
      WISP_ASSIGN_OR_RETURN(const privacy::ChargeRequest all, BiasWeightCharge(o, kind(), plan.releases));
      WISP_ASSIGN_OR_RETURN(const std::vector<StoredWeighedBias> known, ReadWeighedBiases(*p_.ledger, o.base));
      WISP_ASSIGN_OR_RETURN(const bool due, IsDue(all, known.empty() ? Next::kNow : Next::kByStep));
      if (due) {
        released.any = true;
        WISP_RETURN_IF_ERROR(WeighBias(records, o));
      } else if (!known.empty()) {
        SetBias(known.back().weighed.Choose());
      }
    }
    if (const ReleasePlan& plan = job_.successions; plan.releases > 0) {
      const SuccessionOptions o{.noise_multiplier = plan.noise_multiplier, .ledger = p_.ledger, .run = trainer_.run()};
      WISP_ASSIGN_OR_RETURN(const privacy::ChargeRequest all, SuccessionCharge(o, a_.num_items, kind(), plan.releases));
      WISP_ASSIGN_OR_RETURN(const bool due, IsDue(all, Next::kByStep));
      if (due) {
        released.any = true;
        WISP_ASSIGN_OR_RETURN(released.successions, CountSuccessions(records, o));
      }
    }
    return released;
  }

 private:
  privacy::NoiseKind kind() const {
    return p_.reproducible_seed ? privacy::NoiseKind::kReproducible : privacy::NoiseKind::kSecure;
  }

  // True if the model whose bias is weighed is the one that the run starts from.
  bool is_start() const { return job_.weighed.weights.empty(); }

  // True if the next of the releases of `all` comes before this step: as they are spread over the steps, or now.
  enum class Next { kByStep, kNow };
  Result<bool> IsDue(const privacy::ChargeRequest& all, Next next) const {
    WISP_ASSIGN_OR_RETURN(const std::vector<privacy::LedgerEntry> entries, p_.ledger->Entries());
    uint64_t released = 0;
    for (const privacy::LedgerEntry& e : entries) {
      if (e.purpose == all.purpose && e.mechanism.DiffersInStepsOnly(all.mechanism)) released += e.mechanism.steps();
    }
    const uint64_t releases = all.mechanism.steps();
    return released < releases && (next == Next::kNow || trainer_.step() * releases >= released * options_.num_steps);
  }

  // A reproducible stream of its own for each kind of release.
  Result<RandomStream> Noise(uint64_t stream) const {
    if (!p_.reproducible_seed) return RandomStream::Secure();
    return RandomStream::Reproducible(*p_.reproducible_seed + stream, privacy::StreamPurpose::kNoise);
  }

  // All weights of the model that is weighed.
  std::span<const float> weighed() const { return is_start() ? job_.start_weights : job_.weighed.weights; }

  Status WeighBias(std::span<const Record> records, const BiasWeightOptions& o) {
    WISP_ASSIGN_OR_RETURN(RandomStream noise, Noise(3));
    const ModelLists& lists = is_start() ? job_.start_lists : job_.weighed.lists;
    WISP_ASSIGN_OR_RETURN(const float weight,
                          ReleaseBiasWeight(records, a_, weighed(), lists, o, trainer_.workers(), noise));
    SetBias(weight);
    return OkStatus();
  }

  // The bias of that model, times the weight.
  void SetBias(float weight) {
    const ParameterSpec& at = GetBias();
    const std::span<const float> bias = weighed().subspan(at.offset, at.size());
    std::vector<float> changed(bias.begin(), bias.end());
    for (float& b : changed) b *= weight;
    trainer_.SetParameter(at, changed);
  }

  Result<std::vector<Succession>> CountSuccessions(std::span<const Record> records, const SuccessionOptions& o) {
    WISP_ASSIGN_OR_RETURN(RandomStream noise, Noise(2));
    // Scores of the start, with the bias that training uses.
    std::vector<float> weights(job_.start_weights.begin(), job_.start_weights.end());
    if (HasBiasToWeigh(a_)) {
      const ParameterSpec& at = GetBias();
      const auto now = trainer_.weights().subspan(at.offset, at.size());
      std::copy(now.begin(), now.end(), weights.begin() + static_cast<std::ptrdiff_t>(at.offset));
    }
    return ReleaseSuccessions(records, a_, weights, job_.start_lists, o, noise);
  }

  const ParameterSpec& GetBias() const {
    const std::vector<ParameterSpec>& parameters = trainer_.graph().parameters();
    return parameters[RequireParameter(parameters, ParameterRole::kOutputBias)];
  }

  const TrainingJob& job_;
  const Architecture& a_;
  const PrivateTraining& p_;
  const TrainingOptions& options_;
  Trainer& trainer_;
};

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

Result<std::vector<Succession>> ReleaseSuccessions(std::span<const Record> records, const Architecture& architecture,
                                                   std::span<const float> weights, const ModelLists& lists,
                                                   const SuccessionOptions& o, RandomStream& noise) {
  WISP_ASSIGN_OR_RETURN(const std::vector<SuccessionCount> counts,
                        PrivateSuccessions(records, architecture.num_items, o, noise));
  const HostModel model(architecture, weights);
  return ScoreSuccessions(*model.graph, model.weights.view(), lists, counts, o.noise_multiplier);
}

Result<float> ReleaseBiasWeight(std::span<const Record> records, const Architecture& architecture,
                                std::span<const float> weights, const ModelLists& lists, const BiasWeightOptions& o,
                                Workers& workers, RandomStream& noise) {
  const HostModel model(architecture, weights);
  const std::vector<ParameterSpec>& parameters = model.graph->parameters();
  const ParameterSpec& bias = parameters[RequireParameter(parameters, ParameterRole::kOutputBias)];
  WISP_ASSIGN_OR_RETURN(const WeighedBias weighed,
                        ReleaseBiasGains(*model.graph, model.weights.view(), lists,
                                         weights.subspan(bias.offset, bias.size()), records, o, workers, noise));
  return weighed.Choose();
}

Status CheckReleases(const TrainingJob& job, const TrainingOptions& options) {
  const Architecture& a = job.spec.architecture;
  const bool starts_from_all = job.start_weights.size() == FlatSize(ListParameters(a));
  if (job.successions.releases + job.bias_weight.releases > 0 &&
      (!starts_from_all || a.adapter || !IsPrivate(options) || !options.base.empty()))
    return InvalidArgument(
        "successions of items and weights of the bias are released by private runs that start from all weights of a "
        "model");
  if (job.bias_weight.releases > 0 && !HasBiasToWeigh(a))
    return InvalidArgument("a weight of the output bias is for models with a fixed output bias");
  if (!job.weighed.weights.empty() && job.weighed.weights.size() != job.start_weights.size())
    return InvalidArgument("the model whose bias is weighed has ", job.weighed.weights.size(),
                           " weights, the run starts from ", job.start_weights.size());
  return OkStatus();
}

Result<Released> ReleaseWhatIsDue(const TrainingJob& job, std::span<const Record> records,
                                  const TrainingOptions& options, Trainer& trainer) {
  return Releaser(job, options, trainer).Run(records);
}

Result<std::vector<Mechanism>> ReleaseMechanisms(const privacy::Ledger& ledger, const std::string& run) {
  WISP_ASSIGN_OR_RETURN(const std::vector<privacy::LedgerEntry> entries, ledger.Entries());
  std::vector<Mechanism> mechanisms;
  for (const privacy::LedgerEntry& e : entries) {
    if (IsRelease(e) && e.run == run) mechanisms.push_back(e.mechanism);
  }
  return mechanisms;
}

}  // namespace wisp
