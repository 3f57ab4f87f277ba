// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <functional>

#include "base/at_work.hpp"
#include "local/tiles/strip_products.hpp"
#include "local/tiles/tile_order.hpp"

namespace gridlops {

/// For a Q that is a sum over ranks. Called with the number of rows of this rank's part of Q that are
/// `computed`; returns the number of complete rows in Q. That number never decreases, and once all rows are
/// computed, it grows with each call until all are complete.
using Completion = std::function<Index(Index computed)>;

/// Q ← A P, U ← Aᴴ R, V ← Aᴴ Q, for A in the tiles of this order, each of which is read once. All have the
/// same number of columns. Aᴴ uses the rows of Q that `completed` reports as complete; without it, the result
/// of A P.
template <Scalar T, class Tiles>
void one_pass_of_tiles(const Tiles& A, const TileOrder<T>& order, bool column_stable, MatrixView<const T> P,
                       MatrixView<const T> R, MatrixView<T> Q, MatrixView<T> U, MatrixView<T> V,
                       const Completion& completed) {
  const Index depth = order.depth(), strips = order.strips(), cols = order.cols();
  const int threads = threads_for(3 * product_flops<T>(order.rows(), cols, P.cols));
  ForwardTiles<T> forward(order.kernels(), depth, P, threads);
  AdjointTiles<T> adjoint(order.kernels(), depth, Op::adjoint, cols, 2 * P.cols, threads, column_stable);
  const Index tiles = (cols + depth - 1) / depth;
  // Each thread takes a strip through the product, and its columns of earlier strips, still in a cache,
  // through the adjoint, in turns of one run. That keeps memory busy all the time.
  const auto work = [&](int thread, Range products, Range adjoints) {
    const auto room = A.room();
    const Range own = balanced_part(tiles, threads, thread);
    const Index p = products.begin + thread;
    for (Index run = 0; run < cols; run += order.run()) {
      const Range columns{run, std::min(order.run(), cols - run)};
      if (thread < products.size)
        for (Index col = columns.begin; col < columns.end(); col += depth)
          forward.add(thread, A.tile(p, col, room), col, {});
      // A slow adjoint leaves memory time to fetch the beginning of what the product needs next. The product
      // reads the rest faster, because the processor then prefetches by itself.
      const bool is_last = columns.end() == cols;
      const Index next_col = is_last ? 0 : columns.end();
      const Index next = std::min(is_last ? p + threads : p, strips - 1);
      const Range ahead{next_col, std::min(order.run(), cols - next_col)};
      const auto share = [&](Index col) {
        return (col + depth - 1) / depth * adjoints.size * own.size / tiles;
      };
      const Index first = share(columns.begin), end = share(columns.end());
      const auto fetched_before = [&](Index i) {
        return std::min((i - first) * depth, ahead.size) * adjoint.quarters_to_fetch() / 4;
      };
      for (Index i = first; i < end; ++i) {
        const Index slot = i / own.size, col = (own.begin + i % own.size) * depth;
        adjoint.add(slot, A.tile(adjoints.begin + slot, col, room), col,
                    A.ahead(next, ahead.begin, fetched_before(i), fetched_before(i + 1)));
      }
    }
    if (thread >= products.size) return;
    forward.finish(thread, T(1), T(0), Q.row_block(order.strip_rows(p)));
  };

  Index complete = 0, done = 0;  // rows of Q that have arrived, and strips that the adjoint has processed
  for (Index p = 0; done < strips;) {
    const Range products{p, std::min<Index>(threads, strips - p)};
    Range adjoints{done, 0};
    while (adjoints.size < threads && adjoints.end() < strips &&
           order.strip_rows(adjoints.end()).end() <= complete)
      ++adjoints.size;
    for (Index slot = 0; slot < adjoints.size; ++slot) {
      const Range rows = order.strip_rows(done + slot);
      adjoint.set(slot, 0, R.row_block(rows));
      adjoint.set(slot, P.cols, MatrixView<const T>(Q).row_block(rows));
    }
    {
      const AtWork at_work;
      in_threads(threads, [&](int thread) { work(thread, products, adjoints); });
    }
    done = adjoints.end();
    p = products.end();
    const Index computed = std::min(order.strip_rows(p).begin, order.rows());
    complete = completed ? completed(computed) : computed;
  }
  for_ranges(cols, depth, threads, [&](int, Range columns) {
    adjoint.finish(0, T(1), T(0), U, columns);
    adjoint.finish(P.cols, T(1), T(0), V, columns);
  });
}

/// Makes one pass, with the same bits, over an A that arrives in parts: each part is read for A P, and once
/// more for Aᴴ when its rows of Q are complete. So X and sums are read from memory once for a part, not for
/// each strip.
template <Scalar T, class Tiles>
void one_pass_in_parts(const Tiles& A, const TileOrder<T>& order, bool column_stable, MatrixView<const T> P,
                       MatrixView<const T> R, MatrixView<T> Q, MatrixView<T> U, MatrixView<T> V,
                       const Completion& completed) {
  const int threads = threads_for(3 * product_flops<T>(order.rows(), order.cols(), P.cols));
  ForwardProduct<T> forward(A, order.kernels(), P, threads, std::max<Index>(P.cols, 1));
  AdjointProduct<T> adjoint(A, order.kernels(), Op::adjoint, 2 * P.cols, threads, column_stable,
                            std::max<Index>(2 * P.cols, 1));
  Index done = 0;  // strips that the adjoint has
  const auto advance = [&](Index computed) {
    const Index complete = completed ? completed(computed) : computed;
    Index ready = done;
    while (ready < order.strips() && order.strip_rows(ready).end() <= complete) ++ready;
    if (ready == done) return;
    const AtWork at_work;
    adjoint.add(A, {done, ready - done}, {R, Q});
    done = ready;
    A.release_before(done);
  };
  A.in_parts([&](Range part) {
    {
      const AtWork at_work;
      forward.add(A, part, T(1), T(0), Q);
    }
    advance(order.strip_rows(part.end() - 1).end());
  });
  while (done < order.strips()) advance(order.rows());
  adjoint.finish(0, T(1), T(0), U);
  adjoint.finish(P.cols, T(1), T(0), V);
}

}  // namespace gridlops
