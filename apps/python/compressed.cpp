// SPDX-License-Identifier: BSD-3-Clause
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "gridlops/compressed/compressed_matrix.hpp"
#include "native.hpp"

namespace gridlops::python {
namespace {

/// The tolerance, the size of a tile, the orders of rows and columns, and the directory.
using Asked = std::tuple<double, Index, std::vector<Index>, std::vector<Index>, std::string>;

CompressionOptions options_of(const Asked& asked) {
  const auto& [tolerance, tile, row_order, col_order, directory] = asked;
  return {tolerance, tile, row_order, col_order, directory};
}

py::dict dict_of_compression(const CompressionReport& report) {
  py::dict result;
  result["norm"] = report.norm;
  result["error"] = report.error;
  result["bytes"] = report.bytes;
  result["dense_bytes"] = report.dense_bytes;
  result["tiles"] = report.tiles;
  result["dense_tiles"] = report.dense_tiles;
  result["empty_tiles"] = report.empty_tiles;
  return result;
}

/// The operator that make() returns, its use of the disk, and its report.
template <Scalar T, class Make>
py::tuple made_unlocked(Make&& make) {
  const CompressedMatrixPtr<T> made = unlocked(make);
  return py::make_tuple(Operator<T>{made}, disk_use_of(made), dict_of_compression(made->report()));
}

template <Scalar T>
void bind_compressed(py::module_ native) {
  native.def("compress", [](const Matrix<T>& A, const Asked& asked) {
    return made_unlocked<T>([&] { return compress<T>(A.matrix, options_of(asked)); });
  });
  native.def("compress_file",
             [](Communicator& comm, const GridPtr& grid, const std::string& name, const Asked& asked) {
               return made_unlocked<T>([&] {
                 return compress<T>(grid, name, read_matrix_header(comm, name), options_of(asked));
               });
             });
  native.def("read_compressed", [](const GridPtr& grid, const std::string& directory,
                                   std::pair<Index, Index> shape, std::optional<Index> memory,
                                   const std::string& scratch) {
    std::optional<StreamOptions> on_disk;
    if (memory) on_disk = {.scratch = scratch, .memory = *memory};
    return made_unlocked<T>([&] {
      return read_compressed<T>(
          grid, directory, {.type = scalar_type_of<T>, .rows = shape.first, .cols = shape.second}, on_disk);
    });
  });
}

}  // namespace

void bind_compressed(py::module_& native) {
  native.def("compressed_header", [](Communicator& comm, const std::string& directory) {
    const MatrixHeader header = unlocked([&] { return read_compressed_header(comm, directory); });
    return py::make_tuple(header.rows, header.cols, type_name(header.type));
  });
  for_each_type(native, []<Scalar T>(py::module_ module) { bind_compressed<T>(module); });
}

}  // namespace gridlops::python
