// SPDX-License-Identifier: BSD-3-Clause
#include "streamed/stationary_streamed.hpp"

#include <utility>

#include "base/instantiate.hpp"
#include "base/message.hpp"
#include "comm/failure/failure.hpp"
#include "comm/norm_of_ranks.hpp"
#include "dist/describe_layout.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/ops/cost_model.hpp"
#include "gridlops/ops/matrix_mult.hpp"
#include "ops/matrix/algorithms.hpp"

namespace gridlops {

namespace {

template <Scalar T>
class StationaryStreamed final : public StreamedMatrix<T> {
 public:
  StationaryStreamed(const ConstDistMatrix<T>& shape, MadeStreamed<T> made, double norm,
                     std::shared_ptr<StreamedProducts<T>> products, bool first_of_products)
      : StreamedMatrix<T>(range_nested(shape), domain_nested(shape)),
        made_(std::move(made)),
        norm_(norm),
        products_(std::move(products)),
        first_of_products_(first_of_products) {}

  double frobenius_norm() const override { return norm_; }
  Index bytes_read() const override { return made_.parts ? made_.parts->bytes_read() : 0; }
  double seconds_waited() const override { return made_.parts ? made_.parts->seconds_waited() : 0; }
  bool has_one_pass() const override { return true; }

 private:
  bool runs_callers_code() const override { return false; }

  void do_connect(Op) const override { products_->each->connect(); }
  void do_reserve(Op op, const Partition& columns) const override {
    products_->each->reserve(op, block_of_models(*this), block_of_data(*this),
                             this->domain().local_columns(columns));
  }
  void do_reserve_normal_product(const Partition& columns) const override {
    products_->once.reserve(block_of_models(*this), block_of_data(*this),
                            this->domain().local_columns(columns));
  }
  Index do_kept_bytes(const Partition& columns) const override {
    const Index parts = made_.parts ? made_.parts->plan().bytes_in_memory() : 0;
    if (!first_of_products_) return parts;
    const ProcessGrid& grid = *this->domain().grid;
    return parts + streamed_workspace_bytes<T>(made_.block->tiles(), columns.total()) +
           product_workspace_bytes(Algorithm::stationary_a,
                                   {this->rows(), this->cols(), columns.total(), scalar_type_of<T>},
                                   grid.shape(), grid.my_row(), grid.my_col(), true);
  }

  void do_apply(T alpha, const ConstDistMatrix<T>& X, T beta, DistMatrix<T>& Y) const override {
    multiply(Op::none, alpha, X, beta, Y);
  }
  void do_apply_adjoint(T alpha, const ConstDistMatrix<T>& Y, T beta, DistMatrix<T>& X) const override {
    multiply(Op::adjoint, alpha, Y, beta, X);
  }
  void multiply(Op op, T alpha, const ConstDistMatrix<T>& in, T beta, DistMatrix<T>& out) const {
    FailureScope failures;
    failures.note_lone_failures();
    products_->each->multiply(op, block_of_models(*this), block_of_data(*this), in.local(), beta, out.local(),
                              [&](MatrixView<const T> X, T beta_of_block, MatrixView<T> Y) {
                                made_.block->multiply(op, alpha, X, beta_of_block, Y);
                              });
  }
  void do_normal_product(const ConstDistMatrix<T>& P, const ConstDistMatrix<T>& R, DistMatrix<T>& Q,
                         DistMatrix<T>& U, DistMatrix<T>& V) const override {
    FailureScope failures;
    failures.note_lone_failures();
    products_->once.run(*made_.block, block_of_models(*this), block_of_data(*this), P.local(), R.local(),
                        Q.local(), U.local(), V.local());
  }

  MadeStreamed<T> made_;
  double norm_;
  std::shared_ptr<StreamedProducts<T>> products_;
  bool first_of_products_;
};

}  // namespace

void check_options(Agreement& agreement, const ProcessGrid& grid, const StreamOptions& options) {
  agreement.on("tiles that stay", options.tiles).on("column-stable", options.column_stable ? "yes" : "no");
  require<UsageError>(options.memory >= 0, "the memory cannot be ", options.memory, " bytes");
  require<UsageError>(grid.backend()->memory_space() == MemorySpace::host,
                      "a matrix on disks is multiplied in host memory, and this grid is on GPUs");
}

template <Scalar T>
void check_matrix(const char* caller, Agreement& agreement, const ConstDistMatrix<T>& A,
                  const StreamOptions& options) {
  const ProcessGrid& grid = *A.grid();
  describe_matrix(agreement, "the matrix", A);
  check_options(agreement, grid, options);
  require<UsageError>(!options.in_place, "only a matrix in a file is read in place");
  const Layout needed = matrix_layout(Algorithm::stationary_a, grid, A.rows(), A.cols());
  require<ShapeError>(A.layout().rows.axis == needed.rows.axis && A.layout().cols.axis == needed.cols.axis,
                      caller, " needs its matrix as ", needed.describe(), ", not as ", A.layout().describe());
}

template <Scalar T>
StreamedMatrixPtr<T> make_streamed(const ConstDistMatrix<T>& shape, MadeStreamed<T> made,
                                   std::shared_ptr<StreamedProducts<T>> products, bool first_of_products) {
  const ProcessGrid& grid = *shape.grid();
  const double norm = grid.is_member() ? norm_of_ranks(grid.comm(), made.norm) : 0;
  return std::make_shared<StationaryStreamed<T>>(shape, std::move(made), norm, std::move(products),
                                                 first_of_products);
}

#define GRIDLOPS_INSTANTIATE(T)                                                                         \
  template void check_matrix(const char*, Agreement&, const ConstDistMatrix<T>&, const StreamOptions&); \
  template StreamedMatrixPtr<T> make_streamed(const ConstDistMatrix<T>&, MadeStreamed<T>,               \
                                              std::shared_ptr<StreamedProducts<T>>, bool);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
