// A thousand deployments in which tastes drift, trends come and go, people choose again what they had, and new items
// are copies of others: how often the rule says "better" of what is then served to people and is worse. The lists are
// those of ServedList, the sums those of OnGrid, the verdicts those of Decide; models are scores of items.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <random>
#include <vector>

#include "runtime/core/served_list.h"
#include "runtime/personalise/judge.h"
#include "runtime/personalise/judge_rule.h"
#include "runtime/train/run/evaluate.h"

namespace wisp {
namespace {

constexpr uint32_t kItems = 60, kCopies = 20, kPeriods = 6, kJudges = 200, kEvents = 4, kTrainers = 240;
constexpr double kScale = 0.2, kNoise = 4, kStrange = 0.4;

struct World {
  const char* name;
  double drift, trend;  // of the logarithm of an item's popularity, in a period: what stays, and what goes again
  double repeats;       // share of events that are of an item that the person had
  bool copies;          // a third of the items are new, are like an older one, and nobody chooses them
};

using Scores = std::vector<float>;

// What people choose, and who they are.
class Deployment {
 public:
  Deployment(const World& world, uint64_t seed) : world_(world), random_(seed), lists_(kItems) {
    tastes_.resize(kItems);
    for (double& t : tastes_) t = normal_(random_);
    // The base knows people's tastes, but for what an app's other people taught it.
    for (const double t : tastes_) base_.push_back(static_cast<float>(t + kStrange * normal_(random_)));
    for (uint32_t i = kItems - kCopies; world_.copies && i < kItems; ++i) base_[i] = base_[i - kItems / 2];
    judges_.resize(kJudges);
    histories_of_trainers_.resize(kTrainers);
    learned_.assign(kItems, 0);
    NewPeriod();
  }

  // The time goes on: tastes drift, and other items are in fashion.
  void NewPeriod() {
    fashion_.assign(kItems, 0);
    for (uint32_t i = 0; i < kItems; ++i) {
      tastes_[i] += world_.drift * normal_(random_);
      if (random_() % 10 == 0) fashion_[i] = world_.trend;
    }
    chances_.assign(kItems, 0);
    for (uint32_t i = 0; i < kItems; ++i)
      chances_[i] = world_.copies && IsCopy(i) ? 0 : std::exp(tastes_[i] + fashion_[i]);
  }

  // What those who train do in the period, which a candidate learns from.
  void Train() {
    for (std::vector<int32_t>& history : histories_of_trainers_) {
      for (uint32_t e = 0; e < kEvents; ++e) {
        history.push_back(Choose(history));
        learned_[static_cast<size_t>(history.back())] += 1;
      }
    }
  }

  // The base with a share of what was learned, and with noise on the whole of it.
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

  // One judging by what the records that judge did in this period.
  Judgement Judge(const Scores& candidate) {
    Judgement j{.noise_multiplier = kNoise};
    for (std::vector<int32_t>& history : judges_) {
      const GainOnGrid g = OnGrid(GainOf(history, candidate), kScale);
      j.gains += static_cast<double>(g.gain) / kJudgeSteps;
      j.squares += static_cast<double>(g.square) / (kSquareWeight * kJudgeSteps);
    }
    j.gains += j.gain_noise() * normal_(random_);
    j.squares += j.square_noise() * normal_(random_);
    return j;
  }

  // The mean gain for people whom nobody saw, as things stand: what is served is better or worse by that.
  double TrueGain(const Scores& candidate) {
    constexpr int kFresh = 600;
    double sum = 0;
    for (int person = 0; person < kFresh; ++person) {
      std::vector<int32_t> history;
      for (uint32_t e = 0; e < kEvents; ++e) history.push_back(Choose(history));
      sum += GainOf(history, candidate);
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

  // Of the events that the person does now; they are then behind it.
  double GainOf(std::vector<int32_t>& history, const Scores& candidate) {
    double sum = 0;
    for (uint32_t e = 0; e < kEvents; ++e) {
      const int32_t target = Choose(history);
      sum +=
          Ndcg(lists_.PositionOf(target, candidate, history, {})) - Ndcg(lists_.PositionOf(target, base_, history, {}));
      history.push_back(target);
    }
    if (history.size() > 3 * kEvents) history.erase(history.begin(), history.begin() + kEvents);
    return sum / kEvents;
  }

  const World& world_;
  std::mt19937_64 random_;
  std::normal_distribution<double> normal_;
  std::uniform_real_distribution<double> uniform_{0, 1};
  ServedList lists_;
  std::vector<double> tastes_, fashion_, chances_, learned_;
  Scores base_;
  std::vector<std::vector<int32_t>> judges_, histories_of_trainers_;
};

struct Rates {
  double wrong = 0, better = 0;
};

// kLater: a candidate is judged by the period after those that it learned from. kSame: by the newest of them, which is
// what the rule does not do.
enum class JudgedBy { kLater, kSame };

// Of `lives` deployments with candidates of all kinds, from hardly changed ones to those that are noise: how often
// "better" was ever said while people then get worse lists, and how often it was said.
Rates Live(const World& world, JudgedBy judged_by, int lives) {
  const JudgeRule rule{.error = 0.05, .num_judgings = kPeriods, .decay = 0.7};
  std::mt19937_64 random(7);
  Rates rates;
  for (int life = 0; life < lives; ++life) {
    Deployment deployment(world, static_cast<uint64_t>(life) + 1);
    constexpr double kShares[] = {0, 0.1, 0.5, 1};
    constexpr double kNoises[] = {1e-5, 0.1, 0.5, 1};
    const double share = kShares[random() % 4], noise = kNoises[random() % 4];
    std::vector<Judgement> judged;
    bool wrong = false, better = false;
    for (uint32_t period = 0; period < kPeriods; ++period) {
      deployment.Train();
      const Scores candidate = deployment.Candidate(share, noise);
      if (judged_by == JudgedBy::kLater) deployment.NewPeriod();
      judged.push_back(deployment.Judge(candidate));
      if (judged_by == JudgedBy::kSame) deployment.NewPeriod();
      const bool is_better = Decide(rule, judged).kind == Verdict::Kind::kBetter;
      better = better || is_better;
      wrong = wrong || (is_better && deployment.TrueGain(candidate) < 0);
    }
    rates.wrong += wrong / static_cast<double>(lives);
    rates.better += better / static_cast<double>(lives);
  }
  return rates;
}

constexpr World kWorlds[] = {
    {"nothing changes", 0, 0, 0, false},   {"tastes drift", 0.15, 0, 0, false}, {"trends", 0, 1.5, 0, false},
    {"people repeat", 0.1, 0, 0.6, false}, {"copied items", 0.05, 0, 0, true},  {"all of it", 0.1, 1.0, 0.4, true},
};

TEST(Deployments, BetterIsWrongNoMoreOftenThanStated) {
  constexpr int kLives = 1000;
  constexpr int kLivesOfWorld = kLives / static_cast<int>(std::size(kWorlds)) + 1;
  double better = 0;
  for (const World& world : kWorlds) {
    const Rates rates = Live(world, JudgedBy::kLater, kLivesOfWorld);
    std::printf("%s: wrong in %.3f of deployments, better in %.3f (stated 0.05)\n", world.name, rates.wrong,
                rates.better);
    EXPECT_LE(rates.wrong, 0.05) << world.name;
    better += rates.better / static_cast<double>(std::size(kWorlds));
  }
  EXPECT_GT(better, 0.05) << "a rule that never says it is never wrong";
}

// The test sees what it is for: by the time that it learned from, a trend is a gain.
TEST(Deployments, JudgedByTheTimeItLearnedFromATrendIsAGain) {
  const World trends{"trends", 0, 1.5, 0, false};
  const Rates same = Live(trends, JudgedBy::kSame, 200), later = Live(trends, JudgedBy::kLater, 200);
  std::printf("by the same time: wrong in %.3f; by a later one in %.3f\n", same.wrong, later.wrong);
  EXPECT_GT(same.wrong, 0.05);
  EXPECT_LE(later.wrong, 0.05);
}

}  // namespace
}  // namespace wisp
