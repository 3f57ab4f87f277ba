// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "gridlops/comm/process_grid.hpp"
#include "gridlops/ops/linear_operator.hpp"
#include "gridlops/solve/solve_observer.hpp"
#include "measure/report.hpp"

namespace gridlops::program {

/// The bytes that this rank received in its last forward, adjoint and normal product with the largest number
/// of columns. Leaves out the first product, in which the ranks also agree on memory.
class ReceivedBytes {
 public:
  enum Product { forward, adjoint, normal };

  template <class Multiply>
  void count(const ProcessGrid& grid, Product product, Index columns, const Multiply& multiply) {
    const auto received = [&grid] {
      return grid.is_member()
                 ? grid.comm().traffic().bytes_received + grid.comm().traffic().bytes_read_from_peers
                 : 0;
    };
    Last& last = last_[product];
    const Index before = received();
    multiply();
    if (columns > last.columns) {
      last = {columns, -1};
    } else if (columns == last.columns) {
      last.bytes = received() - before;
    }
  }

  /// Negative if there was no second product.
  Index of(Product product) const { return last_[product].bytes; }

 private:
  struct Last {
    Index columns = 0, bytes = -1;
  };
  std::array<Last, 3> last_{};
};

/// A, with its products counted in `received`. Keeps both alive.
template <Scalar T>
class MeteredProduct final : public LinearOperator<T> {
 public:
  MeteredProduct(OperatorPtr<T> A, std::shared_ptr<ReceivedBytes> received)
      : LinearOperator<T>(A->range(), A->domain()), A_(std::move(A)), received_(std::move(received)) {}

  bool has_one_pass() const override { return A_->has_one_pass(); }
  const LinearOperator<T>& watched() const override { return A_->watched(); }

 private:
  void do_apply(T alpha, const ConstDistMatrix<T>& X, T beta, DistMatrix<T>& Y) const override {
    count(ReceivedBytes::forward, X.cols(), [&] { A_->apply(alpha, X, beta, Y); });
  }
  void do_apply_adjoint(T alpha, const ConstDistMatrix<T>& Y, T beta, DistMatrix<T>& X) const override {
    count(ReceivedBytes::adjoint, Y.cols(), [&] { A_->apply_adjoint(alpha, Y, beta, X); });
  }
  void do_normal_product(const ConstDistMatrix<T>& P, const ConstDistMatrix<T>& R, DistMatrix<T>& Q,
                         DistMatrix<T>& U, DistMatrix<T>& V) const override {
    count(ReceivedBytes::normal, P.cols(), [&] { A_->normal_product(P, R, Q, U, V); });
  }
  void do_reserve_normal_product(const Partition&) const override {}

  template <class Multiply>
  void count(ReceivedBytes::Product product, Index columns, const Multiply& multiply) const {
    received_->count(*this->range().grid, product, columns, multiply);
  }

  OperatorPtr<T> A_;
  std::shared_ptr<ReceivedBytes> received_;
};

/// The seconds between the ends of iterations in which all columns of the first batch were active.
class IterationTimes final : public SolveObserver {
 public:
  /// Forgets those of a solver whose place this one takes.
  void start(const SolveStart&) override {
    all_ = 0;
    was_whole_ = false;
    seconds_.clear();
  }
  bool step(const IterationInfo& info) override {
    const double seconds = clock_.lap();
    if (all_ == 0) all_ = info.active_columns;
    const bool is_whole = info.active_columns == all_;
    if (!info.at_start && was_whole_ && is_whole) seconds_.push_back(seconds);
    was_whole_ = is_whole;
    return false;
  }

  /// The median; negative if there was no such iteration.
  double median() const {
    if (seconds_.empty()) return -1;
    std::vector<double> sorted = seconds_;
    const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
    std::nth_element(sorted.begin(), middle, sorted.end());
    return *middle;
  }

 private:
  Stopwatch clock_;
  Index all_ = 0;
  bool was_whole_ = false;
  std::vector<double> seconds_;
};

}  // namespace gridlops::program
