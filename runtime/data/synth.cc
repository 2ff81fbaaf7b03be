#include "runtime/data/synth.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace wisp::data {
namespace {

constexpr std::array<const char*, 24> kNouns = {
    "Coffee",  "Tea",    "Lemonade", "Smoothie", "Granola", "Yoghurt", "Muffin",  "Bagel",
    "Sandwich", "Wrap",  "Salad",    "Soup",     "Noodles", "Curry",   "Pizza",   "Burger",
    "Tacos",   "Fries",  "Brownie",  "Cookie",   "Sorbet",  "Waffle",  "Dumplings", "Porridge"};
constexpr std::array<const char*, 20> kStyles = {
    "Classic", "Honey", "Smoky",  "Spicy",  "Double", "Garden", "Golden", "Berry",  "Mint",    "Ginger",
    "Almond",  "Maple", "Lemon",  "Pepper", "Coconut", "Herb",  "Sesame", "Cherry", "Caramel", "Winter"};
static_assert(kNouns.size() * kStyles.size() == kSynthItems);

constexpr uint32_t kPerCategory = kStyles.size();
constexpr uint32_t kSuccessors = 3;
constexpr uint32_t kDeviceCategories = 8;  // the last ones: rare in public, favoured on the device

// SplitMix64 (Steele, Lea, Flood 2014).
class Generator {
 public:
  explicit Generator(uint64_t seed) : state_(seed) {}
  uint64_t Next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15ull;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }
  // Biased by less than 2^-32, which is of no consequence here.
  uint32_t Below(uint32_t n) { return static_cast<uint32_t>(((Next() >> 32) * n) >> 32); }
  bool Percent(uint32_t p) { return Below(100) < p; }
  // Small ranks are likelier: the smaller of two draws.
  uint32_t Skewed(uint32_t n) { return std::min(Below(n), Below(n)); }

 private:
  uint64_t state_;
};

// Successor s of an item. The map belongs to the catalogue, not to the seed: public and device share it, except for the
// items that a device's people follow differently.
uint32_t Successor(uint32_t item, uint32_t s, Population population) {
  const bool shifted = population == Population::kDevice && item % 2 == 0;
  Generator g((uint64_t{item} << 8 | s) + (shifted ? 0x5eed0000ull : 0x10ull));
  const uint32_t category = item / kPerCategory;
  const uint32_t to = s == 0 ? (category + 1 + item % 3) % kNouns.size() : category;
  return to * kPerCategory + g.Below(kPerCategory);
}

class Person {
 public:
  Person(Generator& g, Population population) : g_(g), population_(population) {
    const auto common = static_cast<uint32_t>(kNouns.size()) - kDeviceCategories;
    for (uint32_t& favourite : favourites_) {
      const bool local = population == Population::kDevice ? g.Percent(70) : g.Percent(10);
      favourite = local ? common + g.Below(kDeviceCategories) : g.Below(common);
    }
  }

  // The next item, one that was not chosen yet.
  uint32_t Next() {
    while (true) {
      const uint32_t item = Propose();
      if (chosen_[item]) continue;
      chosen_[item] = true;
      last_ = item;
      any_ = true;
      return item;
    }
  }

 private:
  uint32_t Propose() {
    if (any_ && g_.Percent(60)) return Successor(last_, g_.Percent(65) ? 0 : 1 + g_.Below(kSuccessors - 1), population_);
    if (g_.Percent(85)) return favourites_[g_.Below(favourites_.size())] * kPerCategory + g_.Skewed(kPerCategory);
    return g_.Skewed(kSynthItems);
  }

  Generator& g_;
  Population population_;
  std::array<uint32_t, 3> favourites_;
  std::array<bool, kSynthItems> chosen_{};
  uint32_t last_ = 0;
  bool any_ = false;
};

std::string Lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

void MakeCatalogue(SynthData& data) {
  for (const char* noun : kNouns) {
    for (const char* style : kStyles) {
      data.sequences.item_keys.push_back(Lower(noun) + "-" + Lower(style));
      data.item_names.push_back(std::string(style) + " " + noun);
    }
  }
}

}  // namespace

Result<SynthData> Synthesize(const SynthOptions& options) {
  if (options.num_users == 0 || options.num_users > 10000000) {
    return InvalidArgument("synth: " + std::to_string(options.num_users) + " users; allowed are 1 to 10000000");
  }
  if (options.min_events < 1 || options.max_events < options.min_events || options.max_events > kSynthItems / 4) {
    return InvalidArgument("synth: " + std::to_string(options.min_events) + " to " + std::to_string(options.max_events) +
                           " events per user; allowed are 1 to " + std::to_string(kSynthItems / 4) + ", ascending");
  }
  SynthData data;
  MakeCatalogue(data);
  Generator g(options.seed * 2 + (options.population == Population::kDevice ? 1 : 0));
  int64_t time = 1700000000;
  for (uint32_t u = 0; u < options.num_users; ++u) {
    Person person(g, options.population);
    const uint32_t events = options.min_events + g.Below(options.max_events - options.min_events + 1);
    for (uint32_t e = 0; e < events; ++e) {
      data.sequences.items.push_back(static_cast<int32_t>(person.Next()));
      data.times.push_back(time += 1 + g.Below(600));
    }
    data.sequences.offsets.push_back(data.sequences.items.size());
    std::string key = std::to_string(u);
    data.sequences.user_keys.push_back("u" + std::string(5 - std::min<size_t>(5, key.size()), '0') + key);
  }
  return data;
}

}  // namespace wisp::data
