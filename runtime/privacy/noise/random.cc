// Built for speed: the random bits of every draw.
#include "runtime/privacy/noise/random.h"

#include <sodium.h>

#include <bit>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <new>
#include <numbers>
#include <string>

#include "runtime/core/platform.h"
#include "runtime/core/reason.h"

namespace wisp::privacy {
namespace {

// The words of the key stream are little-endian, and reproducible streams promise the same bits on every machine.
static_assert(std::endian::native == std::endian::little, "ChaCha20 words are read in little-endian order");

// Lets libsodium choose the fastest ChaCha20 for this processor (3 ns a word instead of 12). If that fails, the
// portable code is used, which gives the same bits.
void ChooseImplementation() { [[maybe_unused]] static const int chosen = sodium_init(); }

}  // namespace

void* RandomStream::State::operator new(size_t size) {
  if (void* const memory = sodium_malloc(size)) return memory;
  throw std::bad_alloc();
}

void RandomStream::State::operator delete(void* state) { sodium_free(state); }

RandomStream::State::~State() {
  sodium_memzero(key, sizeof key);
  sodium_memzero(buffer, sizeof buffer);
}

Result<RandomStream> RandomStream::Secure() { return SecureForTesting(platform::GetEntropy); }

Result<RandomStream> RandomStream::SecureForTesting(EntropySource source) {
  // A child of fork() has the parent's key and unread words; the count tells its streams to change the key.
  if (const int refused = WatchForks(); refused != 0) {
    return IoError("no secure random stream: the operating system refused a fork handler (", Reason(refused), ")");
  }
  ChooseImplementation();
  auto state = std::make_unique<State>();
  errno = 0;
  if (source(state->key, kKeyBytes) != 0) {
    return IoError("the operating system gave no random bytes to key a secure stream (",
                   (errno != 0 ? Reason(errno) : "no reason given"), "); without them there is no private noise");
  }
  state->secure = true;
  state->fork_count = num_forks.load(std::memory_order_relaxed);
  RandomStream stream(std::move(state));
  stream.FillBuffer();
  return stream;
}

RandomStream RandomStream::Reproducible(uint64_t seed, StreamPurpose purpose) {
  ChooseImplementation();
  auto state = std::make_unique<State>();
  uint8_t input[sizeof seed + 1];
  std::memcpy(input, &seed, sizeof seed);
  input[sizeof seed] = static_cast<uint8_t>(purpose);
  constexpr uint8_t kLabel[] = "wisp reproducible stream 1";
  crypto_generichash(state->key, kKeyBytes, input, sizeof input, kLabel, sizeof kLabel - 1);
  state->fork_count = num_forks.load(std::memory_order_relaxed);
  RandomStream stream(std::move(state));
  stream.FillBuffer();
  return stream;
}

RandomStream::Key::~Key() { sodium_memzero(bytes, sizeof bytes); }

RandomStream::Key RandomStream::NextKey() {
  Key key;
  for (size_t i = 0; i < sizeof key.bytes; i += sizeof(uint64_t)) {
    uint64_t word = NextU64();
    std::memcpy(key.bytes + i, &word, sizeof word);
    sodium_memzero(&word, sizeof word);
  }
  return key;
}

void RandomStream::Become(const Key& key, uint64_t index) {
  static_assert(sizeof key.bytes == kKeyBytes);
  State& s = *state_;
  constexpr uint8_t kLabel[] = "wisp stream of a key 1";
  uint8_t input[sizeof index + sizeof kLabel - 1];
  std::memcpy(input, &index, sizeof index);
  std::memcpy(input + sizeof index, kLabel, sizeof kLabel - 1);
  crypto_generichash(s.key, kKeyBytes, input, sizeof input, key.bytes, kKeyBytes);
  s.first_word = s.next = 0;
  s.secure = false;
  s.fork_count = num_forks.load(std::memory_order_relaxed);
  FillBuffer();
}

void RandomStream::FillBuffer() {
  static_assert(kKeyBytes == crypto_stream_chacha20_KEYBYTES);
  static_assert(kBufferWords * 8 % 64 == 0, "a buffer holds whole 64-byte blocks");
  State& s = *state_;
  // The variant with a 64-bit block counter never wraps. One key serves one stream, so the nonce may be constant.
  constexpr uint8_t kNonce[crypto_stream_chacha20_NONCEBYTES] = {};
  auto* bytes = reinterpret_cast<uint8_t*>(s.buffer);
  std::memset(bytes, 0, sizeof s.buffer);
  crypto_stream_chacha20_xor_ic(bytes, bytes, sizeof s.buffer, kNonce, s.first_word / 8, s.key);
}

// The new key is a hash of the old one with the identity of the process, which a fork() child has for itself, and, if
// the system gives it, fresh entropy. Even without entropy a child's bits are unrelated to those of its parent and
// siblings, and a stream's to its own earlier ones.
void RandomStream::ReplaceKey(State& s) {
  struct {
    uint8_t key[kKeyBytes];
    uint8_t fresh[kKeyBytes];
    uint64_t pid, fork_count, position;
  } input = {};
  std::memcpy(input.key, s.key, kKeyBytes);
  if (platform::GetEntropy(input.fresh, sizeof input.fresh) != 0) std::memset(input.fresh, 0, sizeof input.fresh);
  input.pid = static_cast<uint64_t>(platform::GetProcess());
  input.fork_count = s.fork_count;
  input.position = s.first_word + s.next;
  crypto_generichash(s.key, kKeyBytes, reinterpret_cast<const uint8_t*>(&input), sizeof input, nullptr, 0);
  sodium_memzero(&input, sizeof input);
  s.first_word = s.next = 0;
}

void RandomStream::Freshen() {
  if (!state_->secure) return;
  ReplaceKey(*state_);
  FillBuffer();
}

void RandomStream::Refill() {
  State& s = *state_;
  const uint32_t forks = num_forks.load(std::memory_order_relaxed);
  if (s.fork_count != forks) {
    s.fork_count = forks;
    if (s.secure) {
      ReplaceKey(s);
      FillBuffer();
      return;
    }
    if (s.next < kBufferWords) return;
  }
  s.first_word += kBufferWords;
  s.next = 0;
  FillBuffer();
}

Status RandomStream::Seek(uint64_t position) {
  State& s = *state_;
  if (s.secure) return PrivacyRefused("a secure random stream cannot go back to a position: it would repeat its noise");
  s.first_word = position - position % kBufferWords;
  s.next = position % kBufferWords;
  FillBuffer();
  return OkStatus();
}

// With W the random real 0.w1 w2 ... of 64-bit digits, returns [W < p]. The first digit decides unless it equals that
// of p; then the rest of p, scaled up, is compared with the rest of W. Every double ends after at most 17 digits
// (2^-1074 = 2^-(17 * 64 - 14)), and p * 2^64, its floor and its fraction are exact.
bool RandomStream::Bernoulli(double p) {
  while (p > 0) {
    if (p >= 1) return true;
    const double scaled = p * 0x1p64;
    const double floor = std::floor(scaled);
    const uint64_t digit = static_cast<uint64_t>(floor);  // p < 1, hence floor < 2^64
    const uint64_t word = NextU64();
    if (word != digit) return word < digit;
    p = scaled - floor;
  }
  return false;
}

double RandomStream::Normal() {
  const double radius = std::sqrt(-2 * std::log((static_cast<double>(NextU64() >> 11) + 1) * 0x1p-53));
  return radius * std::cos(2 * std::numbers::pi * UniformDouble());
}

void PoissonSample(RandomStream& random, double q, uint32_t n, std::vector<uint32_t>& out) {
  out.clear();
  for (uint32_t i = 0; i < n; ++i) {
    if (random.Bernoulli(q)) out.push_back(i);
  }
}

}  // namespace wisp::privacy
