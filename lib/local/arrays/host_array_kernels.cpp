// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <bit>
#include <cmath>
#include <complex>
#include <concepts>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include "base/instantiate.hpp"
#include "base/numbers.hpp"
#include "local/arrays/array_kernels.hpp"
#include "local/arrays/band_products.hpp"
#include "local/arrays/correlate.hpp"
#include "local/arrays/line_slices.hpp"
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

/// The comparisons keep NaN as NaN.
template <std::floating_point R>
R boxed(BoxKind kind, R t, R v, R x, R lower, R upper) {
  constexpr R longest = 1 / std::numeric_limits<R>::min();  // of it 1/t is a normal number
  const bool is_low = x <= lower, is_high = x >= upper;
  const R way = t * v;
  switch (kind) {
    case BoxKind::free:
      return is_low || is_high ? 0 : v;
    case BoxKind::chopped:
      return is_low == is_high || (is_low ? v <= 0 : v >= 0) ? 0 : v;
    case BoxKind::arc:
      return way < lower - x ? lower - x : way > upper - x ? upper - x : way;
    case BoxKind::reach:
      return v > 0 ? std::min(v / (upper - x), longest) : v < 0 ? std::min(-v / (x - lower), longest) : v;
    case BoxKind::nearest:
      return x < lower ? lower : x > upper ? upper : x;
    case BoxKind::step:
      break;
  }
  const R y = x + way, slack = 4 * std::numeric_limits<R>::epsilon() * std::max(std::abs(x), std::abs(way));
  return way < 0 && y <= lower + slack ? lower : way > 0 && y >= upper - slack ? upper : y;
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
    gridlops::add_band(alpha, A, X, beta, Y, extent);
  }
  void add_bands(T alpha, const std::vector<BandTerm<Real<T>>>& terms, MatrixView<const T> X, T beta,
                 MatrixView<T> Y) const override {
    if (!add_bands_at_once(alpha, terms, X, beta, Y)) ArrayKernels<T>::add_bands(alpha, terms, X, beta, Y);
  }
  void add_runs(T alpha, const RunWeights<Real<T>>& A, MatrixView<const T> X, T beta, MatrixView<T> Y,
                const LineExtent& extent) const override {
    if (extent.inner == 1 && A.begin != nullptr) {
      const auto row_of = [&](Index row) {
        const Index own = row - extent.y_rows.begin, begin = A.begin[own];
        return WeightedRow<Real<T>>{A.weights + begin, A.first[own] - extent.x_rows.begin,
                                    A.begin[own + 1] - begin};
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
          for_long_ranges(extent.inner, correlated_at_once, threads, [&](int, Range neighbours) {
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

  void box_update(const BoxUpdate<T>& update) const override {
    for_each_piece(update.Y.rows, update.Y.cols, [&update](Range rows, Index j) {
      const auto reals = [&](const MatrixView<const T>& Z) {
        return reinterpret_cast<const Real<T>*>(Z.column(j) + rows.begin);
      };
      const Real<T>*v = reals(update.V), *x = reals(update.X), *l = reals(update.lower),
            *u = reals(update.upper);
      auto* const y = reinterpret_cast<Real<T>*>(update.Y.column(j) + rows.begin);
      const auto t = static_cast<Real<T>>(update.t[j]);
      const Index parts = is_complex<T> ? 2 * rows.size : rows.size;
      for (Index i = 0; i < parts; ++i) y[i] = boxed(update.kind, t, v[i], x[i], l[i], u[i]);
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
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
