// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <vector>

#include "gridlops/base/types.hpp"
#include "gridlops/local/matrix_view.hpp"

namespace gridlops {

/// The smallest and the largest finite travel time, in samples. If the first is larger, there is none.
struct ArrivalSpan {
  double least = 0, most = -1;
};

/// The traces of one rank, sources × receivers, with receivers varying fastest, and the points of its image.
/// All arrays except the spans are in the backend's memory.
template <class R>
struct MigrationTables {
  Index points = 0, sources = 0, receivers = 0, samples = 0;
  // Travel times in samples: points × sources, points × receivers.
  const double* from_sources = nullptr;
  const double* to_receivers = nullptr;
  const R* wavelet = nullptr;
  Index length = 0, centre = 0;  // of the wavelet

  // Spans of the columns of the tables, in host memory.
  const ArrivalSpan* source_spans = nullptr;
  const ArrivalSpan* receiver_spans = nullptr;

  constexpr Index traces() const { return sources * receivers; }
};

/// Bytes of scratch memory that products with this many columns need on the host.
template <Scalar T>
Index migration_scratch_bytes(const MigrationTables<Real<T>>& tables, Index columns);

/// data ← K image and image ← Kᴴ data on the host (see kirchhoff() for K). One column of `data` has all
/// traces, sample by sample. For each trace, point and column they make two loads, two products and two sums;
/// for each trace and point, all columns share 16 bytes of tables and 5 operations. The convolution takes 2 ·
/// length operations for each sample between the first arrival and the last.
template <Scalar T>
void demigrate(const MigrationTables<Real<T>>& tables, MatrixView<const T> image, MatrixView<T> data,
               std::byte* scratch);
template <Scalar T>
void migrate(const MigrationTables<Real<T>>& tables, MatrixView<const T> data, MatrixView<T> image,
             std::byte* scratch);

}  // namespace gridlops
