// SPDX-License-Identifier: BSD-3-Clause
#include "matrix/matrix_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <limits>

#include "command_line/option_rules.hpp"
#include "gridlops/base/error.hpp"

namespace gridlops::program {

MatrixFile::MatrixFile(Communicator& world, const std::string& name) : name_(name) {
  std::error_code ignored;
  std::array<int, 1> is_directory{world.rank() == 0 && std::filesystem::is_directory(name, ignored) ? 1 : 0};
  world.broadcast(is_directory, 0);
  is_compressed_ = is_directory[0] != 0;
  header_ = is_compressed_ ? read_compressed_header(world, name) : read_matrix_header(world, name);
}

void MatrixFile::read_tables(Communicator& world) {
  if (!is_compressed_) return;
  compressed_ = std::make_shared<SavedCompressed>(world, name_);
  if (!(compressed_->header() == header_))
    throw InputError(fmt::format("{} has changed while it was read", name_));
}

void MatrixFile::require_fits(Algorithm algorithm, ScalarType type) const {
  if (!is_compressed()) return;
  if (!may_be(algorithm, Algorithm::stationary_a))
    throw UsageError(fmt::format("{} is compressed, and multiplied by stationary-a only, not by {}", name_,
                                 name_of(algorithm)));
  if (type != header_.type)
    throw InputError(
        fmt::format("{} is compressed, of {}, which does not hold all other inputs: they need {}", name_,
                    name_of(header_.type), name_of(type)));
}

void MatrixFile::require_elements(const char* option) const {
  if (is_compressed() && option != nullptr)
    throw UsageError(
        fmt::format("{} is compressed, and {} is for matrices whose elements are there", name_, option));
}

void MatrixFile::narrow(IterationRequest& asked) const {
  if (!is_compressed()) return;
  asked.algorithm = Algorithm::stationary_a;
  asked.one_pass = false;
  asked.storage = Storage::columns;
}

double MatrixFile::modelled(double seconds) const {
  return is_compressed() ? std::numeric_limits<double>::quiet_NaN() : seconds;
}

double MatrixFile::cost_on(GridShape grid, const ProductShape& shape,
                           const std::function<double()>& seconds) const {
  if (!is_compressed()) return seconds();
  Index most = 0;
  for (int row = 0; row < grid.rows; ++row) {
    for (int col = 0; col < grid.cols; ++col) {
      Index bytes = 2 * compressed_->bytes_of_rank(grid, row, col, 0);
      for (const bool adjoint : {false, true})
        bytes += product_cost(Algorithm::stationary_a, shape, grid, row, col, adjoint).bytes_received;
      most = std::max(most, bytes);
    }
  }
  return static_cast<double>(most);
}

StreamedSizes MatrixFile::sizes_on_disk(const KeptMatrix& how, int row, int col) const {
  if (is_compressed()) return compressed_->sizes_on_disk(how.grid, row, col, how.columns, how.memory);
  return with_scalar_type(how.type, [&]<Scalar T>() {
    return streamed_sizes<T>(rows(), cols(), how.columns, how.grid, row, col, how.memory, how.in_place);
  });
}

std::function<Index(int row, int col)> MatrixFile::tile_bytes(const KeptMatrix& how) const {
  if (how.place == MatrixPlace::disk)
    return [*this, how](int row, int col) {
      const StreamedSizes sizes = sizes_on_disk(how, row, col);
      return sizes.memory + sizes.workspace;
    };
  if (!is_compressed()) return {};
  return
      [*this, how](int row, int col) { return compressed_->bytes_of_rank(how.grid, row, col, how.columns); };
}

Index MatrixFile::bytes_of_tables(GridShape grid) const {
  const Index tiles = is_compressed() ? compression().tiles : 0;
  // An entry for every tile, and the shape of each of this rank's.
  return 128 * tiles + 256 * tiles / grid.size();
}

}  // namespace gridlops::program
