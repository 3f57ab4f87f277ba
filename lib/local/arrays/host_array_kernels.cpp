// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include "base/instantiate.hpp"
#include "base/numbers.hpp"
#include "local/arrays/array_kernels.hpp"
#include "local/arrays/correlate.hpp"
#include "local/threads.hpp"

namespace gridlops {

namespace {

/// Calls line(x, y, n, x_step, y_step) for each innermost line of the box.
template <class T, class Line>
void for_each_line(const T* x, T* y, const BoxLoops& box, int direction, Line&& line) {
  if (box.count == 0) return line(x, y, 1, 1, 1);
  if (direction == box.count - 1) {
    const std::size_t d = at(direction);
    return line(x, y, box.extents[d], box.from[d], box.to[d]);
  }
  const std::size_t d = at(direction);
  for (Index i = 0; i < box.extents[d]; ++i)
    for_each_line(x + i * box.from[d], y + i * box.to[d], box, direction + 1, line);
}

/// Rows of a banded matrix that share a set of weights.
struct Segment {
  Range rows;
  Index set;
};

template <class R, class Function>
void for_each_segment(const BandWeights<R>& A, Range rows, Function&& function) {
  const Range middle = intersect(rows, {A.head, std::max<Index>(0, A.n - A.tail - A.head)});
  for (Index i = rows.begin; i < rows.end();) {
    const bool shared = middle.size > 0 && i == middle.begin;
    function(Segment{shared ? middle : Range{i, 1}, A.set_of(i)});
    i = shared ? middle.end() : i + 1;
  }
}

template <Scalar T>
class HostArrayKernels final : public ArrayKernels<T> {
 public:
  void add_box(T alpha, const T* x, T beta, T* y, const BoxLoops& box) const override {
    if (box.size() == 0) return;
    const int threads = threads_for(static_cast<double>(box.size()) * sizeof(T));
    if (box.count == 0 || threads == 1) return add_part(alpha, x, beta, y, box);
    const auto longest =
        std::max_element(box.extents.begin(), box.extents.begin() + box.count) - box.extents.begin();
    const std::size_t d = at(longest);
    for_ranges(box.extents[d], 16, threads, [&](int, Range range) {
      BoxLoops part = box;
      part.extents[d] = range.size;
      add_part(alpha, x + range.begin * box.from[d], beta, y + range.begin * box.to[d], part);
    });
  }

  void add_band(T alpha, const BandWeights<Real<T>>& A, MatrixView<const T> X, T beta, MatrixView<T> Y,
                const BandExtent& extent) const override {
    const Index inner = extent.inner, slices = Y.cols * extent.outer;
    const double products_each = static_cast<double>(extent.rows.size * inner * A.width);
    for_each_of(slices, static_cast<double>(slices) * products_each, [&](Index i) {
      const Index column = i / extent.outer, slice = i % extent.outer;
      // The offsets in a column of X, and of Y, at which row 0 of the matrix would be.
      const Index x_origin = (slice * extent.x_rows.size - extent.x_rows.begin) * inner;
      const Index y_origin = (slice * extent.y_rows.size - extent.y_rows.begin) * inner;
      for_each_segment(A, extent.rows, [&](Segment segment) {
        const Index first = segment.rows.begin;
        const Real<T>* const weights = A.data + segment.set * A.width;
        const T* const x = X.column(column) + (x_origin + (first + A.first) * inner);
        T* const y = Y.column(column) + (y_origin + first * inner);
        const Index count = segment.rows.size * inner;
        for_ranges(count, at_once, threads_for(static_cast<double>(count * A.width)), [&](int, Range range) {
          correlate(range.size, alpha, weights, A.width, x + range.begin, inner, beta, y + range.begin);
        });
      });
    });
  }

  Index migration_scratch_bytes(const MigrationTables<Real<T>>& tables, Index columns) const override {
    return gridlops::migration_scratch_bytes<T>(tables, columns);
  }
  void demigrate(const MigrationTables<Real<T>>& tables, MatrixView<const T> image, MatrixView<T> data,
                 std::byte* scratch) const override {
    gridlops::demigrate(tables, image, data, scratch);
  }
  void migrate(const MigrationTables<Real<T>>& tables, MatrixView<const T> data, MatrixView<T> image,
               std::byte* scratch) const override {
    gridlops::migrate(tables, data, image, scratch);
  }

  std::unique_ptr<LineTransform<T>> line_transform(const std::shared_ptr<Backend>& backend,
                                                   const FourierLines& lines) const override {
    return make_host_transform<T>(backend, lines);
  }

 private:
  /// A multiple of what correlate() computes in its vectors, so that no element's bits depend on the threads.
  static constexpr Index at_once = 1024;

  static void add_part(T alpha, const T* x, T beta, T* y, const BoxLoops& box) {
    for_each_line(x, y, box, 0, [=](const T* from, T* to, Index n, Index from_step, Index to_step) {
      if (from_step == 1 && to_step == 1 && alpha == T(1) && beta == T(0)) {
        std::copy_n(from, n, to);
      } else {
        for (Index i = 0; i < n; ++i) {
          T& element = to[i * to_step];
          const T scaled = product(alpha, from[i * from_step]);
          element = beta == T(0) ? scaled : scaled + product(beta, element);
        }
      }
    });
  }
};

}  // namespace

template <Scalar T>
const ArrayKernels<T>& host_array_kernels() {
  static const HostArrayKernels<T> kernels;
  return kernels;
}

#define GRIDLOPS_INSTANTIATE(T) template const ArrayKernels<T>& host_array_kernels<T>();
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)

}  // namespace gridlops
