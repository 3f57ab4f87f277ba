// SPDX-License-Identifier: BSD-3-Clause
#include "local/arrays/band_products.hpp"

#include <algorithm>
#include <limits>

#include "base/instantiate.hpp"
#include "base/numbers.hpp"
#include "local/arrays/correlate.hpp"
#include "local/arrays/line_slices.hpp"
#include "local/arrays/stack_elements.hpp"
#include "local/threads.hpp"

namespace gridlops {

namespace {

/// Calls function(rows) for rows of a band that share their weights, in order.
template <class R, class Function>
void for_each_segment(const BandWeights<R>& A, Range rows, Function&& function) {
  const Range middle = intersect(rows, intersect(A.alike, A.full()));
  for (Index i = rows.begin; i < rows.end();) {
    const Range segment = middle.size > 0 && i == middle.begin ? middle : Range{i, 1};
    function(segment);
    i = segment.end();
  }
}

/// The columns that these rows of a band have weights for, also outside the matrix.
template <class R>
Range reached(const BandWeights<R>& A, Range rows) {
  return {rows.begin + A.first, rows.size + A.width - 1};
}

/// The result of a sum of bands on x, for elements of a column that follow each other.
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
    std::fill_n(weights, A.width, Real<T>(0));
    if (computes) {
      const Range alike = intersect(A.alike, A.full()), inside = A.inside(row);
      const bool is_alike = alike.begin <= row && row < alike.end();
      end = is_alike ? std::min(extent.rows.end(), alike.end()) : row + 1;
      std::copy_n(A.weights(0, row, 0) + inside.begin, inside.size, weights + inside.begin);
    }
    return (line + end - row) * extent.inner;
  }

  const std::vector<BandTerm<Real<T>>>& terms_;
  std::vector<Index> ends_, offsets_;
  std::vector<Real<T>> weights_;
};

/// The products with bands along lines of one type of elements.
template <Scalar T>
class BandProducts {
 public:
  using Weights = BandWeights<Real<T>>;

  static void add(T alpha, const Weights& A, MatrixView<const T> X, T beta, MatrixView<T> Y,
                  const LineExtent& extent) {
    if (A.own > 1) return add_neighbours(alpha, A, X, beta, Y, extent);
    if (A.is_toeplitz() && A.is_finite && extent.inner == 1 && A.width <= correlated_at_once)
      return add_toeplitz(alpha, A, X, beta, Y, extent);
    if (A.own == 1 && A.alike.size == 0) return add_rows(alpha, A, X, beta, Y, extent);
    if (takes_slices(A, extent)) {
      if (8 <= A.width && A.width <= most_copied - rows_at_once)
        return add_beside(alpha, A, X, beta, Y, extent);
      const auto row_of = [&](Index row) {
        return WeightedRow<Real<T>>{A.weights(0, row, 0), row + A.first - extent.x_rows.begin, A.width};
      };
      return add_slices(alpha, row_of, static_cast<double>(A.width), X, beta, Y, extent);
    }
    add_segments(alpha, A, X, beta, Y, extent);
  }

  /// Adds the terms in registers, so that X and Y are read from memory once. A piece of the longest slices
  /// comes after the piece beside it in the slice before, since these are the neighbours whose elements lie
  /// farthest apart.
  static bool add_at_once(T alpha, const std::vector<BandTerm<Real<T>>>& terms, MatrixView<const T> X, T beta,
                          MatrixView<T> Y) {
    Index longest = 1;
    double width = 0;
    for (const auto& [A, extent] : terms) {
      if (A.own > 0 || takes_slices(A, extent)) return false;
      longest = std::max(longest, extent.inner);
      width += static_cast<double>(A.width);
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
    return true;
  }

 private:
  static bool takes_slices(const Weights& A, const LineExtent& extent) {
    return A.own == 0 && A.alike.size == 0 && extent.inner == 1 && extent.outer >= slices_together;
  }

  /// Of lines side by side: how many rows are computed, and elements copied, at a time.
  static constexpr Index rows_at_once = 64, most_copied = 192;

  /// How many lines lie side by side: 512 bytes, so that sums do not wait for each other.
  static constexpr Index beside = 512 / Index{sizeof(T)};

  /// The number of elements of a column whose neighbours fit into a core's cache. A multiple of
  /// correlated_at_once.
  static constexpr Index in_cache = 8192;

  /// The first elements of a slice of X and of Y, and of the slices that belong to them.
  struct Slice {
    Index number;
    const T* x;
    T* y;

    Slice(Index i, MatrixView<const T> X, MatrixView<T> Y, const LineExtent& extent)
        : number(i % extent.outer),
          x(X.column(i / extent.outer) + number * extent.x_rows.size * extent.inner),
          y(Y.column(i / extent.outer) + number * extent.y_rows.size * extent.inner) {}
  };

  static void add_segments(T alpha, const Weights& A, MatrixView<const T> X, T beta, MatrixView<T> Y,
                           const LineExtent& extent) {
    const Index inner = extent.inner, slices = Y.cols * extent.outer;
    const double products_each = static_cast<double>(extent.rows.size * inner * A.width);
    for_each_of(slices, static_cast<double>(slices) * products_each, [&](Index i) {
      const Slice slice(i, X, Y, extent);
      for_each_segment(A, extent.rows, [&](Range rows) {
        const Range inside = A.inside(rows.begin);
        const Real<T>* const weights = A.weights(slice.number, rows.begin, 0) + inside.begin;
        const T* const x = slice.x + (rows.begin + A.first + inside.begin - extent.x_rows.begin) * inner;
        T* const y = slice.y + (rows.begin - extent.y_rows.begin) * inner;
        const Index count = rows.size * inner;
        const int threads = threads_for(static_cast<double>(count * A.width));
        for_long_ranges(count, correlated_at_once, threads, [&](int, Range range) {
          correlate(range.size, alpha, weights, inside.size, x + range.begin, inner, beta, y + range.begin);
        });
      });
    });
  }

  /// Y ← α A X + β Y for lines without neighbours and bands of their own whose rows have weights of their
  /// own.
  static void add_rows(T alpha, const Weights& A, MatrixView<const T> X, T beta, MatrixView<T> Y,
                       const LineExtent& extent) {
    const Index lines = Y.cols * extent.outer;
    const double operations = static_cast<double>(extent.rows.size * A.width);
    for_each_of(lines, static_cast<double>(lines) * operations, [&](Index i) {
      const Slice line(i, X, Y, extent);
      for_ranges(extent.rows.size, rows_at_once, threads_for(operations), [&](int, Range some) {
        const Range rows{extent.rows.begin + some.begin, some.size}, full = intersect(rows, A.full());
        for (Index row = rows.begin; row < rows.end();) {
          const Index count = full.size > 0 && row == full.begin ? full.size : 1;
          const Range inside = A.inside(row);
          correlate_rows(count, alpha, A.weights(line.number, row, 0) + inside.begin, inside.size,
                         line.x + (row + A.first + inside.begin - extent.x_rows.begin), beta,
                         line.y + (row - extent.y_rows.begin));
          row += count;
        }
      });
    });
  }

  /// Y ← α A X + β Y for neighbours with bands of their own.
  static void add_neighbours(T alpha, const Weights& A, MatrixView<const T> X, T beta, MatrixView<T> Y,
                             const LineExtent& extent) {
    const Index inner = extent.inner, blocks = (inner + beside - 1) / beside;
    const Index slices = Y.cols * extent.outer;
    const double operations = static_cast<double>(extent.rows.size * beside * A.width);
    for_each_of(slices * blocks, static_cast<double>(slices * blocks) * operations, [&](Index i) {
      const Slice slice(i / blocks, X, Y, extent);
      const Index begin = i % blocks * beside, count = std::min(beside, inner - begin);
      for_ranges(extent.rows.size, 1, threads_for(operations), [&](int, Range some) {
        for (Index row = extent.rows.begin + some.begin; row < extent.rows.begin + some.end(); ++row) {
          const Range inside = A.inside(row);
          correlate_neighbours(count, alpha, A.weights(slice.number, row, begin) + inside.begin * inner,
                               inside.size, inner,
                               slice.x + (row + A.first + inside.begin - extent.x_rows.begin) * inner + begin,
                               inner, beta, slice.y + (row - extent.y_rows.begin) * inner + begin);
        }
      });
    });
  }

  /// Y ← α A X + β Y for lines without neighbours and a band whose rows have weights of their own. Some lines
  /// lie side by side in a copy, so that a weight meets vectors of them.
  static void add_beside(T alpha, const Weights& A, MatrixView<const T> X, T beta, MatrixView<T> Y,
                         const LineExtent& extent) {
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
  static void add_block_beside(T alpha, const Weights& A, Range rows, Index lines, const T* x, Range x_rows,
                               T beta, T* y, Range y_rows) {
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
      correlate(lines, T(1), A.weights(0, rows.begin + i, 0), A.width, copy + i * beside, beside, T(0),
                sums + i * beside);
    for (Index line = 0; line < lines; ++line) {
      T* const to = y + line * y_rows.size + rows.begin - y_rows.begin;
      for (Index i = 0; i < rows.size; ++i) to[i] = updated(alpha, sums[i * beside + line], beta, to[i]);
    }
  }

  /// Y ← α A X + β Y for lines without neighbours and Toeplitz bands. At the ends of a line it uses a copy
  /// with zeros around.
  static void add_toeplitz(T alpha, const Weights& A, MatrixView<const T> X, T beta, MatrixView<T> Y,
                           const LineExtent& extent) {
    const Index lines = Y.cols * extent.outer;
    const double operations = static_cast<double>(extent.rows.size * A.width);
    for_each_of(lines, static_cast<double>(lines) * operations, [&](Index i) {
      const Slice line(i, X, Y, extent);
      const Real<T>* const weights = A.weights(line.number, extent.rows.begin, 0);
      for_units(extent.rows.size, correlated_at_once, threads_for(operations), [&](int, Range some) {
        const Range rows{extent.rows.begin + some.begin, some.size};
        const Range needed = reached(A, rows), here = intersect(needed, extent.x_rows);
        const T* from = line.x + here.begin - extent.x_rows.begin;
        StackElements<T, 2 * correlated_at_once> copies;
        if (here.size < needed.size) {
          T* const copy = copies.data();
          std::fill_n(copy, needed.size, T(0));
          std::copy_n(from, here.size, copy + here.begin - needed.begin);
          from = copy;
        }
        correlate(rows.size, alpha, weights, A.width, from, 1, beta,
                  line.y + rows.begin - extent.y_rows.begin);
      });
    });
  }
};

}  // namespace

template <Scalar T>
void add_band(T alpha, const BandWeights<Real<T>>& A, MatrixView<const T> X, T beta, MatrixView<T> Y,
              const LineExtent& extent) {
  BandProducts<T>::add(alpha, A, X, beta, Y, extent);
}

template <Scalar T>
bool add_bands_at_once(T alpha, const std::vector<BandTerm<Real<T>>>& terms, MatrixView<const T> X, T beta,
                       MatrixView<T> Y) {
  return BandProducts<T>::add_at_once(alpha, terms, X, beta, Y);
}

#define GRIDLOPS_INSTANTIATE(T)                                                                     \
  template void add_band(T, const BandWeights<Real<T>>&, MatrixView<const T>, T, MatrixView<T>,     \
                         const LineExtent&);                                                        \
  template bool add_bands_at_once(T, const std::vector<BandTerm<Real<T>>>&, MatrixView<const T>, T, \
                                  MatrixView<T>);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
