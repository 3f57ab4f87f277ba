// SPDX-License-Identifier: BSD-3-Clause
#include "gridlops/solve_observer.hpp"

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <optional>
#include <ostream>

namespace gridlops {

namespace {

/// Of all columns together.
double joint_norm(std::span<const double> norms) {
  double largest = 0;
  for (const double norm : norms) largest = std::isnan(norm) ? norm : std::max(largest, norm);
  if (!(largest > 0) || !std::isfinite(largest)) return largest;
  double squares = 0;
  for (const double norm : norms) squares += (norm / largest) * (norm / largest);
  return largest * std::sqrt(squares);
}

class StopAtCostRatio final : public SolveObserver {
 public:
  explicit StopAtCostRatio(double ratio) : ratio_(ratio) {}
  void start(const SolveStart&) override { first_.reset(); }
  bool step(const IterationInfo& info) override {
    const double cost = joint_norm(info.residual_norms);
    if (info.iteration == 0 || !first_) {
      first_ = cost;
      return false;
    }
    return cost <= ratio_ * *first_;
  }

 private:
  double ratio_;
  std::optional<double> first_;
};

class StopOnNonFinite final : public SolveObserver {
 public:
  bool step(const IterationInfo& info) override {
    return !std::all_of(info.residual_norms.begin(), info.residual_norms.end(),
                        [](double norm) { return std::isfinite(norm); });
  }
};

template <class... Values>
std::string text(const char* format, Values... values) {
  char buffer[128];
  std::snprintf(buffer, sizeof buffer, format, values...);
  return buffer;
}

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
    out_ << title << '\n'
         << line() << "The Operator Op has " << start.rows << " rows and " << start.cols << " cols, for "
         << start.nrhs << " right-hand sides\n";
    if (!is_cg()) out_ << text("damp = %.6e\t", start.damp);
    out_ << text("tol = %.6e\tniter = ", start.tolerance) << start.max_iterations << '\n' << line();
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
    out_ << "\nIterations = " << report.iterations << text("        Total time (s) = %.2f\n", seconds.count())
         << line() << std::flush;
  }

 private:
  bool is_cg() const { return start_.solver == "cg" || start_.solver == "pcg"; }
  std::string line() const { return std::string(is_cg() ? 55 : 65, '-') + '\n'; }

  std::string row(const IterationInfo& info) const {
    const double r1 = joint_norm(info.residual_norms);
    const std::complex<double> x = info.first_element;
    const bool is_complex = start_.type == ScalarType::c64 || start_.type == ScalarType::c128;
    const std::string x0 = is_complex ? text("%1.2e%+1.2ej", x.real(), x.imag()) : text("%11.4e", x.real());
    const std::string k = text("%6lld", static_cast<long long>(info.iteration));
    if (is_cg()) return k + "        " + x0 + text("        %11.4e\n", r1);
    return k + "       " + x0 +
           text("        %11.4e    %11.4e\n", r1, std::hypot(r1, start_.damp * joint_norm(info.x_norms)));
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
  std::optional<std::string> pending_;  // the last row, while it is not printed
};

}  // namespace

SolveObserver::~SolveObserver() = default;

std::shared_ptr<SolveObserver> stop_at_cost_ratio(double ratio) {
  return std::make_shared<StopAtCostRatio>(ratio);
}

std::shared_ptr<SolveObserver> stop_on_non_finite() { return std::make_shared<StopOnNonFinite>(); }

std::shared_ptr<SolveObserver> print_table(std::ostream& out, TableRows rows) {
  return std::make_shared<Table>(out, rows);
}

}  // namespace gridlops
