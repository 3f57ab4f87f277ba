// SPDX-License-Identifier: BSD-3-Clause
#include "gridlops/local/matrix_view.hpp"

#include "base/instantiate.hpp"
#include "base/lone_error.hpp"
#include "base/message.hpp"
#include "gridlops/base/error.hpp"
#include "local/conjugate_transpose.hpp"
#include "local/threads.hpp"

namespace gridlops {

namespace {

/// to ← fromᵀ, with every element as `change` makes it.
template <Scalar T, class Change>
void transpose_and(Change&& change, MatrixView<const T> from, MatrixView<T> to) {
  require_here<ShapeError>(to.rows == from.cols && to.cols == from.rows, "the transpose of a ", from.rows,
                           " x ", from.cols, " block does not fit into one of ", to.rows, " x ", to.cols,
                           "; it needs ", from.cols, " x ", from.rows);
  // Works square by square, so that both sides stay in the first-level cache.
  constexpr Index side = 32;
  const int threads = threads_for(static_cast<double>(from.size()) * sizeof(T));
  for_ranges(from.cols, side, threads, [&](int, Range cols) {
    for (Index j = cols.begin; j < cols.end(); j += side) {
      for (Index i = 0; i < from.rows; i += side) {
        const MatrixView<const T> square =
            from.block(intersect({i, side}, {0, from.rows}), intersect({j, side}, cols));
        for (Index k = 0; k < square.rows; ++k) {
          for (Index l = 0; l < square.cols; ++l) to(j + l, i + k) = change(square(k, l));
        }
      }
    }
  });
}

}  // namespace

template <Scalar T>
void transpose(MatrixView<const T> from, MatrixView<T> to) {
  transpose_and<T>([](T element) { return element; }, from, to);
}

template <Scalar T>
void conjugate_transpose(MatrixView<const T> from, MatrixView<T> to) {
  transpose_and<T>([](T element) { return conjugate(element); }, from, to);
}

#define GRIDLOPS_INSTANTIATE(T)                                \
  template void transpose(MatrixView<const T>, MatrixView<T>); \
  template void conjugate_transpose(MatrixView<const T>, MatrixView<T>);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
