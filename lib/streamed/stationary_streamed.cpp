// SPDX-License-Identifier: BSD-3-Clause
#include "streamed/stationary_streamed.hpp"

#include <utility>

#include "base/instantiate.hpp"
#include "base/message.hpp"
#include "comm/norm_of_ranks.hpp"
#include "dist/describe_layout.hpp"
#include "gridlops/base/error.hpp"

namespace gridlops {

namespace {

template <Scalar T>
class StationaryStreamed final : public StoredOperator<T, StreamedMatrix<T>> {
 public:
  StationaryStreamed(const ConstDistMatrix<T>& shape, std::shared_ptr<SlabBlock<T>> block, double norm,
                     std::shared_ptr<StationaryProducts<T>> products)
      : StoredOperator<T, StreamedMatrix<T>>(shape, std::move(block), facts_of(shape), std::move(products)),
        norm_(norm) {}

  double frobenius_norm() const override { return norm_; }

 private:
  static BlockFacts facts_of(const ConstDistMatrix<T>& shape) {
    BlockFacts facts = BlockFacts::of_one_pass(shape.layout().cols.partition.largest(), Index{sizeof(T)});
    facts.may_fail_alone = true;
    return facts;
  }

  double norm_;
};

}  // namespace

void require_disk_possible(const ProcessGrid& grid, const StreamOptions& options) {
  require<UsageError>(options.memory >= 0, "the memory cannot be ", options.memory, " bytes");
  require<UsageError>(grid.backend()->memory_space() == MemorySpace::host,
                      "a matrix on disks is multiplied in host memory, and this grid is on GPUs");
}

void check_options(Agreement& agreement, const ProcessGrid& grid, const StreamOptions& options) {
  agreement.on("tiles that stay", options.tiles).on("column-stable", options.column_stable ? "yes" : "no");
  require_disk_possible(grid, options);
}

template <Scalar T>
void check_matrix(const char* caller, Agreement& agreement, const ConstDistMatrix<T>& A,
                  const StreamOptions& options) {
  const ProcessGrid& grid = *A.grid();
  describe_matrix(agreement, "the matrix", A);
  check_options(agreement, grid, options);
  require<UsageError>(!options.in_place, "only a matrix in a file is read in place");
  require_layout(caller, Algorithm::stationary_a, grid, A.layout());
}

template <Scalar T>
StreamedMatrixPtr<T> make_streamed(const ConstDistMatrix<T>& shape, std::shared_ptr<SlabBlock<T>> block,
                                   std::shared_ptr<StationaryProducts<T>> products) {
  const ProcessGrid& grid = *shape.grid();
  const double of_all = grid.is_member() ? norm_of_ranks(grid.comm(), block->norm()) : 0;
  return std::make_shared<StationaryStreamed<T>>(shape, std::move(block), of_all, std::move(products));
}

#define GRIDLOPS_INSTANTIATE(T)                                                                         \
  template void check_matrix(const char*, Agreement&, const ConstDistMatrix<T>&, const StreamOptions&); \
  template StreamedMatrixPtr<T> make_streamed(const ConstDistMatrix<T>&, std::shared_ptr<SlabBlock<T>>, \
                                              std::shared_ptr<StationaryProducts<T>>);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
