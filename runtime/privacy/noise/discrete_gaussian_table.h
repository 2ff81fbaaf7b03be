// Tables for the fast half of discrete_gaussian.cc: the distribution of the cell, to 63 bits, and a bound of acceptance
// by cell.
//
// They are constants, computed at compile time in integers of 128 bits, each with a bound of its error, and asserted to
// be the floors of the intended real numbers. With s = kCellsPerSigma and Z the sum of exp(-k^2 / (2 s^2)) over k >= 0:
//     p_0 = 1 / Z,   p_(k+1) = p_k r_k,   r_0 = exp(-1 / (2 s^2)),   r_(k+1) = r_k exp(-1 / s^2),
// so r_k = exp(-(2 k + 1) / (2 s^2)) and p_k = exp(-k^2 / (2 s^2)) / Z. The three starting numbers are rounded down,
// from 120 decimal digits.
//
// Errors. Everything is rounded down, in units of 2^-128. r_k falls short by at most 2 k + 1 (a product of numbers
// below 1 inherits both errors and adds one), p_k, being below 1/32, by at most e_k with e_(k+1) <= e_k + (2 k + 1) /
// 32 + 2: for k < 300 that is less than 2^12, for a sum of 300 of them less than 2^21.
#ifndef WISP_RUNTIME_PRIVACY_NOISE_DISCRETE_GAUSSIAN_TABLE_H_
#define WISP_RUNTIME_PRIVACY_NOISE_DISCRETE_GAUSSIAN_TABLE_H_

#include <array>
#include <cstddef>
#include <cstdint>

namespace wisp::privacy {

// A cell is sigma / kCellsPerSigma wide. More cells reject less, and need a larger table.
inline constexpr uint64_t kCellsPerSigma = 32;

// Bits of the first word that decide the cell and acceptance, nearly always.
inline constexpr int kCellBits = 19;
inline constexpr int kAcceptBits = 12;
inline constexpr int kGuideBits = 9;

struct CellTable {
  static constexpr size_t kCells = 292;
  // floor(2^63 P[V <= v]). A word of 63 bits below entry v means a cell of at most v, one above it a cell beyond v, an
  // equal one decides nothing; nor does a leading part of the word that equals that of the entry. The last entry is
  // 2^63 - 1.
  std::array<uint64_t, kCells> threshold;
  // floor(2^kAcceptBits r_v): kAcceptBits bits below it accept, wherever in the cell x is.
  std::array<uint16_t, kCells> accept;
  // Indexed by the word's first kGuideBits: the first cell whose threshold, cut to kCellBits, is not below the word.
  // The search starts there.
  std::array<uint16_t, size_t{1} << kGuideBits> guide;
  bool is_exact;
};

namespace internal {

using U128 = unsigned __int128;

constexpr U128 Fraction(uint64_t high, uint64_t low) { return static_cast<U128>(high) << 64 | low; }

// floor(a b / 2^128).
constexpr U128 MultiplyFractions(U128 a, U128 b) {
  constexpr U128 kLow = ~uint64_t{0};
  const U128 a1 = a >> 64, a0 = a & kLow, b1 = b >> 64, b0 = b & kLow;
  const U128 middle = (a0 * b0 >> 64) + (a1 * b0 & kLow) + (a0 * b1 & kLow);
  return a1 * b1 + (a1 * b0 >> 64) + (a0 * b1 >> 64) + (middle >> 64);
}

constexpr CellTable MakeCellTable() {
  static_assert(kCellsPerSigma == 32, "the three numbers below are for 32");
  constexpr U128 kMaxError = U128{1} << 21;
  constexpr U128 kStep = Fraction(0xffc007ff555fff77, 0x7d279e7b87acecdf);  // exp(-1 / 1024)
  U128 r = Fraction(0xffe001ffeaab5551, 0x1127d21522f2295b);                // exp(-1 / 2048)
  U128 p = Fraction(0x064df2540dabb8e9, 0x121b44381c3153cf);                // 1 / Z
  U128 sum = 0;
  CellTable table{};
  table.is_exact = true;
  for (size_t v = 0; v < CellTable::kCells; ++v) {
    sum += p;
    table.threshold[v] = static_cast<uint64_t>(sum >> 65);
    table.accept[v] = static_cast<uint16_t>(r >> (128 - kAcceptBits));  // the true r is not less
    // The largest possible shortfall of the sum does not carry into the bits that are kept.
    if ((sum >> 65) != ((sum + kMaxError) >> 65)) table.is_exact = false;
    p = MultiplyFractions(p, r);
    r = MultiplyFractions(r, kStep);
  }
  size_t v = 0;
  for (size_t i = 0; i < table.guide.size(); ++i) {
    while (table.threshold[v] >> (63 - kCellBits) < i << (kCellBits - kGuideBits)) ++v;
    table.guide[i] = static_cast<uint16_t>(v);
  }
  return table;
}

}  // namespace internal

inline constexpr CellTable kCellTable = internal::MakeCellTable();
static_assert(kCellTable.is_exact && kCellTable.threshold.back() == ~uint64_t{0} >> 1);

}  // namespace wisp::privacy

#endif  // WISP_RUNTIME_PRIVACY_NOISE_DISCRETE_GAUSSIAN_TABLE_H_
