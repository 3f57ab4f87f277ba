// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <bit>
#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include "base/instantiate.hpp"
#include "base/numbers.hpp"
#include "local/arrays/array_kernels.hpp"
#include "local/arrays/correlate.hpp"
#include "local/arrays/stack_elements.hpp"
#include "local/threads.hpp"

namespace gridlops {

namespace {

/// Calls line(x, y, n, x_step, y_step) for each innermost line of the box, from this direction on.
template <std::size_t d = 0, class T, class Line>
void for_each_line(const T* x, T* y, const BoxLoops& box, Line&& line) {
  if (box.count == 0) return line(x, y, 1, 1, 1);
  if constexpr (d < BoxLoops::most) {
    if (at(box.count) == d + 1) return line(x, y, box.extents[d], box.from[d], box.to[d]);
    for (Index i = 0; i < box.extents[d]; ++i)
      for_each_line<d + 1>(x + i * box.from[d], y + i * box.to[d], box, line);
  }
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

/// What a sum of bands makes of x for elements of a column that follow each other.
template <Scalar T>
class BandStencil {
 public:
  explicit BandStencil(const std::vector<BandTerm<Real<T>>>& terms) : terms_(terms), ends_(terms.size(), 0) {
    constexpr Index reals = sizeof(T) / sizeof(Real<T>);
    for (const auto& [A, extent] : terms)
      for (Index k = 0; k < A.width; ++k) offsets_.push_back((A.first + k) * extent.inner * reals);
    weights_.resize(offsets_.size());
  }

  /// Takes the weights for element i, which is not before that of the last call, and returns where they end.
  Index move_to(Index i) {
    Index end = std::numeric_limits<Index>::max();
    Real<T>* weights = weights_.data();
    for (std::size_t k = 0; k < terms_.size(); ++k) {
      if (ends_[k] <= i) ends_[k] = take(terms_[k], i, weights);
      end = std::min(end, ends_[k]);
      weights += terms_[k].A.width;
    }
    return end;
  }
  const std::vector<Real<T>>& weights() const { return weights_; }
  /// From an element of y to those of x, in real numbers.
  const std::vector<Index>& offsets() const { return offsets_; }

 private:
  /// The weights of one term for element i: zeros unless it computes that row.
  static Index take(const BandTerm<Real<T>>& term, Index i, Real<T>* weights) {
    const auto& [A, extent] = term;
    const Index line = i / extent.inner, row = extent.y_rows.begin + line % extent.y_rows.size;
    const bool computes = extent.rows.begin <= row && row < extent.rows.end();
    Index end = row < extent.rows.begin ? extent.rows.begin : extent.y_rows.end();
    if (computes) {
      const bool is_between = A.head <= row && row < A.n - A.tail;
      end = is_between ? std::min(extent.rows.end(), A.n - A.tail) : row + 1;
      std::copy_n(A.data + A.set_of(row) * A.width, A.width, weights);
    } else {
      std::fill_n(weights, A.width, Real<T>(0));
    }
    return (line + end - row) * extent.inner;
  }

  const std::vector<BandTerm<Real<T>>>& terms_;
  std::vector<Index> ends_, offsets_;
  std::vector<Real<T>> weights_;
};

/// The bits of x that are set in `keep`, too.
template <Scalar T>
T masked(T x, Index keep) {
  if constexpr (is_complex<T>) {
    return {masked(x.real(), keep), masked(x.imag(), keep)};
  } else {
    using Bits = std::conditional_t<sizeof(T) == sizeof(std::uint32_t), std::uint32_t, std::uint64_t>;
    return std::bit_cast<T>(std::bit_cast<Bits>(x) & static_cast<Bits>(keep));
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
                const LineExtent& extent) const override {
    if (takes_slices(A, extent)) {
      if (8 <= A.width && A.width <= most_copied - rows_at_once)
        return add_beside(alpha, A, X, beta, Y, extent);
      const auto row_of = [&](Index row) {
        return Row{A.data + A.set_of(row) * A.width, row + A.first - extent.x_rows.begin, A.width};
      };
      return add_slices(alpha, row_of, static_cast<double>(A.width), X, beta, Y, extent);
    }
    if (A.is_toeplitz && extent.inner == 1 && A.width <= at_once)
      return add_toeplitz(alpha, A, X, beta, Y, extent);
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
        const int threads = threads_for(static_cast<double>(count * A.width));
        for_long_ranges(count, at_once, threads, [&](int, Range range) {
          correlate(range.size, alpha, weights, A.width, x + range.begin, inner, beta, y + range.begin);
        });
      });
    });
  }

  /// Adds the terms in registers, so that X and Y are read from memory once. A piece of the longest slices
  /// comes after the piece beside it in the slice before, since these are the neighbours whose elements lie
  /// farthest apart.
  void add_bands(T alpha, const std::vector<BandTerm<Real<T>>>& terms, MatrixView<const T> X, T beta,
                 MatrixView<T> Y) const override {
    Index longest = 1;
    double width = 0;
    for (const BandTerm<Real<T>>& term : terms) {
      if (takes_slices(term.A, term.extent)) return ArrayKernels<T>::add_bands(alpha, terms, X, beta, Y);
      longest = std::max(longest, term.extent.inner);
      width += static_cast<double>(term.A.width);
    }
    if (longest <= in_cache) longest = Y.rows;
    const Index pieces = (longest + in_cache - 1) / in_cache;
    for_each_of(Y.cols * pieces, static_cast<double>(Y.cols * Y.rows) * width, [&](Index i) {
      const Index column = i / pieces, begin = i % pieces * in_cache,
                  size = std::min(in_cache, longest - begin);
      BandStencil<T> stencil(terms);
      for (Index slice = 0; slice < Y.rows; slice += longest) {
        const Index end = slice + begin + size;
        for (Index first = slice + begin, next = 0; first < end; first = next) {
          next = std::min(end, stencil.move_to(first));
          add_stencil(next - first, alpha, stencil.weights(), stencil.offsets(), X.column(column) + first,
                      beta, Y.column(column) + first);
        }
      }
    });
  }

  void add_runs(T alpha, const RunWeights<Real<T>>& A, MatrixView<const T> X, T beta, MatrixView<T> Y,
                const LineExtent& extent) const override {
    if (extent.inner == 1 && A.begin != nullptr) {
      const auto row_of = [&](Index row) {
        const Index own = row - extent.y_rows.begin, begin = A.begin[own];
        return Row{A.weights + begin, A.first[own] - extent.x_rows.begin, A.begin[own + 1] - begin};
      };
      const double width = static_cast<double>(A.elements) / static_cast<double>(std::max<Index>(1, A.rows));
      return add_slices(alpha, row_of, 1 + width, X, beta, Y, extent);
    }
    const Index rows = extent.rows.size, lines = Y.cols * extent.outer * rows;
    const Index per_line =
        extent.inner * (A.begin == nullptr ? 1 : 1 + A.elements / std::max<Index>(1, A.rows));
    const int threads = threads_for(static_cast<double>(lines * per_line) * sizeof(T));
    // Where there are few rows, threads share the elements of each.
    const bool shares_rows = lines < threads;
    for_ranges(lines, 1, shares_rows ? 1 : threads, [&](int, Range range) {
      for (Index line = range.begin; line < range.end();) {
        const Index first = line % rows, count = std::min(rows - first, range.end() - line);
        const Index slice = line / rows % extent.outer, column = line / rows / extent.outer;
        const Range some{extent.rows.begin - extent.y_rows.begin + first, count};
        const T* const x = X.column(column) + slice * extent.x_rows.size * extent.inner;
        T* const y = Y.column(column) + (slice * extent.y_rows.size + some.begin) * extent.inner;
        if (!shares_rows) {
          add_rows(alpha, A, some, extent, {0, extent.inner}, x, beta, y);
        } else {
          for_long_ranges(extent.inner, at_once, threads, [&](int, Range neighbours) {
            add_rows(alpha, A, some, extent, neighbours, x, beta, y);
          });
        }
        line += count;
      }
    });
  }

  void group_norms(const RowGroups& groups, MatrixView<const T> X, MatrixView<T> N) const override {
    for_each_piece(N.rows, N.cols, [=](Range some, Index j) {
      for (Index g = some.begin; g < some.end(); ++g) {
        const T* const x = X.column(j) + groups.first_row(g);
        double sum = 0;
        for (Index k = 0; k < groups.count; ++k)
          sum += std::norm(static_cast<Accumulator<T>>(x[k * groups.inner]));
        N(g, j) = to_scalar<T>(std::sqrt(sum));
      }
    });
  }
  void shrink_groups(const double* t, const RowGroups& groups, MatrixView<const T> N,
                     MatrixView<T> X) const override {
    for_each_piece(N.rows, N.cols, [=](Range some, Index j) {
      for (Index g = some.begin; g < some.end(); ++g) {
        const double n = static_cast<double>(std::real(N(g, j)));
        const auto factor = static_cast<Real<T>>(n <= t[j] ? 0 : (n - t[j]) / n);
        T* const x = X.column(j) + groups.first_row(g);
        for (Index k = 0; k < groups.count; ++k) x[k * groups.inner] *= factor;
      }
    });
  }

  Index migration_scratch_bytes(const MigrationTables<Real<T>>& tables, Index columns) const override {
    return gridlops::migration_scratch_bytes<T>(tables, columns);
  }
  void demigrate(const MigrationTables<Real<T>>& tables, bool adds, MatrixView<const T> image,
                 MatrixView<T> data, std::byte* scratch) const override {
    gridlops::demigrate(tables, adds, image, data, scratch);
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
  /// The elements that correlate() gets at a time. How it sums one depends on how many follow, so these are
  /// the same for any number of threads.
  static constexpr Index at_once = 1024;

  /// The weights of a row of a matrix, and the first row of a slice of X that they belong to.
  struct Row {
    const Real<T>* weights;
    Index first, width;
  };
  /// How many slices are computed together, because each sum waits for its last addition.
  static constexpr Index together = 8;
  static bool takes_slices(const BandWeights<Real<T>>& A, const LineExtent& extent) {
    return extent.inner == 1 && A.sets() == A.n && extent.outer >= together;
  }

  /// Of lines side by side: how many rows are computed, and elements copied, at a time.
  static constexpr Index rows_at_once = 64, most_copied = 192;

  /// The number of elements of a column whose neighbours fit into a core's cache. A multiple of at_once.
  static constexpr Index in_cache = 8192;

  /// Y ← α A X + β Y for slices without neighbours, where row_of(i) is row i of A, of about this width.
  template <class RowOf>
  static void add_slices(T alpha, const RowOf& row_of, double width, MatrixView<const T> X, T beta,
                         MatrixView<T> Y, const LineExtent& extent) {
    const Index blocks = (extent.outer + together - 1) / together;
    const double operations = static_cast<double>(Y.cols * extent.outer * extent.rows.size) * width;
    for_each_of(blocks * Y.cols, operations, [&](Index i) {
      const Index column = i / blocks, slice = i % blocks * together;
      const T* const x = X.column(column) + slice * extent.x_rows.size;
      T* const y = Y.column(column) + slice * extent.y_rows.size;
      const Index count = std::min(together, extent.outer - slice);
      const double each = static_cast<double>(count * extent.rows.size) * width;
      for_ranges(extent.rows.size, together, threads_for(each), [&](int, Range some) {
        LineExtent part = extent;
        part.rows = {extent.rows.begin + some.begin, some.size};
        if (count == together) {
          add_block(alpha, row_of, std::integral_constant<Index, together>(), x, beta, y, part);
        } else {
          add_block(alpha, row_of, count, x, beta, y, part);
        }
      });
    });
  }
  template <class RowOf, class Count>
  static void add_block(T alpha, const RowOf& row_of, Count count, const T* x, T beta, T* y,
                        const LineExtent& extent) {
    const Index x_step = extent.x_rows.size, y_step = extent.y_rows.size;
    for (Index i = extent.rows.begin; i < extent.rows.end(); ++i) {
      const Row row = row_of(i);
      T sums[together] = {};
      for (Index k = 0; k < row.width; ++k) {
        const Real<T> weight = row.weights[k];
        if (weight == 0) continue;
        for (Index slice = 0; slice < count; ++slice)
          sums[slice] += weight * x[slice * x_step + row.first + k];
      }
      for (Index slice = 0; slice < count; ++slice) {
        T& element = y[slice * y_step + i - extent.y_rows.begin];
        element = updated(alpha, sums[slice], beta, element);
      }
    }
  }

  /// Y ← α A X + β Y for lines without neighbours and a band whose rows have weights of their own. Some lines
  /// lie side by side in a copy, so that a weight meets vectors of them.
  static void add_beside(T alpha, const BandWeights<Real<T>>& A, MatrixView<const T> X, T beta,
                         MatrixView<T> Y, const LineExtent& extent) {
    const Index blocks = (extent.outer + beside - 1) / beside;
    const double operations = static_cast<double>(extent.rows.size * beside * A.width);
    for_each_of(blocks * Y.cols, static_cast<double>(blocks * Y.cols) * operations, [&](Index i) {
      const Index column = i / blocks, line = i % blocks * beside;
      const T* const x = X.column(column) + line * extent.x_rows.size;
      T* const y = Y.column(column) + line * extent.y_rows.size;
      for_units(extent.rows.size, rows_at_once, threads_for(operations), [&](int, Range some) {
        const Range rows{extent.rows.begin + some.begin, some.size};
        add_block_beside(alpha, A, rows, std::min(beside, extent.outer - line), x, extent.x_rows, beta, y,
                         extent.y_rows);
      });
    });
  }
  /// How many lines lie side by side: 512 bytes, so that sums do not wait for each other.
  static constexpr Index beside = 512 / Index{sizeof(T)};
  static void add_block_beside(T alpha, const BandWeights<Real<T>>& A, Range rows, Index lines, const T* x,
                               Range x_rows, T beta, T* y, Range y_rows) {
    const Range needed = reached(A, rows), here = intersect(needed, x_rows);
    StackElements<T, most_copied * beside> copies;
    T* const copy = copies.data();
    std::fill_n(copy, needed.size * beside, T(0));
    const T* const from = x + here.begin - x_rows.begin;
    for (Index j = 0; j < here.size; ++j)
      for (Index line = 0; line < lines; ++line)
        copy[(here.begin - needed.begin + j) * beside + line] = from[line * x_rows.size + j];
    StackElements<T, rows_at_once * beside> results;
    T* const sums = results.data();
    for (Index i = 0; i < rows.size; ++i)
      correlate(lines, T(1), A.data + A.set_of(rows.begin + i) * A.width, A.width, copy + i * beside, beside,
                T(0), sums + i * beside);
    for (Index line = 0; line < lines; ++line) {
      T* const to = y + line * y_rows.size + rows.begin - y_rows.begin;
      for (Index i = 0; i < rows.size; ++i) to[i] = updated(alpha, sums[i * beside + line], beta, to[i]);
    }
  }

  /// Y ← α A X + β Y for lines without neighbours and a Toeplitz band. At the ends of a line it uses a copy
  /// with zeros around.
  static void add_toeplitz(T alpha, const BandWeights<Real<T>>& A, MatrixView<const T> X, T beta,
                           MatrixView<T> Y, const LineExtent& extent) {
    const Real<T>* const weights = A.data + A.head * A.width;
    const Index lines = Y.cols * extent.outer;
    const double operations = static_cast<double>(extent.rows.size * A.width);
    for_each_of(lines, static_cast<double>(lines) * operations, [&](Index i) {
      const Index column = i / extent.outer, line = i % extent.outer;
      const T* const x = X.column(column) + line * extent.x_rows.size;
      T* const y = Y.column(column) + line * extent.y_rows.size;
      for_units(extent.rows.size, at_once, threads_for(operations), [&](int, Range some) {
        const Range rows{extent.rows.begin + some.begin, some.size};
        const Range needed = reached(A, rows), here = intersect(needed, extent.x_rows);
        const T* from = x + here.begin - extent.x_rows.begin;
        StackElements<T, 2 * at_once> copies;
        if (here.size < needed.size) {
          T* const copy = copies.data();
          std::fill_n(copy, needed.size, T(0));
          std::copy_n(from, here.size, copy + here.begin - needed.begin);
          from = copy;
        }
        correlate(rows.size, alpha, weights, A.width, from, 1, beta, y + rows.begin - extent.y_rows.begin);
      });
    });
  }
  /// The columns that these rows of a band have weights for, also outside the matrix.
  static Range reached(const BandWeights<Real<T>>& A, Range rows) {
    return {rows.begin + A.first, rows.size + A.width - 1};
  }

  /// Some rows of a matrix of runs times a slice of X, to y on.
  static void add_rows(T alpha, const RunWeights<Real<T>>& A, Range rows, const LineExtent& extent,
                       Range neighbours, const T* x, T beta, T* y) {
    const Index inner = extent.inner;
    if (inner == 1 && A.begin == nullptr) {
      select(alpha, A.first + rows.begin, rows.size, x, extent.x_rows, beta, y);
      return;
    }
    for (Index i = 0; i < rows.size; ++i) {
      const Index row = rows.begin + i, begin = A.begin == nullptr ? 0 : A.begin[row];
      const Index width = A.begin == nullptr ? (A.first[row] < 0 ? 0 : 1) : A.begin[row + 1] - begin;
      T* const to = y + i * inner + neighbours.begin;
      const T* const from =
          width == 0 ? x : x + ((A.first[row] - extent.x_rows.begin) * inner + neighbours.begin);
      if (A.begin == nullptr && width == 1) {
        add_line(alpha, from, 1, beta, to, 1, neighbours.size);
      } else {
        correlate(neighbours.size, alpha, A.weights + begin, width, from, inner, beta, to);
      }
    }
  }

  /// yᵢ ← α x at columns[i] + β yᵢ, with 0 for x where the column is negative. This takes no branch, which
  /// processors would often predict wrongly.
  static void select(T alpha, const Index* columns, Index count, const T* x, Range x_rows, T beta, T* y) {
    static const T nothing(0);
    const Index first = x_rows.size == 0 ? 0 : x_rows.begin;
    if (x_rows.size == 0) x = &nothing;
    const auto taken = [=](Index column) {
      const Index keep = ~(column >> 63);  // no bits of a negative column, else all
      return masked(x[(column - first) & keep], keep);
    };
    if (alpha == T(1) && beta == T(0)) {
      for (Index i = 0; i < count; ++i) y[i] = taken(columns[i]);
    } else {
      for (Index i = 0; i < count; ++i) y[i] = updated(alpha, taken(columns[i]), beta, y[i]);
    }
  }

  /// α sum + β old, where an old element that β cancels is not read.
  static T updated(T alpha, T sum, T beta, const T& old) {
    const T scaled = product(alpha, sum);
    return beta == T(0) ? scaled : scaled + product(beta, old);
  }

  static void add_line(T alpha, const T* x, Index x_step, T beta, T* y, Index y_step, Index n) {
    if (x_step == 1 && y_step == 1 && alpha == T(1) && beta == T(0)) {
      std::copy_n(x, n, y);
    } else {
      for (Index i = 0; i < n; ++i) y[i * y_step] = updated(alpha, x[i * x_step], beta, y[i * y_step]);
    }
  }

  static void add_part(T alpha, const T* x, T beta, T* y, const BoxLoops& box) {
    for_each_line(x, y, box, [=](const T* from, T* to, Index n, Index from_step, Index to_step) {
      add_line(alpha, from, from_step, beta, to, to_step, n);
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
