// SPDX-License-Identifier: BSD-3-Clause
#include <string>
#include <tuple>

#include "gridlops/streamed/streamed_matrix.hpp"
#include "native.hpp"

namespace gridlops::python {
namespace {

/// The scratch directory, the memory, whether columns are stable, the directory of tiles that stay, and
/// whether the file is read in place.
using Asked = std::tuple<std::string, Index, bool, std::string, bool>;

StreamOptions options_of(const Asked& asked) {
  const auto& [scratch, memory, column_stable, tiles, in_place] = asked;
  return {scratch, memory, column_stable, tiles, in_place};
}

/// The operator that make() returns, and its use of the disk.
template <Scalar T, class Make>
py::tuple made_unlocked(Make&& make) {
  const StreamedMatrixPtr<T> made = unlocked(make);
  return py::make_tuple(Operator<T>{made}, disk_use_of(made));
}

}  // namespace

void bind_streamed(py::module_& native) {
  for_each_type(native, []<Scalar T>(py::module_ module) {
    module.def("stream_matrix", [](const Matrix<T>& A, const Asked& asked) {
      return made_unlocked<T>([&] { return stream_matrix<T>(A.matrix, options_of(asked)); });
    });
    module.def("stream_file",
               [](Communicator& comm, const GridPtr& grid, const std::string& name, const Asked& asked) {
                 return made_unlocked<T>([&] {
                   return stream_matrix<T>(grid, name, read_matrix_header(comm, name), options_of(asked));
                 });
               });
  });
}

}  // namespace gridlops::python
