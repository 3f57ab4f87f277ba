// SPDX-License-Identifier: BSD-3-Clause
#include "base/message.hpp"
#include "gridlops/base/error.hpp"
#include "io/formats/hdf5.hpp"

namespace gridlops {

namespace {

[[noreturn]] void refuse(const ArrayName& name) {
  throw UsageError(
      message(name.text,
              ": is a dataset in an HDF5 file, but this library was built without HDF5; "
              "install it (on Debian libhdf5-openmpi-dev), and configure and build again, or give "
              "a .npy file; in Python, read_array() and write_array() take datasets of h5py"));
}

}  // namespace

std::unique_ptr<Dataset> open_dataset(const ArrayName& name) { refuse(name); }

Index make_dataset(const std::string&, const ArrayName& name, const ArrayHeader&, const ArrayName&) {
  refuse(name);
}

void check_output_dataset(const ArrayName& name) { refuse(name); }

std::string hdf5_text() { return "none: this library was built without HDF5"; }

}  // namespace gridlops
