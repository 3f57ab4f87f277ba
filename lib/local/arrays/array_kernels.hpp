// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "gridlops/local/backend.hpp"
#include "local/arrays/line_transform.hpp"
#include "local/arrays/migration.hpp"

namespace gridlops {

/// A box of two arrays, traversed element by element: the extent of each direction, and the stride of its
/// elements in either array. The last direction is the innermost loop.
struct BoxLoops {
  static constexpr int most = 6;  // the dimensions of an array, plus the columns

  int count = 0;
  std::array<Index, most> extents{}, from{}, to{};

  Index size() const {
    Index size = 1;
    for (int d = 0; d < count; ++d) size *= extents[static_cast<std::size_t>(d)];
    return size;
  }
  /// Adds an inner direction; merges it with the last one if they are contiguous.
  void add(Index extent, Index from_stride, Index to_stride) {
    if (extent == 1) return;
    const auto next = static_cast<std::size_t>(count), last = next - 1;
    if (count > 0 && from[last] == extent * from_stride && to[last] == extent * to_stride) {
      extents[last] *= extent;
      from[last] = from_stride;
      to[last] = to_stride;
      return;
    }
    extents[next] = extent;
    from[next] = from_stride;
    to[next] = to_stride;
    ++count;
  }
};

/// The weights of a banded n × n matrix, or of one for each line. Row i has weights at columns i + first … i
/// + first + width − 1; those outside the matrix do not count. Only `rows` have weights. Those in `alike`
/// share one set; each other has its own, with zeros outside the matrix. The backend's memory holds, set by
/// set in the order of the rows,
///
///   set, k                         of one matrix for all lines (own = 0)
///   slice, set, k, neighbour       of a matrix for each line; own is LineExtent::inner
template <class R>
struct BandWeights {
  const R* data = nullptr;
  Index n = 0, first = 0, width = 0;
  Range rows, alike;
  Index own = 0;
  bool is_finite = false;  ///< whether all weights are

  /// How far a weight is from the next one of its row.
  constexpr Index apart() const { return own > 1 ? own : 1; }
  constexpr Index repeated() const { return alike.size > 1 ? alike.size - 1 : 0; }
  constexpr Index sets() const { return rows.size - repeated(); }
  constexpr bool is_toeplitz() const { return alike.size > 0 && alike.size == rows.size; }
  /// The number of all weights, for this many slices.
  constexpr Index count(Index slices) const { return (own == 0 ? 1 : slices * own) * sets() * width; }

  /// Where the weights of a row begin; any slice and neighbour will do where all lines have the same.
  constexpr Index place_of(Index slice, Index row, Index neighbour) const {
    const Index into = row - alike.begin,
                before = into < 0            ? 0
                         : into < repeated() ? into
                                             : repeated();  // rows with the same set
    const Index set = row - rows.begin - before;
    return own == 0 ? set * width : (slice * sets() + set) * width * own + neighbour;
  }
  constexpr const R* weights(Index slice, Index row, Index neighbour) const {
    return data + place_of(slice, row, neighbour);
  }

  /// Which weights of a row are inside the matrix, and the rows all of whose weights are.
  constexpr Range inside(Index row) const { return intersect({0, width}, {-row - first, n}); }
  constexpr Range full() const { return {-first, n < width ? 0 : n - width + 1}; }

  /// Writes the weights of one matrix to `to` and where they lie behind it. Calls element(i, j) within it.
  template <class Element>
  void fill(R* to, Element&& element) const {
    for (Index row = rows.begin; row < rows.end();) {
      const Range same = row == alike.begin && alike.size > 0 ? alike : Range{row, 1};
      for (Index offset = first; offset < first + width; ++offset, to += apart()) {
        const Index i = row > -offset ? row : -offset;  // the first of these rows with such a column
        *to = i < same.end() && i + offset < n ? static_cast<R>(element(i, i + offset)) : R(0);
      }
      row = same.end();
    }
  }
};

/// Rows of a sparse matrix, each with its elements in one run of columns: row i has the weights begin[i] …
/// begin[i + 1] − 1, for the columns from first[i] on. Where begin is null, a row has one element 1, in
/// column first[i], or none if that is negative. All are in the backend's memory.
template <class R>
struct RunWeights {
  Index rows = 0, elements = 0;
  const Index* first = nullptr;
  const Index* begin = nullptr;
  const R* weights = nullptr;
};

/// A product with a matrix along one dimension of the arrays that are the columns of X and Y: for each of
/// `outer` slices, `inner` neighbours at a time. X holds the elements along the dimension that x_rows says,
/// and Y those of y_rows; the product computes those in `rows`.
struct LineExtent {
  Index outer = 1, inner = 1;
  Range x_rows, y_rows, rows;
};

/// Groups of a block's rows: group o · inner + i, for o < outer and i < inner, has the `count` rows
/// (o · count + k) · inner + i.
struct RowGroups {
  Index outer = 1, count = 1, inner = 1;

  constexpr Index groups() const { return outer * inner; }
  constexpr Index first_row(Index group) const { return group + group / inner * (count - 1) * inner; }
};

/// The function of two numbers v and x that a BoxUpdate computes, for l ≤ x ≤ u. A NaN of v stays NaN where v
/// counts, and one of x in steps.
enum class BoxKind {
  free,     ///< v where x is on neither bound, else 0
  chopped,  ///< v where x is on one bound and v points into the box, else 0
  arc,      ///< tv as far as x + tv is in the box, else the way from x to the bound
  reach,    ///< 1/t for the largest t, or the least normal t, with x + tv in the box; 0 where any t has that
  step,     ///< x + tv, or the bound that it passes, or reaches but for a few roundings
  nearest   ///< the number in the box that is nearest to x, which may be anywhere; v is not read
};
/// Y ← this function of V and X, element by element, for the box from `lower` to `upper`, whose bounds may be
/// infinite; of complex numbers both parts. Y may be V or X.
template <Scalar T>
struct BoxUpdate {
  BoxKind kind;
  const double* t;  ///< one for each column, the host's
  MatrixView<const T> V, X, lower, upper;
  MatrixView<T> Y;
};

/// One term of a sum of bands along dimensions of the same arrays.
template <class R>
struct BandTerm {
  BandWeights<R> A;
  LineExtent extent;
};

/// Kernels of array operators on the blocks of one rank. See Kernels for memory, order and overlap.
template <Scalar T>
class ArrayKernels {
 public:
  virtual ~ArrayKernels() = default;

  /// y ← α x + β y for the elements of the box.
  virtual void add_box(T alpha, const T* x, T beta, T* y, const BoxLoops& box) const = 0;
  /// y ← α A x + β y for the rows of the extent. Elements of X whose weight is zero do not count, even NaN.
  virtual void add_band(T alpha, const BandWeights<Real<T>>& A, MatrixView<const T> X, T beta,
                        MatrixView<T> Y, const LineExtent& extent) const = 0;
  /// y ← α Σ A x + β y for terms whose x_rows are their y_rows. Unless β = 1, the first computes all rows.
  virtual void add_bands(T alpha, const std::vector<BandTerm<Real<T>>>& terms, MatrixView<const T> X, T beta,
                         MatrixView<T> Y) const {
    for (const BandTerm<Real<T>>& term : terms) {
      add_band(alpha, term.A, X, beta, Y, term.extent);
      beta = T(1);
    }
  }
  /// Adds, as add_band() does, the product with a matrix of runs, of which A has the rows y_rows.
  virtual void add_runs(T alpha, const RunWeights<Real<T>>& A, MatrixView<const T> X, T beta, MatrixView<T> Y,
                        const LineExtent& extent) const = 0;

  /// Element (g, j) of N ← the Euclidean norm of group g of xⱼ. Squares are summed in double precision, in
  /// the order of the rows.
  virtual void group_norms(const RowGroups& groups, MatrixView<const T> X, MatrixView<T> N) const = 0;
  /// Each group of xⱼ ← max(1 − tⱼ/n, 0) times the group, where n is its norm in N; NaN stays NaN. t: tⱼ ≥ 0
  /// for each column, in host memory.
  virtual void shrink_groups(const double* t, const RowGroups& groups, MatrixView<const T> N,
                             MatrixView<T> X) const = 0;

  /// data ← K image, or K image + data if it adds, and image ← Kᴴ data: see migration.hpp. Scratch memory is
  /// in the backend's memory.
  virtual Index migration_scratch_bytes(const MigrationTables<Real<T>>& tables, Index columns) const = 0;
  virtual void demigrate(const MigrationTables<Real<T>>& tables, bool adds, MatrixView<const T> image,
                         MatrixView<T> data, std::byte* scratch) const = 0;
  virtual void migrate(const MigrationTables<Real<T>>& tables, MatrixView<const T> data, MatrixView<T> image,
                       std::byte* scratch) const = 0;

  /// Makes a Fourier transform and allocates what it needs in the memory of this backend, which it keeps
  /// alive. Throws OutOfMemory, and errors of the vendor's library, on this rank alone.
  virtual std::unique_ptr<LineTransform<T>> line_transform(const std::shared_ptr<Backend>& backend,
                                                           const FourierLines& lines) const = 0;

  virtual void box_update(const BoxUpdate<T>& update) const = 0;
};

template <Scalar T>
const ArrayKernels<T>& host_array_kernels();

}  // namespace gridlops
