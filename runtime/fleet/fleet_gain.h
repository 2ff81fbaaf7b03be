// The message of a device that evaluated: its gain from the fleet's model, and the gain's square, on the grid of
// runtime/train/gain_sums.h. Their vector is never longer than GainNorm(), which the server checks.
#ifndef WISP_RUNTIME_FLEET_FLEET_GAIN_H_
#define WISP_RUNTIME_FLEET_FLEET_GAIN_H_

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/train/gain_sums.h"

namespace wisp::fleet {

// The mean gain in NDCG@10 that counts as 1, as do larger ones.
inline constexpr double kGainScale = 0.2;

struct DeviceGain {
  int32_t gain = 0, square = 0;

  // Two little-endian numbers, as they travel.
  std::string ToBytes() const {
    std::string bytes(2 * sizeof(int32_t), '\0');
    std::memcpy(bytes.data(), &gain, sizeof(gain));
    std::memcpy(bytes.data() + sizeof(gain), &square, sizeof(square));
    return bytes;
  }
  // nullopt for another size, or a vector that is too long.
  static std::optional<DeviceGain> Parse(std::string_view bytes) {
    DeviceGain found;
    if (bytes.size() != 2 * sizeof(int32_t)) return std::nullopt;
    std::memcpy(&found.gain, bytes.data(), sizeof(found.gain));
    std::memcpy(&found.square, bytes.data() + sizeof(found.gain), sizeof(found.square));
    const double squares =
        static_cast<double>(found.gain) * found.gain + static_cast<double>(found.square) * found.square;
    if (!(squares <= GainNorm() * GainNorm())) return std::nullopt;
    return found;
  }
};

}  // namespace wisp::fleet

#endif  // WISP_RUNTIME_FLEET_FLEET_GAIN_H_
