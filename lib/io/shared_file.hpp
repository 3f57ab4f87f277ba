// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "dist/describe_layout.hpp"
#include "gridlops/base/trace.hpp"
#include "gridlops/comm/failure.hpp"
#include "gridlops/dist/dist_matrix.hpp"
#include "io/file.hpp"
#include "io/npy_header.hpp"

// How all ranks of a grid open, read and make one .npy file.

namespace gridlops {

/// Parses the header at the start of a file. Not collective.
template <class Parse>
auto read_header_of(const std::string& path, Parse&& parse) {
  const InputFile file(path);
  std::vector<char> start(static_cast<std::size_t>(std::min(file.size(), npy_header_limit)));
  file.read(start.data(), static_cast<Index>(start.size()), 0);
  return parse(start, file.size(), path);
}

/// Lets all ranks agree on the file, and the matrix, before they read or write it.
template <Scalar T>
void begin_with_file(const char* operation, const std::string& path, const ConstDistMatrix<T>& X,
                     const std::function<void(Agreement&)>& check) {
  agree(X.grid(), operation, [&](Agreement& agreement) {
    agreement.on("the file", path);
    describe_matrix(agreement, "the matrix", X);
    check(agreement);
  });
}

/// Makes a file that begins with `start` and has room for X (collective over the grid of X). Owners of a
/// block write it by write_block(name).
template <Scalar T, class WriteBlock>
void write_together(const std::string& path, Access access, const std::string& start,
                    const ConstDistMatrix<T>& X, WriteBlock&& write_block) {
  const TraceRegion region("write file");
  if (!X.grid()->is_member()) return;
  Communicator& comm = X.grid()->comm();
  std::optional<TemporaryFile> temporary;  // on rank 0
  attempt(comm, [&] {
    if (comm.rank() != 0) return;
    temporary.emplace(path, access);
    temporary->prepare(start, static_cast<Index>(start.size()) + X.rows() * X.cols() * Index{sizeof(T)});
  });
  const std::string name = broadcast_text(comm, temporary ? temporary->name() : std::string(), 0);
  attempt(comm, [&] {
    if (X.owned() && !X.local().empty()) write_block(name);
  });
  attempt(comm, [&] {
    if (temporary) temporary->take_name();
  });
}

}  // namespace gridlops
