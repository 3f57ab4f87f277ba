// SPDX-License-Identifier: BSD-3-Clause
#include "solve/checkpoint/fingerprint.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/instantiate.hpp"
#include "base/message.hpp"
#include "base/numbers.hpp"
#include "comm/failure/failure.hpp"
#include "dist/column_powers.hpp"
#include "gridlops/base/random.hpp"
#include "gridlops/dist/dist_matrix.hpp"

namespace gridlops {

namespace {

constexpr std::uint64_t seed = 0x67726964;
constexpr std::size_t per_vector = 3;  // norm, and real and imaginary part of a dot

/// Writes the norms of the columns of Y, and their dots with w, of unit length at most, of which each rank
/// has the rows that it has of Y (collective over the grid).
template <Scalar T>
std::vector<double> norms_and_dots(const ConstDistMatrix<T>& W, const ConstDistMatrix<T>& Y) {
  std::vector<double> values(per_vector * at(Y.cols()), 0.0);
  FailureScope failures;
  failures.run([&] {
    const MatrixView<const T> w = W.local(), y = Y.local();
    if (!Y.owned() || y.cols == 0) return;
    const auto& backend = Y.grid()->backend();
    Buffer<T> product(backend, y.cols);
    backend->template kernels<T>().gemm(Op::adjoint, Op::none, T(1), w, y, T(0), product.matrix(1, y.cols));
    std::vector<T> dots(at(y.cols));
    backend->download(product.data(), dots.data(), y.cols * Index{sizeof(T)});
    for (Index j = 0; j < y.cols; ++j) {
      const std::size_t place = per_vector * at(Y.local_col_range().begin + j);
      values[place + 1] = static_cast<double>(std::real(dots[at(j)]));
      values[place + 2] = static_cast<double>(std::imag(dots[at(j)]));
    }
  });
  failures.reduce(Y.grid()->comm(), values, ReductionOrder::by_rank);
  const std::vector<double> norms = column_norms(Y);
  for (std::size_t j = 0; j < norms.size(); ++j) values[per_vector * j] = norms[j];
  return values;
}

/// Vectors of a space with the same column, of unit length at most, in every part, so that each rank has one.
template <Scalar T>
DistMatrix<T> test_vectors(const Space& space, std::uint64_t of_vector) {
  const std::vector<Index> ones(at(space.grid->parts(space.columns)), 1);
  DistMatrix<T> Z = allocate_matrix<T>(space.grid, space.layout(Partition::with_sizes(ones)));
  const auto to_unit = static_cast<Real<T>>(1 / std::sqrt(2 * static_cast<double>(space.dimension())));
  Z.fill([=](Index i, Index) { return to_unit * counter_random<T>(of_vector, i, 0); });
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

/// Compares the norm and the dot of one vector, which begin at k.
bool same_vector(const std::vector<double>& saved, const std::vector<double>& found, std::size_t k,
                 double unit) {
  const double norm = std::max(saved[k], found[k]);
  for (std::size_t part = 0; part < per_vector; ++part)
    if (!close(saved[k + part], found[k + part], unit * norm)) return false;
  return true;
}

}  // namespace

template <Scalar T>
std::vector<double> fingerprint(const LinearOperator<T>& A, const ConstDistMatrix<T>& B) {
  const DistMatrix<T> Z = test_vectors<T>(A.domain(), seed), Y = test_vectors<T>(A.range(), seed + 1);
  DistMatrix<T> W = allocate_matrix<T>(A.range().grid, Y.layout());
  A.apply(T(1), Z, T(0), W);
  const std::vector<double> images = norms_and_dots<T>(Y, W);
  normalise_columns(W);
  const std::vector<double> of_B = norms_and_dots<T>(W, B);
  std::vector<double> values(images.begin(), images.begin() + per_vector);
  values.insert(values.end(), of_B.begin(), of_B.end());
  return values;
}

template <Scalar T>
std::vector<double> fingerprint(const Space& space, const ConstDistMatrix<T>& X) {
  return norms_and_dots<T>(test_vectors<T>(space, seed), X);
}

template <Scalar T>
std::string difference_of_columns(const Space& space, const std::vector<double>& saved,
                                  const std::vector<double>& found) {
  if (saved.size() != found.size()) return "another number of columns";
  const double unit = allowed_for_rounding<T>(space.dimension());
  for (std::size_t k = 0; k < saved.size(); k += per_vector)
    if (!same_vector(saved, found, k, unit))
      return message("column ", k / per_vector, " has the norm ", found[k], ", not ", saved[k],
                     ", or other elements");
  return {};
}

template <Scalar T>
std::string difference(const LinearOperator<T>& A, const std::vector<double>& saved,
                       const std::vector<double>& found, Index weights) {
  if (saved.size() != found.size()) return "another number of right-hand sides";
  const double unit = allowed_for_rounding<T>(A.rows() + A.cols());
  for (std::size_t k = 0; k < saved.size(); k += per_vector) {
    if (same_vector(saved, found, k, unit)) continue;
    if (k == 0)
      return message("another operator: of a test vector it makes one of length ", found[0], ", not ",
                     saved[0], ", or in another direction");
    const std::size_t column = k / per_vector - 1;
    const bool is_weight = column < at(weights);
    return message(is_weight ? "other weights: column " : "other data: right-hand side ",
                   is_weight ? column : column - at(weights), " has the norm ", found[k], ", not ", saved[k],
                   ", or other elements");
  }
  return {};
}

#define GRIDLOPS_INSTANTIATE(T)                                                                  \
  template std::vector<double> fingerprint(const Space&, const ConstDistMatrix<T>&);             \
  template std::string difference_of_columns<T>(const Space&, const std::vector<double>&,        \
                                                const std::vector<double>&);                     \
  template std::vector<double> fingerprint(const LinearOperator<T>&, const ConstDistMatrix<T>&); \
  template std::string difference(const LinearOperator<T>&, const std::vector<double>&,          \
                                  const std::vector<double>&, Index);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
