// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>

#include "gridlops/comm/failure.hpp"
#include "gridlops/streamed/streamed_matrix.hpp"
#include "ops/matrix/normal_product.hpp"
#include "ops/matrix/stationary_product.hpp"
#include "streamed/block_in_parts.hpp"

namespace gridlops {

/// Throws UsageError if these options, or the grid, allow no matrix on disks.
void check_options(Agreement& agreement, const ProcessGrid& grid, const StreamOptions& options);
/// The same for this matrix. Throws ShapeError, too. caller: a name, for messages.
template <Scalar T>
void check_matrix(const char* caller, Agreement& agreement, const ConstDistMatrix<T>& A,
                  const StreamOptions& options);

/// What matrices on one grid share that are multiplied one after the other: the exchanges of products, and
/// their memory.
template <Scalar T>
class StreamedProducts {
 public:
  StreamedProducts(const std::shared_ptr<const ProcessGrid>& on, bool column_stable)
      : grid(on), once(grid->backend(), order_of(column_stable)) {
    if (grid->is_member()) each = std::make_unique<StationaryProduct<T>>(*grid, order_of(column_stable));
  }

  const std::shared_ptr<const ProcessGrid> grid;
  NormalProduct<T> once;
  std::unique_ptr<StationaryProduct<T>> each{};  ///< null on idle ranks

 private:
  static ReductionOrder order_of(bool column_stable) {
    return column_stable ? ReductionOrder::by_rank : ReductionOrder::any;
  }
};

/// A rank's block, and where its parts are.
template <Scalar T>
struct MadeStreamed {
  std::shared_ptr<BlockInParts<T>> block{};  ///< null on idle ranks
  std::shared_ptr<StoredParts> parts{};      ///< null: of a series, which has them
  double norm = 0;                           ///< ‖block‖_F
};

/// The operator of the blocks of all ranks (collective over the grid). `shape` has the layout of their
/// matrix. first_of_products: its kept_bytes() include what the products take.
template <Scalar T>
StreamedMatrixPtr<T> make_streamed(const ConstDistMatrix<T>& shape, MadeStreamed<T> made,
                                   std::shared_ptr<StreamedProducts<T>> products,
                                   bool first_of_products = true);

}  // namespace gridlops
