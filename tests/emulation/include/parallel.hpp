// SPDX-License-Identifier: BSD-3-Clause
// Runs kernels on the emulation: the same bodies, in loops, queued on the emulated streams with what they
// read and write.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <vector>

#include "emulation/device.hpp"
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

template <class Term>
cudaError_t sum_columns(cudaStream_t stream, const char* name, Index rows, Term term,
                        MatrixView<typename Term::Sum> partial) {
  if (partial.cols == 0) return cudaSuccess;
  std::vector<emulation::Region> regions = regions_of(term);
  OperandRegions output;
  output.writes(partial);
  regions.insert(regions.end(), output.regions.begin(), output.regions.end());
  return emulation::launch(stream, name, regions, [term, rows, partial]() mutable {
    term.operands(OperandAliases());
    OperandAliases().writes(partial);
    for (Index j = 0; j < partial.cols; ++j) {
      for (Index block = 0; block < partial.rows; ++block) {
        typename Term::Sum sum{};
        for (Index i = block; i < rows; i += partial.rows) sum = sum + term(i, j);
        partial(block, j) = sum;
      }
    }
  });
}

}  // namespace gridlops::cuda
