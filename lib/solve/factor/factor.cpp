// SPDX-License-Identifier: BSD-3-Clause
#include "gridlops/solve/factor.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/instantiate.hpp"
#include "base/message.hpp"
#include "base/numbers.hpp"
#include "comm/failure/failure.hpp"
#include "dist/redistribution.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/base/trace.hpp"
#include "gridlops/solve/spectrum.hpp"
#include "local/products/lapack.hpp"
#include "ops/operator/library_operator.hpp"
#include "solve/factor/gram_matrix.hpp"
#include "solve/factor/qr_of_rows.hpp"

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
      : Factor<T>(space, facts), R_(std::move(R)), scale_(to_scalar<T>(std::ldexp(1.0, R_.power))) {}

 private:
  bool runs_callers_code() const override { return false; }

  /// All rows of a share of the columns.
  Layout by_columns(const Partition& columns) const {
    const ProcessGrid& grid = *this->domain().grid;
    return {Cut::uncut(this->rows()), Cut::balanced(Axis::all, columns.total(), grid)};
  }
  struct Elements {
    Index columns, between, outgoing, incoming;  // of messages in both directions
  };
  Elements elements(const Partition& columns) const {
    const ProcessGrid& grid = *this->domain().grid;
    const Layout outer = this->domain().layout(columns), inner = by_columns(columns);
    const RedistributionSizes in = own_redistribution_sizes(grid, outer, inner),
                              out = own_redistribution_sizes(grid, inner, outer);
    const Index mine = inner.col_range(grid, grid.my_row(), grid.my_col()).size;
    return {this->rows() * mine, R_.is_inverse ? R_.rows * mine : 0, std::max(in.outgoing, out.outgoing),
            std::max(in.incoming, out.incoming)};
  }
  Index do_scratch_bytes(ProductKind, const Partition& columns) const override {
    const Elements count = elements(columns);
    Index bytes = 0;
    for (const Index elements : {count.columns, count.between, count.outgoing, count.incoming})
      bytes += ScratchStack::bytes_of<T>(elements);
    return bytes;
  }
  void do_add_kept_bytes(KeptBytes& kept, const Partition&) const override {
    kept.add(this, R_.elements.size() * Index{sizeof(T)});
  }
  void do_apply(T alpha, const ConstDistMatrix<T>& X, T beta, DistMatrix<T>& Y) const override {
    const auto& grid = X.grid();
    const Partition& columns = X.layout().cols.partition;
    const Layout layout = by_columns(columns);
    const Elements count = elements(columns);
    const ScratchArray<T> memory(*grid, count.columns), between(*grid, count.between),
        outgoing(*grid, count.outgoing), incoming(*grid, count.incoming);
    const RedistributionMemory<T> messages{outgoing.data(), incoming.data()};
    const Range mine = layout.col_range(*grid, grid->my_row(), grid->my_col());
    DistMatrix<T> Z(grid, layout, MatrixView<T>(memory.data(), this->rows(), mine.size));
    redistribute<T>(scale_, X, T(0), Z, messages);
    solve(Z.local(), between.data());
    redistribute<T>(alpha * scale_, Z, beta, Y, messages);
  }
  void do_apply_adjoint(T alpha, const ConstDistMatrix<T>& Y, T beta, DistMatrix<T>& X) const override {
    do_apply(alpha, Y, beta, X);
  }
  /// Z ← R⁻¹ R⁻ᴴ Z, or Wᴴ W Z.
  void solve(MatrixView<T> Z, T* between) const {
    if (Z.empty()) return;
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
  const T scale_;  // 2^power
};

/// The largest of what the ranks compute.
template <class Compute>
double largest_of(Communicator& comm, const Compute& compute) {
  std::array<double, 1> found{};
  attempt(comm, [&] { found[0] = compute(); });
  comm.all_reduce(found, ReduceOp::max);
  return found[0];
}

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

template <Scalar T>
void require_factor(const LinearOperator<T>& A, double damp) {
  require<UsageError>(std::isfinite(damp) && damp >= 0, "a factor with the damping ", damp,
                      " is impossible; it must be a number that is not negative");
  require<UsageError>(A.domain().grid->backend() == nullptr ||
                          A.domain().grid->backend()->memory_space() == MemorySpace::host,
                      "a factor of an operator of ", A.rows(), " x ", A.cols(),
                      " on GPUs is impossible; make the operator on a grid in host memory");
}

/// Computes a factor, in the precision of sums.
template <Scalar T>
class FactorMaker {
  using Wide = Accumulator<T>;

 public:
  /// Not collective. Throws OutOfMemory on this rank alone.
  explicit FactorMaker(const LinearOperator<T>& A, double damp)
      : A_(A),
        grid_(*A.domain().grid),
        n_(std::min(A.rows(), A.cols())),
        R_{Buffer<Wide>(grid_.backend(), n_ * n_), n_},
        diagonal_(at(n_)),
        facts_{.of_data = A.rows() < A.cols(), .damp = damp, .rank = n_} {}

  /// Collective over the grid.
  void make() {
    std::optional<CholeskyFactor<Wide>> cholesky(sum_of_products());
    if (!has_range()) {
      choose_power();
      cholesky.emplace(sum_of_products());
    }
    const double trace = largest_of(grid_.comm(), [&] { return cholesky->trace(); });
    require<InputError>(std::isfinite(trace), "A has no factor, since it has elements that are not finite");
    facts_.norm = std::ldexp(std::sqrt(longest_squared_), -R_.power);
    const MatrixInBlocks<T>* const rows = facts_.of_data ? nullptr : matrix_in_blocks(A_);
    if (rows == nullptr) cholesky->keep();
    const bool is_definite = cholesky->compute();
    if (is_definite) facts_.condition = condition_of(grid_.comm(), view());
    if (is_definite && is_accurate()) return;
    if (rows != nullptr) return factor_rows(*rows);
    if (facts_.of_data) {
      // Of data that A cannot have, a shift, or a pivot that is rounding, would make y so long that nothing
      // is left of x = Aᴴ y. Rounding is that of sums over the columns.
      cholesky->restore();
      const double sums = std::sqrt(static_cast<double>(A_.cols()));
      return truncate(std::max(static_cast<double>(n_), sums) * epsilon_, true);
    }
    if (is_definite) return;
    facts_.shift = std::ldexp(cholesky->compute_shifted(epsilon_), -2 * R_.power);
    facts_.condition = condition_of(grid_.comm(), view());
  }
  const FactorFacts& facts() const { return facts_; }
  WholeFactor<Wide>& factor() { return R_; }

 private:
  MatrixView<Wide> view() { return R_.elements.matrix(n_, n_); }
  double damp() const { return std::ldexp(facts_.damp, R_.power); }
  /// Whether squares of norms, and what Cholesky makes of them, are in the range of the sums.
  bool has_range() const {
    constexpr double of_single = 1e-10;
    const double most = epsilon_ > of_single ? 1e25 : 1e200;
    return n_ == 0 || (longest_squared_ > 1 / most && longest_squared_ < most && damp() < std::sqrt(most));
  }
  /// The smallest singular value that elements rounded to T can show, relative to the largest.
  double rounding() const {
    return static_cast<double>(n_) * static_cast<double>(std::numeric_limits<Real<T>>::epsilon());
  }
  bool has_full_rank() const { return facts_.condition * rounding() < 1; }
  /// Whether corrections by this Cholesky factor contract the error: by nεκ² or so.
  bool is_accurate() const {
    return has_full_rank() && static_cast<double>(n_) * epsilon_ * facts_.condition * facts_.condition <= 0.1;
  }

  CholeskyFactor<Wide> sum_of_products() {
    epsilon_ = gram_matrix(A_, facts_.of_data ? GramSide::data : GramSide::models, R_.power, view());
    longest_squared_ = 0;
    for (Index j = 0; j < n_; ++j) longest_squared_ = std::max(longest_squared_, std::real(view()(j, j)));
    return {grid_.comm(), view(), damp(), diagonal_};
  }
  void choose_power() {
    const double norm = std::hypot(estimate_norm(A_), facts_.damp);
    require<InputError>(std::isfinite(norm), "A has no factor, since it has elements that are not finite");
    if (norm > 0) R_.power = -std::ilogb(norm);
  }
  void factor_rows(const MatrixInBlocks<T>& rows) {
    qr_of_rows(rows, grid_, R_.power, facts_.damp, view());
    facts_.by_qr = true;
    facts_.condition = condition_of(grid_.comm(), view());
    if (has_full_rank()) return;
    for (Index j = 0; j < n_; ++j) std::fill(view().column(j) + j + 1, view().column(j) + n_, Wide(0));
    truncate(rounding(), false);
  }
  /// R becomes W = Σ⁻¹ Vᴴ of its singular values that are more than `smallest` times the largest, or Σ^(−1/2)
  /// Vᴴ where it is the square.
  void truncate(double smallest, bool is_squared) {
    const TraceRegion region("singular values");
    Buffer<Wide> U, Vh;
    std::vector<double> values;
    attempt(grid_.comm(), [&] {
      U = Buffer<Wide>(grid_.backend(), n_ * n_);
      Vh = Buffer<Wide>(grid_.backend(), n_ * n_);
      values.resize(at(n_));
      constexpr Index most = 20000;  // LAPACK counts its memory, 4n² elements, in 32 bits
      require<UsageError>(n_ <= most, "the factor has ", n_,
                          " columns, and is singular but for rounding; take a damping, or another solver: "
                          "singular values are computed of at most ",
                          most);
      require<InputError>(lapack::singular_values(view(), values.data(), U.data(), Vh.data()),
                          "the singular values of a factor with ", n_, " columns did not converge");
    });
    const auto is_rounding = [&](double value) { return value <= smallest * values.front(); };
    const double lost = largest_of(grid_.comm(), [&] {
      return static_cast<double>(std::count_if(values.begin(), values.end(), is_rounding));
    });
    if (is_squared)
      for (double& value : values) value = std::sqrt(value);
    const Index rank = n_ - static_cast<Index>(lost);
    for (Index j = 0; j < n_; ++j)
      for (Index i = 0; i < rank; ++i) U.data()[i + j * rank] = Vh.data()[i + j * n_] / values[at(i)];
    R_ = {std::move(U), rank, true, R_.power};
    facts_.rank = rank;
    facts_.condition = rank > 0 ? values.front() / values[at(rank - 1)] : 0;
  }

  const LinearOperator<T>& A_;
  const ProcessGrid& grid_;
  const Index n_;
  WholeFactor<Wide> R_;
  std::vector<double> diagonal_;
  FactorFacts facts_;
  double epsilon_ = 0;          // of the sums
  double longest_squared_ = 0;  // of a column, or row, of 2^power A
};

template <Scalar T>
WholeFactor<T> narrowed(Communicator& comm, const std::shared_ptr<Backend>& backend,
                        WholeFactor<Accumulator<T>>& wide) {
  if constexpr (std::is_same_v<T, Accumulator<T>>) {
    return std::move(wide);
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
  maker->make();
  return std::make_shared<NormalInverse<T>>(space, maker->facts(),
                                            narrowed<T>(grid->comm(), grid->backend(), maker->factor()));
}

FactorBytes factor_bytes(Index rows, Index cols, ScalarType type, Index nrhs, int ranks) {
  const Index n = std::min(rows, cols);
  const bool is_wide = type == ScalarType::f64 || type == ScalarType::c128;
  const Index kept = n * n * size_of(type), sum = is_wide ? kept : 2 * kept;
  const Index of_columns = n * balanced_part(nrhs, ranks, 0).size * size_of(type);
  const Index beside = std::max({is_wide ? 0 : kept, gram_matrix_bytes(rows, cols, type, ranks),
                                 rows >= cols ? qr_of_rows_bytes(cols, type, ranks) : 0});
  return {sum + beside, kept, 3 * of_columns};
}

#define GRIDLOPS_INSTANTIATE(T) \
  template class Factor<T>;     \
  template std::shared_ptr<const Factor<T>> factor(const LinearOperator<T>&, double);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
