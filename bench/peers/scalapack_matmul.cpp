// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "bench/benchmarks.hpp"
#include "bench/measure/results.hpp"
#include "bench/product_check.hpp"
#include "scalapack.hpp"

namespace gridlops::bench {

namespace {

/// ScaLAPACK's process grid, with all ranks of the job.
class BlacsGrid {
 public:
  explicit BlacsGrid(const ProcessGrid& grid)
      : shape_(grid.shape()),
        row_(grid.my_row()),
        col_(grid.my_col()),
        handle_(Csys2blacs_handle(MPI_COMM_WORLD)) {
    context_ = handle_;
    Cblacs_gridinit(&context_, "Row", shape_.rows, shape_.cols);
  }
  ~BlacsGrid() {
    Cblacs_gridexit(context_);
    Cfree_blacs_system_handle(handle_);
  }
  BlacsGrid(const BlacsGrid&) = delete;
  BlacsGrid& operator=(const BlacsGrid&) = delete;

  int context() const { return context_; }
  /// The global rows, or columns, of this rank.
  std::vector<Index> rows(Index total, int block) const { return indices(total, block, row_, shape_.rows); }
  std::vector<Index> cols(Index total, int block) const { return indices(total, block, col_, shape_.cols); }

 private:
  static std::vector<Index> indices(Index total, int block, int mine, int parts) {
    std::vector<Index> all;
    for (Index i = 0; i < total; ++i)
      if (i / block % parts == mine) all.push_back(i);
    return all;
  }

  GridShape shape_;
  int row_, col_, handle_, context_ = 0;
};

/// A matrix in a block-cyclic layout.
template <Scalar T>
class CyclicMatrix {
 public:
  CyclicMatrix(const BlacsGrid& grid, std::shared_ptr<Backend> backend, Index rows, Index cols, int block)
      : rows_(grid.rows(rows, block)), cols_(grid.cols(cols, block)) {
    const auto local_rows = static_cast<Index>(rows_.size());
    memory_ =
        Buffer<T>(std::move(backend), std::max<Index>(local_rows * static_cast<Index>(cols_.size()), 1));
    const int m = static_cast<int>(rows), n = static_cast<int>(cols), first = 0, context = grid.context();
    const int stride = static_cast<int>(std::max<Index>(local_rows, 1));
    int failed = 0;
    descinit_(descriptor_.data(), &m, &n, &block, &block, &first, &first, &context, &stride, &failed);
    if (failed != 0)
      throw UsageError(fmt::format("ScaLAPACK takes no {} x {} matrix in blocks of {}", m, n, block));
  }

  void fill_random(std::uint64_t seed) {
    const MatrixView<T> block = local();
    for (Index j = 0; j < block.cols; ++j)
      for (Index i = 0; i < block.rows; ++i)
        block(i, j) =
            counter_random<T>(seed, rows_[static_cast<std::size_t>(i)], cols_[static_cast<std::size_t>(j)]);
  }
  MatrixView<T> local() const {
    return memory_.matrix(static_cast<Index>(rows_.size()), static_cast<Index>(cols_.size()));
  }
  const scalapack::Descriptor& descriptor() const { return descriptor_; }
  const std::vector<Index>& rows() const { return rows_; }
  const std::vector<Index>& cols() const { return cols_; }

 private:
  std::vector<Index> rows_, cols_;
  Buffer<T> memory_;
  scalapack::Descriptor descriptor_{};
};

template <Scalar T>
Result measure(const Case& what, int repetitions, LimitMeter& meter, bool adjoint) {
  const ProductShape& shape = what.shape;
  const int block = what.panel > 0 ? static_cast<int>(what.panel) : 128;
  const BlacsGrid grid(*what.grid);
  const std::shared_ptr<Backend>& backend = what.grid->backend();
  const Index in = adjoint ? shape.rows : shape.cols, out = adjoint ? shape.cols : shape.rows;
  CyclicMatrix<T> A(grid, backend, shape.rows, shape.cols, block), X(grid, backend, in, shape.nrhs, block);
  const CyclicMatrix<T> Y(grid, backend, out, shape.nrhs, block);
  A.fill_random(seed_of_A);
  X.fill_random(seed_of_input);
  const scalapack::ProductSizes sizes{static_cast<int>(out), static_cast<int>(shape.nrhs),
                                      static_cast<int>(in)};
  Result result{.what = what, .adjoint = adjoint, .peer = "p?gemm"};
  result.what.panel = block;
  result.work = product_work<T>(shape);
  result.samples = samples<T>(*what.grid, meter, repetitions, [&] {
    scalapack::gemm(adjoint ? "C" : "N", sizes, A.local().data, A.descriptor(), X.local().data,
                    X.descriptor(), Y.local().data, Y.descriptor());
  });
  result.error = product_error<T>(what, adjoint, {Y.local(), Y.rows(), Y.cols()});
  result.allowed_error = allowed_product_error<T>(shape, adjoint);
  return result;
}

void check(const Communicator& world, const Cases& cases) {
  constexpr Index most = std::numeric_limits<int>::max();
  for (const auto* sizes : {&cases.rows, &cases.cols, &cases.nrhs})
    for (const Index size : *sizes)
      if (size < 1 || size > most)
        throw UsageError(fmt::format("ScaLAPACK takes sizes from 1 to {}, not {}", most, size));
  for (const GridShape grid : cases.grids) {
    if (grid.size() != world.size()) {
      throw UsageError(fmt::format("ScaLAPACK is timed on all {} ranks, but the grid {}x{} has {}",
                                   world.size(), grid.rows, grid.cols, grid.size()));
    }
  }
}

}  // namespace

ExitStatus matmul(Communicator& world, const MatmulArguments& arguments) {
  check(world, arguments.cases);
  ResultWriter writer(world, arguments.method.json);
  LimitMeter meter(arguments.method.limit_order, arguments.method.limit_mib);
  for_each_case(world, arguments.cases, [&](const Case& what, LastProduct&) {
    for (const bool adjoint : directions(arguments)) {
      with_scalar_type(what.shape.type, [&]<Scalar T>() {
        writer.add(measure<T>(what, arguments.method.repetitions, meter, adjoint));
      });
    }
  });
  return writer.close();
}

ExitStatus solve(Communicator&, const SolveArguments&) {
  throw UsageError("ScaLAPACK has no iterative least-squares solver; compare products, with matmul");
}

}  // namespace gridlops::bench
