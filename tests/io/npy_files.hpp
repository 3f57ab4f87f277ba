// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <csignal>
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
#include "gridlops/dist/dist_matrix.hpp"
#include "support/grids.hpp"
#include "support/metered_backend.hpp"

namespace gridlops::testing {

/// While it lives, this process cannot make files longer than this many bytes.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : old_handler_(signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &old_);
    const rlimit limit{bytes, old_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &old_);
    signal(SIGXFSZ, old_handler_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit old_{};
  sighandler_t old_handler_;
};

/// An empty folder that all ranks know (making and destroying it is collective over world(), also for ranks
/// outside a grid). Rank 0 removes it once all are done with it.
class ScratchFolder {
 public:
  ScratchFolder() : ScratchFolder(place()) {}
  explicit ScratchFolder(const std::filesystem::path& where) {
    std::string name = (where / "gridlops-XXXXXX").string();
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
  /// It is in memory where there is room, so that tests do not wait for a disk at every step of a checkpoint.
  static std::filesystem::path place() {
    const std::filesystem::path memory = "/dev/shm";
    std::error_code none;
    const bool room = std::filesystem::space(memory, none).available > (std::uintmax_t{1} << 29);
    return !none && room ? memory : std::filesystem::temp_directory_path();
  }

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

/// Rank 0 writes a file of version 2 with these elements, in the order in which they are in the file
/// (collective).
template <Scalar T>
void create_npy(const std::string& path, ScalarType type, bool fortran_order, const std::string& shape,
                const std::vector<T>& data) {
  world().barrier();
  if (world().rank() == 0) {
    const char* descr[] = {"<f4", "<f8", "<c8", "<c16"};
    const std::string dictionary = std::string("{'descr': '") + descr[static_cast<int>(type)] +
                                   "', 'fortran_order': " + (fortran_order ? "True" : "False") +
                                   ", 'shape': " + shape + ", }";
    // The header is as long as one of version 1 by this library, so that files can be compared.
    const std::string header = std::string("\x93NUMPY\1\0", 8) + static_cast<char>(118) + '\0' + dictionary +
                               std::string(117 - dictionary.size(), ' ') + '\n';
    std::ofstream(path, std::ios::binary) << header << bytes_of(data);
  }
  world().barrier();
}

inline GridPtr square_grid() {
  return std::make_shared<const ProcessGrid>(world(), near_square(world().size()), make_host_backend());
}

/// The layouts with names, one that crosses the grid, one with copies of rows alone, and one with all columns
/// in the last part.
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
inline std::shared_ptr<MeteredBackend> make_device_double() {
  return std::make_shared<MeteredBackend>(make_host_backend(), MemorySpace::device);
}

}  // namespace gridlops::testing
