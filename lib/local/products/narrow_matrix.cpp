// SPDX-License-Identifier: BSD-3-Clause
#include "local/products/narrow_matrix.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

#include "base/instantiate.hpp"

namespace gridlops {

namespace {

/// Rounds to nearest, ties to even.
Bfloat16 to_bfloat16(float number) {
  const auto bits = std::bit_cast<std::uint32_t>(number);
  return static_cast<Bfloat16>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
float from_bfloat16(Bfloat16 half) { return std::bit_cast<float>(std::uint32_t{half} << 16); }

template <class Stored, class R, class Round>
void round_column(Index n, const R* from, std::byte* to, Round&& round) {
  for (Index i = 0; i < n; ++i) {
    const Stored stored = round(from[i]);
    std::memcpy(to + i * Index{sizeof stored}, &stored, sizeof stored);
  }
}

}  // namespace

template <Scalar T>
void narrow(MatrixView<const T> A, Precision precision, std::byte* to) {
  using R = Real<T>;
  const Index numbers = NarrowMatrix<T>::parts * A.rows;
  for (Index j = 0; j < A.cols; ++j, to += numbers * bytes_of(precision)) {
    const auto* const column = reinterpret_cast<const R*>(A.column(j));
    switch (precision) {
      case Precision::bfloat16:
        round_column<Bfloat16>(numbers, column, to, [](R x) { return to_bfloat16(static_cast<float>(x)); });
        break;
      case Precision::float32:
        round_column<float>(numbers, column, to, [](R x) { return static_cast<float>(x); });
        break;
      case Precision::float64:
        round_column<double>(numbers, column, to, [](R x) { return static_cast<double>(x); });
    }
  }
}

template <Scalar T>
void widen(const NarrowMatrix<T>& A, T* to) {
  auto* const numbers = reinterpret_cast<Real<T>*>(to);
  const auto each = [&](const auto* stored, auto&& number) {
    for (Index i = 0; i < A.numbers(); ++i) numbers[i] = static_cast<Real<T>>(number(stored[i]));
  };
  const auto same = [](auto number) { return number; };
  switch (A.precision) {
    case Precision::bfloat16:
      return each(reinterpret_cast<const Bfloat16*>(A.data), from_bfloat16);
    case Precision::float32:
      return each(reinterpret_cast<const float*>(A.data), same);
    case Precision::float64:
      return each(reinterpret_cast<const double*>(A.data), same);
  }
}

#define GRIDLOPS_INSTANTIATE(T)                                     \
  template void narrow(MatrixView<const T>, Precision, std::byte*); \
  template void widen(const NarrowMatrix<T>&, T*);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
