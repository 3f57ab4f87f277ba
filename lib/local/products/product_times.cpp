// SPDX-License-Identifier: BSD-3-Clause
#include "local/products/product_times.hpp"

#include <algorithm>
#include <chrono>
#include <vector>

#include "base/instantiate.hpp"
#include "base/numbers.hpp"
#include "local/host_kernels.hpp"
#include "local/products/packed_matrix.hpp"

namespace gridlops {

namespace {

std::optional<ProductTimes>& times_of(ScalarType type) {
  static std::array<std::optional<ProductTimes>, 4> times;
  return times[static_cast<std::size_t>(type)];
}

Timing sum(const Timing& a, const Timing& b) { return {a.least + b.least, a.second + b.second}; }

/// Whether one way was faster than the usual one by so much, and so steadily, that no disturbance explains
/// it.
bool clearly_faster(const Timing& other, const Timing& usual) {
  return other.second < 0.9 * usual.least && usual.second < 1.1 * usual.least;
}

/// time(times, choice, k) is the time of a choice with columns[k] right-hand sides.
template <class Time>
bool corrected(bool usual, ScalarType type, Index columns, const Time& time) {
  const std::optional<ProductTimes>& times = times_of(type);
  const auto& measured = ProductTimes::columns;
  const auto next = std::lower_bound(measured.begin(), measured.end(), columns);
  if (!times || columns < 1 || next == measured.end()) return usual;
  const auto more = static_cast<std::size_t>(next - measured.begin());
  const std::size_t fewer = *next == columns ? more : more - 1;
  for (const std::size_t k : {fewer, more})
    if (!clearly_faster(time(*times, !usual, k), time(*times, usual, k))) return usual;
  return !usual;
}

}  // namespace

double ProductTimes::unsteadiness() const {
  std::vector<double> ratios;
  for (const auto& row : times)
    for (const Timing& timing : row) ratios.push_back(timing.second / timing.least);
  const auto middle = ratios.begin() + static_cast<std::ptrdiff_t>(ratios.size() / 2);
  std::nth_element(ratios.begin(), middle, ratios.end());
  return *middle;
}

void use_product_times(ScalarType type, const std::optional<ProductTimes>& times) { times_of(type) = times; }

bool own_kernels_pay(bool usual, ScalarType type, Op op, Index columns) {
  return corrected(usual, type, columns, [op](const ProductTimes& times, bool own, std::size_t k) {
    if (op == Op::none) return times.of(own ? Work::own : Work::blas, k);
    return times.of(own ? Work::own_adjoint : Work::blas_adjoint, k);
  });
}

bool packing_pays(bool usual, ScalarType type, Index columns) {
  return corrected(usual, type, columns, [](const ProductTimes& times, bool packed, std::size_t k) {
    if (packed) return sum(times.of(Work::packed, k), times.of(Work::packed_adjoint, k));
    const auto faster = [&](Work a, Work b) {
      return times.of(a, k).least < times.of(b, k).least ? times.of(a, k) : times.of(b, k);
    };
    return sum(faster(Work::blas, Work::own), faster(Work::blas_adjoint, Work::own_adjoint));
  });
}

bool one_pass_pays(bool usual, ScalarType type, Index columns) {
  return corrected(usual, type, columns, [](const ProductTimes& times, bool once, std::size_t k) {
    return once ? times.of(Work::one_pass, k)
                : sum(times.of(Work::packed, k), times.of(Work::packed_adjoint, k));
  });
}

template <Scalar T>
ProductTimer<T>::ProductTimer(Index bytes) {
  // Not a power of two, and no tile is left half empty.
  constexpr Index rows = 3600, most = ProductTimes::columns.back();
  const Index cols = std::max<Index>(bytes / (rows * Index{sizeof(T)}) / 256, 1) * 256;
  const auto backend = make_host_backend();
  const auto filled = [&](Index size) {
    Buffer<T> values(backend, size);
    std::fill_n(values.data(), size, to_scalar<T>(1.0 / 3));
    return values;
  };
  A_ = filled(rows * cols);
  models_ = filled(cols * 3 * most);
  data_ = filled(rows * 2 * most);
  const auto block = [&](Index height, Index width) {
    const MatrixView<const T> A = MatrixView<const T>(A_.matrix(rows, cols)).block({0, height}, {0, width});
    return Block{A, PackedMatrix<T>(backend, A, *kernel_choice().set, false)};
  };
  whole_ = block(rows, cols);
  part_ = block(rows / 2, cols / 2);
}

template <Scalar T>
double ProductTimer<T>::seconds(Work work, std::size_t k) const {
  const Index columns = ProductTimes::columns[k];
  const auto begin = std::chrono::steady_clock::now();
  run(work, columns <= 16 ? whole_ : part_, columns);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

template <Scalar T>
void ProductTimer<T>::run(Work work, const Block& block, Index columns) const {
  const Index rows = block.A.rows, cols = block.A.cols;
  // No result is an input, so the numbers stay the same however often this runs.
  const MatrixView<const T> X = models_.matrix(cols, columns), R = data_.matrix(rows, columns);
  const MatrixView<T> Y(data_.data() + R.size(), rows, columns);
  const MatrixView<T> W(models_.data() + X.size(), cols, 2 * columns), Z = W.col_block({0, columns});
  switch (work) {
    case Work::blas:
      return host_gemm<T>(Op::none, Op::none, T(1), block.A, X, T(0), Y, blas_limit());
    case Work::blas_adjoint:
      return host_gemm<T>(Op::adjoint, Op::none, T(1), block.A, R, T(0), Z, blas_limit());
    case Work::own:
      return few_columns_gemm<T>(Op::none, T(1), block.A, X, T(0), Y, *kernel_choice().set, false);
    case Work::own_adjoint:
      return few_columns_gemm<T>(Op::adjoint, T(1), block.A, R, T(0), Z, *kernel_choice().set, false);
    case Work::packed:
      return block.packed.multiply(Op::none, T(1), X, T(0), Y);
    case Work::packed_adjoint:
      return block.packed.multiply(Op::adjoint, T(1), R, T(0), Z);
    case Work::one_pass:
      return block.packed.one_pass(X, R, Y, Z, W.col_block({columns, columns}));
  }
}

#define GRIDLOPS_INSTANTIATE(T) template class ProductTimer<T>;
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
