// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gridlops/io/array_file.hpp"
#include "hdf5/handles.hpp"
#include "io/npy_files.hpp"
#include "support/arrays.hpp"
#include "support/catch.hpp"
#include "support/reference.hpp"

// Datasets that HDF5 itself makes and reads, for tests of those that the library reads and makes.

namespace gridlops::testing {

using h5::Handle;

struct Size {
  Index rows, cols;
};
inline constexpr Size sizes[] = {{0, 5}, {5, 0}, {1, 1}, {7, 3}, {2, 11}, {13, 1}};

template <Scalar T>
T element(Index i, Index j) {
  return small_integer<T>(5, i, j);
}

template <Scalar T>
Handle type_of_elements() {
  const hid_t part = sizeof(Real<T>) == 4 ? H5T_NATIVE_FLOAT : H5T_NATIVE_DOUBLE;
  if constexpr (!is_complex<T>) return {H5Tcopy(part), H5Tclose};
  Handle pair(H5Tcreate(H5T_COMPOUND, sizeof(T)), H5Tclose);
  H5Tinsert(pair.id(), "r", 0, part);
  H5Tinsert(pair.id(), "i", sizeof(Real<T>), part);
  return pair;
}

/// How a dataset is stored.
struct Kept {
  const char* name;
  std::vector<hsize_t> chunk = {};  // empty: contiguous
  bool compressed = false;
  hid_t type = -1;  // below zero: that of the elements
  bool matlab = false;
};

inline void give_attribute(const Handle& object, const char* name, const char* text) {
  const Handle type(H5Tcopy(H5T_C_S1), H5Tclose), space(H5Screate(H5S_SCALAR), H5Sclose);
  H5Tset_size(type.id(), std::max<std::size_t>(std::strlen(text), 1));
  const Handle attribute(H5Acreate2(object.id(), name, type.id(), space.id(), H5P_DEFAULT, H5P_DEFAULT),
                         H5Aclose);
  H5Awrite(attribute.id(), type.id(), text);
}

inline Handle open_file(const std::string& file, unsigned mode) {
  return {H5Fopen(file.c_str(), mode, H5P_DEFAULT), H5Fclose};
}
inline Handle open_dataset(const Handle& file, const char* name) {
  return {H5Dopen2(file.id(), name, H5P_DEFAULT), H5Dclose};
}

/// Rank 0 makes a file with the dataset /g/A (collective). data: as the file has it, in C order of the sizes.
template <Scalar T>
void create(const std::string& file, const std::vector<hsize_t>& shape, const std::vector<T>& data,
            const Kept& kept) {
  world().barrier();
  if (world().rank() == 0) {
    const Handle id(H5Fcreate(file.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), H5Fclose);
    const Handle group(H5Gcreate2(id.id(), "g", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), H5Gclose);
    const std::vector<hsize_t> unlimited(shape.size(), H5S_UNLIMITED);
    const Handle space(H5Screate_simple(static_cast<int>(shape.size()), shape.data(),
                                        kept.chunk.empty() ? nullptr : unlimited.data()),
                       H5Sclose);
    const Handle how(H5Pcreate(H5P_DATASET_CREATE), H5Pclose), type = type_of_elements<T>();
    if (!kept.chunk.empty()) H5Pset_chunk(how.id(), static_cast<int>(shape.size()), kept.chunk.data());
    if (kept.compressed) {
      H5Pset_shuffle(how.id());
      H5Pset_deflate(how.id(), 1);
      H5Pset_fletcher32(how.id());
    }
    const Handle dataset(H5Dcreate2(group.id(), "A", kept.type < 0 ? type.id() : kept.type, space.id(),
                                    H5P_DEFAULT, how.id(), H5P_DEFAULT),
                         H5Dclose);
    CHECK(dataset.is_open());
    if (!data.empty())
      CHECK(H5Dwrite(dataset.id(), type.id(), H5S_ALL, H5S_ALL, H5P_DEFAULT, data.data()) >= 0);
    if (kept.matlab) give_attribute(dataset, "MATLAB_class", "double");
  }
  world().barrier();
}

/// A dataset as HDF5 reads it, in C order; with its shape.
template <Scalar T>
std::pair<std::vector<hsize_t>, std::vector<T>> whole(const std::string& file, const char* name) {
  const Handle id = open_file(file, H5F_ACC_RDONLY), dataset = open_dataset(id, name);
  const Handle space(H5Dget_space(dataset.id()), H5Sclose), type = type_of_elements<T>();
  std::vector<hsize_t> shape(static_cast<std::size_t>(H5Sget_simple_extent_ndims(space.id())));
  H5Sget_simple_extent_dims(space.id(), shape.data(), nullptr);
  std::vector<T> data(static_cast<std::size_t>(H5Sget_simple_extent_npoints(space.id())));
  if (!data.empty()) H5Dread(dataset.id(), type.id(), H5S_ALL, H5S_ALL, H5P_DEFAULT, data.data());
  const Handle stored(H5Dget_type(dataset.id()), H5Tclose);
  CHECK(H5Tequal(stored.id(), type.id()) > 0);
  return {shape, data};
}

template <Scalar T>
DistMatrix<T> unread_matrix(const GridPtr& grid, const Layout& layout) {
  DistMatrix<T> X(grid, layout);
  X.fill([](Index, Index) { return T(99); });
  return X;
}

inline std::vector<hsize_t> shape_of(Size size) {
  return {static_cast<hsize_t>(size.rows), static_cast<hsize_t>(size.cols)};
}

/// Elements in the order of the rows.
template <Scalar T>
std::vector<T> by_rows(Size size) {
  return dense<T>(size.cols, size.rows, [](Index j, Index i) { return element<T>(i, j); });
}

inline GridPtr grid_on(const std::shared_ptr<Backend>& backend) {
  return std::make_shared<const ProcessGrid>(world(), near_square(world().size()), backend);
}

}  // namespace gridlops::testing
