// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "base/instantiate.hpp"
#include "base/message.hpp"
#include "base/numbers.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/base/random.hpp"
#include "gridlops/dist/redistribute.hpp"
#include "gridlops/solve/spectrum.hpp"
#include "local/blas/lapack.hpp"
#include "ops/operator/library_operator.hpp"

namespace gridlops {

namespace {

/// The most columns of (SA)ᴴ that are computed at a time.
Index group_of(Index rows) { return std::min(sketch_group, rows); }

/// √s (SA)ᴴ on rank 0 of the grid, n × s, and nothing on the others (collective over the grid).
template <Scalar T>
std::vector<Accumulator<T>> sketch_on_root(const LinearOperator<T>& A, std::uint64_t seed) {
  const auto& grid = A.domain().grid;
  const Index n = A.cols(), rows = sketch_rows(n), group = group_of(rows);
  std::vector<Accumulator<T>> sketch;
  attempt(grid->comm(), [&] {
    if (grid->comm().rank() == 0) sketch.reserve(at(n * rows));
  });
  for (Index first = 0; first < rows; first += group) {
    const Index count = std::min(group, rows - first);
    DistMatrix<T> Y = allocate_matrix<T>(grid, A.range().layout(count)),
                  Z = allocate_matrix<T>(grid, A.domain().layout(count));
    // Not the numbers that callers may have made A of.
    constexpr std::uint64_t own_stream = 0x736b657463680000;
    Y.fill([=](Index i, Index j) {
      return counter_uniform(seed ^ own_stream, first + j, i) < 0 ? T(-1) : T(1);
    });
    A.apply_adjoint(T(1), Y, T(0), Z);
    for (const T element : gather(Z, 0)) sketch.push_back(Accumulator<T>(element));
  }
  return sketch;
}

/// Returns a lower bound from σ_min(SA), less rounding and chance. Overwrites the sketch.
template <Scalar T>
double what_is_left(std::vector<Accumulator<T>>& sketch, Index m, Index n, double failure) {
  using Wide = Accumulator<T>;
  const Index rows = sketch_rows(n);
  if (!std::all_of(sketch.begin(), sketch.end(), [](Wide element) {
        return std::isfinite(std::real(element)) && std::isfinite(std::imag(element));
      }))
    return std::numeric_limits<double>::quiet_NaN();
  std::vector<double> values(at(n));
  if (!lapack::singular_values(MatrixView<Wide>{sketch.data(), n, rows}, values.data())) return 0;
  double norm = 0;
  for (const double value : values) norm = std::hypot(norm, value);
  const double s = static_cast<double>(rows), x = -std::log(failure),
               unit = static_cast<double>(std::numeric_limits<Real<T>>::epsilon()) / 2,
               rounding = unit * std::sqrt(static_cast<double>(m)) * norm;
  return std::max(0.0, values.back() - rounding) / std::sqrt(s + 2 * std::sqrt(s * x) + 2 * x);
}

}  // namespace

template <Scalar T>
double probable_sigma_min(const LinearOperator<T>& A, double failure, std::uint64_t seed) {
  agree(A.domain().grid, "probable_sigma_min", [&](Agreement& agreement) {
    describe_operator(agreement, A);
    agreement.on("the probability of failure", failure).on("the seed", seed);
    require<UsageError>(failure > 0 && failure < 1, "the probability of failure is ", failure,
                        "; it must be between 0 and 1, such as 1e-9");
    require<UsageError>(A.rows() >= sketch_rows(A.cols()), "A is ", A.rows(), " x ", A.cols(),
                        ", and a sketch of it would have ", sketch_rows(A.cols()),
                        " rows: that pays off for tall matrices only; compute the singular values of A");
  });
  const auto& grid = A.domain().grid;
  if (!grid->is_member() || A.cols() == 0) return 0;
  std::vector<Accumulator<T>> sketch = sketch_on_root(A, seed);
  std::array<double, 1> found{};
  attempt(grid->comm(), [&] {
    if (grid->comm().rank() == 0) found[0] = what_is_left<T>(sketch, A.rows(), A.cols(), failure);
  });
  grid->comm().broadcast(found, 0);
  return found[0];
}

template <Scalar T>
Index probable_sigma_min_bytes(const LinearOperator<T>& A, int row, int col) {
  using Wide = Accumulator<T>;
  const Index n = A.cols(), rows = sketch_rows(n), group = group_of(rows);
  const ProcessGrid& grid = *A.domain().grid;
  const auto block = [&](const Space& space) {
    const Layout layout = space.layout(group);
    return layout.row_range(grid, row, col).size * layout.col_range(grid, row, col).size * Index{sizeof(T)};
  };
  const Index of_group = block(A.range()) + 2 * block(A.domain());  // Y; Z, and a copy of it to be sent
  if (row > 0 || col > 0 || n == 0) return of_group;
  const Index of_gather = 3 * n * group * Index{sizeof(T)};  // as it comes, in order, and in host memory
  const Index of_values = n * Index{sizeof(double)} + lapack::SingularValueCall<Wide>(n, rows, false).bytes();
  return n * rows * Index{sizeof(Wide)} + std::max(of_group + of_gather, of_values);
}

#define GRIDLOPS_INSTANTIATE(T)                                                        \
  template double probable_sigma_min(const LinearOperator<T>&, double, std::uint64_t); \
  template Index probable_sigma_min_bytes(const LinearOperator<T>&, int, int);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
