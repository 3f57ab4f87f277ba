// SPDX-License-Identifier: BSD-3-Clause
// Runs kernels on the emulation: the same bodies, in loops, queued on the emulated streams with what they
// read and write.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <vector>

#include "emulation/device.hpp"
#include "emulation/report.hpp"
#include "gridlops/local/matrix_view.hpp"

namespace gridlops::cuda {

/// Collects the operands of a kernel's body.
struct OperandRegions {
  std::vector<emulation::Region> regions;

  template <class T>
  void add(const MatrixView<T>& view, bool written) {
    const auto bytes = [](Index elements) { return static_cast<std::size_t>(elements) * sizeof(T); };
    const Index stride = view.cols == 1 ? view.rows : view.stride;
    regions.push_back({view.data, bytes(view.rows), bytes(stride), static_cast<std::size_t>(view.cols),
                       written, alignof(T)});
  }
  template <class T>
  void reads(const MatrixView<T>& view) {
    add(view, false);
  }
  template <class T>
  void writes(const MatrixView<T>& view) {
    add(view, true);
  }
};

/// Turns the operands' addresses into those that the emulation can use.
struct OperandAliases {
  template <class T>
  void reads(MatrixView<T>& view) {
    view.data = emulation::alias(view.data);
  }
  template <class T>
  void writes(MatrixView<T>& view) {
    reads(view);
  }
};

template <class Body>
std::vector<emulation::Region> regions_of(Body body) {
  OperandRegions collected;
  body.operands(collected);
  return collected.regions;
}

template <class Body>
cudaError_t for_each_element(cudaStream_t stream, const char* name, Index rows, Index cols, Body body) {
  if (rows == 0 || cols == 0) return cudaSuccess;
  return emulation::launch(stream, name, regions_of(body), [body, rows, cols]() mutable {
    body.operands(OperandAliases());
    for (Index j = 0; j < cols; ++j)
      for (Index i = 0; i < rows; ++i) body(i, j);
  });
}

/// The sum over a block of threads in the order of the GPU: in a tree.
template <class Sum>
Sum sum_of_threads(std::vector<Sum>& of_threads) {
  for (std::size_t half = of_threads.size() / 2; half > 0; half /= 2)
    for (std::size_t k = 0; k < half; ++k) of_threads[k] = of_threads[k] + of_threads[k + half];
  return of_threads[0];
}

/// The sums in the order of the GPU, so that they have its bits: first the shares of all sums of a launch,
/// then the sums of the shares. So shares of two sums that lie in the same memory show.
struct SumInOrder {
  bool adds_shares;

  template <class Term, class Output>
  void operator()(const Term& term, const Output& output) const {
    using Sum = typename Term::Sum;
    constexpr Index threads = 256;
    const Index shares = output.partial.rows;
    std::vector<Sum> of_threads(threads);
    const auto sum = [&](Index first, Index step, Index end, const auto& value) {
      for (Index k = 0; k < threads; ++k) {
        Sum mine{};
        for (Index i = first + k; i < end; i += step) mine = mine + value(i);
        of_threads[static_cast<std::size_t>(k)] = mine;
      }
      return sum_of_threads(of_threads);
    };
    for (Index j = 0; j < output.sums.rows; ++j) {
      const auto of_share = [&](Index share) {
        return sum(share * threads, shares * threads, output.rows, [&](Index i) { return term(i, j); });
      };
      if (shares == 1) {
        if (!adds_shares) output.sums(j, 0) = of_share(0);
        continue;
      }
      if (adds_shares) {
        output.sums(j, 0) = sum(0, threads, shares, [&](Index share) { return output.partial(share, j); });
        continue;
      }
      // On the GPU a sum would otherwise not be finished, or too early.
      if (output.tickets[j] != 0)
        emulation::violation(emulation::Detector::uninitialised, "the tickets of a sum are not 0 before it");
      for (Index share = 0; share < shares; ++share) output.partial(share, j) = of_share(share);
    }
  }
};

template <class Sums>
cudaError_t sum_columns(cudaStream_t stream, const char* name, Sums sums) {
  Index blocks = 0;
  for (int t = 0; t < sums.count; ++t) blocks += sums.blocks(t);
  if (blocks == 0) return cudaSuccess;
  return emulation::launch(stream, name, regions_of(sums), [sums]() mutable {
    sums.operands(OperandAliases());
    for (const bool adds_shares : {false, true})
      for (int t = 0; t < sums.count; ++t) sums.with(t, SumInOrder{adds_shares});
  });
}

}  // namespace gridlops::cuda
