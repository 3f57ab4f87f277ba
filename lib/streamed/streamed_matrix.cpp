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
#include "comm/failure/failure.hpp"
#include "dist/describe_layout.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/base/random.hpp"
#include "gridlops/comm/failure.hpp"
#include "gridlops/comm/mpi.hpp"
#include "gridlops/ops/cost_model.hpp"
#include "gridlops/ops/matrix_mult.hpp"
#include "io/matrix_reader.hpp"
#include "ops/matrix/algorithms.hpp"
#include "ops/matrix/normal_product.hpp"
#include "ops/matrix/stationary_product.hpp"
#include "streamed/streamed_block.hpp"

namespace gridlops {

namespace {

template <Scalar T>
class MemorySource final : public StreamedBlock<T>::Source {
 public:
  explicit MemorySource(const ConstDistMatrix<T>& A) : A_(A.local()) {}
  bool by_columns() const override { return true; }
  MatrixView<const T> read(Range rows, Range cols) override { return A_.block(rows, cols); }

 private:
  MatrixView<const T> A_;
};

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

template <Scalar T>
class StationaryStreamed final : public StreamedMatrix<T> {
 public:
  /// block: null on idle ranks.
  StationaryStreamed(const ConstDistMatrix<T>& shape, std::unique_ptr<StreamedBlock<T>> block, double norm,
                     ReductionOrder order)
      : StreamedMatrix<T>(range_nested(shape), domain_nested(shape)),
        block_(std::move(block)),
        norm_(norm),
        normal_product_(shape.grid()->backend(), order) {
    if (block_) product_ = std::make_unique<StationaryProduct<T>>(*shape.grid(), order);
  }

  double frobenius_norm() const override { return norm_; }
  Index bytes_read() const override { return block_ ? block_->bytes_read() : 0; }
  double seconds_waited() const override { return block_ ? block_->seconds_waited() : 0; }
  bool has_one_pass() const override { return true; }

 private:
  bool runs_callers_code() const override { return false; }

  void do_connect(Op) const override { product_->connect(); }
  void do_reserve(Op op, const Partition& columns) const override {
    product_->reserve(op, block_of_models(*this), block_of_data(*this),
                      this->domain().local_columns(columns));
  }
  void do_reserve_normal_product(const Partition& columns) const override {
    normal_product_.reserve(block_of_models(*this), block_of_data(*this),
                            this->domain().local_columns(columns));
  }
  Index do_kept_bytes(const Partition& columns) const override {
    const ProcessGrid& grid = *this->domain().grid;
    return block_->kept_bytes(columns.total()) +
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
    product_->multiply(op, block_of_models(*this), block_of_data(*this), in.local(), beta, out.local(),
                       [&](MatrixView<const T> X, T beta_of_block, MatrixView<T> Y) {
                         block_->multiply(op, alpha, X, beta_of_block, Y);
                       });
  }
  void do_normal_product(const ConstDistMatrix<T>& P, const ConstDistMatrix<T>& R, DistMatrix<T>& Q,
                         DistMatrix<T>& U, DistMatrix<T>& V) const override {
    FailureScope failures;
    failures.note_lone_failures();
    normal_product_.run(*block_, block_of_models(*this), block_of_data(*this), P.local(), R.local(),
                        Q.local(), U.local(), V.local());
  }

  std::unique_ptr<StreamedBlock<T>> block_;
  double norm_;
  mutable NormalProduct<T> normal_product_;
  std::unique_ptr<StationaryProduct<T>> product_;
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

void check(Agreement& agreement, const ProcessGrid& grid, const StreamOptions& options) {
  agreement.on("tiles that stay", options.tiles).on("column-stable", options.column_stable ? "yes" : "no");
  require<UsageError>(options.memory >= 0, "the memory cannot be ", options.memory, " bytes");
  require<UsageError>(grid.backend()->memory_space() == MemorySpace::host,
                      "a matrix on disks is multiplied in host memory, and this grid is on GPUs");
}

/// of: what the blocks of all ranks are made of, for tiles that stay.
template <Scalar T, class OpenSource>
StreamedMatrixPtr<T> stream_on(const std::shared_ptr<const ProcessGrid>& grid, const Layout& layout,
                               StreamOptions options, const std::string& of, OpenSource&& open_source) {
  const ReductionOrder order = options.column_stable ? ReductionOrder::by_rank : ReductionOrder::any;
  const DistMatrix<T> shape = planned_matrix<T>(grid, layout);
  if (!grid->is_member()) return std::make_shared<StationaryStreamed<T>>(shape, nullptr, 0, order);
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
  const double norm = block->norm();
  // The largest first, so that no square leaves the range of doubles.
  std::array<double, 1> largest{norm};
  grid->comm().all_reduce(largest, ReduceOp::max);
  const bool is_scaled = largest[0] > 0 && std::isfinite(largest[0]);
  std::array<double, 1> sum{is_scaled ? (norm / largest[0]) * (norm / largest[0]) : norm};
  grid->comm().all_reduce(sum, ReduceOp::sum);
  return std::make_shared<StationaryStreamed<T>>(shape, std::move(block),
                                                 is_scaled ? largest[0] * std::sqrt(sum[0]) : sum[0], order);
}

}  // namespace

template <Scalar T>
StreamedMatrixPtr<T> stream_matrix(const std::shared_ptr<const ProcessGrid>& grid, const std::string& name,
                                   const MatrixHeader& header, const StreamOptions& options) {
  const Layout layout = matrix_layout(Algorithm::stationary_a, *grid, header.rows, header.cols);
  agree(grid, "stream_matrix", [&](Agreement& agreement) {
    agreement.on("the file", name).on("the rows", header.rows).on("the columns", header.cols);
    check(agreement, *grid, options);
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
  agree(grid, "stream_matrix", [&](Agreement& agreement) {
    describe_matrix(agreement, "the matrix", A);
    check(agreement, *grid, options);
    const Layout needed = matrix_layout(Algorithm::stationary_a, *grid, A.rows(), A.cols());
    require<ShapeError>(A.layout().rows.axis == needed.rows.axis && A.layout().cols.axis == needed.cols.axis,
                        "stream_matrix needs its matrix as ", needed.describe(), ", not as ",
                        A.layout().describe());
  });
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
