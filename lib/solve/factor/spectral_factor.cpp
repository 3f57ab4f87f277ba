// SPDX-License-Identifier: BSD-3-Clause
#include "gridlops/solve/spectral_factor.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include "base/instantiate.hpp"
#include "base/message.hpp"
#include "base/numbers.hpp"
#include "comm/failure/failure.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/base/trace.hpp"
#include "gridlops/dist/redistribute.hpp"
#include "local/blas/lapack.hpp"
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
  double resolution = 0;  ///< below this values are unknown
  FactorFacts facts{};
};

template <Scalar T>
class WholeVectors final : public SpectralFactor<T> {
 public:
  WholeVectors(const Space& space, Index rows, Spectrum<T> spectrum)
      : SpectralFactor<T>(space, spectrum.facts, rows, unscaled(spectrum),
                          std::ldexp(spectrum.resolution, -spectrum.power)),
        spectrum_(std::move(spectrum)),
        columns_(space, std::ssize(spectrum_.values)) {}

  void apply_damped(T alpha, const ConstDistMatrix<T>& X, const std::vector<double>& squared_damps, int power,
                    DistMatrix<T>& Y) const override {
    require<ShapeError>(std::ssize(squared_damps) == X.cols(), "a spectral factor: ", squared_damps.size(),
                        " dampings were given for ", X.cols(), " columns");
    struct OfThisCall {
      std::optional<Damps>& damps;
      ~OfThisCall() { damps.reset(); }
    } const of_this_call{damps_of_call_};
    damps_of_call_ = Damps{&squared_damps, power};
    this->apply(alpha, X, T(0), Y);
  }

  std::vector<double> weighted_norms(const ConstDistMatrix<T>& X, MatrixView<const double> w) const override {
    return norms_of(sizes_of_components(X), X.cols(), w);
  }
  std::vector<double> weighted_norms_of_solutions(const ConstDistMatrix<T>& X,
                                                  const ConstDistMatrix<T>& adjoint_of_unit_data, double damp,
                                                  const std::vector<double>& data_norms,
                                                  MatrixView<const double> w) const override {
    std::vector<double> sizes = sizes_of_components(X);
    const std::vector<double> from_data = sizes_of_components(adjoint_of_unit_data);
    const std::vector<double>& values = this->singular_values();
    const Range mine = columns_.mine(X.cols());
    for (Index j = 0; j < mine.size; ++j) {
      double* const of_column = sizes.data() + j * this->rows();
      const double data_norm = data_norms[at(mine.begin + j)];
      const int power = data_norm > 0 && std::isfinite(data_norm) ? std::ilogb(data_norm) : 0;
      double norm = 0;
      for (Index k = 0; k < this->rows(); ++k) norm = std::hypot(norm, of_column[k]);
      for (Index k = 0; k < this->rows(); ++k) {
        const double size = std::hypot(values[at(k)], damp);
        if (size / values.front() * size * norm > data_norm)
          of_column[k] = std::ldexp(from_data[at(k + j * this->rows())] / size, power) / size;
      }
    }
    return norms_of(std::move(sizes), X.cols(), w);
  }

  void diagonal(const PerColumn& damp, DistMatrix<T>& Y) const override {
    const TraceRegion region("variances");
    const ProcessGrid& grid = *Y.grid();
    require<ShapeError>(!this->facts().of_data && Y.rows() == this->rows(), "a spectral factor of ",
                        this->rows(), " rows: its diagonal is not that of a matrix of ", Y.rows(), " rows");
    const Range mine = Y.layout().row_range(grid, grid.my_row(), grid.my_col());
    std::map<double, std::vector<double>> diagonals;  // of these rows, for each D
    Y.fill([&](Index i, Index j) {
      std::vector<double>& of_damp = diagonals[damp[j]];
      if (of_damp.empty()) of_damp = diagonal_of(mine, damp[j]);
      return to_scalar<T>(of_damp[at(i - mine.begin)]);
    });
  }

 private:
  std::vector<double> diagonal_of(Range rows, double damp) const {
    std::vector<double> sums(at(rows.size), 0.0);
    for (Index k = 0; k < this->rows(); ++k) {
      const double value = this->singular_values()[at(k)], size = std::hypot(value, damp);
      if (!this->counts(value, damp)) continue;
      const T* const v = spectrum_.vectors.data() + k * this->rows() + rows.begin;
      for (Index i = 0; i < rows.size; ++i) {
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
  /// |vₖᴴx| of this rank's columns of X, as many as singular values for each (collective over the grid).
  std::vector<double> sizes_of_components(const ConstDistMatrix<T>& X) const {
    const auto& grid = X.grid();
    const Index n = this->rows();
    const Range mine = columns_.mine(X.cols());
    DistMatrix<T> Z, C;
    std::vector<double> sizes;
    attempt(grid->comm(), [&] {
      require<ShapeError>(X.rows() == n, "a spectral factor of ", n, " singular values: a matrix has ",
                          X.rows(), " rows");
      Z = DistMatrix<T>(grid, columns_.layout(X.cols()));
      C = DistMatrix<T>(grid, columns_.layout(X.cols()));
      sizes.resize(at(n * mine.size));
    });
    redistribute(X, Z);
    if (sizes.empty()) return sizes;
    const TraceRegion region("components in singular vectors");
    multiply(Op::adjoint, Z.local(), C.local());
    for (Index j = 0; j < mine.size; ++j)
      std::transform(C.local().column(j), C.local().column(j) + n, &sizes[at(j * n)],
                     [](T component) { return static_cast<double>(std::abs(component)); });
    return sizes;
  }
  /// (Σₖ w(k, d) size²)^½ for all columns, of whose sizes each rank has its own (collective over the grid).
  std::vector<double> norms_of(std::vector<double> sizes, Index columns, MatrixView<const double> w) const {
    Communicator& comm = this->domain().grid->comm();
    const Index n = this->rows();
    const Range mine = columns_.mine(columns);
    std::vector<double> norms;
    std::vector<int> powers;
    attempt(comm, [&] {
      require<ShapeError>(w.rows == n, "a spectral factor of ", n, " singular values: there are ", w.rows,
                          " rows of weights");
      norms.resize(at(w.cols * columns));
      powers.resize(at(mine.size));
    });
    if (!sizes.empty()) {
      for (Index j = 0; j < mine.size; ++j)
        powers[at(j)] = square(std::span(sizes).subspan(at(j * n), at(n)));
      const auto size = [](Index count) { return static_cast<cblas::Int>(count); };
      double* const sums = norms.data() + mine.begin * w.cols;
      cblas::gemm(Op::adjoint, Op::none, size(w.cols), size(mine.size), size(n), 1.0, w.data, size(w.stride),
                  sizes.data(), size(n), 0.0, sums, size(std::max<Index>(w.cols, 1)));
      for (Index k = 0; k < w.cols * mine.size; ++k)
        sums[k] = std::ldexp(std::sqrt(sums[k]), powers[at(k / w.cols)]);
    }
    comm.all_reduce(norms, ReduceOp::sum);
    return norms;
  }
  /// Replaces sizes by their squares times 2^(−2p), the largest of which is about 1, and returns p.
  static int square(std::span<double> sizes) {
    const double largest = *std::max_element(sizes.begin(), sizes.end());
    const int power = largest > 0 && std::isfinite(largest) ? std::ilogb(largest) : 0;
    for (double& size : sizes) size = std::pow(std::ldexp(size, -power), 2);
    return power;
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
  /// Divides by σ² + D², where that is not 0 but for rounding.
  void divide(T* coefficients, double squared_damp, int power) const {
    const double least = std::pow(std::ldexp(spectrum_.resolution, power - spectrum_.power), 2);
    for (const double value : spectrum_.values) {
      const double scaled = std::ldexp(value, power - spectrum_.power), sum = scaled * scaled + squared_damp;
      *coefficients = sum > least ? T(*coefficients * static_cast<Real<T>>(1 / sum)) : T(0);
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
        !G_.has_rows() || hides_rounding(G_.longest()) ? of_normal_matrix() : Spectrum<Wide>();
    const bool is_accurate =
        G_.size() == 0 || (!found.values.empty() && hides_rounding(found.values.front()));
    if (G_.has_rows() && !is_accurate) found = of_rows();
    found.power = G_.power();
    found.facts.of_data = G_.of_data();
    found.facts.damp = damp_;
    found.facts.norm = norm;
    const double D = G_.scaled(damp_);
    found.facts.rank = std::count_if(found.values.begin(), found.values.end(),
                                     [&](double value) { return std::hypot(value, D) > found.resolution; });
    if (const Index rank = found.facts.rank; rank > 0)
      found.facts.condition = std::hypot(found.values.front(), D) / std::hypot(found.values[at(rank - 1)], D);
    if (found.facts.rank < G_.size())
      found.facts.truncated = std::ldexp(found.values[at(found.facts.rank)], -G_.power());
    return found;
  }

 private:
  /// Whether the rounding of the matrix of an A with this norm can be neglected beside D².
  bool hides_rounding(double norm) const {
    constexpr double much = 1e6;
    const double rounding = static_cast<double>(G_.size()) * G_.epsilon() * norm * norm;
    return std::pow(G_.scaled(damp_), 2) >= much * rounding;
  }
  Spectrum<Wide> of_normal_matrix() {
    const Index n = G_.size();
    SingularVectors<Wide> of_G = eigenvectors(comm_, std::move(G_.elements()), n);
    for (double& value : of_G.values) value = std::sqrt(value);
    const double resolution =
        n > 0 ? std::sqrt(static_cast<double>(n) * G_.epsilon()) * of_G.values.front() : 0;
    return {std::move(of_G.vectors), std::move(of_G.values), 0, resolution, {}};
  }
  Spectrum<Wide> of_rows() {
    const Index n = G_.size();
    if (G_.elements().size() < n * n) attempt(comm_, [&] { G_.elements() = Buffer<Wide>(backend_, n * n); });
    G_.factor_rows(0);
    SingularVectors<Wide> of_R = right_singular_vectors(comm_, std::move(G_.elements()), n);
    const double resolution = G_.rounding_of_rows() * of_R.values.front();
    return {std::move(of_R.vectors), std::move(of_R.values), 0, resolution, {.by_qr = true}};
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
    return {std::move(vectors), std::move(wide.values), wide.power, wide.resolution, wide.facts};
  }
}

}  // namespace

template <Scalar T>
double SpectralFactor<T>::free_dimensions(double damp) const {
  double sum = static_cast<double>(rows_ - std::ssize(values_));
  for (const double value : values_)
    sum += counts(value, damp) ? std::pow(damp / std::hypot(value, damp), 2) : 1;
  return sum;
}

template <Scalar T>
double SpectralFactor<T>::relative_rounding(double damp) const {
  if (this->facts().by_qr) return 0;
  double least = std::numeric_limits<double>::infinity();
  for (const double value : values_) least = std::min(least, std::hypot(value, damp));
  return resolution_ > 0 ? std::pow(resolution_ / least, 2) : 0;
}

template <Scalar T>
std::shared_ptr<const SpectralFactor<T>> spectral_factor(const LinearOperator<T>& A, double least_damp) {
  const auto& grid = A.domain().grid;
  agree(grid, "spectral_factor", [&](Agreement& agreement) {
    describe_operator(agreement, A);
    agreement.on("the least damping", least_damp);
    require_factor(A, least_damp);
    const Index n = std::min(A.rows(), A.cols());
    require<UsageError>(n <= most_eigenvectors, "A has ", n,
                        " singular values; they are computed of at most ", most_eigenvectors);
  });
  const bool of_data = A.rows() < A.cols();
  const Space& space = of_data ? A.range() : A.domain();
  if (!grid->is_member()) {
    Spectrum<T> none;
    none.facts = {.of_data = of_data, .damp = least_damp};
    return std::make_shared<WholeVectors<T>>(space, 0, std::move(none));
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
