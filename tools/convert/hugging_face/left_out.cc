#include "tools/convert/hugging_face/left_out.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

namespace wisp::convert::hugging_face {
namespace {

template <class T>
double NumberAs(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return static_cast<double>(value);
}

// Returns one number of a tensor of any type.
double NumberAt(const SafeTensor& tensor, uint64_t index) {
  const std::byte* at = tensor.bytes.data() + index * ElementBytes(tensor.type);
  switch (tensor.type) {
    case ElementType::kF64:
      return NumberAs<double>(at);
    case ElementType::kI64:
      return NumberAs<int64_t>(at);
    case ElementType::kI32:
      return NumberAs<int32_t>(at);
    case ElementType::kI16:
      return NumberAs<int16_t>(at);
    case ElementType::kI8:
      return NumberAs<int8_t>(at);
    case ElementType::kU64:
      return NumberAs<uint64_t>(at);
    case ElementType::kU32:
      return NumberAs<uint32_t>(at);
    case ElementType::kU16:
      return NumberAs<uint16_t>(at);
    case ElementType::kU8:
    case ElementType::kBool:
      return NumberAs<uint8_t>(at);
    default:
      break;
  }
  SafeTensor one = tensor;
  one.bytes = tensor.bytes.subspan(index * ElementBytes(tensor.type), ElementBytes(tensor.type));
  float value = 0;
  one.CopyTo({&value, 1});
  return value;
}

// Returns the first place at which a number differs from the expected one, or num_elements().
template <class Expected>
uint64_t FirstOther(const SafeTensor& tensor, const Expected& is_expected) {
  uint64_t i = 0;
  while (i < tensor.num_elements() && is_expected(i, NumberAt(tensor, i))) ++i;
  return i;
}

bool IsCausalMask(const SafeTensor& tensor, uint64_t& wrong) {
  wrong = 0;
  if (tensor.shape.size() < 2 || tensor.shape[tensor.shape.size() - 1] != tensor.shape[tensor.shape.size() - 2])
    return false;
  const uint64_t size = tensor.shape.back();
  if (size == 0 || tensor.num_elements() != size * size) return false;
  wrong = FirstOther(tensor, [&](uint64_t i, double v) { return (v != 0) == (i % size <= i / size); });
  return wrong == tensor.num_elements();
}

// 16-bit types round a frequency by up to 1 / 256 of it (BF16).
bool AreFrequencies(const SafeTensor& tensor, const RotarySpec& rotary, uint64_t& wrong) {
  wrong = 0;
  if (tensor.num_elements() * 2 != rotary.width) return false;
  wrong = FirstOther(tensor, [&](uint64_t i, double v) {
    const double expected = std::pow(double{rotary.base}, -2.0 * static_cast<double>(i) / rotary.width);
    return std::abs(v - expected) <= expected / 128 + 1e-7;
  });
  return wrong == tensor.num_elements();
}

const FoundTensor* BuildTable(const Folder& folder, const Description& d) {
  const Result<std::string> prefix = FindPrefix(folder, *d.family);
  if (!prefix.ok()) return nullptr;
  const auto found = folder.tensors().find(*prefix + d.family->rows[0].names[0]);
  return found == folder.tensors().end() ? nullptr : &found->second;
}

bool Holds(const Folder& folder, const Description& d, LeftOutCheck check, const SafeTensor& tensor, uint64_t& wrong) {
  switch (check) {
    case LeftOutCheck::kNone:
      return true;
    case LeftOutCheck::kNumbered:
      wrong = FirstOther(tensor, [&](uint64_t i, double v) { return v == static_cast<double>(i); });
      return wrong == tensor.num_elements();
    case LeftOutCheck::kCausalMask:
      return IsCausalMask(tensor, wrong);
    case LeftOutCheck::kMaskedScore: {
      // This is so far below every score that the softmax gives 0.
      constexpr double kMost = -1000;
      wrong = FirstOther(tensor, [&](uint64_t, double v) { return v <= kMost; });
      return tensor.num_elements() == 1 && wrong == 1;
    }
    case LeftOutCheck::kFrequencies:
      return AreFrequencies(tensor, d.architecture.blocks[0].attention.rotary, wrong);
    case LeftOutCheck::kTable: {
      const FoundTensor* table = BuildTable(folder, d);
      return table != nullptr && SameNumbers(*table->tensor, tensor);
    }
  }
  return false;
}

}  // namespace

bool SameNumbers(const SafeTensor& a, const SafeTensor& b) {
  if (a.shape != b.shape) return false;
  if (a.type == b.type) return std::equal(a.bytes.begin(), a.bytes.end(), b.bytes.begin(), b.bytes.end());
  if (!IsWeight(a.type) || !IsWeight(b.type)) return false;
  constexpr uint64_t kTogether = 1 << 16;
  std::vector<float> of_a(kTogether), of_b(kTogether);
  for (uint64_t first = 0; first < a.num_elements(); first += kTogether) {
    const uint64_t count = std::min(kTogether, a.num_elements() - first);
    const auto copy = [&](const SafeTensor& tensor, std::vector<float>& to) {
      SafeTensor part = tensor;
      part.bytes = tensor.bytes.subspan(first * ElementBytes(tensor.type), count * ElementBytes(tensor.type));
      part.CopyTo(std::span(to).first(count));
    };
    copy(a, of_a);
    copy(b, of_b);
    if (!std::equal(of_a.begin(), of_a.begin() + static_cast<std::ptrdiff_t>(count), of_b.begin())) return false;
  }
  return true;
}

Result<std::string> ReasonToLeaveOut(const Folder& folder, const Description& d, std::string_view plain,
                                     const FoundTensor& found) {
  const SafeTensor& tensor = *found.tensor;
  const Ignored* ignored = FindIgnored(*d.family, plain);
  if (ignored == nullptr) {
    return InvalidData(folder.path(), ": tensor ", Shown(tensor.name), " ", ShapeInWords(tensor.shape),
                       " belongs to nothing of a ", d.model_class, " as config.json describes it");
  }
  uint64_t wrong = 0;
  if (Holds(folder, d, ignored->check, tensor, wrong)) return std::string(ignored->reason);
  if (wrong < tensor.num_elements()) {
    return InvalidData(folder.path(), ": tensor ", Shown(tensor.name), " ", ShapeInWords(tensor.shape), " holds ",
                       NumberAt(tensor, wrong), " at place ", wrong, ", supported are ", ignored->reason);
  }
  return InvalidData(folder.path(), ": tensor ", Shown(tensor.name), " has the shape ", ShapeInWords(tensor.shape),
                     ", supported are ", ignored->reason);
}

}  // namespace wisp::convert::hugging_face
