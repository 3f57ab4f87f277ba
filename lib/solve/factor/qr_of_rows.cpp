// SPDX-License-Identifier: BSD-3-Clause
#include "solve/factor/qr_of_rows.hpp"

#include <algorithm>
#include <cmath>

#include "base/instantiate.hpp"
#include "gridlops/base/trace.hpp"
#include "local/blas/lapack.hpp"
#include "solve/factor/converted_rows.hpp"
#include "solve/factor/triangles.hpp"
#include "solve/factor/whole_rows.hpp"

namespace gridlops {

namespace {

/// The triangle of this rank.
template <Scalar T>
class RowReflector {
  using Wide = Accumulator<T>;

 public:
  RowReflector(MatrixView<Wide> R, int power) : R_(R), rows_(R.cols, power) {}

  void allocate(const std::shared_ptr<Backend>& backend, bool joins) {
    rows_.allocate(backend);
    memory_ = Buffer<Wide>(backend, lapack::elements_to_append(R_.cols));
    if (joins) other_ = Buffer<Wide>(backend, R_.size());
  }
  void add(MatrixView<const T> rows) {
    const TraceRegion region("QR");
    trace_flops(product_flops<T>(rows.rows, rows.cols, rows.cols));
    rows_.for_each(
        rows, [&](MatrixView<Wide> wide) { lapack::append_rows<Wide>(R_, wide, false, memory_.data()); });
  }
  /// All ranks end with the triangle of all their rows.
  void join(Communicator& comm) {
    if (comm.size() == 1) return;
    const TraceRegion region("join triangles");
    const Index count = size_of_triangle(R_.cols);
    const int rank = comm.rank();
    const MatrixView<Wide> other = other_.matrix(R_.rows, R_.cols);
    for (int step = 1; step < comm.size(); step *= 2) {
      if (rank % (2 * step) == step) {
        pack_triangle(R_);
        comm.send({R_.data, count}, rank - step);
        break;
      }
      if (rank + step >= comm.size()) continue;
      comm.receive({other.data, count}, rank + step);
      unpack_triangle(other);
      lapack::append_rows<Wide>(R_, other, true, memory_.data());
    }
    if (rank == 0) pack_triangle(R_);
    comm.broadcast({R_.data, count}, 0);
    unpack_triangle(R_);
  }

 private:
  const MatrixView<Wide> R_;
  ConvertedRows<T> rows_;
  Buffer<Wide> memory_, other_;
};

}  // namespace

template <Scalar T>
void qr_of_rows(const MatrixInBlocks<T>& A, Op op, const ProcessGrid& grid, int power, double damp,
                MatrixView<Accumulator<T>> R) {
  using Wide = Accumulator<T>;
  std::fill_n(R.data, R.size(), Wide(0));
  if (grid.comm().rank() == 0)
    for (Index j = 0; j < R.cols; ++j) R(j, j) = std::ldexp(damp, power);
  FailureScope failures;
  RowReflector<T> reflector(R, power);
  visit_whole_rows<T>(
      A, op, grid, failures, [&](Range, MatrixView<const T> rows) { reflector.add(rows); },
      [&] { reflector.allocate(grid.backend(), grid.comm().size() > 1); });
  failures.settle(grid.comm());
  reflector.join(grid.comm());
}

Index qr_of_rows_bytes(Index rows, Index cols, ScalarType type, int ranks) {
  const Index n = std::min(rows, cols);
  const Index elements =
      ConvertedRows<double>::most * n + lapack::elements_to_append(n) + (ranks > 1 ? n * n : 0);
  return elements * size_of_sums(type) + visited_rows_bytes(rows, cols, size_of(type), ranks);
}

#define GRIDLOPS_INSTANTIATE(T)                                                           \
  template void qr_of_rows(const MatrixInBlocks<T>&, Op, const ProcessGrid&, int, double, \
                           MatrixView<Accumulator<T>>);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
