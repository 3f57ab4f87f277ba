// SPDX-License-Identifier: BSD-3-Clause
#include "io/files/shared_file.hpp"

#include <chrono>
#include <filesystem>

#include "base/message.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/io/text_file.hpp"
#include "io/formats/hdf5.hpp"

namespace gridlops {

namespace {

/// How long a job waits for another one that writes to the same HDF5 file.
constexpr std::chrono::minutes patience{10};

}  // namespace

MatrixHeader matrix_header(const ArrayHeader& array, const std::string& name) {
  const std::size_t dimensions = array.sizes.size();
  require<InputError>(dimensions <= 2, name, ": is ", shape_text(array.sizes),
                      ", but a matrix has two dimensions, and a vector one; name a part, such as ", name,
                      name.find('@') == std::string::npos ? "@0" : ",0");
  return {array.type,
          array.sizes[0],
          dimensions == 2 ? array.sizes[1] : 1,
          static_cast<int>(dimensions),
          array.fortran_order,
          array.data_offset};
}

ArrayName parse_output_name(const std::string& name) {
  ArrayName place = parse_array_name(name);
  if (!place.is_dataset()) return place;
  require<UsageError>(place.slices.empty(), name,
                      ": is a part of a dataset, but datasets are written as a whole; leave out the part");
  require<UsageError>(
      !place.file.ends_with(".mat"), name,
      ": files of MATLAB are read, and not written; give a name in .h5, which MATLAB reads by "
      "h5read");
  require<UsageError>(place.dataset != "/", name, ": names no dataset; give it a name, such as ", place.file,
                      ":/X");
  return place;
}

// The lock comes first: another job may have changed the file until it is ours.
NewArray::NewArray(const ArrayName& name, const ArrayHeader& header, const std::string& like, Access access) {
  if (!name.is_dataset()) {
    const std::string start = npy_header_text(header);
    Index bytes = size_of(header.type);
    for (const Index size : header.sizes) bytes *= size;
    temporary_.emplace(name.file, access);
    data_offset_ = static_cast<Index>(start.size());
    temporary_->prepare(start, data_offset_ + bytes);
    return;
  }
  lock_.emplace(written_file(name.file) + ".lock", "write there", patience);
  temporary_.emplace(name.file, access);
  temporary_->prepare("", 0);
  std::error_code error;
  if (std::filesystem::exists(name.file, error)) {
    check_output_dataset(name);
    temporary_->copy(name.file);
  }
  data_offset_ = make_dataset(temporary_->name(), name, header, parse_array_name(like));
  OutputFile::open(temporary_->name(), name.file).finish();
}

void check_output_array(const std::string& name) {
  const ArrayName place = parse_output_name(name);
  check_output_file(place.file);
  if (place.is_dataset()) check_output_dataset(place);
}

}  // namespace gridlops
