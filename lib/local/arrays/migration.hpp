// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <vector>

#include "gridlops/base/types.hpp"
#include "gridlops/local/matrix_view.hpp"

namespace gridlops {

/// The smallest and the largest finite travel time, in samples. If the first is larger, there is none.
template <class R>
struct ArrivalSpan {
  R least = 0, most = -1;
};

/// The columns of the tables that a trace needs.
struct TraceColumns {
  Index source = 0, receiver = 0;
};

/// The traces of one rank, and points of its image. All arrays except the spans are in the backend's memory.
/// Table 0 of the sources and of the receivers has travel times, in samples. If there are several wavelets, a
/// point has number ⌊w + ½⌋ − 1 of them, or the first or the last, where w is the sum of its elements of
/// these tables number 1. Each of the next `terms` tables has weights, whose products are summed over the
/// tables; without terms all weights are 1.
template <class R>
struct MigrationTables {
  Index points = 0, sources = 0, receivers = 0, traces = 0, samples = 0, terms = 0, wavelets = 1;
  const TraceColumns* columns = nullptr;  // of each trace
  // One table after another: points × sources, points × receivers.
  const R* from_sources = nullptr;
  const R* to_receivers = nullptr;
  const R* wavelet = nullptr;    // one after the other
  Index length = 0, centre = 0;  // of each wavelet

  bool chooses() const { return wavelets > 1; }
  Index layers() const { return 1 + (chooses() ? 1 : 0) + terms; }

  // Spans of the columns of the travel times, in host memory.
  const ArrivalSpan<R>* source_spans = nullptr;
  const ArrivalSpan<R>* receiver_spans = nullptr;
};

/// Bytes of scratch memory that products with this many columns need on the host.
template <Scalar T>
Index migration_scratch_bytes(const MigrationTables<Real<T>>& tables, Index columns);

/// data ← K image, or data ← K image + data if it adds, and image ← Kᴴ data on the host (see kirchhoff() for
/// K). One column of `data` has all traces, sample by sample. For each trace, point and column they make two
/// loads, two products and two sums. For each trace and point, all columns share 5 operations and two
/// elements of tables, and for each term of the weights 2 operations and two elements. The convolution takes
/// 2 · length · wavelets operations for each sample between the first arrival and the last.
template <Scalar T>
void demigrate(const MigrationTables<Real<T>>& tables, bool adds, MatrixView<const T> image,
               MatrixView<T> data, std::byte* scratch);
template <Scalar T>
void migrate(const MigrationTables<Real<T>>& tables, MatrixView<const T> data, MatrixView<T> image,
             std::byte* scratch);

}  // namespace gridlops
