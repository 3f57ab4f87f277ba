// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <complex>
#include <memory>
#include <utility>
#include <vector>

#include "gridlops/dist/dist_matrix.hpp"
#include "gridlops/ops/operator_algebra.hpp"
#include "gridlops/streamed/streamed_series.hpp"
#include "use_cases/mdd/data.hpp"
#include "use_cases/use_case.hpp"

namespace gridlops::program {

/// The kernel as an operator on all frequencies. If groups of ranks share them, A takes and makes vectors in
/// the order of the groups, which `models` and `data` bring arrays into; otherwise these are null.
template <Scalar C>
struct KernelOperator {
  OperatorPtr<C> A{}, models{}, data{};
  DistMatrix<C> entries{};  ///< of A, which is a view, if frequencies are solved alone
  /// Instead of entries, if they are compressed or on disks: one for each frequency.
  std::vector<OperatorPtr<C>> alone{};
  std::shared_ptr<StreamedSeries<C>> series{};  ///< of the frequencies, if they are on disks
  Index series_memory = 0;                      ///< for start()
  OperatorPtr<C> exact{};      ///< the kernel before it was compressed, which makes generated data; null: A
  bool one_pass_pays = true;   ///< with up to four right-hand sides
  Index bytes_at_reading = 0;  ///< what this rank takes at most while it reads or makes the kernel

  /// Makes generated data, and nothing else.
  OperatorPtr<C> take_exact() { return exact == nullptr ? A : std::exchange(exact, nullptr); }
  OperatorPtr<C> on_arrays(const OperatorPtr<C>& kernel) const {
    return models == nullptr ? kernel : product(adjoint(data), product(kernel, models));
  }
};

/// Reads or makes the kernel, arrays in the space `kernel` (collective over the grid), and notes its norm. If
/// run.is_dry(), plans it.
template <Scalar R>
KernelOperator<std::complex<R>> kernel_operator(UseCase& run, const MddArguments& arguments,
                                                const Space& kernel);

}  // namespace gridlops::program
