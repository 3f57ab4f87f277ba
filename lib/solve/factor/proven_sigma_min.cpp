// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "base/at_work.hpp"
#include "base/instantiate.hpp"
#include "base/message.hpp"
#include "base/numbers.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/base/trace.hpp"
#include "gridlops/solve/spectrum.hpp"
#include "local/blas/lapack.hpp"
#include "ops/operator/library_operator.hpp"
#include "solve/factor/converted_rows.hpp"
#include "solve/factor/normal_matrix.hpp"
#include "solve/factor/singular_vectors.hpp"
#include "solve/factor/triangles.hpp"
#include "solve/factor/whole_rows.hpp"

namespace gridlops {

namespace {

constexpr double unit = std::numeric_limits<double>::epsilon() / 2;

/// γ with |fl(Σ xᵢyᵢ) − Σ xᵢyᵢ| ≤ γ Σ |xᵢ||yᵢ| for a sum of k products in any order, with fused operations or
/// without (Higham: Accuracy and Stability of Numerical Algorithms, 2002, §3.1 and §3.6; a complex sum is two
/// real ones of 2k products). Infinite where that many products prove nothing.
template <class S>
double gamma(Index k) {
  const double terms = (is_complex<S> ? 2.0 : 1.0) * static_cast<double>(k) * unit;
  if (!(terms < 0.01)) return std::numeric_limits<double>::infinity();
  return (is_complex<S> ? 1.5 : 1.01) * terms;  // √2/(1 − terms) and 1/(1 − terms), rounded up
}

/// At least the number of which this one was computed by a sum of n terms ≥ 0 and a few operations more.
double raised(double computed, Index n) { return computed * (1 + 2 * static_cast<double>(n + 16) * unit); }

/// At least the Frobenius norm of an upper triangle, or of the Hermitian matrix that it stands for.
template <class S>
double upper_norm(MatrixView<const S> R, bool is_hermitian) {
  double sum = 0;
  for (Index j = 0; j < R.cols; ++j) {
    double above = 0;
    for (Index i = 0; i < j; ++i) above += std::norm(R(i, j));
    sum += (is_hermitian ? 2 : 1) * above + std::norm(R(j, j));
  }
  return raised(std::sqrt(sum), 4 * R.cols * R.cols);
}

/// ‖X‖₂ for an upper triangle X, by power iteration from below.
template <class S>
double estimated_norm(MatrixView<const S> X) {
  constexpr int steps = 30;
  const auto n = static_cast<cblas::Int>(X.cols);
  std::vector<S> v(at(X.cols)), w(at(X.cols));
  Index longest = 0;
  double most = -1;
  for (Index j = 0; j < X.cols; ++j) {
    double length = 0;
    for (Index i = 0; i <= j; ++i) length += std::norm(X(i, j));
    if (length > most) most = length, longest = j;
  }
  v[at(longest)] = 1;
  double norm = 0;
  for (int step = 0; step < steps; ++step) {
    cblas::gemv(Op::none, n, n, S(1), X.data, n, v.data(), S(0), w.data());
    double squared = 0;
    for (const S element : w) squared += std::norm(element);
    norm = std::sqrt(squared);
    cblas::gemv(Op::adjoint, n, n, S(1 / norm), X.data, n, w.data(), S(0), v.data());
    double length = 0;
    for (const S element : v) length += std::norm(element);
    for (S& element : v) element /= std::sqrt(length);
  }
  return norm;
}

/// At least ‖X‖₂ for an upper triangle X with zeros below. If R is the computed Cholesky factor of K = νI −
/// XᴴX, RᴴR is positive semidefinite, whatever rounding did to R, so ‖X‖₂² ≤ ν + ‖K − RᴴR‖. K, R: memory.
template <class S>
double norm_bound(MatrixView<const S> X, double frobenius_norm, MatrixView<S> K, MatrixView<S> R) {
  const auto n = static_cast<cblas::Int>(X.cols);
  std::fill_n(K.data, K.size(), S(0));
  cblas::add_gram(n, n, X.data, n, K.data, n);  // XᴴX
  const double estimate = estimated_norm(X);
  for (const double slack : {1.02, 1.06, 1.2, 2.0}) {
    const double nu = slack * estimate * estimate;
    for (Index j = 0; j < X.cols; ++j) {
      for (Index i = 0; i < X.cols; ++i) R(i, j) = i < j ? -K(i, j) : S(0);
      R(j, j) = nu - std::real(K(j, j));
    }
    if (!lapack::cholesky(R)) continue;
    const double of_sums = upper_norm<S>(K, true) + nu * std::sqrt(static_cast<double>(X.cols)) +
                           std::pow(upper_norm<S>(R, false), 2);
    for (Index j = 0; j < X.cols; ++j) K(j, j) -= nu;
    cblas::add_gram(n, n, R.data, n, K.data, n);  // XᴴX − νI + RᴴR
    const double squared = nu + upper_norm<S>(K, true) + gamma<S>(X.cols + 2) * of_sums +
                           gamma<S>(X.cols) * frobenius_norm * frobenius_norm;
    const double bound = raised(std::sqrt(squared), 0);
    return bound < frobenius_norm ? bound : frobenius_norm;  // also if it is NaN
  }
  return frobenius_norm;
}

/// Returns a number that no singular value of an A with m rows is below, given the upper triangle of H =
/// fl(YᴴY) for Y = fl(A X); 0 if that proves nothing. A H that is not finite proves nothing, too. Overwrites
/// H. memory: n × n.
template <class S>
double proven_by(Index m, double norm_of_A, MatrixView<S> X, MatrixView<S> H, MatrixView<S> memory) {
  double squares = 0;
  for (Index j = 0; j < X.cols; ++j) {
    squares += std::real(H(j, j));
    H(j, j) -= 1;
    std::fill(X.column(j) + j + 1, X.column(j) + X.rows, S(0));
  }
  const double norm_of_X = upper_norm<S>(X, false), of_Y = gamma<S>(m),
               difference = raised(upper_norm<S>(H, true) + of_Y * raised(squares, X.cols) / (1 - of_Y), 0),
               lost = raised(gamma<S>(X.cols) * norm_of_A * norm_of_X, 0),
               left = std::sqrt(1 - difference) - lost;
  if (!(difference < 1 && left > 0)) return 0;
  return left / norm_bound<S>(X, norm_of_X, H, memory) * (1 - 16 * unit);
}

/// Sums H = fl(YᴴY) for Y = fl(2^power A X), and the squares of 2^power A, over some rows of A at a time.
template <Scalar T>
class ProductOfRows {
  using Wide = Accumulator<T>;

 public:
  ProductOfRows(MatrixView<const Wide> X, int power, MatrixView<Wide> H)
      : X_(X), H_(H), rows_(X.cols, power) {}

  void allocate(const std::shared_ptr<Backend>& backend) { rows_.allocate(backend); }
  void add(MatrixView<const T> rows) {
    const TraceRegion region("product with the inverse of a factor");
    trace_flops(product_flops<T>(rows.rows, rows.cols, rows.cols));
    rows_.for_each(rows, [&](MatrixView<Wide> wide) {
      for (Index j = 0; j < wide.cols; ++j)
        for (Index i = 0; i < wide.rows; ++i) squares_ += std::norm(wide(i, j));
      const auto n = static_cast<cblas::Int>(wide.cols), count = static_cast<cblas::Int>(wide.rows);
      cblas::multiply_by_upper(count, n, X_.data, n, wide.data, count);
      cblas::add_gram(n, count, wide.data, count, H_.data, n);
    });
  }
  double squares() const { return squares_; }

 private:
  const MatrixView<const Wide> X_;
  const MatrixView<Wide> H_;
  ConvertedRows<T> rows_;
  double squares_ = 0;
};

/// The R of AᴴA = RᴴR, by Cholesky where that is accurate, else by QR (collective over the grid). Returns
/// false if A, or its norm, is not finite.
template <Scalar T>
bool factor_normal_matrix(Communicator& comm, NormalMatrix<T>& G) {
  try {
    G.compute();
  } catch (const InputError&) {
    return false;
  }
  const double condition = largest_of(comm, [&] {
    if (!lapack::cholesky(G.view())) return std::numeric_limits<double>::infinity();
    return lapack::condition_of_upper(MatrixView<const Accumulator<T>>(G.view()));
  });
  if (!(static_cast<double>(G.size()) * G.epsilon() * condition * condition <= 0.1)) G.factor_rows(0);
  return true;
}

/// R becomes its inverse, with the bits of rank 0 (collective). Returns whether it has one.
template <class S>
bool invert_on_root(Communicator& comm, MatrixView<S> R) {
  const TraceRegion region("inverse of a factor");
  std::array<double, 1> has_inverse{};
  attempt(comm, [&] {
    if (comm.rank() != 0) return;
    const AtWork at_work;
    has_inverse[0] = lapack::invert_upper(R) ? 1 : 0;
  });
  comm.broadcast(has_inverse, 0);
  pack_triangle(R);
  comm.broadcast(std::span(R.data, at(size_of_triangle(R.cols))), 0);
  unpack_triangle(R);
  return has_inverse[0] > 0;
}

}  // namespace

template <Scalar T>
double proven_sigma_min(const LinearOperator<T>& A) {
  using Wide = Accumulator<T>;
  const auto& grid = A.domain().grid;
  const MatrixInBlocks<T>* const blocks = matrix_in_blocks(A);
  agree(grid, "proven_sigma_min", [&](Agreement& agreement) {
    describe_operator(agreement, A);
    require_factor(A, 0);
    require<UsageError>(A.rows() >= A.cols(), "A is ", A.rows(), " x ", A.cols(),
                        ": it takes some x to 0, so that its smallest singular value on them is 0");
    require<UsageError>(blocks != nullptr,
                        "a smallest singular value is proven of matrices that never move: "
                        "made by matrix_mult() with block or stationary_a, or by stream_matrix()");
  });
  if (!grid->is_member() || A.cols() == 0) return 0;
  const TraceRegion region("proven sigma min");
  Communicator& comm = grid->comm();
  const Index n = A.cols();
  std::optional<NormalMatrix<T>> X;
  Buffer<Wide> H, memory;
  attempt(comm, [&] {
    X.emplace(A, 0);
    H = Buffer<Wide>(grid->backend(), n * n);
    if (comm.rank() == 0) memory = Buffer<Wide>(grid->backend(), n * n);
  });
  if (!factor_normal_matrix(comm, *X)) return std::numeric_limits<double>::quiet_NaN();
  if (!invert_on_root(comm, X->view())) return 0;

  std::fill_n(H.data(), H.size(), Wide(0));
  FailureScope failures;
  ProductOfRows<T> product(X->view(), X->power(), H.matrix(n, n));
  visit_whole_rows<T>(
      *blocks, Op::none, *grid, failures, [&](Range, MatrixView<const T> rows) { product.add(rows); },
      [&] { product.allocate(grid->backend()); });
  failures.settle(comm);
  sum_triangles(comm, H.matrix(n, n));
  std::array<double, 1> squares{product.squares()}, proven{};
  comm.all_reduce(squares, ReduceOp::sum);

  attempt(comm, [&] {
    if (comm.rank() != 0) return;
    const AtWork at_work;
    const double norm_of_A = raised(std::sqrt(squares[0]), 2 * A.rows() * n);
    proven[0] = proven_by<Wide>(A.rows(), norm_of_A, X->view(), H.matrix(n, n), memory.matrix(n, n));
  });
  comm.broadcast(proven, 0);
  const double sigma = std::ldexp(proven[0], -X->power());
  return std::ldexp(sigma, X->power()) > proven[0] ? std::nextafter(sigma, 0.0)
                                                   : sigma;  // below the normal range
}

Index proven_sigma_min_bytes(Index rows, Index cols, ScalarType type, int ranks) {
  const Index converted = ConvertedRows<double>::most * cols * size_of_sums(type);
  return 3 * cols * cols * size_of_sums(type) +
         std::max({gram_matrix_bytes(rows, cols, type, ranks), qr_of_rows_bytes(rows, cols, type, ranks),
                   converted + visited_rows_bytes(rows, cols, size_of(type), ranks)});
}

#define GRIDLOPS_INSTANTIATE(T) template double proven_sigma_min(const LinearOperator<T>&);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
