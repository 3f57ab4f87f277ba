// SPDX-License-Identifier: BSD-3-Clause
#include "gridlops/solve/spectral_factor.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "base/instantiate.hpp"
#include "base/message.hpp"
#include "base/numbers.hpp"
#include "comm/failure/failure.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/base/trace.hpp"
#include "gridlops/dist/redistribute.hpp"
#include "local/products/lapack.hpp"
#include "solve/factor/normal_matrix.hpp"
#include "solve/factor/singular_vectors.hpp"
#include "solve/factor/whole_columns.hpp"

namespace gridlops {

namespace {

/// Singular vectors, in columns, and values of 2^power A.
template <Scalar T>
struct Spectrum {
  Buffer<T> vectors{};
  std::vector<double> values{};
  int power = 0;
  double rounding = 0;  ///< of squares of values
  FactorFacts facts{};
};

template <Scalar T>
class WholeVectors final : public SpectralFactor<T> {
 public:
  WholeVectors(const Space& space, Index rows, Spectrum<T> spectrum)
      : SpectralFactor<T>(space, spectrum.facts, rows, unscaled(spectrum),
                          std::ldexp(spectrum.rounding, -2 * spectrum.power)),
        spectrum_(std::move(spectrum)),
        columns_(space, std::ssize(spectrum_.values)) {}

  void apply_damped(T alpha, const ConstDistMatrix<T>& X, const std::vector<double>& squared_damps, int power,
                    DistMatrix<T>& Y) const override {
    struct OfThisCall {
      std::optional<Damps>& damps;
      ~OfThisCall() { damps.reset(); }
    } const of_this_call{damps_of_call_};
    damps_of_call_ = Damps{&squared_damps, power};
    this->apply(alpha, X, T(0), Y);
  }

  std::vector<double> weighted_norms(const ConstDistMatrix<T>& X, MatrixView<const double> w) const override {
    const auto& grid = X.grid();
    const Index n = this->rows();
    const Range mine = columns_.mine(X.cols());
    DistMatrix<T> Z, C;
    std::vector<double> squares;
    attempt(grid->comm(), [&] {
      Z = DistMatrix<T>(grid, columns_.layout(X.cols()));
      C = DistMatrix<T>(grid, columns_.layout(X.cols()));
      squares.resize(at(n * mine.size));
    });
    redistribute(X, Z);
    std::vector<double> norms(at(w.cols * X.cols()));
    if (n > 0 && mine.size > 0) {
      const TraceRegion region("norms in singular vectors");
      multiply(Op::adjoint, Z.local(), C.local());
      std::vector<int> powers(at(mine.size));
      for (Index j = 0; j < mine.size; ++j) {
        const T* const c = C.local().column(j);
        double largest = 0;
        for (Index k = 0; k < n; ++k) largest = std::max<double>(largest, std::abs(c[k]));
        const int power = largest > 0 && std::isfinite(largest) ? std::ilogb(largest) : 0;
        powers[at(j)] = power;
        for (Index k = 0; k < n; ++k) {
          const double size = std::ldexp(static_cast<double>(std::abs(c[k])), -power);
          squares[at(k + j * n)] = size * size;
        }
      }
      const auto size = [](Index count) { return static_cast<cblas::Int>(count); };
      double* const sums = norms.data() + mine.begin * w.cols;
      cblas::gemm(Op::adjoint, Op::none, size(w.cols), size(mine.size), size(n), 1.0, w.data, size(w.stride),
                  squares.data(), size(n), 0.0, sums, size(std::max<Index>(w.cols, 1)));
      for (Index j = 0; j < mine.size; ++j)
        for (Index d = 0; d < w.cols; ++d) {
          double& sum = sums[d + j * w.cols];
          sum = std::ldexp(std::sqrt(sum), powers[at(j)]);
        }
    }
    grid->comm().all_reduce(norms, ReduceOp::sum);
    return norms;
  }

  void diagonal(const PerColumn& damp, DistMatrix<T>& Y) const override {
    const TraceRegion region("variances");
    std::map<double, std::vector<double>> diagonals;  // of all rows, for each D
    Y.fill([&](Index i, Index j) {
      std::vector<double>& of_damp = diagonals[damp[j]];
      if (of_damp.empty()) of_damp = diagonal_of(damp[j]);
      return to_scalar<T>(of_damp[at(i)]);
    });
  }

 private:
  std::vector<double> diagonal_of(double damp) const {
    const Index n = this->rows();
    std::vector<double> sums(at(n), 0.0);
    for (Index k = 0; k < n; ++k) {
      const double size = std::hypot(this->singular_values()[at(k)], damp);
      const T* const v = spectrum_.vectors.data() + k * n;
      for (Index i = 0; size > 0 && i < n; ++i) {
        const double part = static_cast<double>(std::abs(v[i])) / size;
        sums[at(i)] += part * part;
      }
    }
    return sums;
  }
  static std::vector<double> unscaled(const Spectrum<T>& spectrum) {
    std::vector<double> values = spectrum.values;
    for (double& value : values) value = std::ldexp(value, -spectrum.power);
    return values;
  }
  bool runs_callers_code() const override { return false; }
  Index do_scratch_bytes(ProductKind, const Partition& columns) const override {
    return columns_.scratch_bytes(columns);
  }
  void do_add_kept_bytes(KeptBytes& kept, const Partition&) const override {
    kept.add(this, spectrum_.vectors.size() * Index{sizeof(T)});
  }
  void do_apply(T alpha, const ConstDistMatrix<T>& X, T beta, DistMatrix<T>& Y) const override {
    if (damps_of_call_) return apply_with(*damps_of_call_, T(1), alpha, X, beta, Y);
    // (2^(2·power)(AᴴA + D²I))⁻¹ times 2^power twice, so that nothing leaves the range of T.
    const int power = spectrum_.power;
    const double damp = std::ldexp(this->facts().damp, power);
    const std::vector<double> squares(at(X.cols()), damp * damp);
    const T scale = to_scalar<T>(std::ldexp(1.0, power));
    apply_with({&squares, power}, scale, alpha * scale, X, beta, Y);
  }
  void do_apply_adjoint(T alpha, const ConstDistMatrix<T>& Y, T beta, DistMatrix<T>& X) const override {
    do_apply(alpha, Y, beta, X);
  }
  /// D² of each column, and the power of two that A is multiplied by.
  struct Damps {
    const std::vector<double>* squares;
    int power;
  };
  void apply_with(const Damps& damps, T in, T out, const ConstDistMatrix<T>& X, T beta,
                  DistMatrix<T>& Y) const {
    columns_.apply(in, X, out, beta, Y, [&](MatrixView<T> Z, Range columns, T* between) {
      const TraceRegion region("solve with singular vectors");
      const MatrixView<T> W(between, Z.rows, Z.cols);
      multiply(Op::adjoint, Z, W);
      for (Index j = 0; j < Z.cols; ++j)
        divide(W.column(j), (*damps.squares)[at(columns.begin + j)], damps.power);
      multiply(Op::none, W, Z);
    });
  }
  /// Divides by σ² + D²; what has neither is no part of any solution.
  void divide(T* coefficients, double squared_damp, int power) const {
    for (const double value : spectrum_.values) {
      const double scaled = std::ldexp(value, power - spectrum_.power), sum = scaled * scaled + squared_damp;
      *coefficients = sum > 0 ? T(*coefficients * static_cast<Real<T>>(1 / sum)) : T(0);
      ++coefficients;
    }
  }
  /// Y ← Vᴴ X or V X.
  void multiply(Op op, MatrixView<const T> X, MatrixView<T> Y) const {
    const auto n = static_cast<cblas::Int>(X.rows), cols = static_cast<cblas::Int>(X.cols);
    trace_flops(product_flops<T>(X.rows, X.rows, X.cols));
    cblas::gemm(op, Op::none, n, cols, n, T(1), spectrum_.vectors.data(), n, X.data, n, T(0), Y.data, n);
  }

  const Spectrum<T> spectrum_;
  const WholeColumns<T> columns_;
  mutable std::optional<Damps> damps_of_call_;  // while apply_damped() runs
};

/// Computes singular values and vectors, in the precision of sums.
template <Scalar T>
class SpectrumMaker {
  using Wide = Accumulator<T>;

 public:
  /// Not collective. Throws OutOfMemory on this rank alone.
  SpectrumMaker(const LinearOperator<T>& A, double least_damp)
      : comm_(A.domain().grid->comm()),
        backend_(A.domain().grid->backend()),
        G_(A, least_damp),
        damp_(least_damp) {}

  /// Collective over the grid.
  Spectrum<Wide> make() {
    G_.compute();
    const double norm = std::ldexp(G_.longest(), -G_.power());
    Spectrum<Wide> found =
        G_.rows() == nullptr || is_hidden(G_.longest()) ? of_normal_matrix() : Spectrum<Wide>();
    const bool is_accurate = !found.values.empty() && is_hidden(found.values.front());
    if (G_.rows() != nullptr && !is_accurate) found = of_rows();
    found.power = G_.power();
    const auto n = static_cast<double>(G_.size());
    const double least = found.facts.by_qr ? n * static_cast<double>(std::numeric_limits<Real<T>>::epsilon())
                                           : std::sqrt(n * G_.epsilon());
    Index rank = 0;
    for (double& value : found.values) {
      if (value <= least * found.values.front()) value = 0;
      rank += value > 0 ? 1 : 0;
    }
    found.facts.of_data = G_.of_data();
    found.facts.damp = damp_;
    found.facts.norm = norm;
    found.facts.rank = rank;
    if (rank > 0) {
      const double D = G_.scaled(damp_), last = damp_ > 0 ? found.values.back() : found.values[at(rank - 1)];
      found.facts.condition = std::hypot(found.values.front(), D) / std::hypot(last, D);
    }
    return found;
  }

 private:
  /// Whether D² is so much larger than the rounding of the matrix of an A with this norm that it can be
  /// neglected.
  bool is_hidden(double norm) const {
    constexpr double much = 1e6;
    const double rounding = static_cast<double>(G_.size()) * G_.epsilon() * norm * norm;
    return std::pow(G_.scaled(damp_), 2) >= much * rounding;
  }
  Spectrum<Wide> of_normal_matrix() {
    const Index n = G_.size();
    SingularVectors<Wide> of_G = eigenvectors(comm_, std::move(G_.elements()), n);
    const double rounding = n > 0 ? static_cast<double>(n) * G_.epsilon() * of_G.values.front() : 0;
    for (double& value : of_G.values) value = std::sqrt(value);
    return {std::move(of_G.vectors), std::move(of_G.values), 0, rounding, {}};
  }
  Spectrum<Wide> of_rows() {
    const Index n = G_.size();
    if (G_.elements().size() < n * n) attempt(comm_, [&] { G_.elements() = Buffer<Wide>(backend_, n * n); });
    G_.factor_rows(0);
    SingularVectors<Wide> of_R = right_singular_vectors(comm_, std::move(G_.elements()), n);
    return {std::move(of_R.vectors), std::move(of_R.values), 0, 0, {.by_qr = true}};
  }

  Communicator& comm_;
  const std::shared_ptr<Backend> backend_;
  NormalMatrix<T> G_;
  const double damp_;
};

template <Scalar T>
Spectrum<T> narrowed(Communicator& comm, const std::shared_ptr<Backend>& backend,
                     Spectrum<Accumulator<T>> wide) {
  if constexpr (std::is_same_v<T, Accumulator<T>>) {
    return wide;
  } else {
    const Index count = wide.vectors.size();
    Buffer<T> vectors = attempt(comm, [&] { return Buffer<T>(backend, count); });
    std::transform(wide.vectors.data(), wide.vectors.data() + count, vectors.data(),
                   [](Accumulator<T> element) { return T(element); });
    return {std::move(vectors), std::move(wide.values), wide.power, wide.rounding, wide.facts};
  }
}

}  // namespace

template <Scalar T>
double SpectralFactor<T>::free_dimensions(double damp) const {
  double sum = static_cast<double>(rows_ - std::ssize(values_));
  for (const double value : values_) sum += value > 0 ? std::pow(damp / std::hypot(value, damp), 2) : 1;
  return values_.empty() ? 0 : sum;
}

template <Scalar T>
double SpectralFactor<T>::relative_rounding(double damp) const {
  double least = damp;
  for (const double value : values_)
    if (value > 0 || damp > 0) least = std::hypot(value, damp);
  return rounding_ == 0 ? 0 : rounding_ / least / least;
}

template <Scalar T>
std::shared_ptr<const SpectralFactor<T>> spectral_factor(const LinearOperator<T>& A, double least_damp) {
  const auto& grid = A.domain().grid;
  agree(grid, "spectral_factor", [&](Agreement& agreement) {
    describe_operator(agreement, A);
    agreement.on("the least damping", least_damp);
    require_factor(A, least_damp);
  });
  const bool of_data = A.rows() < A.cols();
  const Space& space = of_data ? A.range() : A.domain();
  if (!grid->is_member()) {
    Spectrum<T> none;
    none.facts = {.of_data = of_data, .damp = least_damp};
    return std::make_shared<WholeVectors<T>>(space, A.rows(), std::move(none));
  }
  const TraceRegion region("spectral factor");
  std::optional<SpectrumMaker<T>> maker;
  attempt(grid->comm(), [&] { maker.emplace(A, least_damp); });
  return std::make_shared<WholeVectors<T>>(space, A.rows(),
                                           narrowed<T>(grid->comm(), grid->backend(), maker->make()));
}

FactorBytes spectral_factor_bytes(Index rows, Index cols, ScalarType type, Index nrhs, int ranks) {
  const FactorBytes triangle = factor_bytes(rows, cols, type, nrhs, ranks);
  const Index n = std::min(rows, cols), wide = type == ScalarType::c64 || type == ScalarType::c128 ? 16 : 8;
  // Of R: both sides of singular vectors, and what xGESDD takes.
  return {triangle.while_made + 7 * n * n * wide, triangle.kept, triangle.while_applied * 4 / 3};
}

#define GRIDLOPS_INSTANTIATE(T)     \
  template class SpectralFactor<T>; \
  template std::shared_ptr<const SpectralFactor<T>> spectral_factor(const LinearOperator<T>&, double);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
