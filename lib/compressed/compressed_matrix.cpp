// SPDX-License-Identifier: BSD-3-Clause
#include "compressed/compressed_matrix.hpp"

#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "base/instantiate.hpp"
#include "base/message.hpp"
#include "base/numbers.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/comm/failure.hpp"
#include "streamed/stationary_streamed.hpp"

namespace gridlops {

namespace {

template <Scalar T>
class StationaryCompressed final : public StoredOperator<T, CompressedMatrix<T>> {
 public:
  /// block: null on idle ranks.
  StationaryCompressed(const ConstDistMatrix<T>& shape, std::shared_ptr<CompressedBlock<T>> block,
                       const CompressionReport& report, bool may_fail)
      : StoredOperator<T, CompressedMatrix<T>>(shape, std::move(block), {.may_fail_alone = may_fail},
                                               shared_products<T>(*shape.grid(), ReductionOrder::any)),
        report_(report) {}

  const CompressionReport& report() const override { return report_; }

 private:
  CompressionReport report_;
};

}  // namespace

void check_for_compressed(const ProcessGrid& grid, const StreamOptions& options) {
  require_disk_possible(grid, options);
  require<UsageError>(options.tiles.empty() && !options.column_stable && !options.in_place,
                      "a compressed matrix is neither column-stable nor read in place, nor do its tiles stay "
                      "elsewhere");
}

template <Scalar T>
std::shared_ptr<CompressedBlock<T>> make_block(const std::shared_ptr<Backend>& backend, TiledBlock tiles,
                                               const FetchFactors& fetch, const StreamOptions* on_disk) {
  const auto block = std::make_shared<CompressedBlock<T>>(
      backend, tiles, on_disk == nullptr ? std::nullopt : std::optional<Index>(on_disk->memory));
  block->store_alone(std::move(tiles), fetch, on_disk == nullptr ? std::string() : on_disk->scratch);
  return block;
}

template <Scalar T>
CompressedMatrixPtr<T> make_compressed(const std::shared_ptr<const ProcessGrid>& grid, const Layout& layout,
                                       const MakeBlock<T>& make, int power, CompressionReport report,
                                       bool may_fail) {
  std::shared_ptr<CompressedBlock<T>> block = attempt(grid->comm(), make);
  block->scale_products(std::ldexp(Real<T>(1), power));
  std::array<Index, 1> bytes{block->bytes()};
  grid->comm().all_reduce(bytes, ReduceOp::sum);
  report.bytes = bytes[0];
  return std::make_shared<StationaryCompressed<T>>(planned_matrix<T>(grid, layout), std::move(block), report,
                                                   may_fail);
}

template <Scalar T>
CompressedMatrixPtr<T> idle_compressed(const std::shared_ptr<const ProcessGrid>& grid, const Layout& layout) {
  return std::make_shared<StationaryCompressed<T>>(planned_matrix<T>(grid, layout), nullptr,
                                                   CompressionReport(), false);
}

#define GRIDLOPS_INSTANTIATE(T)                                                                             \
  template std::shared_ptr<CompressedBlock<T>> make_block(const std::shared_ptr<Backend>&, TiledBlock,      \
                                                          const FetchFactors&, const StreamOptions*);       \
  template class CompressedMatrix<T>;                                                                       \
  template CompressedMatrixPtr<T> make_compressed(const std::shared_ptr<const ProcessGrid>&, const Layout&, \
                                                  const MakeBlock<T>&, int, CompressionReport, bool);       \
  template CompressedMatrixPtr<T> idle_compressed(const std::shared_ptr<const ProcessGrid>&, const Layout&);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
