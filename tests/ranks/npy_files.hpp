// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "base/message.hpp"
#include "gridlops/dist_matrix.hpp"
#include "support/mpi_main.hpp"

namespace gridlops::testing {

/// An empty folder that all ranks know, removed by rank 0 once all are done with it.
class ScratchFolder {
 public:
  ScratchFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "gridlops-XXXXXX").string();
    if (world().rank() == 0 && mkdtemp(name.data()) == nullptr) std::perror(name.c_str());
    path_ = broadcast_text(world(), name, 0);
  }
  ~ScratchFolder() {
    world().barrier();
    std::error_code ignored;
    if (world().rank() == 0) std::filesystem::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  std::string file(const std::string& name) const { return (path_ / name).string(); }

  std::string named_pipe(const std::string& name) const {
    if (world().rank() == 0 && mkfifo(file(name).c_str(), 0600) != 0) std::perror("mkfifo");
    world().barrier();
    return file(name);
  }

  std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(path_)) {
      found.push_back(entry.path().filename().string());
    }
    std::sort(found.begin(), found.end());
    return found;
  }

 private:
  std::filesystem::path path_;
};

inline std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

template <Scalar T>
std::string bytes_of(const std::vector<T>& data) {
  return {reinterpret_cast<const char*>(data.data()), data.size() * sizeof(T)};
}

inline std::string shape_text(Index rows) { return message("(", rows, ",)"); }
inline std::string shape_text(Index rows, Index cols) { return message("(", rows, ", ", cols, ")"); }

/// Rank 0 writes a file of version 2 with these elements, in the order in which they are in the file;
/// collective.
template <Scalar T>
void create_npy(const std::string& path, ScalarType type, bool fortran_order, const std::string& shape,
                const std::vector<T>& data) {
  world().barrier();
  if (world().rank() == 0) {
    const char* descr[] = {"<f4", "<f8", "<c8", "<c16"};
    const std::string dictionary = std::string("{'descr': '") + descr[static_cast<int>(type)] +
                                   "', 'fortran_order': " + (fortran_order ? "True" : "False") +
                                   ", 'shape': " + shape + ", }";
    // As long as a header of version 1 of this library, so that files can be compared.
    const std::string header = std::string("\x93NUMPY\1\0", 8) + static_cast<char>(118) + '\0' + dictionary +
                               std::string(117 - dictionary.size(), ' ') + '\n';
    std::ofstream(path, std::ios::binary) << header << bytes_of(data);
  }
  world().barrier();
}

using GridPointer = std::shared_ptr<const ProcessGrid>;

/// As near to a square as can be, all in a row, all in a column, and with one rank to spare.
inline std::vector<GridPointer> grids() {
  const int ranks = world().size();
  std::vector<GridShape> shapes{near_square(ranks)};
  if (ranks > 1) {
    shapes.insert(shapes.end(), {GridShape{1, ranks}, GridShape{ranks, 1}, near_square(ranks - 1)});
  }
  const auto backend = make_host_backend();
  std::vector<GridPointer> all;
  for (const GridShape shape : shapes) {
    all.push_back(std::make_shared<const ProcessGrid>(world(), shape, backend));
  }
  return all;
}

/// The named ones, one that crosses the grid, one with copies of rows alone, and one with all columns in the
/// last part.
inline std::vector<Layout> some_layouts(const ProcessGrid& grid, Index rows, Index cols) {
  std::vector<Index> last(static_cast<std::size_t>(grid.parts(Axis::grid_cols)), 0);
  last.back() = cols;
  return {blocks_2d(grid, rows, cols),
          row_blocks(grid, rows, cols),
          column_blocks(grid, rows, cols),
          replicated(rows, cols),
          {Cut::balanced(Axis::grid_cols, rows, grid), Cut::balanced(Axis::grid_rows, cols, grid)},
          {Cut::balanced(Axis::grid_rows, rows, grid), Cut::uncut(cols)},
          {Cut::balanced(Axis::grid_rows, rows, grid), {Axis::grid_cols, Partition::with_sizes(last)}}};
}

/// Host memory that calls itself a device's.
class DeviceDouble final : public Backend {
 public:
  std::string name() const override { return "device double"; }
  MemorySpace memory_space() const override { return MemorySpace::device; }
  void upload(const void* host, void* here, Index bytes) override {
    bytes_moved += bytes;
    host_->upload(host, here, bytes);
  }
  void download(const void* here, void* host, Index bytes) override {
    bytes_moved += bytes;
    host_->download(here, host, bytes);
  }
  void synchronize() override {}

  Index bytes_moved = 0;

 private:
  void* do_allocate(Index bytes) override { return host_->allocate(bytes); }
  void do_release(void* memory) noexcept override { host_->release(memory); }
  const Kernels<float>& kernels_f32() const override { return host_->kernels<float>(); }
  const Kernels<double>& kernels_f64() const override { return host_->kernels<double>(); }
  const Kernels<std::complex<float>>& kernels_c64() const override {
    return host_->kernels<std::complex<float>>();
  }
  const Kernels<std::complex<double>>& kernels_c128() const override {
    return host_->kernels<std::complex<double>>();
  }

  std::shared_ptr<Backend> host_ = make_host_backend();
};

}  // namespace gridlops::testing
