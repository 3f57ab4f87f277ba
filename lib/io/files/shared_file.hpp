// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "dist/describe_layout.hpp"
#include "gridlops/base/trace.hpp"
#include "gridlops/comm/failure.hpp"
#include "gridlops/dist/dist_matrix.hpp"
#include "io/files/file.hpp"
#include "io/files/locks.hpp"
#include "io/files/temporary_file.hpp"
#include "io/formats/array_name.hpp"
#include "io/formats/npy_header.hpp"

// How all ranks of a grid open, read and make one file of an array.

namespace gridlops {

/// Parses the header at the start of a file. Not collective.
template <class Parse>
auto read_header_of(const std::string& path, Parse&& parse) {
  const InputFile file(path);
  std::vector<char> start(static_cast<std::size_t>(std::min(file.size(), npy_header_limit)));
  file.read(start.data(), static_cast<Index>(start.size()), 0);
  return parse(start, file.size(), path);
}

/// Returns the header of a dataset as a matrix. Throws InputError if it is no matrix.
MatrixHeader matrix_header(const ArrayHeader& array, const std::string& name);

/// The name of an output. Throws UsageError if no array can be written there.
ArrayName parse_output_name(const std::string& name);

/// Lets all ranks agree on the file, and the matrix, before they read or write it.
template <Scalar T>
void begin_with_file(const char* operation, const std::string& name, const ConstDistMatrix<T>& X,
                     const std::function<void(Agreement&)>& check) {
  agree(X.grid(), operation, [&](Agreement& agreement) {
    agreement.on("the file", name);
    describe_matrix(agreement, "the matrix", X);
    check(agreement);
  });
}

/// A file that rank 0 makes, with room for an array. It takes its name when all have written.
class NewArray {
 public:
  NewArray(const ArrayName& name, const ArrayHeader& header, const std::string& like, Access access);

  const std::string& file() const { return temporary_->name(); }
  Index data_offset() const { return data_offset_; }
  void take_name() { temporary_->take_name(); }

 private:
  std::optional<LockFile> lock_;
  std::optional<TemporaryFile> temporary_;
  Index data_offset_ = 0;
};

/// Makes the file of an array (collective over the grid of X). Owners of a block write it by
/// write_block(file, data_offset). `like`: see write_matrix().
template <Scalar T, class WriteBlock>
void write_together(const ArrayName& name, const ArrayHeader& header, const std::string& like, Access access,
                    const ConstDistMatrix<T>& X, WriteBlock&& write_block) {
  const TraceRegion region("write file");
  if (!X.grid()->is_member()) return;
  Communicator& comm = X.grid()->comm();
  std::optional<NewArray> made;  // on rank 0
  attempt(comm, [&] {
    if (comm.rank() == 0) made.emplace(name, header, like, access);
  });
  const std::string file = broadcast_text(comm, made ? made->file() : std::string(), 0);
  std::array<Index, 1> data_offset{made ? made->data_offset() : 0};
  comm.broadcast(data_offset, 0);
  attempt(comm, [&] {
    if (X.owned() && !X.local().empty()) write_block(file, data_offset[0]);
  });
  attempt(comm, [&] {
    if (made) made->take_name();
  });
}

/// write_matrix() into a file with this access (collective over the grid of X).
template <Scalar T>
void write_matrix(const std::string& name, const ConstDistMatrix<T>& X, int dimensions,
                  const std::string& like, Access access);

}  // namespace gridlops
