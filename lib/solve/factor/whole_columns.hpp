// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>

#include "dist/redistribution.hpp"
#include "ops/operator/library_operator.hpp"

namespace gridlops {

/// Matrices of a space, whose columns some computation changes one by one: each rank gets its share of them,
/// whole, and beside them scratch memory of some rows.
template <Scalar T>
class WholeColumns {
 public:
  WholeColumns(const Space& space, Index rows_between) : space_(space), between_(rows_between) {}

  /// All rows of a share of the columns.
  Layout layout(Index columns) const {
    return {Cut::uncut(space_.dimension()), Cut::balanced(Axis::all, columns, *space_.grid)};
  }
  /// The columns of this rank.
  Range mine(Index columns) const {
    const ProcessGrid& grid = *space_.grid;
    return layout(columns).col_range(grid, grid.my_row(), grid.my_col());
  }
  Index scratch_bytes(const Partition& columns) const {
    const Elements count = elements(columns);
    Index bytes = 0;
    for (const Index elements : {count.columns, count.between, count.outgoing, count.incoming})
      bytes += ScratchStack::bytes_of<T>(elements);
    return bytes;
  }
  /// Y ← out·Z + β Y, where change(Z, columns, between) makes Z of in·X: the columns of this rank, their
  /// numbers, and the scratch memory (collective over the grid).
  template <class Change>
  void apply(T in, const ConstDistMatrix<T>& X, T out, T beta, DistMatrix<T>& Y, const Change& change) const {
    const auto& grid = X.grid();
    const Elements count = elements(X.layout().cols.partition);
    const ScratchArray<T> memory(*grid, count.columns), between(*grid, count.between),
        outgoing(*grid, count.outgoing), incoming(*grid, count.incoming);
    const RedistributionMemory<T> messages{outgoing.data(), incoming.data()};
    const Range columns = mine(X.cols());
    DistMatrix<T> Z(grid, layout(X.cols()), MatrixView<T>(memory.data(), space_.dimension(), columns.size));
    redistribute<T>(in, X, T(0), Z, messages);
    if (!Z.local().empty()) change(Z.local(), columns, between.data());
    redistribute<T>(out, Z, beta, Y, messages);
  }

 private:
  struct Elements {
    Index columns, between, outgoing, incoming;  // of messages in both directions
  };
  Elements elements(const Partition& columns) const {
    const ProcessGrid& grid = *space_.grid;
    const Layout outer = space_.layout(columns), inner = layout(columns.total());
    const RedistributionSizes in = own_redistribution_sizes(grid, outer, inner),
                              out = own_redistribution_sizes(grid, inner, outer);
    const Index count = mine(columns.total()).size;
    return {space_.dimension() * count, between_ * count, std::max(in.outgoing, out.outgoing),
            std::max(in.incoming, out.incoming)};
  }

  const Space space_;
  const Index between_;
};

}  // namespace gridlops
