#include "runtime/data/synth.h"

#include <algorithm>
#include <array>
#include <utility>

namespace wisp::data {
namespace {

// Variants of a category. Words ascend, so that item numbers ascend with their keys.
using Styles = std::array<const char*, 20>;
constexpr Styles kHot = {"Almond", "Caramel",  "Cardamom", "Cinnamon", "Classic",  "Coconut", "Creamy",
                         "Ginger", "Hazelnut", "Honey",    "Iced",     "Lavender", "Maple",   "Mint",
                         "Nutmeg", "Oat",      "Orange",   "Pumpkin",  "Spiced",   "Vanilla"};
constexpr Styles kCold = {"Apple",  "Berry",  "Blueberry", "Cherry", "Cranberry", "Cucumber", "Elderflower",
                          "Ginger", "Grape",  "Guava",     "Kiwi",   "Lime",      "Mango",    "Melon",
                          "Mint",   "Orange", "Peach",     "Pear",   "Raspberry", "Rhubarb"};
constexpr Styles kBaked = {"Almond", "Apple",    "Apricot", "Banana", "Blueberry", "Caramel", "Carrot",
                           "Cherry", "Cinnamon", "Coconut", "Date",   "Fudge",     "Ginger",  "Hazelnut",
                           "Lemon",  "Oat",      "Orange",  "Pecan",  "Raspberry", "Walnut"};
constexpr Styles kBowl = {"Almond",  "Apple", "Banana", "Berry",    "Blueberry", "Cherry", "Cinnamon",
                          "Coconut", "Date",  "Fig",    "Hazelnut", "Honey",     "Maple",  "Peach",
                          "Pear",    "Pecan", "Plum",   "Pumpkin",  "Raspberry", "Vanilla"};
constexpr Styles kFilled = {"Avocado", "Bean",     "Beetroot", "Brie",   "Chicken", "Egg",        "Falafel",
                            "Feta",    "Halloumi", "Ham",      "Hummus", "Lentil",  "Mozzarella", "Mushroom",
                            "Pesto",   "Salmon",   "Spinach",  "Tofu",   "Tomato",  "Tuna"};
constexpr Styles kWarm = {"Aubergine", "Basil",  "Bean",    "Cabbage",  "Chicken", "Chickpea", "Coconut",
                          "Garlic",    "Ginger", "Lentil",  "Mushroom", "Peanut",  "Pork",     "Prawn",
                          "Pumpkin",   "Sesame", "Spinach", "Tofu",     "Tomato",  "Vegetable"};

struct Category {
  const char* name;
  const Styles* styles;
  enum class Where { kAnywhere, kLocal } where;
};
constexpr auto kAnywhere = Category::Where::kAnywhere;
constexpr auto kLocalOnly = Category::Where::kLocal;
constexpr std::array<Category, kSynthCategories> kCategories = {{
    {"Bagel", &kFilled, kAnywhere},    {"Brownie", &kBaked, kAnywhere},   {"Chai", &kHot, kLocalOnly},
    {"Cocoa", &kHot, kAnywhere},       {"Coffee", &kHot, kAnywhere},      {"Cookie", &kBaked, kAnywhere},
    {"Curry", &kWarm, kLocalOnly},     {"Dumplings", &kWarm, kLocalOnly}, {"Granola", &kBowl, kAnywhere},
    {"Juice", &kCold, kAnywhere},      {"Lemonade", &kCold, kLocalOnly},  {"Muffin", &kBaked, kAnywhere},
    {"Noodles", &kWarm, kLocalOnly},   {"Porridge", &kBowl, kAnywhere},   {"Salad", &kFilled, kLocalOnly},
    {"Sandwich", &kFilled, kAnywhere}, {"Scone", &kBaked, kAnywhere},     {"Smoothie", &kCold, kAnywhere},
    {"Soda", &kCold, kAnywhere},       {"Soup", &kWarm, kLocalOnly},      {"Tea", &kHot, kAnywhere},
    {"Waffle", &kBowl, kAnywhere},     {"Wrap", &kFilled, kLocalOnly},    {"Yoghurt", &kBowl, kAnywhere},
}};

// SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014).
class Generator {
 public:
  explicit Generator(uint64_t seed) : state_(seed) {}
  uint64_t Next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15ull;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }
  // The bias is below n / 2^32, which does not matter here.
  uint32_t Below(uint32_t n) { return static_cast<uint32_t>(((Next() >> 32) * n) >> 32); }
  bool Percent(uint32_t p) { return Below(100) < p; }
  template <class Items>
  void Shuffle(Items& items) {
    for (size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[Below(static_cast<uint32_t>(i))]);
  }

 private:
  uint64_t state_;
};

// Samples rank r with weight 1 / (r + flatness).
class Zipf {
 public:
  Zipf(uint32_t ranks, uint32_t flatness) {
    uint32_t sum = 0;
    for (uint32_t r = 0; r < ranks; ++r) cumulative_.push_back(sum += (1u << 20) / (r + flatness));
  }
  uint32_t Draw(Generator& g) const {
    const uint32_t at = g.Below(cumulative_.back());
    return static_cast<uint32_t>(std::upper_bound(cumulative_.begin(), cumulative_.end(), at) - cumulative_.begin());
  }

 private:
  std::vector<uint32_t> cumulative_;
};

// Preferences that all guests of a population share. They depend on the catalogue and the population, not on the seed:
// a model trained on one seed's public data fits another's.
class Taste {
 public:
  Taste(uint32_t num_items, Population population)
      : per_category_(num_items / kSynthCategories),
        in_category_(per_category_, 1),
        over_categories_(kSynthCategories, 3) {
    Generator g(0xcafe);  // the catalogue's constant
    std::vector<uint32_t> local, other;
    for (uint32_t c = 0; c < kSynthCategories; ++c) (kCategories[c].where == kLocalOnly ? local : other).push_back(c);
    g.Shuffle(local);
    g.Shuffle(other);
    const bool device = population == Population::kDevice;
    categories_ = device ? local : other;
    categories_.insert(categories_.end(), device ? other.begin() : local.begin(), device ? other.end() : local.end());
    item_at_.resize(num_items);
    for (uint32_t c = 0; c < kSynthCategories; ++c) {
      std::vector<uint32_t> items;
      for (uint32_t i = 0; i < per_category_; ++i) items.push_back(c * per_category_ + i);
      g.Shuffle(items);
      std::copy(items.begin(), items.end(), item_at_.begin() + c * per_category_);
    }
    rank_.resize(num_items);
    for (uint32_t at = 0; at < num_items; ++at) rank_[item_at_[at]] = at % per_category_;
    // One cycle through all categories; on a device, every other category leads to the follower of its opposite.
    std::vector<uint32_t> cycle;
    for (uint32_t c = 0; c < kSynthCategories; ++c) cycle.push_back(c);
    g.Shuffle(cycle);
    for (uint32_t i = 0; i < kSynthCategories; ++i) {
      const uint32_t step = device && i % 2 == 0 ? kSynthCategories / 2 + 1 : 1;
      follower_[cycle[i]] = cycle[(i + step) % kSynthCategories];
    }
  }

  uint32_t DrawCategory(Generator& g) const { return categories_[over_categories_.Draw(g)]; }
  uint32_t DrawItem(Generator& g, uint32_t category) const { return ItemAt(category, in_category_.Draw(g)); }
  uint32_t DrawSuccessor(Generator& g, uint32_t item) const {
    const uint32_t category = item / per_category_, rank = rank_[item], which = g.Below(100);
    if (which < 60) return ItemAt(follower_[category], rank);
    if (which < 85) return ItemAt(category, rank ^ 1);  // per_category_ is even
    return ItemAt(follower_[follower_[category]], rank ^ 1);
  }

 private:
  uint32_t ItemAt(uint32_t category, uint32_t rank) const { return item_at_[category * per_category_ + rank]; }

  uint32_t per_category_;
  Zipf in_category_, over_categories_;
  std::vector<uint32_t> categories_;      // liked ones first
  std::vector<uint32_t> item_at_, rank_;  // item by category and rank; rank by item
  std::array<uint32_t, kSynthCategories> follower_;
};

class Guest {
 public:
  Guest(Generator& g, const Taste& taste, uint32_t num_items, uint32_t repeats)
      : g_(g), taste_(taste), chosen_(num_items, false), repeats_(repeats) {
    for (uint32_t& favourite : favourites_) favourite = taste.DrawCategory(g);
  }

  // The next item: a repeat, or one that was not chosen yet. This terminates, because at most a quarter of all items is
  // ever chosen.
  uint32_t Next() {
    // Without repeats no random number is used up for them.
    if (repeats_ > 0 && any_ && g_.Percent(repeats_)) {
      last_ = Again();
      return last_;
    }
    if (g_.Percent(5)) favourites_[g_.Below(favourites_.size())] = taste_.DrawCategory(g_);
    uint32_t item = Propose();
    while (chosen_[item]) item = Propose();
    chosen_[item] = true;
    had_.push_back(item);
    last_ = item;
    any_ = true;
    return item;
  }

 private:
  uint32_t Again() {
    const auto all = static_cast<uint32_t>(had_.size());
    const uint32_t among = g_.Percent(50) ? std::min(all, kNewest) : all;
    return had_[all - 1 - g_.Below(among)];
  }

  uint32_t Propose() {
    if (any_ && g_.Percent(60)) return taste_.DrawSuccessor(g_, last_);
    if (g_.Percent(80)) return taste_.DrawItem(g_, favourites_[g_.Below(favourites_.size())]);
    if (g_.Percent(50)) return taste_.DrawItem(g_, taste_.DrawCategory(g_));
    return g_.Below(static_cast<uint32_t>(chosen_.size()));
  }

  Generator& g_;
  const Taste& taste_;
  std::array<uint32_t, 3> favourites_;
  static constexpr uint32_t kNewest = 4;
  std::vector<bool> chosen_;
  std::vector<uint32_t> had_;  // each item once, in the order of its first choice
  uint32_t repeats_;
  uint32_t last_ = 0;
  bool any_ = false;
};

std::string Lower(std::string text) {
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return text;
}

std::string UserKey(uint32_t user) {
  const std::string number = std::to_string(user + 1);
  std::string key = "u";
  key.append(number.size() < 5 ? 5 - number.size() : 0, '0');
  return key + number;
}

Status CheckOptions(const SynthOptions& o) {
  if (o.num_users == 0 || o.num_users > 1000000) {
    return InvalidArgument("synth: ", o.num_users, " users; allowed are 1 to 1000000");
  }
  if (o.repeats > 99) return InvalidArgument("synth: ", o.repeats, " % of repeats; allowed are 0 to 99");
  if (o.min_events < 1 || o.max_events < o.min_events || o.max_events > o.num_items / 4) {
    return InvalidArgument("synth: ", o.min_events, " to ", o.max_events, " events per user; allowed are 1 to ",
                           o.num_items / 4, " (a quarter of the items), the smaller number first");
  }
  return OkStatus();
}

}  // namespace

Result<SynthData> SynthCatalogue(uint32_t num_items) {
  if (num_items == 0 || num_items > kSynthMaxItems || num_items % (2 * kSynthCategories) != 0) {
    return InvalidArgument("synth: ", num_items, " items; allowed are multiples of ", 2 * kSynthCategories, " up to ",
                           kSynthMaxItems);
  }
  SynthData data;
  for (const Category& category : kCategories) {
    for (uint32_t i = 0; i < num_items / kSynthCategories; ++i) {
      const std::string style = (*category.styles)[i];
      data.sequences.item_keys.push_back(Lower(category.name) + "-" + Lower(style));
      data.item_names.push_back(style + " " + category.name);
    }
  }
  return data;
}

Result<SynthData> Synthesize(const SynthOptions& options) {
  WISP_ASSIGN_OR_RETURN(SynthData data, SynthCatalogue(options.num_items));
  WISP_RETURN_IF_ERROR(CheckOptions(options));
  const Taste taste(options.num_items, options.population);
  // Neighbouring seeds of SplitMix64 give unrelated streams; the two populations of one seed are two streams.
  Generator g(options.seed * 2 + (options.population == Population::kDevice ? 1 : 0));
  constexpr int64_t kOpening = 1700000000;
  constexpr uint32_t kOpenSeconds = 60 * 24 * 3600, kMostSecondsBetween = 48 * 3600;
  for (uint32_t u = 0; u < options.num_users; ++u) {
    Guest guest(g, taste, options.num_items, options.repeats);
    const uint32_t events = options.min_events + g.Below(options.max_events - options.min_events + 1);
    int64_t time = kOpening + g.Below(kOpenSeconds);
    for (uint32_t e = 0; e < events; ++e) {
      data.sequences.items.push_back(static_cast<int32_t>(guest.Next()));
      data.times.push_back(time += 1 + g.Below(kMostSecondsBetween));
    }
    data.sequences.offsets.push_back(data.sequences.items.size());
    data.sequences.user_keys.push_back(UserKey(u));
  }
  return data;
}

}  // namespace wisp::data
