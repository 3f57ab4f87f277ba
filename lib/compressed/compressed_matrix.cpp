// SPDX-License-Identifier: BSD-3-Clause
#include "compressed/compressed_matrix.hpp"

#include <array>
#include <cmath>
#include <optional>
#include <utility>

#include "base/instantiate.hpp"
#include "base/message.hpp"
#include "base/numbers.hpp"
#include "comm/failure/failure.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/comm/failure.hpp"
#include "gridlops/ops/cost_model.hpp"
#include "ops/matrix/algorithms.hpp"
#include "ops/matrix/stationary_product.hpp"

namespace gridlops {

namespace {

template <Scalar T>
class StationaryCompressed final : public CompressedMatrix<T>, public SharesProduct {
 public:
  /// made: empty on idle ranks.
  StationaryCompressed(const ConstDistMatrix<T>& shape, MadeBlock<T> made, int power,
                       const CompressionReport& report, bool may_fail)
      : CompressedMatrix<T>(range_nested(shape), domain_nested(shape)),
        made_(std::move(made)),
        factor_(std::ldexp(Real<T>(1), power)),
        report_(report),
        may_fail_(may_fail) {
    const ProcessGrid& grid = *shape.grid();
    if (grid.is_member()) product_ = shared_product<T>(grid);
  }

  const CompressionReport& report() const override { return report_; }
  Index bytes_read() const override { return made_.parts ? made_.parts->bytes_read() : 0; }
  double seconds_waited() const override { return made_.parts ? made_.parts->seconds_waited() : 0; }

 private:
  bool runs_callers_code() const override { return false; }

  void do_connect(Op) const override { product_->connect(); }
  void do_reserve(Op op, const Partition& columns) const override {
    this->domain().grid->backend()->template kernels<T>().reserve_narrow_gemm();
    product_->reserve(op, block_of_models(*this), block_of_data(*this),
                      this->domain().local_columns(columns));
  }
  Index do_scratch_bytes(ProductKind, const Partition& columns) const override {
    return !made_.block ? 0 : made_.block->scratch_bytes(this->domain().local_columns(columns));
  }
  Index do_kept_bytes(const Partition& columns) const override {
    const ProcessGrid& grid = *this->domain().grid;
    return made_.block->order_bytes() + (made_.parts ? made_.parts->plan().bytes_in_memory() : 0) +
           product_workspace_bytes(Algorithm::stationary_a,
                                   {this->rows(), this->cols(), columns.total(), scalar_type_of<T>},
                                   grid.shape(), grid.my_row(), grid.my_col(), false);
  }
  void do_apply(T alpha, const ConstDistMatrix<T>& X, T beta, DistMatrix<T>& Y) const override {
    multiply(Op::none, alpha, X, beta, Y);
  }
  void do_apply_adjoint(T alpha, const ConstDistMatrix<T>& Y, T beta, DistMatrix<T>& X) const override {
    multiply(Op::adjoint, alpha, Y, beta, X);
  }
  void multiply(Op op, T alpha, const ConstDistMatrix<T>& in, T beta, DistMatrix<T>& out) const {
    const ProcessGrid& grid = *this->domain().grid;
    FailureScope failures;  // other ranks wait for this one in the sum, also if its disk fails
    if (may_fail_) failures.note_lone_failures();
    product_->multiply(
        op, block_of_models(*this), block_of_data(*this), in.local(), beta, out.local(),
        [&](MatrixView<const T> X, T beta_of_block, MatrixView<T> Y) {
          failures.run([&] { made_.block->multiply(grid, op, factor_ * alpha, X, beta_of_block, Y); });
        });
  }

  MadeBlock<T> made_;
  Real<T> factor_;
  CompressionReport report_;
  bool may_fail_;
  std::shared_ptr<StationaryProduct<T>> product_;
};

}  // namespace

void check_for_compressed(const ProcessGrid& grid, const StreamOptions& options) {
  require<UsageError>(options.memory >= 0, "the memory cannot be ", options.memory, " bytes");
  require<UsageError>(options.tiles.empty() && !options.column_stable && !options.in_place,
                      "a compressed matrix is neither column-stable nor read in place, nor do its tiles stay "
                      "elsewhere");
  require<UsageError>(grid.backend()->memory_space() == MemorySpace::host,
                      "a matrix on disks is multiplied in host memory, and this grid is on GPUs");
}

template <Scalar T>
MadeBlock<T> make_block(const std::shared_ptr<Backend>& backend, TiledBlock tiles, const FetchFactors& fetch,
                        const StreamOptions* on_disk) {
  const auto block = std::make_shared<CompressedBlock<T>>(
      backend, tiles, on_disk == nullptr ? std::nullopt : std::optional<Index>(on_disk->memory));
  return {block, store_alone(backend, *block, std::move(tiles), fetch, on_disk)};
}

template <Scalar T>
CompressedMatrixPtr<T> make_compressed(const std::shared_ptr<const ProcessGrid>& grid, const Layout& layout,
                                       const std::function<MadeBlock<T>()>& make, int power,
                                       CompressionReport report, bool may_fail) {
  MadeBlock<T> made = attempt(grid->comm(), make);
  std::array<Index, 1> bytes{made.block->bytes()};
  grid->comm().all_reduce(bytes, ReduceOp::sum);
  report.bytes = bytes[0];
  return std::make_shared<StationaryCompressed<T>>(planned_matrix<T>(grid, layout), std::move(made), power,
                                                   report, may_fail);
}

template <Scalar T>
CompressedMatrixPtr<T> idle_compressed(const std::shared_ptr<const ProcessGrid>& grid, const Layout& layout) {
  return std::make_shared<StationaryCompressed<T>>(planned_matrix<T>(grid, layout), MadeBlock<T>(), 0,
                                                   CompressionReport(), false);
}

#define GRIDLOPS_INSTANTIATE(T)                                                                             \
  template MadeBlock<T> make_block(const std::shared_ptr<Backend>&, TiledBlock, const FetchFactors&,        \
                                   const StreamOptions*);                                                   \
  template class CompressedMatrix<T>;                                                                       \
  template CompressedMatrixPtr<T> make_compressed(const std::shared_ptr<const ProcessGrid>&, const Layout&, \
                                                  const std::function<MadeBlock<T>()>&, int,                \
                                                  CompressionReport, bool);                                 \
  template CompressedMatrixPtr<T> idle_compressed(const std::shared_ptr<const ProcessGrid>&, const Layout&);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
