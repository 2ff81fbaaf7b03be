// A ledger's anchor in the app's own store, through the callbacks of wisp_anchor. Not part of the C interface.
#ifndef WISP_PORTS_C_ANCHOR_C_H_
#define WISP_PORTS_C_ANCHOR_C_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "ports/c/status_c.h"
#include "runtime/privacy/ledger/ledger_anchor.h"

namespace wisp::ports {

class CallbackAnchor final : public privacy::LedgerAnchor {
 public:
  explicit CallbackAnchor(const wisp_anchor& anchor) : anchor_(anchor) {}

  Result<std::optional<privacy::AnchorValue>> Read() override {
    Blob blob{};
    size_t size = 0;
    if (anchor_.read(anchor_.user_data, blob.data(), blob.size(), &size) != 0)
      return IoError("wisp_anchor: the app could not read the ledger's anchor");
    if (size == 0) return std::optional<privacy::AnchorValue>();
    if (size != kBytes || blob[0] != kVersion)
      return InvalidData("wisp_anchor: what the app has kept is not the anchor of a ledger");
    privacy::AnchorValue value{.ledger_id = std::string(blob.begin() + 1, blob.begin() + 1 + kIdBytes)};
    for (size_t i = 0; i < sizeof(value.seq); ++i) value.seq |= uint64_t{blob[1 + kIdBytes + i]} << (8 * i);
    std::memcpy(value.chain.data(), blob.data() + kChainAt, value.chain.size());
    return std::optional<privacy::AnchorValue>(std::move(value));
  }

  Status Write(const privacy::AnchorValue& value) override {
    if (value.ledger_id.size() != kIdBytes) return InvalidData("wisp_anchor: the ledger has no identity");
    Blob blob{kVersion};
    std::copy(value.ledger_id.begin(), value.ledger_id.end(), blob.begin() + 1);
    for (size_t i = 0; i < sizeof(value.seq); ++i) blob[1 + kIdBytes + i] = static_cast<uint8_t>(value.seq >> (8 * i));
    std::memcpy(blob.data() + kChainAt, value.chain.data(), value.chain.size());
    if (anchor_.write(anchor_.user_data, blob.data(), kBytes) == 0) return OkStatus();
    return IoError("wisp_anchor: the app could not write the ledger's anchor");
  }

 private:
  // An anchor's bytes: a version, the ledger's identity, its number of rows (lowest byte first), the chain value up to
  // there.
  static constexpr uint8_t kVersion = 1;
  static constexpr size_t kIdBytes = 16, kChainAt = 1 + kIdBytes + sizeof(uint64_t),
                          kBytes = kChainAt + std::tuple_size_v<privacy::ChainValue>;
  static_assert(kBytes <= WISP_ANCHOR_BYTES);
  using Blob = std::array<uint8_t, WISP_ANCHOR_BYTES>;
  const wisp_anchor anchor_;
};

struct GivenAnchor {
  std::shared_ptr<privacy::LedgerAnchor> kept;
  bool begins = false;  // wisp_anchor.begin: the anchor may still be missing
};

// `kept` is null if the app gives no anchor.
inline Result<GivenAnchor> OpenAnchor(const wisp_anchor* given) {
  if (given == nullptr) return GivenAnchor{};
  WISP_ASSIGN_OR_RETURN(const auto anchor, MakeOptions(given, "wisp_anchor"));
  if (anchor.read == nullptr || anchor.write == nullptr)
    return InvalidArgument("wisp_anchor: read and write must not be NULL");
  return GivenAnchor{std::make_shared<CallbackAnchor>(anchor), anchor.begin != 0};
}

}  // namespace wisp::ports

#endif  // WISP_PORTS_C_ANCHOR_C_H_
