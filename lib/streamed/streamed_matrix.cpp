// SPDX-License-Identifier: BSD-3-Clause
#include "gridlops/streamed/streamed_matrix.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "base/instantiate.hpp"
#include "base/message.hpp"
#include "base/numbers.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/base/random.hpp"
#include "gridlops/comm/failure.hpp"
#include "gridlops/comm/mpi.hpp"
#include "gridlops/ops/cost_model.hpp"
#include "gridlops/ops/matrix_mult.hpp"
#include "io/matrix_reader.hpp"
#include "streamed/stationary_streamed.hpp"
#include "streamed/streamed_block.hpp"

namespace gridlops {

namespace {

template <Scalar T>
class FileSource final : public StreamedBlock<T>::Source {
 public:
  FileSource(const std::string& name, const MatrixHeader& header, Index first_row, Index first_col)
      : reader_(name, header), first_row_(first_row), first_col_(first_col) {}

  bool by_columns() const override { return reader_.by_columns(); }
  MatrixView<const T> read(Range rows, Range cols) override {
    part_.resize(std::max(part_.size(), at(rows.size * cols.size)));
    const MatrixView<T> part(part_.data(), rows.size, cols.size);
    reader_.read({first_row_ + rows.begin, rows.size}, {first_col_ + cols.begin, cols.size}, part);
    return part;
  }

 private:
  MatrixReader<T> reader_;
  Index first_row_, first_col_;
  std::vector<T> part_;
};

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

/// of: what the blocks of all ranks are made of, for tiles that stay.
template <Scalar T, class OpenSource>
StreamedMatrixPtr<T> stream_on(const std::shared_ptr<const ProcessGrid>& grid, const Layout& layout,
                               StreamOptions options, const std::string& of, OpenSource&& open_source) {
  const DistMatrix<T> shape = planned_matrix<T>(grid, layout);
  const auto products = std::make_shared<StreamedProducts<T>>(grid, options.column_stable);
  if (!grid->is_member()) return make_streamed<T>(shape, {}, products);
  const Range rows = shape.local_row_range(), cols = shape.local_col_range();
  std::string of_block;
  if (!of.empty()) {
    std::error_code told_later;  // where a file is made there
    std::filesystem::create_directories(options.tiles, told_later);
    options.tiles += message("/row-", grid->my_row(), "-col-", grid->my_col());
    of_block = message(of, "; rows from ", rows.begin, ", ", rows.size, ", columns from ", cols.begin, ", ",
                       cols.size);
  }
  auto block = attempt(grid->comm(), [&] {
    auto made =
        std::make_unique<StreamedBlock<T>>(grid->backend(), layout, rows.size, cols.size, options, of_block);
    if (made->is_stored() || rows.size == 0 || cols.size == 0) return made;
    const std::unique_ptr<typename StreamedBlock<T>::Source> source = open_source(rows, cols);
    made->store(*source);
    return made;
  });
  return make_streamed<T>(shape, {block->block(), block->parts(), block->norm()}, products);
}

}  // namespace

template <Scalar T>
StreamedMatrixPtr<T> stream_matrix(const std::shared_ptr<const ProcessGrid>& grid, const std::string& name,
                                   const MatrixHeader& header, const StreamOptions& options) {
  const Layout layout = matrix_layout(Algorithm::stationary_a, *grid, header.rows, header.cols);
  agree(grid, "stream_matrix", [&](Agreement& agreement) {
    agreement.on("the file", name).on("the rows", header.rows).on("the columns", header.cols);
    check_options(agreement, *grid, options);
  });
  const std::string of = options.tiles.empty() || !grid->is_member()
                             ? std::string()
                             : attempt(grid->comm(), [&] { return text_of_file(name, header); });
  return stream_on<T>(grid, layout, options, of, [&](Range rows, Range cols) {
    return std::make_unique<FileSource<T>>(name, header, rows.begin, cols.begin);
  });
}

template <Scalar T>
StreamedMatrixPtr<T> stream_matrix(const ConstDistMatrix<T>& A, const StreamOptions& options) {
  const std::shared_ptr<const ProcessGrid>& grid = A.grid();
  agree(grid, "stream_matrix",
        [&](Agreement& agreement) { check_matrix("stream_matrix", agreement, A, options); });
  return stream_on<T>(grid, A.layout(), options, "",
                      [&](Range, Range) { return std::make_unique<MemorySource<T>>(A); });
}

DiskRate measure_disk(Communicator& comm, const std::string& scratch, Index bytes, Index memory_allowed) {
  constexpr Index slots = PartPlan::least_slots, least = PartPlan::least_bytes;
  const Index of_rank = bytes / comm.size();
  const Index wanted = std::min(PartPlan::good_bytes(0, memory_allowed), of_rank / (slots + 1));
  const Index slab = std::max(wanted / least, Index{1}) * least;
  const Index slabs = std::max<Index>(of_rank / slab, slots + 1);
  Buffer<std::byte> memory;  // as products have it: a disk fills large pages faster
  std::unique_ptr<TileFile> file;
  std::unique_ptr<ReadAhead> reader;
  const auto aligned = [&] {
    void* first = memory.data();
    auto room = static_cast<std::size_t>(memory.size());
    return static_cast<std::byte*>(std::align(std::size_t{TileFile::block}, at(slab), first, room));
  };
  attempt(comm, [&] {
    memory = Buffer<std::byte>(make_host_backend(), slab * slots + TileFile::block);
    // What no disk compresses.
    for (Index k = 0; k < slab; k += Index{sizeof(double)}) {
      const double value = counter_random<double>(1, k, comm.rank());
      std::memcpy(aligned() + k, &value, sizeof value);
    }
    file = std::make_unique<TileFile>(TileFile::nameless(scratch, slabs * slab));
    for (Index k = 0; k < slabs; ++k) {
      keep_alive();
      file->write(aligned(), slab, k * slab);
    }
    file->finish();
  });
  attempt(comm, [&] {
    ReadAhead::Pass pass;
    for (Index k = 0; k < slabs; ++k) pass.parts.push_back({k, k * slab, slab});
    reader = std::make_unique<ReadAhead>(*file, ReadAhead::Ring{aligned(), slots, slab},
                                         std::vector<ReadAhead::Pass>{pass}, [](Index, const std::byte*) {});
  });
  // The best of some passes, because a disturbed pass shows no limit, and the first follows what was written.
  constexpr int passes = 4;
  std::array<double, 1> seconds{std::numeric_limits<double>::infinity()};
  for (int pass = 0; pass < passes; ++pass) {
    std::array<double, 1> of_pass{};
    attempt(comm, [&] {
      const auto begin = std::chrono::steady_clock::now();
      reader->begin_pass(0);
      for (Index k = 0; k < slabs; ++k) {
        reader->get(k);
        reader->release_before(k + 1);
        keep_alive();
      }
      of_pass[0] = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    });
    comm.all_reduce(of_pass, ReduceOp::max);
    seconds[0] = std::min(seconds[0], of_pass[0]);
  }
  return {static_cast<double>(slabs * slab) * comm.size() / seconds[0]};
}

template <Scalar T>
StreamedSizes streamed_sizes(Index rows, Index cols, Index columns, GridShape grid, int row, int col,
                             Index memory) {
  const Index block_cols = balanced_part(cols, grid.cols, col).size;
  const TileOrder<T> order(balanced_part(rows, grid.rows, row).size, block_cols, *kernel_choice().set);
  const Slabs slabs(order, memory);
  return {slabs.parts.bytes_in_memory(), slabs.parts.bytes_on_disk(),
          streamed_workspace_bytes(order, columns)};
}

#define GRIDLOPS_INSTANTIATE(T)                                                                              \
  template class StreamedMatrix<T>;                                                                          \
  template StreamedMatrixPtr<T> stream_matrix(const std::shared_ptr<const ProcessGrid>&, const std::string&, \
                                              const MatrixHeader&, const StreamOptions&);                    \
  template StreamedMatrixPtr<T> stream_matrix(const ConstDistMatrix<T>&, const StreamOptions&);              \
  template StreamedSizes streamed_sizes<T>(Index, Index, Index, GridShape, int, int, Index);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)

}  // namespace gridlops
