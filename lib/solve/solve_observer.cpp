// SPDX-License-Identifier: BSD-3-Clause
#include "gridlops/solve/solve_observer.hpp"

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cmath>
#include <iomanip>
#include <limits>
#include <optional>
#include <ostream>

#include "base/instantiate.hpp"
#include "base/message.hpp"
#include "base/numbers.hpp"
#include "base/square_sum.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/dist/dist_matrix.hpp"

namespace gridlops {

namespace {

class AfterEachIteration final : public SolveObserver {
 public:
  explicit AfterEachIteration(std::function<bool(const IterationInfo&)> function)
      : function_(std::move(function)) {}
  bool step(const IterationInfo& info) override { return !info.at_start && function_(info); }

 private:
  std::function<bool(const IterationInfo&)> function_;
};

class StopAtCostRatio final : public SolveObserver {
 public:
  explicit StopAtCostRatio(double ratio) : ratio_(ratio) {}
  void start(const SolveStart& start) override {
    require<UsageError>(start.batches == 1,
                        "stop_at_cost_ratio() ends all columns by one norm, but there are ", start.batches,
                        " batches, and columns of the later ones have none when the first is "
                        "solved; take all columns at once, or SolveOptions::residual_ratio");
  }
  bool step(const IterationInfo& info) override {
    return info.iteration > 0 && norm_of(info.residual_norms) <= ratio_ * norm_of(info.first_residual_norms);
  }

 private:
  double ratio_;
};

class StopOnNonFinite final : public SolveObserver {
 public:
  bool step(const IterationInfo& info) override {
    return !std::all_of(info.residual_norms.begin(), info.residual_norms.end(),
                        [](double norm) { return std::isfinite(norm); });
  }
};

/// A number as printf("%WIDTH.DIGITSe") writes it.
struct Scientific {
  double value;
  int digits, width = 0;
  friend std::ostream& operator<<(std::ostream& out, Scientific number) {
    return out << std::scientific << std::setprecision(number.digits) << std::setw(number.width)
               << number.value;
  }
};

/// The formats are those of PyLops' solvers, column by column.
class Table final : public SolveObserver {
 public:
  Table(std::ostream& out, TableRows rows) : out_(out), rows_(rows) {}

  void start(const SolveStart& start) override {
    start_ = start;
    has_header_ = false;
    begin_ = std::chrono::steady_clock::now();
    if (start.rank != 0) return;
    std::string title = start.solver;
    std::transform(title.begin(), title.end(), title.begin(),
                   [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    out_ << message(title, '\n', line(), "The Operator Op has ", start.rows, " rows and ", start.cols,
                    " cols, for ", start.nrhs, " right-hand sides\n");
    if (!is_cg()) out_ << message("damp = ", Scientific{start.damp, 6}, '\t');
    out_ << message("tol = ", Scientific{start.tolerance, 6}, "\tniter = ", start.max_iterations, '\n',
                    line());
  }

  bool step(const IterationInfo& info) override {
    if (start_.rank != 0) return false;
    if (info.iteration == 0 || !has_header_) {
      has_header_ = true;
      print_pending();
      out_ << (is_cg() ? "\n    Itn           x[0]              r2norm\n"
                       : "\n    Itn          x[0]              r1norm         r2norm\n");
      return false;
    }
    pending_ = row(info);
    const Index k = info.iteration;
    if (k <= rows_.first || start_.max_iterations - k < rows_.last || (rows_.step > 0 && k % rows_.step == 0))
      print_pending();
    return false;
  }

  void end(const SolveReport& report) override {
    if (start_.rank != 0) return;
    print_pending();
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin_;
    out_ << message("\nIterations = ", report.iterations, "        Total time (s) = ", std::fixed,
                    std::setprecision(2), seconds.count(), '\n', line())
         << std::flush;
  }

 private:
  bool is_cg() const { return start_.solver == "cg" || start_.solver == "pcg"; }
  std::string line() const { return std::string(is_cg() ? 55 : 65, '-') + '\n'; }

  std::string row(const IterationInfo& info) const {
    const double r1 = norm_of(info.residual_norms);
    const std::complex<double> x = info.iterate.element(0, 0);
    const bool is_complex = start_.type == ScalarType::c64 || start_.type == ScalarType::c128;
    const std::string x0 = is_complex
                               ? message(Scientific{x.real(), 2}, std::showpos, Scientific{x.imag(), 2}, 'j')
                               : message(Scientific{x.real(), 4, 11});
    const std::string k = message(std::setw(6), info.iteration);
    const Scientific r1_text{r1, 4, 11};
    if (is_cg()) return message(k, "        ", x0, "        ", r1_text, '\n');
    const double r2 = std::hypot(r1, start_.damp * norm_of(info.x_norms));
    return message(k, "       ", x0, "        ", r1_text, "    ", Scientific{r2, 4, 11}, '\n');
  }

  void print_pending() {
    if (pending_) out_ << *pending_ << std::flush;
    pending_.reset();
  }

  std::ostream& out_;
  TableRows rows_;
  bool has_header_ = false;
  SolveStart start_;
  std::chrono::steady_clock::time_point begin_;
  std::optional<std::string> pending_;  // the last row, until it is printed
};

}  // namespace

SolveObserver::~SolveObserver() = default;

template <Scalar T>
const ConstDistMatrix<T>& Iterate::matrix() const {
  require<UsageError>(type_ == scalar_type_of<T>, "the iterate's elements are ", name_of(type_),
                      ", but those of ", name_of(scalar_type_of<T>), " are asked for");
  return *static_cast<const ConstDistMatrix<T>*>(X_);
}

template <Scalar T>
MatrixView<const T> Iterate::column(Index j) const {
  const ConstDistMatrix<T>& X = matrix<T>();
  const Range mine = X.local_col_range();
  if (j < mine.begin || j >= mine.begin + mine.size) return {};
  return X.local().col_block({places_[at(j - mine.begin)], 1});
}

template <Scalar T>
void Iterate::copy_to(DistMatrix<T>& Y) const {
  const ConstDistMatrix<T>& X = matrix<T>();
  require_same_layout(X, Y, "copy");
  const auto columns = static_cast<Index>(places_.size());
  for (Index begin = 0, end = 0; begin < columns; begin = end) {
    // Adjacent columns go in one copy.
    for (end = begin + 1; end < columns && places_[at(end)] == places_[at(end - 1)] + 1;) ++end;
    X.grid()->backend()->template kernels<T>().copy(X.local().col_block({places_[at(begin)], end - begin}),
                                                    Y.local().col_block({begin, end - begin}));
  }
}

namespace {

template <Scalar T>
std::complex<double> element_of(const Iterate& iterate, const ConstDistMatrix<T>& X, Index i, Index j) {
  const MatrixView<const T> column = iterate.column<T>(j);
  const Range mine = X.local_row_range();
  if (column.empty() || i < mine.begin || i >= mine.begin + mine.size)
    return std::numeric_limits<double>::quiet_NaN();
  T element;
  X.grid()->backend()->download(column.data + (i - mine.begin), &element, static_cast<Index>(sizeof(T)));
  return {static_cast<double>(std::real(element)), static_cast<double>(std::imag(element))};
}

}  // namespace

std::complex<double> Iterate::element(Index i, Index j) const {
  switch (type_) {
    case ScalarType::f32:
      return element_of(*this, matrix<float>(), i, j);
    case ScalarType::c64:
      return element_of(*this, matrix<std::complex<float>>(), i, j);
    case ScalarType::c128:
      return element_of(*this, matrix<std::complex<double>>(), i, j);
    case ScalarType::f64:
      break;
  }
  return element_of(*this, matrix<double>(), i, j);
}

template <Scalar T>
ModelErrors<T>::ModelErrors(const ConstDistMatrix<T>& truth)
    : truth_(truth), difference_(allocate_matrix<T>(truth.grid(), truth.layout())), sums_(truth.grid()) {}

template <Scalar T>
bool ModelErrors<T>::step(const IterationInfo& info) {
  info.iterate.copy_to(difference_);
  difference_ -= truth_;
  const auto [dd, tt] = sums_(norm2(difference_), norm2(truth_));
  errors_.push_back(sqrt(ratio(dd, tt)));
  return false;
}

std::shared_ptr<SolveObserver> after_each_iteration(std::function<bool(const IterationInfo&)> function) {
  return std::make_shared<AfterEachIteration>(std::move(function));
}

std::shared_ptr<SolveObserver> stop_at_cost_ratio(double ratio) {
  return std::make_shared<StopAtCostRatio>(ratio);
}

std::shared_ptr<SolveObserver> stop_on_non_finite() { return std::make_shared<StopOnNonFinite>(); }

std::shared_ptr<SolveObserver> print_table(std::ostream& out, TableRows rows) {
  return std::make_shared<Table>(out, rows);
}

#define GRIDLOPS_INSTANTIATE(T)                              \
  template MatrixView<const T> Iterate::column(Index) const; \
  template void Iterate::copy_to(DistMatrix<T>&) const;      \
  template class ModelErrors<T>;
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
