// Streams of random bits from ChaCha20, and exact draws made from them.
//
// They are the only source of randomness of private training. A secure stream is keyed by the operating system; its key
// is never shown, saved or copied, and is wiped on destruction. A reproducible stream is keyed by a seed, for tests and
// for repeating experiments; whatever used one has NO privacy guarantee. Streams do not replace the generators of the
// standard library; there is no way to seed a secure stream.
//
//   WISP_ASSIGN_OR_RETURN(RandomStream noise, RandomStream::Secure());
//   RandomStream sampling = RandomStream::Reproducible(7, StreamPurpose::kSampling);
//   std::vector<uint32_t> batch;
//   PoissonSample(sampling, 0.01, num_records, batch);
//
// A stream is used by one thread at a time. Streams move but do not copy: a copy would repeat its noise. For the same
// reason a forked child gets other bits from a secure stream.
#ifndef WISP_RUNTIME_PRIVACY_NOISE_RANDOM_H_
#define WISP_RUNTIME_PRIVACY_NOISE_RANDOM_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/core/fork.h"
#include "runtime/core/status.h"

namespace wisp::privacy {

// The use of a stream. Streams of one seed with different purposes are independent.
enum class StreamPurpose : uint8_t {
  kSampling = 1,
  kNoise = 2,
  kInitialisation = 3,
  kDropout = 4,
  kDecoding = 5,
  kCarriers = 6,
  kRounding = 7
};

class RandomStream {
 public:
  // Fills `size` bytes, at most 256; 0 on success, like getentropy(3).
  using EntropySource = int (*)(void* buffer, size_t size);

  // Keyed with 256 bits from the operating system. kIo if it has no entropy to give.
  static Result<RandomStream> Secure();
  // Secure() with another source, for tests of a refusal by the operating system.
  static Result<RandomStream> SecureForTesting(EntropySource source);
  // Gives equal bits for equal (seed, purpose), on every machine. No guarantee of privacy.
  static RandomStream Reproducible(uint64_t seed, StreamPurpose purpose);

  RandomStream(RandomStream&&) noexcept = default;
  RandomStream& operator=(RandomStream&&) noexcept = default;

  bool IsSecure() const { return state_->secure; }

  // A key of streams that can be drawn again while it exists (Become). Wiped on destruction; it must never be saved.
  struct Key {
    Key() = default;
    ~Key();
    uint8_t bytes[32] = {};
  };
  // The next 256 bits of this stream.
  Key NextKey();
  // Makes this the stream of (key, index), from its start: the same bits for all that become it, independent of those
  // of every other index. Allocates nothing. Such a stream counts as not secure: who holds the key can repeat it.
  void Become(const Key& key, uint64_t index);
  // Changes a secure stream's key to a hash of itself with fresh bytes from the operating system. Call it before each
  // release: a machine whose snapshot was restored twice otherwise runs twice from one key. If the system learns of the
  // restoration (Linux from 5.18 on, with a hypervisor that reports it), its bytes differ from then on. A reproducible
  // stream does not change. Allocates nothing.
  void Freshen();

  uint64_t NextU64() {
    State& s = *state_;
    if (s.next >= kBufferWords || s.fork_count != num_forks.load(std::memory_order_relaxed)) [[unlikely]]
      Refill();
    return s.buffer[s.next++];
  }
  // The high half of a 64-bit word; the low half is dropped, so that positions count whole words.
  uint32_t NextU32() { return static_cast<uint32_t>(NextU64() >> 32); }

  // Uniform on {0, ..., n - 1}, without bias (Lemire 2019). n >= 1.
  uint64_t UniformBelow(uint64_t n) {
    unsigned __int128 product = static_cast<unsigned __int128>(NextU64()) * n;
    if (static_cast<uint64_t>(product) < n) [[unlikely]] {
      const uint64_t threshold = (0 - n) % n;  // 2^64 mod n
      while (static_cast<uint64_t>(product) < threshold) product = static_cast<unsigned __int128>(NextU64()) * n;
    }
    return static_cast<uint64_t>(product >> 64);
  }

  // True with probability exactly p: random bits are compared with the binary expansion of p, which is finite. Values
  // outside of [0, 1] count as the nearer end, NaN as 0.
  bool Bernoulli(double p);

  // Uniform on the multiples of 2^-53 in [0, 1). Not a real number: no privacy argument may rest on it.
  double UniformDouble() { return static_cast<double>(NextU64() >> 11) * 0x1p-53; }

  // Standard normal in floating point (Box and Muller), for INITIALISATION ONLY. Its low-order bits reveal what it is
  // added to (Mironov 2012): noise for privacy comes from discrete_gaussian.h.
  double Normal();

  // The number of 64-bit words drawn since the start of a reproducible stream, which a checkpoint saves. 0 for a secure
  // stream, which cannot be resumed: its key is not saved, and a later process takes a fresh one.
  uint64_t position() const { return state_->secure ? 0 : state_->first_word + state_->next; }
  // Moves a reproducible stream to a position. kPrivacyRefused for a secure one, which would repeat its noise.
  Status Seek(uint64_t position);

 private:
  // 4 KB: the cost of a call is spread over 64 blocks, and the words still fit into first-level cache.
  static constexpr size_t kBufferWords = 512;
  static constexpr size_t kKeyBytes = 32;

  struct State {
    // In pages that no core dump has, between guard pages, and locked where the system allows it (sodium_malloc).
    static void* operator new(size_t size);
    static void operator delete(void* state);
    ~State();
    uint64_t first_word = 0;  // index of buffer[0] in the stream, a multiple of kBufferWords
    size_t next = 0;
    uint32_t fork_count = 0;
    bool secure = false;
    uint8_t key[kKeyBytes];
    uint64_t buffer[kBufferWords];
  };

  explicit RandomStream(std::unique_ptr<State> state) : state_(std::move(state)) {}
  void Refill();
  void FillBuffer();
  static void ReplaceKey(State& state);

  std::unique_ptr<State> state_;
};

// The indices of {0, ..., n - 1} that enter a Poisson sample, ascending: each independently with probability exactly q.
// `out` is cleared first; reserve n beforehand to keep a steady step free of allocation.
void PoissonSample(RandomStream& random, double q, uint32_t n, std::vector<uint32_t>& out);

}  // namespace wisp::privacy

#endif  // WISP_RUNTIME_PRIVACY_NOISE_RANDOM_H_
