// A thousand deployments in which tastes drift, trends come and go, people repeat their choices, and new items are
// copies of others. The test counts how often the rule says "better" of a model that then serves people worse. The
// lists are those of ServedList, the sums those of OnGrid, the verdicts those of Decide; models are scores of items.
//
// WISP_DEPLOYMENTS_LOG names a log of "user item" lines, in the order of time in each user. With it, a thousand
// deployments of popularity models on that log run too, with each user's events divided by their order.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <random>
#include <span>
#include <vector>

#include "runtime/core/served_list.h"
#include "runtime/data/readers.h"
#include "runtime/personalise/evaluate_candidate.h"
#include "runtime/personalise/evaluation_rule.h"
#include "runtime/train/list_scorer.h"
#include "runtime/train/run/evaluate.h"

namespace wisp::deployments_test {
namespace {

constexpr uint32_t kItems = 60, kCopies = 20, kPeriods = 6, kPeople = 240, kEvents = 4;
constexpr double kScale = 0.2, kNoise = 4, kStrange = 0.4;

struct World {
  const char* name;
  // change of the logarithm of an item's popularity in a period: drift stays, a trend goes away again
  double drift, trend;
  double repeats;           // share of events that repeat an item of the person
  bool copies;              // a third of the items are new copies of an older one, and nobody chooses them
  bool allow_seen = false;  // lists may hold items of the history, as the models say
};

using Scores = std::vector<float>;

// The people of a device, all of whom train and evaluate, and their choices.
class Deployment {
 public:
  Deployment(const World& world, uint64_t seed)
      : world_(world), random_(seed), lists_(kItems, {.allow_seen = world.allow_seen}) {
    tastes_.resize(kItems);
    for (double& t : tastes_) t = normal_(random_);
    // The base knows people's tastes, except for what the app's other people taught it.
    for (const double t : tastes_) base_.push_back(static_cast<float>(t + kStrange * normal_(random_)));
    for (uint32_t i = kItems - kCopies; world_.copies && i < kItems; ++i) base_[i] = base_[i - kItems / 2];
    people_.resize(kPeople);
    learned_.assign(kItems, 0);
    NewPeriod();
  }

  // A period passes: tastes drift, other items are in fashion, and people choose.
  void NewPeriod() {
    fashion_.assign(kItems, 0);
    for (uint32_t i = 0; i < kItems; ++i) {
      tastes_[i] += world_.drift * normal_(random_);
      if (random_() % 10 == 0) fashion_[i] = world_.trend;
    }
    chances_.assign(kItems, 0);
    for (uint32_t i = 0; i < kItems; ++i)
      chances_[i] = world_.copies && IsCopy(i) ? 0 : std::exp(tastes_[i] + fashion_[i]);
    for (std::vector<int32_t>& history : people_) ChooseSome(history);
  }

  // A candidate learns from the choices of the period.
  void Train() {
    for (const std::vector<int32_t>& history : people_) {
      for (const int32_t item : std::span(history).last(kEvents)) learned_[static_cast<size_t>(item)] += 1;
    }
  }

  // Returns the base with a share of what was learned, and with noise on all of it.
  Scores Candidate(double share, double noise) {
    double all = 1e-9;
    for (const double count : learned_) all += count;
    double mass = 0;
    for (const float s : base_) mass += std::exp(static_cast<double>(s));
    Scores scores(kItems);
    for (uint32_t i = 0; i < kItems; ++i) {
      const double p = std::exp(static_cast<double>(base_[i])) / mass;
      const double of_counts = (learned_[i] + 1) / (all + kItems);
      // A new item that nobody chose stays where its neighbour was.
      const double mixed = world_.copies && IsCopy(i) ? p : (1 - share) * p + share * of_counts;
      scores[i] = static_cast<float>(std::log(mixed) + noise * normal_(random_));
    }
    return scores;
  }
  const Scores& base() const { return base_; }

  // Evaluates once, by the choices of the period.
  Evaluation EvaluateCandidate(const Scores& candidate) {
    Evaluation j{.noise_multiplier = kNoise};
    for (const std::vector<int32_t>& history : people_) {
      const GainOnGrid g = OnGrid(ComputeGain(history, candidate), kScale);
      j.gains += static_cast<double>(g.gain) / kGainSteps;
      j.squares += static_cast<double>(g.square) / (kSquareWeight * kGainSteps);
    }
    j.gains += j.gain_noise() * normal_(random_);
    j.squares += j.square_noise() * normal_(random_);
    return j;
  }

  // Returns the mean gain for unseen people at this time: it says if the served lists are better or worse.
  double TrueGain(const Scores& candidate) {
    constexpr int kFresh = 600;
    double sum = 0;
    for (int person = 0; person < kFresh; ++person) {
      std::vector<int32_t> history;
      for (int period = 0; period < 2; ++period) ChooseSome(history);
      sum += ComputeGain(history, candidate);
    }
    return sum / kFresh;
  }

 private:
  static bool IsCopy(uint32_t item) { return item >= kItems - kCopies; }

  int32_t Choose(const std::vector<int32_t>& history) {
    if (!history.empty() && uniform_(random_) < world_.repeats) return history[random_() % history.size()];
    std::discrete_distribution<int32_t> chosen(chances_.begin(), chances_.end());
    return chosen(random_);
  }

  void ChooseSome(std::vector<int32_t>& history) {
    for (uint32_t e = 0; e < kEvents; ++e) history.push_back(Choose(history));
    if (history.size() > 3 * kEvents) history.erase(history.begin(), history.begin() + kEvents);
  }

  // Returns the gain over the newest choices of a person.
  double ComputeGain(std::span<const int32_t> person, const Scores& candidate) {
    double sum = 0;
    for (size_t t = person.size() - kEvents; t < person.size(); ++t) {
      const std::span<const int32_t> history = person.first(t);
      sum += Ndcg(lists_.FindPosition(person[t], candidate, history)) -
             Ndcg(lists_.FindPosition(person[t], base_, history));
    }
    return sum / kEvents;
  }

  const World& world_;
  std::mt19937_64 random_;
  std::normal_distribution<double> normal_;
  std::uniform_real_distribution<double> uniform_{0, 1};
  ServedList lists_;
  std::vector<double> tastes_, fashion_, chances_, learned_;
  Scores base_;
  std::vector<std::vector<int32_t>> people_;  // each person's history
};

struct Rates {
  double wrong = 0, better = 0;
};

// kLater: a candidate is evaluated on the period after those that it learned from. kSame: on the newest of them, which
// the rule does not do.
enum class EvaluatedBy { kLater, kSame };

// Runs `lives` deployments with candidates of all kinds, from hardly changed ones to pure noise. Returns how often
// "better" was ever said although people then get worse lists, and how often it was said at all.
Rates Live(const World& world, EvaluatedBy evaluated_by, int lives) {
  const EvaluationRule rule{.error = 0.05, .num_evaluations = kPeriods, .decay = 0.7};
  std::mt19937_64 random(7);
  Rates rates;
  for (int trial = 0; trial < lives; ++trial) {
    Deployment deployment(world, static_cast<uint64_t>(trial) + 1);
    constexpr double kShares[] = {0, 0.1, 0.5, 1};
    constexpr double kNoises[] = {1e-5, 0.1, 0.5, 1};
    const double share = kShares[random() % 4], noise = kNoises[random() % 4];
    std::vector<Evaluation> evaluated;
    bool wrong = false, better = false;
    for (uint32_t period = 0; period < kPeriods; ++period) {
      deployment.Train();
      const Scores candidate = deployment.Candidate(share, noise);
      if (evaluated_by == EvaluatedBy::kLater) deployment.NewPeriod();
      evaluated.push_back(deployment.EvaluateCandidate(candidate));
      if (evaluated_by == EvaluatedBy::kSame) deployment.NewPeriod();
      const bool is_better = Decide(rule, evaluated).kind == Verdict::Kind::kBetter;
      better = better || is_better;
      wrong = wrong || (is_better && deployment.TrueGain(candidate) < 0);
    }
    rates.wrong += wrong / static_cast<double>(lives);
    rates.better += better / static_cast<double>(lives);
  }
  return rates;
}

constexpr World kWorlds[] = {
    {"nothing changes", 0, 0, 0, false},
    {"tastes drift", 0.15, 0, 0, false},
    {"trends", 0, 1.5, 0, false},
    {"people repeat", 0.1, 0, 0.6, false},
    {"people repeat and are shown it", 0.1, 0, 0.6, false, true},
    {"copied items", 0.05, 0, 0, true},
    {"all of it", 0.1, 1.0, 0.4, true},
    {"all of it, and repeats are shown", 0.1, 1.0, 0.4, true, true},
};

TEST(Deployments, BetterIsWrongNoMoreOftenThanStated) {
  constexpr int kLivesOfWorld = 167;  // more than a thousand in total
  double better = 0;
  for (const World& world : kWorlds) {
    const Rates rates = Live(world, EvaluatedBy::kLater, kLivesOfWorld);
    std::printf("%s: wrong in %.3f of deployments, better in %.3f (stated 0.05)\n", world.name, rates.wrong,
                rates.better);
    EXPECT_LE(rates.wrong, 0.05) << world.name;
    better += rates.better / static_cast<double>(std::size(kWorlds));
  }
  EXPECT_GT(better, 0.05) << "a rule that never says it is never wrong";
}

// The test detects its target: evaluated on the time that it learned from, a trend looks like a gain.
TEST(Deployments, EvaluatedByTheTimeItLearnedFromATrendIsAGain) {
  const World trends{"trends", 0, 1.5, 0, false};
  const Rates same = Live(trends, EvaluatedBy::kSame, 200), later = Live(trends, EvaluatedBy::kLater, 200);
  std::printf("by the same time: wrong in %.3f; by a later one in %.3f\n", same.wrong, later.wrong);
  EXPECT_GT(same.wrong, 0.05);
  EXPECT_LE(later.wrong, 0.05);
}

// Popularity models on a real log. The events of a user form four parts in their order; evaluation and service use a
// later part than learning.
class LogReplay {
 public:
  explicit LogReplay(data::Sequences sequences) : log_(std::move(sequences)), list_(log_.num_items(), {}) {
    for (size_t u = 0; u < log_.num_users(); ++u) {
      if (log_.User(u).size() >= 2 * kParts) users_.push_back(u);
    }
  }

  struct Deployment {
    bool better = false, wrong = false;
  };
  Deployment Live(uint64_t seed) {
    std::mt19937_64 random(seed);
    std::shuffle(users_.begin(), users_.end(), random);
    constexpr size_t kPublic = 3000, kPeople = 2000, kFresh = 2500;
    if (users_.size() < kPublic + kPeople + kFresh) return {};
    const std::span<const size_t> all(users_), people = all.subspan(kPublic, kPeople),
                                               fresh = all.subspan(kPublic + kPeople, kFresh);
    std::vector<double> known(log_.num_items(), 0.1), learned(log_.num_items(), 0.1);
    for (const size_t u : all.first(kPublic)) Count(u, 0, known);
    const Ranked base = MakeRanked(known, known, 0, 0, random);
    constexpr double kShares[] = {0, 0.2, 0.5, 1}, kNoises[] = {1e-5, 0.2, 0.5, 1};
    const double share = kShares[random() % 4], noise = kNoises[random() % 4];
    const EvaluationRule rule{.error = 0.05, .num_evaluations = kParts - 1, .decay = 0.7};
    std::normal_distribution<double> normal;
    std::vector<Evaluation> evaluated;
    Deployment trial;
    for (size_t part = 0; part + 1 < kParts; ++part) {
      for (const size_t u : people) Count(u, part, learned);
      const Ranked candidate = MakeRanked(known, learned, share, noise, random);
      Evaluation j{.noise_multiplier = kNoise};
      for (const size_t u : people) {
        const GainOnGrid g = OnGrid(ComputeGain(u, part + 1, base, candidate), kScale);
        j.gains += static_cast<double>(g.gain) / kGainSteps;
        j.squares += static_cast<double>(g.square) / (kSquareWeight * kGainSteps);
      }
      j.gains += j.gain_noise() * normal(random);
      j.squares += j.square_noise() * normal(random);
      evaluated.push_back(j);
      if (Decide(rule, evaluated).kind != Verdict::Kind::kBetter) continue;
      trial.better = true;
      double gain = 0;
      const size_t then = std::min(part + 2, kParts - 1);
      for (const size_t u : fresh) gain += ComputeGain(u, then, base, candidate);
      trial.wrong = trial.wrong || gain < 0;
    }
    return trial;
  }

 private:
  static constexpr size_t kParts = 4, kTop = 300;
  // Scores of all items, and the best of them, which contain every list of ten.
  struct Ranked {
    Scores scores;
    std::vector<int32_t> top;
  };

  std::pair<size_t, size_t> Part(size_t user, size_t part) const {
    const size_t size = log_.User(user).size();
    return {size * part / kParts, size * (part + 1) / kParts};
  }
  void Count(size_t user, size_t part, std::vector<double>& counts) const {
    const auto [first, end] = Part(user, part);
    for (size_t t = first; t < end; ++t) counts[static_cast<size_t>(log_.User(user)[t])] += 1;
  }
  Ranked MakeRanked(const std::vector<double>& known, const std::vector<double>& learned, double share, double noise,
                    std::mt19937_64& random) {
    std::normal_distribution<double> normal;
    const double of_known = std::accumulate(known.begin(), known.end(), 0.0),
                 of_learned = std::accumulate(learned.begin(), learned.end(), 0.0);
    Ranked ranked;
    for (size_t i = 0; i < known.size(); ++i) {
      const double mixed = (1 - share) * known[i] / of_known + share * learned[i] / of_learned;
      ranked.scores.push_back(static_cast<float>(std::log(mixed) + noise * normal(random)));
    }
    std::vector<Recommendation> best(kTop);
    best.resize(list_.Choose(ranked.scores, {}, {}, best).count);
    for (const Recommendation& r : best) ranked.top.push_back(r.item);
    return ranked;
  }
  double ComputeGain(size_t user, size_t part, const Ranked& base, const Ranked& candidate) {
    const auto [first, end] = Part(user, part);
    double sum = 0;
    for (size_t t = first; t < end; ++t) {
      const std::span<const int32_t> history = log_.User(user).first(t);
      const auto value = [&](const Ranked& model) {
        return Ndcg(list_.FindPosition(log_.User(user)[t], model.scores, history, {.candidates = model.top}));
      };
      sum += value(candidate) - value(base);
    }
    return end > first ? sum / static_cast<double>(end - first) : 0;
  }

  data::Sequences log_;
  ServedList list_;
  std::vector<size_t> users_;
};

TEST(Deployments, NamedLog) {
  const char* path = std::getenv("WISP_DEPLOYMENTS_LOG");
  if (path == nullptr) GTEST_SKIP() << "WISP_DEPLOYMENTS_LOG names no log";
  auto read = data::ReadSequences(path, data::Format::kAuto, {});
  ASSERT_TRUE(read.ok()) << read.status().message();
  LogReplay log(std::move(read->sequences));
  constexpr int kLives = 1000;
  double better = 0, wrong = 0;
  for (int trial = 0; trial < kLives; ++trial) {
    const LogReplay::Deployment lived = log.Live(static_cast<uint64_t>(trial) + 1);
    better += lived.better / static_cast<double>(kLives);
    wrong += lived.wrong / static_cast<double>(kLives);
  }
  std::printf("%s: wrong in %.3f of %d deployments, better in %.3f (stated 0.05)\n", path, wrong, kLives, better);
  EXPECT_LE(wrong, 0.05);
}

}  // namespace
}  // namespace wisp::deployments_test
