// SPDX-License-Identifier: BSD-3-Clause
#include "gridlops/solve/factor.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/instantiate.hpp"
#include "base/message.hpp"
#include "base/numbers.hpp"
#include "comm/failure/failure.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/base/trace.hpp"
#include "local/blas/lapack.hpp"
#include "solve/factor/normal_matrix.hpp"
#include "solve/factor/singular_vectors.hpp"
#include "solve/factor/whole_columns.hpp"

namespace gridlops {

namespace {

/// R of a factor, whole on every rank: upper triangular, or dense W = R⁻ᴴ with fewer rows than columns where
/// the rest of A is 0 but for rounding.
template <Scalar T>
struct WholeFactor {
  Buffer<T> elements{};
  Index rows = 0;
  bool is_inverse = false;
  int power = 0;  ///< A and D were multiplied by 2^power
};

/// 2^(2·power) (RᴴR)⁻¹, or 2^(2·power) WᴴW.
template <Scalar T>
class NormalInverse final : public Factor<T> {
 public:
  NormalInverse(const Space& space, const FactorFacts& facts, WholeFactor<T> R)
      : Factor<T>(space, facts),
        R_(std::move(R)),
        columns_(space, R_.is_inverse ? R_.rows : 0),
        scale_(to_scalar<T>(std::ldexp(1.0, R_.power))) {}

 private:
  bool runs_callers_code() const override { return false; }
  Index do_scratch_bytes(ProductKind, const Partition& columns) const override {
    return columns_.scratch_bytes(columns);
  }
  void do_add_kept_bytes(KeptBytes& kept, const Partition&) const override {
    kept.add(this, R_.elements.size() * Index{sizeof(T)});
  }
  void do_apply(T alpha, const ConstDistMatrix<T>& X, T beta, DistMatrix<T>& Y) const override {
    columns_.apply(scale_, X, alpha * scale_, beta, Y,
                   [this](MatrixView<T> Z, Range, T* between) { solve(Z, between); });
  }
  void do_apply_adjoint(T alpha, const ConstDistMatrix<T>& Y, T beta, DistMatrix<T>& X) const override {
    do_apply(alpha, Y, beta, X);
  }
  /// Z ← R⁻¹ R⁻ᴴ Z, or Wᴴ W Z.
  void solve(MatrixView<T> Z, T* between) const {
    const TraceRegion region("solve with a factor");
    const auto n = static_cast<cblas::Int>(Z.rows), k = static_cast<cblas::Int>(R_.rows),
               cols = static_cast<cblas::Int>(Z.cols);
    const T* const R = R_.elements.data();
    if (R_.is_inverse && k == 0) {
      std::fill_n(Z.data, Z.size(), T(0));
      return;
    }
    if (R_.is_inverse) {
      trace_flops(2 * product_flops<T>(R_.rows, Z.rows, Z.cols));
      cblas::gemm(Op::none, Op::none, k, cols, n, T(1), R, k, Z.data, n, T(0), between, k);
      return cblas::gemm(Op::adjoint, Op::none, n, cols, k, T(1), R, k, between, k, T(0), Z.data, n);
    }
    trace_flops(product_flops<T>(Z.rows, Z.rows, Z.cols));
    for (const Op op : {Op::adjoint, Op::none}) cblas::solve_upper(op, n, cols, R, n, Z.data, n);
  }

  const WholeFactor<T> R_;
  const WholeColumns<T> columns_;
  const T scale_;  // 2^power
};

template <Scalar S>
double condition_of(Communicator& comm, MatrixView<S> R) {
  return largest_of(comm, [&] { return lapack::condition_of_upper(MatrixView<const S>(R)); });
}

/// The Cholesky factor of G + D²I, in the place of G's upper triangle.
template <Scalar S>
class CholeskyFactor {
 public:
  /// diagonal: memory for that of G + D²I.
  CholeskyFactor(Communicator& comm, MatrixView<S> G, double damp, std::vector<double>& diagonal)
      : comm_(comm), G_(G), diagonal_(diagonal) {
    for (Index j = 0; j < G.cols; ++j) diagonal[at(j)] = std::real(G(j, j)) + damp * damp;
  }

  /// Σ of the diagonal.
  double trace() const {
    double sum = 0;
    for (const double element : diagonal_) sum += element;
    return sum;
  }
  /// Keeps G in its lower triangle, so that restore() can be called.
  void keep() {
    for (Index j = 0; j < G_.cols; ++j)
      for (Index i = 0; i < j; ++i) G_(j, i) = conjugate(G_(i, j));
  }
  void restore() {
    for (Index j = 0; j < G_.cols; ++j)
      for (Index i = 0; i < j; ++i) G_(i, j) = conjugate(G_(j, i));
    shift_diagonal(0);
  }
  /// Computes R, if G + D²I is positive definite (collective over the ranks, which agree about it).
  bool compute() { return compute_with(0); }
  /// Whether a column depends on those before it but for rounding, so that its pivot is rounding (collective,
  /// as compute(), which it follows). epsilon: of the sums in G.
  bool has_lost_pivot(double epsilon) const {
    return largest_of(comm_, [&] {
             for (Index j = 0; j < G_.cols; ++j)
               if (std::norm(G_(j, j)) <= static_cast<double>(G_.cols) * epsilon * diagonal_[at(j)]) return 1;
             return 0;
           }) == 1;
  }
  /// Computes R of G + (D² + shift) I for the least shift that is tried and is enough, which it returns.
  /// epsilon: of the sums in G.
  double compute_shifted(double epsilon) {
    constexpr int most_tries = 30;
    double shift = trace() > 0 ? 11 * epsilon * trace() : 1;
    for (int tries = 0; tries < most_tries; ++tries, shift *= 10) {
      restore();
      if (compute_with(shift)) break;
    }
    return shift;
  }

 private:
  void shift_diagonal(double shift) {
    for (Index j = 0; j < G_.cols; ++j) G_(j, j) = diagonal_[at(j)] + shift;
  }
  bool compute_with(double shift) {
    const TraceRegion region("Cholesky");
    shift_diagonal(shift);
    return largest_of(comm_, [&] { return lapack::cholesky(G_) ? 0 : 1; }) == 0;
  }

  Communicator& comm_;
  const MatrixView<S> G_;
  const std::vector<double>& diagonal_;
};

/// Computes a factor, in the precision of sums.
template <Scalar T>
class FactorMaker {
  using Wide = Accumulator<T>;

 public:
  /// Not collective. Throws OutOfMemory on this rank alone.
  explicit FactorMaker(const LinearOperator<T>& A, double damp)
      : A_(A),
        comm_(A.domain().grid->comm()),
        G_(A, damp),
        diagonal_(at(G_.size())),
        facts_{.of_data = G_.of_data(), .damp = damp, .rank = G_.size()} {}

  /// Collective over the grid.
  WholeFactor<Wide> make() {
    G_.compute();
    CholeskyFactor<Wide> cholesky(comm_, G_.view(), G_.scaled(facts_.damp), diagonal_);
    facts_.norm = std::ldexp(G_.longest(), -G_.power());
    if (!G_.has_rows()) cholesky.keep();
    const bool is_definite = cholesky.compute();
    if (is_definite) facts_.condition = condition_of(comm_, G_.view());
    if (is_definite && is_accurate()) return triangle();
    if (G_.has_rows()) return factor_rows();
    if (facts_.of_data) {
      // Of data that A cannot have, a shift, or a pivot that is rounding, would make y so long that nothing
      // is left of x = Aᴴ y. Rounding is that of sums over the columns.
      cholesky.restore();
      const double sums = std::sqrt(static_cast<double>(A_.cols()));
      SingularVectors<Wide> found = eigenvectors(comm_, std::move(G_.elements()), G_.size());
      for (double& value : found.values) value = std::sqrt(value);
      return truncated(std::move(found),
                       std::sqrt(std::max(static_cast<double>(G_.size()), sums) * G_.epsilon()));
    }
    if (is_definite && !cholesky.has_lost_pivot(G_.epsilon())) return triangle();
    facts_.shift = std::ldexp(cholesky.compute_shifted(G_.epsilon()), -2 * G_.power());
    facts_.condition = condition_of(comm_, G_.view());
    return triangle();
  }
  const FactorFacts& facts() const { return facts_; }

 private:
  bool has_full_rank() const { return facts_.condition * G_.rounding_of_rows() < 1; }
  /// Whether corrections by this Cholesky factor contract the error: by nεκ² or so.
  bool is_accurate() const {
    return has_full_rank() &&
           static_cast<double>(G_.size()) * G_.epsilon() * facts_.condition * facts_.condition <= 0.1;
  }

  WholeFactor<Wide> triangle() { return {std::move(G_.elements()), G_.size(), false, G_.power()}; }
  WholeFactor<Wide> factor_rows() {
    G_.factor_rows(facts_.damp);
    facts_.by_qr = true;
    facts_.condition = condition_of(comm_, G_.view());
    if (has_full_rank()) return triangle();
    return truncated(right_singular_vectors(comm_, std::move(G_.elements()), G_.size()),
                     G_.rounding_of_rows());
  }
  /// W = Σ⁻¹ Vᴴ of the singular values that are more than `smallest` times the largest.
  WholeFactor<Wide> truncated(SingularVectors<Wide> found, double smallest) {
    const Index n = G_.size();
    const std::vector<double>& values = found.values;
    const Index rank = std::count_if(values.begin(), values.end(),
                                     [&](double value) { return value > smallest * values.front(); });
    Buffer<Wide> W = attempt(comm_, [&] { return Buffer<Wide>(A_.domain().grid->backend(), rank * n); });
    for (Index j = 0; j < n; ++j)
      for (Index i = 0; i < rank; ++i)
        W.data()[i + j * rank] = conjugate(found.vectors.data()[j + i * n]) / values[at(i)];
    facts_.rank = rank;
    if (rank < n) facts_.truncated = std::ldexp(values[at(rank)], -G_.power());
    facts_.condition = rank > 0 ? values.front() / values[at(rank - 1)] : 0;
    return {std::move(W), rank, true, G_.power()};
  }

  const LinearOperator<T>& A_;
  Communicator& comm_;
  NormalMatrix<T> G_;
  std::vector<double> diagonal_;
  FactorFacts facts_;
};

template <Scalar T>
WholeFactor<T> narrowed(Communicator& comm, const std::shared_ptr<Backend>& backend,
                        WholeFactor<Accumulator<T>> wide) {
  if constexpr (std::is_same_v<T, Accumulator<T>>) {
    return wide;
  } else {
    const Index count = wide.elements.size();
    Buffer<T> elements = attempt(comm, [&] { return Buffer<T>(backend, count); });
    // The largest element of a triangle is on its diagonal, or nearly.
    const Index step = (wide.is_inverse ? 0 : wide.rows) + 1;
    double largest = 0;
    for (Index i = 0; i < count; i += step) largest = std::max(largest, std::abs(wide.elements.data()[i]));
    const int power = largest > 0 ? -std::ilogb(largest) : 0;
    const double scale = std::ldexp(1.0, power);
    std::transform(wide.elements.data(), wide.elements.data() + count, elements.data(),
                   [=](Accumulator<T> element) { return T(scale * element); });
    return {std::move(elements), wide.rows, wide.is_inverse, wide.power + (wide.is_inverse ? -power : power)};
  }
}

}  // namespace

template <Scalar T>
std::shared_ptr<const Factor<T>> factor(const LinearOperator<T>& A, double damp) {
  const auto& grid = A.domain().grid;
  agree(grid, "factor", [&](Agreement& agreement) {
    describe_operator(agreement, A);
    agreement.on("the damping", damp);
    require_factor(A, damp);
  });
  const bool of_data = A.rows() < A.cols();
  const Space& space = of_data ? A.range() : A.domain();
  if (!grid->is_member())
    return std::make_shared<NormalInverse<T>>(space, FactorFacts{.of_data = of_data, .damp = damp},
                                              WholeFactor<T>());
  const TraceRegion region("factor");
  std::optional<FactorMaker<T>> maker;
  attempt(grid->comm(), [&] { maker.emplace(A, damp); });
  WholeFactor<T> R = narrowed<T>(grid->comm(), grid->backend(), maker->make());
  return std::make_shared<NormalInverse<T>>(space, maker->facts(), std::move(R));
}

FactorBytes factor_bytes(Index rows, Index cols, ScalarType type, Index nrhs, int ranks) {
  const Index n = std::min(rows, cols);
  const bool is_wide = type == ScalarType::f64 || type == ScalarType::c128;
  const Index kept = n * n * size_of(type), sum = is_wide ? kept : 2 * kept;
  const Index of_columns = n * balanced_part(nrhs, ranks, 0).size * size_of(type);
  const Index beside = std::max({is_wide ? 0 : kept, gram_matrix_bytes(rows, cols, type, ranks),
                                 qr_of_rows_bytes(rows, cols, type, ranks)});
  return {sum + beside, kept, 3 * of_columns};
}

#define GRIDLOPS_INSTANTIATE(T) \
  template class Factor<T>;     \
  template std::shared_ptr<const Factor<T>> factor(const LinearOperator<T>&, double);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
