// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "base/message.hpp"
#include "comm/failure/failure.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/solve/proximal.hpp"
#include "solve/run/column_run.hpp"

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

  /// The sums of these terms, and g of each column of X, by one reduction. All ranks have the same sums, and
  /// therefore get the same values or the same exception.
  template <class... Terms>
  std::pair<std::array<ColumnScalars, sizeof...(Terms)>, ColumnScalars> sum(ColumnRun<T>& run,
                                                                            const ConstDistMatrix<T>& X,
                                                                            const Terms&... terms) const {
    std::vector<ColumnSum<T>> all{terms...};
    append_sums(X, all);
    std::vector<ColumnScalars> sums = run.sums_of(all);
    constexpr std::size_t others = sizeof...(Terms);
    std::pair<std::array<ColumnScalars, others>, ColumnScalars> result;
    for (std::size_t k = 0; k < others; ++k) result.first[k] = std::move(sums[k]);
    result.second = g_->values(std::span(sums).subspan(others));
    return result;
  }

  /// Appends the sums of g. A rank on which g throws appends as many.
  void append_sums(const ConstDistMatrix<T>& X, std::vector<ColumnSum<T>>& terms) const {
    const std::size_t before = terms.size(), count = static_cast<std::size_t>(g_->sum_count());
    FailureScope().run([&] {
      const std::vector<ColumnSum<T>> own = g_->sums(X);
      require<UsageError>(own.size() == count, g_->describe(), " makes ", own.size(), " sums, and not the ",
                          count, " that it promises");
      for (const ColumnSum<T>& term : own) terms.push_back(term);
    });
    while (terms.size() < before + count) terms.push_back(norm2(X));
  }
  ColumnScalars values(std::span<const ColumnScalars> sums) const { return g_->values(sums); }

 private:
  ProximalPtr<T> g_;
};

}  // namespace gridlops
