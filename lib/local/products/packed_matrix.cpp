// SPDX-License-Identifier: BSD-3-Clause
#include "local/products/packed_matrix.hpp"

#include <algorithm>

#include "base/at_work.hpp"
#include "base/instantiate.hpp"
#include "local/products/product_times.hpp"
#include "local/products/tile_products.hpp"

namespace gridlops {

template <Scalar T>
PackedMatrix<T>::PackedMatrix(const std::shared_ptr<Backend>& backend, MatrixView<const T> A,
                              const KernelSet& set, bool column_stable,
                              const std::function<void(Index)>& taken)
    : kernels_(&set.tiles<Real<T>>(parts_ * A.rows)),
      column_stable_(column_stable),
      rows_(A.rows),
      cols_(A.cols),
      run_(std::clamp((cols_ / 8 + depth() - 1) / depth(), Index{1}, Index{16}) * depth()),
      storage_(backend, places() * padded_cols<Real<T>>(cols_) * kernels_->height) {
  copy(A, taken);
}

template <Scalar T>
void PackedMatrix<T>::copy(MatrixView<const T> A, const std::function<void(Index)>& taken) {
  const MatrixView<const Real<T>> from = real_view(A);
  const Index height = kernels_->height;
  for (Index first = 0; first < cols_; first += run_) {
    const Index end = std::min(first + run_, padded_cols<Real<T>>(cols_));
    const int threads = threads_for(static_cast<double>(strips() * height * (end - first)));
    for_ranges(strips(), 1, threads, [&](int, Range range) {
      for (Index strip = range.begin; strip < range.end(); ++strip) {
        Real<T>* to = storage_.data() + (tile(strip, first).begin - storage_.data());
        const Index rows = std::min(height, from.rows - strip * height);
        for (Index k = first; k < end; ++k, to += height) {
          const Index count = k < cols_ ? rows : 0;
          if (count > 0) std::copy_n(from.column(k) + strip * height, count, to);
          std::fill(to + count, to + height, Real<T>(0));
        }
      }
    });
    if (taken) taken(std::min(end, cols_));
  }
}

template <Scalar T>
Tile<Real<T>> PackedMatrix<T>::tile(Index strip, Index col) const {
  const Index height = kernels_->height, end = padded_cols<Real<T>>(cols_), first = col / run_ * run_;
  const Index run = std::min(run_, end - first);
  return {storage_.data() + (first * places() + strip * run + col - first) * height, height,
          std::min(depth(), end - col)};
}

template <Scalar T>
void PackedMatrix<T>::read_column(Index j, T* to) const {
  const Index height = kernels_->height, rows = parts_ * rows_;
  Real<T>* const reals = reinterpret_cast<Real<T>*>(to);
  for (Index strip = 0; strip < strips(); ++strip)
    std::copy_n(tile(strip, j).begin, std::min(height, rows - strip * height), reals + strip * height);
}

template <Scalar T>
void PackedMatrix<T>::multiply(Op op, T alpha, MatrixView<const T> X, T beta, MatrixView<T> Y) const {
  const AtWork at_work;
  multiply_tiles(*this, *kernels_, op, alpha, X, beta, Y, column_stable_);
}

template <Scalar T>
void PackedMatrix<T>::one_pass(MatrixView<const T> P, MatrixView<const T> R, MatrixView<T> Q, MatrixView<T> U,
                               MatrixView<T> V, const Completion& completed) const {
  const int threads = threads_for(3 * product_flops<T>(rows_, cols_, P.cols));
  ForwardTiles<T> forward(*kernels_, depth(), P, threads);
  AdjointTiles<T> adjoint(*kernels_, depth(), Op::adjoint, cols_, 2 * P.cols, threads, column_stable_);
  const Index tiles = (cols_ + depth() - 1) / depth();
  // Each thread takes a strip through the product, and its columns of earlier strips, still in a cache,
  // through the adjoint, in turns of one run. That keeps memory busy all the time.
  const auto work = [&](int thread, Range products, Range adjoints) {
    const Range own = balanced_part(tiles, threads, thread);
    const Index p = products.begin + thread;
    for (Index run = 0; run < cols_; run += run_) {
      const Range cols{run, std::min(run_, cols_ - run)};
      if (thread < products.size)
        for (Index col = cols.begin; col < cols.end(); col += depth())
          forward.add(thread, tile(p, col), col, {});
      // A slow adjoint leaves memory time to fetch the beginning of what the product needs next. The product
      // reads the rest faster, because the processor then prefetches by itself.
      const bool is_last = cols.end() == cols_;
      const Index next_col = is_last ? 0 : cols.end();
      const Index next = std::min(is_last ? p + threads : p, strips() - 1);
      const Range ahead{next_col, std::min(run_, cols_ - next_col)};
      const auto share = [&](Index col) {
        return (col + depth() - 1) / depth() * adjoints.size * own.size / tiles;
      };
      const Index first = share(cols.begin), end = share(cols.end());
      const auto fetched_before = [&](Index i) {
        return std::min((i - first) * depth(), ahead.size) * adjoint.quarters_to_fetch() / 4;
      };
      for (Index i = first; i < end; ++i) {
        const Index slot = i / own.size, col = (own.begin + i % own.size) * depth();
        adjoint.add(slot, tile(adjoints.begin + slot, col), col,
                    {tile(next, ahead.begin), fetched_before(i), fetched_before(i + 1)});
      }
    }
    if (thread >= products.size) return;
    forward.finish(thread, T(1), T(0), Q.row_block(strip_rows(p)));
  };

  Index complete = 0, done = 0;  // rows of Q that have arrived, and strips that the adjoint has processed
  for (Index p = 0; done < strips();) {
    const Range products{p, std::min<Index>(threads, strips() - p)};
    Range adjoints{done, 0};
    while (adjoints.size < threads && adjoints.end() < strips() &&
           strip_rows(adjoints.end()).end() <= complete)
      ++adjoints.size;
    for (Index slot = 0; slot < adjoints.size; ++slot) {
      const Range rows = strip_rows(done + slot);
      adjoint.set(slot, 0, R.row_block(rows));
      adjoint.set(slot, P.cols, MatrixView<const T>(Q).row_block(rows));
    }
    {
      const AtWork at_work;
      in_threads(threads, [&](int thread) { work(thread, products, adjoints); });
    }
    done = adjoints.end();
    p = products.end();
    const Index computed = std::min(p * (kernels_->height / parts_), rows_);
    complete = completed ? completed(computed) : computed;
  }
  for_ranges(cols_, depth(), threads, [&](int, Range cols) {
    adjoint.finish(0, T(1), T(0), U, cols);
    adjoint.finish(P.cols, T(1), T(0), V, cols);
  });
}

// The built-in choice: on a Zen 4 core packed products were as fast as BLAS or faster, up to the largest
// number of columns tried; docs/performance-notes.md has the figures and the two exceptions.
bool packed_is_faster(ScalarType type, Index rows, Index cols, Index columns, const KernelChoice& choice) {
  constexpr Index most = 128, least = 100;
  const Index smallest = std::min(rows, cols);
  const bool usual = choice.set->is_usual() && 0 < columns && columns <= most;
  return choice.use != KernelChoice::Use::never && smallest >= least && 3 * columns <= smallest &&
         packing_pays(usual, type, columns);
}

#define GRIDLOPS_INSTANTIATE(T) template class PackedMatrix<T>;
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)

}  // namespace gridlops
