// SPDX-License-Identifier: BSD-3-Clause
#include "solve/checkpoint/fingerprint.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/instantiate.hpp"
#include "base/message.hpp"
#include "comm/failure/failure.hpp"
#include "gridlops/base/random.hpp"
#include "gridlops/dist/dist_matrix.hpp"

namespace gridlops {

namespace {

constexpr std::uint64_t seed = 0x67726964;
constexpr std::size_t per_vector = 3;  // norm, and real and imaginary part of the dot with A z

/// Computes the norms of the columns of Y that this rank owns, and their dots with w, over this rank's rows.
template <Scalar T>
void add_columns(MatrixView<const T> w, const ConstDistMatrix<T>& Y, std::size_t first,
                 std::vector<double>& values) {
  const MatrixView<const T> y = Y.local();
  if (!Y.owned() || y.cols == 0) return;
  const auto& backend = Y.grid()->backend();
  Buffer<T> product(backend, y.cols);
  backend->template kernels<T>().gemm(Op::adjoint, Op::none, T(1), w, y, T(0), product.matrix(1, y.cols));
  std::vector<T> dots(static_cast<std::size_t>(y.cols));
  std::vector<double> norms(dots.size());
  backend->template kernels<T>().column_norms_squared(y, norms.data());
  backend->download(product.data(), dots.data(), y.cols * static_cast<Index>(sizeof(T)));
  for (Index j = 0; j < y.cols; ++j) {
    const auto k = static_cast<std::size_t>(j);
    const std::size_t place = first + per_vector * static_cast<std::size_t>(Y.local_col_range().begin + j);
    values[place] = norms[k];
    values[place + 1] = static_cast<double>(std::real(dots[k]));
    values[place + 2] = static_cast<double>(std::imag(dots[k]));
  }
}

/// Vectors of a space with the same column z in every part, so that each rank has one.
template <Scalar T>
DistMatrix<T> test_vectors(const Space& space) {
  const std::vector<Index> ones(static_cast<std::size_t>(space.grid->parts(space.columns)), 1);
  DistMatrix<T> Z = allocate_matrix<T>(space.grid, space.layout(Partition::with_sizes(ones)));
  Z.fill([](Index i, Index) { return counter_random<T>(seed, i, 0); });
  return Z;
}

/// Rounding changes norms and sums of this many products by about ε√count times the values summed. A hundred
/// times as much is still far less than the change due to another problem.
template <Scalar T>
double allowed_for_rounding(Index count) {
  return 100 * static_cast<double>(std::numeric_limits<Real<T>>::epsilon()) *
         std::sqrt(static_cast<double>(count));
}

bool close(double saved, double found, double allowed) {
  // Two numbers that are not finite count as close to each other. `allowed` is none for a column with NaN.
  if (!std::isfinite(saved) || !std::isfinite(found)) return std::isfinite(saved) == std::isfinite(found);
  return saved == found || std::abs(saved - found) <= allowed;
}

}  // namespace

template <Scalar T>
std::vector<double> fingerprint(const LinearOperator<T>& A, const ConstDistMatrix<T>& B) {
  const ProcessGrid& grid = *A.range().grid;
  const DistMatrix<T> Z = test_vectors<T>(A.domain());
  DistMatrix<T> W = allocate_matrix<T>(A.range().grid, A.range().layout(Z.layout().cols.partition));
  FailureScope failures;
  A.apply(T(1), Z, T(0), W);
  const MatrixView<const T> w = std::as_const(W).local();
  const std::size_t images = per_vector * static_cast<std::size_t>(Z.cols());
  std::vector<double> sums(images + per_vector * static_cast<std::size_t>(B.cols()), 0.0);
  failures.run([&] {
    add_columns(w, W, 0, sums);
    add_columns(w, B, images, sums);
  });
  failures.reduce(grid.comm(), sums, ReductionOrder::by_rank);
  std::vector<double> values(sums.begin(), sums.begin() + per_vector);
  values.insert(values.end(), sums.begin() + static_cast<std::ptrdiff_t>(images), sums.end());
  for (std::size_t k = 0; k < values.size(); k += per_vector) values[k] = std::sqrt(values[k]);
  return values;
}

template <Scalar T>
std::vector<double> fingerprint(const Space& space, const ConstDistMatrix<T>& X) {
  const DistMatrix<T> Z = test_vectors<T>(space);
  std::vector<double> values(per_vector * static_cast<std::size_t>(X.cols()), 0.0);
  FailureScope failures;
  failures.run([&] { add_columns(std::as_const(Z).local(), X, 0, values); });
  failures.reduce(space.grid->comm(), values, ReductionOrder::by_rank);
  for (std::size_t k = 0; k < values.size(); k += per_vector) values[k] = std::sqrt(values[k]);
  return values;
}

// The bound for zᴴx uses ‖z‖ ≤ √(2n).
template <Scalar T>
std::string difference_of_columns(const Space& space, const std::vector<double>& saved,
                                  const std::vector<double>& found) {
  if (saved.size() != found.size()) return "another number of columns";
  const Index rows = space.rows.partition.total();
  const double length = std::sqrt(2 * static_cast<double>(rows));
  for (std::size_t k = 0; k < saved.size(); ++k) {
    const std::size_t of = k - k % per_vector;
    const double norm = std::max(saved[of], found[of]) * (k == of ? 1 : length);
    if (!close(saved[k], found[k], allowed_for_rounding<T>(rows) * norm))
      return message("column ", of / per_vector, " has the norm ", found[of], ", not ", saved[of],
                     ", or other elements");
  }
  return {};
}

// The first numbers belong to A z itself, whose dot with A z is ‖A z‖².
template <Scalar T>
std::string difference(const LinearOperator<T>& A, const std::vector<double>& saved,
                       const std::vector<double>& found) {
  if (saved.size() != found.size()) return "another number of right-hand sides";
  const double unit = allowed_for_rounding<T>(A.rows() + A.cols());
  for (std::size_t k = 0; k < saved.size(); k += per_vector) {
    const double norm = std::max(saved[k], found[k]), image = std::max(saved[0], found[0]);
    bool same = close(saved[k], found[k], unit * norm);
    for (std::size_t part = 1; part < per_vector; ++part)
      same = same && close(saved[k + part], found[k + part], unit * norm * image);
    if (same) continue;
    if (k == 0)
      return message("another operator: of a test vector it makes one of length ", found[0], ", not ",
                     saved[0]);
    return message("other data: right-hand side ", k / per_vector - 1, " has the norm ", found[k], ", not ",
                   saved[k], ", or other elements");
  }
  return {};
}

#define GRIDLOPS_INSTANTIATE(T)                                                                  \
  template std::vector<double> fingerprint(const Space&, const ConstDistMatrix<T>&);             \
  template std::string difference_of_columns<T>(const Space&, const std::vector<double>&,        \
                                                const std::vector<double>&);                     \
  template std::vector<double> fingerprint(const LinearOperator<T>&, const ConstDistMatrix<T>&); \
  template std::string difference(const LinearOperator<T>&, const std::vector<double>&,          \
                                  const std::vector<double>&);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)

}  // namespace gridlops
