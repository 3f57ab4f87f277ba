// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include "gridlops/base/types.hpp"
#include "hdf5/handles.hpp"

namespace gridlops::h5 {

/// The elements of a dataset: the type of this library that holds all their values, and the same in HDF5's
/// words. HDF5 converts to it from any order of bytes.
struct ElementType {
  ScalarType type;
  Handle in_memory;
};

/// Of the elements that are stored in this way. Throws InputError, with the name, if there is no such type.
ElementType element_type(hid_t stored, const std::string& name);

/// How elements of this type are stored: complex numbers as in h5py, which are pairs (r, i).
Handle stored_type(ScalarType type);

}  // namespace gridlops::h5
