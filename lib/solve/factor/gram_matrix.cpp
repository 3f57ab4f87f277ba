// SPDX-License-Identifier: BSD-3-Clause
#include "solve/factor/gram_matrix.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "base/instantiate.hpp"
#include "base/numbers.hpp"
#include "comm/failure/failure.hpp"
#include "gridlops/base/trace.hpp"
#include "gridlops/dist/redistribute.hpp"
#include "local/blas/cblas.hpp"
#include "solve/factor/converted_rows.hpp"
#include "solve/factor/triangles.hpp"
#include "solve/factor/whole_rows.hpp"

namespace gridlops {

namespace {

/// G + 2^(2·power) rowsᴴ rows, for some rows of op(A) after others.
template <Scalar T>
class GramSum {
  using Wide = Accumulator<T>;

 public:
  GramSum(MatrixView<Wide> G, int power) : G_(G), rows_(G.cols, power) {}

  void allocate(const std::shared_ptr<Backend>& backend) {
    if (rows_.changes_elements()) rows_.allocate(backend);
  }
  void add(MatrixView<const T> rows) {
    const TraceRegion region("Gram matrix");
    if constexpr (std::is_same_v<T, Wide>)
      if (!rows_.changes_elements()) return add_product(rows);
    rows_.for_each(rows, [&](MatrixView<const Wide> wide) { add_product(wide); });
  }

 private:
  void add_product(MatrixView<const Wide> rows) {
    if (rows.empty()) return;
    const auto size = [](Index n) { return static_cast<cblas::Int>(n); };
    trace_flops(product_flops<T>(rows.cols, rows.rows, rows.cols) / 2);
    cblas::add_gram(size(rows.cols), size(rows.rows), rows.data, size(std::max<Index>(rows.stride, 1)),
                    G_.data, size(G_.stride));
  }

  const MatrixView<Wide> G_;
  ConvertedRows<T> rows_;
};

template <Scalar T>
void gram_of_rows(const MatrixInBlocks<T>& A, Op op, const ProcessGrid& grid, int power,
                  MatrixView<Accumulator<T>> G) {
  std::fill_n(G.data, G.size(), Accumulator<T>(0));
  FailureScope failures;
  GramSum<T> sum(G, power);
  visit_whole_rows<T>(
      A, op, grid, failures, [&](Range, MatrixView<const T> rows) { sum.add(rows); },
      [&] { sum.allocate(grid.backend()); });
  failures.settle(grid.comm());
  sum_triangles(grid.comm(), G);
}

/// Column j is AᴴA eⱼ or AAᴴ eⱼ.
template <Scalar T>
void gram_of_products(const LinearOperator<T>& A, Op op, int power, MatrixView<Accumulator<T>> G) {
  const bool of_models = op == Op::none;
  const Space& space = of_models ? A.domain() : A.range();
  const Space& other = of_models ? A.range() : A.domain();
  const T scale = to_scalar<T>(std::ldexp(1.0, power));
  FailureScope failures;
  for (Index first = 0; first < G.cols; first += most_unit_vectors) {
    const Index count = std::min(most_unit_vectors, G.cols - first);
    DistMatrix<T> E = allocate_matrix<T>(space.grid, space.layout(count)),
                  Y = allocate_matrix<T>(space.grid, other.layout(count)),
                  whole = allocate_matrix<T>(space.grid, replicated(G.rows, count));
    E.fill([=](Index i, Index j) { return i == first + j ? T(1) : T(0); });
    if (of_models) {
      A.apply(scale, E, T(0), Y);
      A.apply_adjoint(scale, Y, T(0), E);
    } else {
      A.apply_adjoint(scale, E, T(0), Y);
      A.apply(scale, Y, T(0), E);
    }
    redistribute<T>(E, whole);
    for (Index j = 0; j < count; ++j)
      std::copy_n(whole.local().column(j), first + j + 1, G.column(first + j));
  }
  failures.settle(space.grid->comm());
}

}  // namespace

template <Scalar T>
double gram_matrix(const LinearOperator<T>& A, Op op, int power, MatrixView<Accumulator<T>> G) {
  if (const MatrixInBlocks<T>* const matrix = matrix_with_rows(A, op)) {
    gram_of_rows(*matrix, op, *A.domain().grid, power, G);
    return std::numeric_limits<double>::epsilon();
  }
  gram_of_products(A, op, power, G);
  return static_cast<double>(std::numeric_limits<Real<T>>::epsilon());
}

Index gram_matrix_bytes(Index rows, Index cols, ScalarType type, int ranks) {
  const Index n = std::min(rows, cols), size = size_of(type), wide = size_of_sums(type);
  // A compressed block gives its rows by products with unit vectors: 64, or as many as fit into 64 MiB.
  constexpr Index most_bytes = Index{64} << 20;
  const Index of_one = (rows + cols + std::max(rows, cols)) * size,
              of_blocks = std::clamp(most_bytes, of_one, most_unit_vectors * of_one);
  const Index by_rows = visited_rows_bytes(rows, cols, size, ranks) + of_blocks +
                        (size == wide ? 0 : ConvertedRows<double>::most * n * wide);
  // E, Y, the whole columns, and the message in which they come.
  const Index by_products = most_unit_vectors * (3 * n + std::max(rows, cols)) * size;
  return std::max(by_rows, by_products);
}

#define GRIDLOPS_INSTANTIATE(T) \
  template double gram_matrix(const LinearOperator<T>&, Op, int, MatrixView<Accumulator<T>>);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
