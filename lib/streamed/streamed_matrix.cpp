// SPDX-License-Identifier: BSD-3-Clause
#include "gridlops/streamed/streamed_matrix.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "base/instantiate.hpp"
#include "base/message.hpp"
#include "base/numbers.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/comm/failure.hpp"
#include "gridlops/comm/mpi.hpp"
#include "gridlops/io/output_folder.hpp"
#include "gridlops/ops/matrix_mult.hpp"
#include "io/matrix_boxes.hpp"
#include "streamed/matrix_in_place.hpp"
#include "streamed/own_store.hpp"
#include "streamed/stationary_streamed.hpp"

namespace gridlops {

namespace {

/// A text that another file has, too, only if it has the same elements.
std::string text_of_file(const std::string& name, const MatrixHeader& header) {
  const ArrayPlace place = place_of_array(name);
  struct stat status {};
  require<InputError>(::stat(place.file.c_str(), &status) == 0, name, ": cannot find the file");
  return message(name, ", file ", status.st_dev, ":", status.st_ino, " of ", status.st_size,
                 " bytes, changed at ", status.st_mtim.tv_sec, ".", status.st_mtim.tv_nsec, " and ",
                 status.st_ctim.tv_sec, ".", status.st_ctim.tv_nsec, ", ", header.rows, " x ", header.cols,
                 " ", name_of(header.type));
}

/// Calls fill(block, rows, cols) on ranks with elements, unless their tiles had stayed. of: what the blocks
/// of all ranks are made of, for tiles that stay.
template <Scalar T, class Fill>
StreamedMatrixPtr<T> stream_on(const std::shared_ptr<const ProcessGrid>& grid, const Layout& layout,
                               StreamOptions options, const std::string& of, Fill&& fill) {
  const DistMatrix<T> shape = planned_matrix<T>(grid, layout);
  if (!grid->is_member()) return make_streamed<T>(shape, nullptr, nullptr);
  const Range rows = shape.local_row_range(), cols = shape.local_col_range();
  const std::string folder = options.tiles;
  std::string of_block;
  if (!of.empty()) {
    options.tiles += message("/row-", grid->my_row(), "-col-", grid->my_col());
    of_block = message(of, "; rows from ", rows.begin, ", ", rows.size, ", columns from ", cols.begin, ", ",
                       cols.size);
  }
  auto block = attempt(grid->comm(), [&] {
    if (!of.empty())
      claim_folder(folder, "tiles", [](const std::string& name) { return name.starts_with("row-"); });
    auto made = std::make_unique<OwnStore<T>>(grid->backend(), rows.size, cols.size, options, of_block);
    if (!made->is_stored() && rows.size > 0 && cols.size > 0) fill(*made, rows, cols);
    return made;
  });
  return make_streamed<T>(shape, block->block(), own_products<T>(*grid, reduction_order(options)));
}

}  // namespace

template <Scalar T>
StreamedMatrixPtr<T> stream_matrix(const std::shared_ptr<const ProcessGrid>& grid, const std::string& name,
                                   const MatrixHeader& header, const StreamOptions& options) {
  const Layout layout = matrix_layout(Algorithm::stationary_a, *grid, header.rows, header.cols);
  agree(grid, "stream_matrix", [&](Agreement& agreement) {
    agreement.on("the file", name).on("the rows", header.rows).on("the columns", header.cols);
    check_options(agreement, *grid, options);
    agreement.on("in place", options.in_place ? "yes" : "no");
    require<UsageError>(!options.in_place || options.tiles.empty(),
                        "a matrix that is read in place has no tiles that could stay in ", options.tiles);
  });
  const std::string of = options.tiles.empty() || !grid->is_member()
                             ? std::string()
                             : attempt(grid->comm(), [&] { return text_of_file(name, header); });
  return stream_on<T>(grid, layout, options, of, [&](OwnStore<T>& block, Range rows, Range cols) {
    if (options.in_place) return block.read_in_place(boxes_of(name, header, scalar_type_of<T>), rows, cols);
    block.store(*source_in_file<T>(name, header, rows, cols));
  });
}

template <Scalar T>
StreamedMatrixPtr<T> stream_matrix(const ConstDistMatrix<T>& A, const StreamOptions& options) {
  const std::shared_ptr<const ProcessGrid>& grid = A.grid();
  agree(grid, "stream_matrix",
        [&](Agreement& agreement) { check_matrix("stream_matrix", agreement, A, options); });
  return stream_on<T>(grid, A.layout(), options, "",
                      [&](OwnStore<T>& block, Range, Range) { block.store(*source_in_memory(A)); });
}

Index in_place_run(Communicator& comm, const std::string& name, const MatrixHeader& header, GridShape grid) {
  std::array<Index, 1> shortest{0};
  attempt(comm, [&] {
    if (comm.rank() != 0 || header.rows == 0 || header.cols == 0) return;
    try {
      const MatrixBoxes boxes = boxes_of(name, header, header.type);
      const Index rows = with_scalar_type(header.type, []<Scalar T>() {
        return TileOrder<T>(1, 1, *kernel_choice().set).height() / parts<T>;
      });
      for (int col = 0; col < grid.cols; ++col) {
        const Range cols = balanced_part(header.cols, grid.cols, col);
        if (cols.size == 0) continue;
        const Index run = bytes_of_run(boxes, cols, rows, size_of(header.type));
        shortest[0] = col == 0 ? run : std::min(shortest[0], run);
      }
    } catch (const UsageError&) {  // they lie otherwise
    }
  });
  comm.broadcast(shortest, 0);
  return shortest[0];
}

template <Scalar T>
StreamedSizes streamed_sizes(Index rows, Index cols, Index columns, GridShape grid, int row, int col,
                             Index memory, bool in_place) {
  const Index block_cols = balanced_part(cols, grid.cols, col).size;
  const TileOrder<T> order(balanced_part(rows, grid.rows, row).size, block_cols, *kernel_choice().set);
  const Slabs slabs(order, memory, 0, in_place);
  return {slabs.parts.bytes_in_memory(), slabs.parts.bytes_on_disk(),
          streamed_workspace_bytes(order, columns)};
}

#define GRIDLOPS_INSTANTIATE(T)                                                                              \
  template class StreamedMatrix<T>;                                                                          \
  template StreamedMatrixPtr<T> stream_matrix(const std::shared_ptr<const ProcessGrid>&, const std::string&, \
                                              const MatrixHeader&, const StreamOptions&);                    \
  template StreamedMatrixPtr<T> stream_matrix(const ConstDistMatrix<T>&, const StreamOptions&);              \
  template StreamedSizes streamed_sizes<T>(Index, Index, Index, GridShape, int, int, Index, bool);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
