// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "comm/failure/failure.hpp"
#include "gridlops/solve/proximal.hpp"

namespace gridlops {

/// A proximal operator inside a solver. A rank on which it throws continues, since other ranks wait for that
/// rank in the next sum. That sum tells them of the failure.
template <Scalar T>
class KeptProximal {
 public:
  explicit KeptProximal(ProximalPtr<T> g) : g_(std::move(g)) {}

  std::string describe() const { return g_->describe(); }
  void prox(ColumnOperand tau, DistMatrix<T>& X) const {
    FailureScope().run([&] { g_->prox(tau, X); });
  }
  ColumnSum<T> sum(const ConstDistMatrix<T>& X) const {
    std::optional<ColumnSum<T>> sum;
    FailureScope().run([&] { sum.emplace(g_->sum(X)); });
    return sum ? *sum : norm2(X);
  }
  /// All ranks have the same sums, and therefore get the same values or the same exception.
  ColumnScalars values(const ColumnScalars& sums) const { return g_->values(sums); }

 private:
  ProximalPtr<T> g_;
};

}  // namespace gridlops
