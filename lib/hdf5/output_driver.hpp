// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <exception>
#include <string>

#include "gridlops/base/types.hpp"
#include "hdf5/handles.hpp"
#include "io/files/file.hpp"

namespace gridlops::h5 {

/// A file that HDF5 writes, by way of this library's own files. HDF5 takes every write for done: if it could
/// not close a file it would crash when the process ends. What went wrong is kept for check().
class OutputDriver {
 public:
  OutputDriver(const std::string& path, const std::string& name);
  OutputDriver(const OutputDriver&) = delete;
  OutputDriver& operator=(const OutputDriver&) = delete;

  /// With this, H5Fcreate or H5Fopen takes this file, whatever name it is given. It must live until HDF5 has
  /// closed the file.
  Handle access();
  /// Throws OutputError if anything could not be written.
  void check() const;

 private:
  struct Calls;
  friend struct Calls;

  InputFile read_;
  OutputFile write_;
  std::exception_ptr failure_;
};

}  // namespace gridlops::h5
