// SPDX-License-Identifier: BSD-3-Clause
#include <filesystem>
#include <string_view>
#include <vector>

#include "base/at_work.hpp"
#include "base/message.hpp"
#include "base/numbers.hpp"
#include "gridlops/base/error.hpp"
#include "hdf5/element_type.hpp"
#include "hdf5/handles.hpp"
#include "hdf5/missing_values.hpp"
#include "hdf5/output_driver.hpp"
#include "io/formats/hdf5.hpp"

namespace gridlops {

namespace {

using h5::Handle;

/// Throws OutputError unless the file can get a dataset of this name. Returns whether it has one, which would
/// be replaced.
bool is_replaced(const Handle& file, const ArrayName& name) {
  const std::string& path = name.dataset;
  for (std::size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    const std::string part = path.substr(0, end);
    if (h5::checked<OutputError>(H5Lexists(file.id(), part.c_str(), H5P_DEFAULT), name.text,
                                 ": cannot look for ", part) == 0)
      return false;
    H5L_info_t link{};
    h5::checked<OutputError>(H5Lget_info(file.id(), part.c_str(), &link, H5P_DEFAULT), name.text,
                             ": cannot look at ", part);
    // Beyond a link may be another file.
    require<OutputError>(link.type == H5L_TYPE_HARD, name.text, ": ", part, " in ", name.file,
                         " is a link to another name, which is neither replaced nor followed; give the name "
                         "that it leads to");
    const bool is_last = end == std::string::npos;
    const Handle object = h5::owned<OutputError>(H5Oopen(file.id(), part.c_str(), H5P_DEFAULT), H5Oclose,
                                                 name.text, ": cannot open ", part);
    const bool is_group = H5Iget_type(object.id()) == H5I_GROUP;
    require<OutputError>(is_last || is_group, name.text, ": ", part, " in ", name.file,
                         " is no group, and cannot hold a dataset; give another name");
    if (!is_last) continue;
    require<OutputError>(H5Iget_type(object.id()) == H5I_DATASET, name.text, ": ", part, " in ", name.file,
                         " is a group, and will not be replaced by a dataset; give another name, such as ",
                         name.file, ":", part, "/X");
    return true;
  }
}

/// Whether an attribute says how a dataset is stored, or how it belongs to others: the words of MATLAB,
/// netCDF and dimension scales.
bool is_of_storage(std::string_view name) {
  for (const std::string_view word : {"CLASS", "NAME", "DIMENSION_LIST", "REFERENCE_LIST"})
    if (name == word) return true;
  return h5::is_of_packing(std::string(name)) || name.starts_with("MATLAB_") ||
         name.starts_with("_Netcdf4") || name.starts_with("_nc3");
}

std::string name_of(const Handle& attribute) {
  const auto length = H5Aget_name(attribute.id(), 0, nullptr);
  std::string name(length > 0 ? static_cast<std::size_t>(length) : 0, '\0');
  if (length > 0) H5Aget_name(attribute.id(), name.size() + 1, name.data());
  return name;
}

/// Gives a dataset an attribute of another one, unless that is of no use to it.
void copy_attribute(const Handle& from, const Handle& to, const ArrayName& like) {
  const std::string name = name_of(from);
  const auto opened = [&](hid_t id, Handle::Close close) {
    return h5::owned<OutputError>(id, close, like.text, ": cannot copy its attribute ", name);
  };
  const Handle stored = opened(H5Aget_type(from.id()), H5Tclose);
  if (is_of_storage(name) || H5Tdetect_class(stored.id(), H5T_REFERENCE) > 0) return;
  const Handle type = opened(H5Tcopy(stored.id()), H5Tclose);
  const Handle space = opened(H5Aget_space(from.id()), H5Sclose);
  const Handle copy =
      opened(H5Acreate2(to.id(), name.c_str(), type.id(), space.id(), H5P_DEFAULT, H5P_DEFAULT), H5Aclose);
  if (H5Sget_simple_extent_type(space.id()) == H5S_NULL) return;
  const auto elements = static_cast<std::size_t>(H5Sget_simple_extent_npoints(space.id()));
  std::vector<char> values(elements * H5Tget_size(type.id()));
  h5::checked<OutputError>(H5Aread(from.id(), type.id(), values.data()), like.text,
                           ": cannot read its attribute ", name);
  const herr_t written = H5Awrite(copy.id(), type.id(), values.data());
  const std::string why = written < 0 ? h5::reason() : "";
  // Texts of varying length are in memory of HDF5's.
  H5Dvlen_reclaim(type.id(), space.id(), H5P_DEFAULT, values.data());
  require<OutputError>(written >= 0, like.text, ": cannot copy its attribute ", name, ": HDF5 says: ", why);
}

void copy_attributes(const ArrayName& like, const Handle& to) {
  const Handle file = h5::open_file<OutputError>(like.file);
  const Handle from = h5::owned<OutputError>(H5Dopen2(file.id(), like.dataset.c_str(), H5P_DEFAULT), H5Dclose,
                                             like.text, ": cannot open it for its attributes");
  for (hsize_t k = 0;; ++k) {
    const Handle attribute(
        H5Aopen_by_idx(from.id(), ".", H5_INDEX_NAME, H5_ITER_INC, k, H5P_DEFAULT, H5P_DEFAULT), H5Aclose);
    if (!attribute.is_open()) break;
    copy_attribute(attribute, to, like);
  }
  H5Eclear2(H5E_DEFAULT);
}

Handle make_space(const ArrayHeader& header, const ArrayName& name) {
  const std::vector<hsize_t> sizes(header.sizes.begin(), header.sizes.end());
  return h5::owned<OutputError>(H5Screate_simple(static_cast<int>(sizes.size()), sizes.data(), nullptr),
                                H5Sclose, name.text, ": cannot make an array of ", shape_text(header.sizes));
}

/// A dataset that has its place in the file at once, without values: every rank writes its own. Nothing in it
/// depends on the time.
Handle make_empty(const Handle& file, const ArrayName& name, const ArrayHeader& header) {
  const Handle links(H5Pcreate(H5P_LINK_CREATE), H5Pclose), how(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
  H5Pset_create_intermediate_group(links.id(), 1);
  H5Pset_char_encoding(links.id(), H5T_CSET_UTF8);
  H5Pset_layout(how.id(), H5D_CONTIGUOUS);
  H5Pset_alloc_time(how.id(), H5D_ALLOC_TIME_EARLY);
  H5Pset_fill_time(how.id(), H5D_FILL_TIME_NEVER);
  H5Pset_obj_track_times(how.id(), false);
  const Handle type = h5::stored_type(header.type), space = make_space(header, name);
  return h5::owned<OutputError>(
      H5Dcreate2(file.id(), name.dataset.c_str(), type.id(), space.id(), links.id(), how.id(), H5P_DEFAULT),
      H5Dclose, name.text, ": cannot make a dataset of ", shape_text(header.sizes));
}

}  // namespace

Index make_dataset(const std::string& path, const ArrayName& name, const ArrayHeader& header,
                   const ArrayName& like) {
  const h5::Silence silence;
  const AtWork at_work;
  std::error_code error;
  const bool is_new = std::filesystem::file_size(path, error) == 0;
  h5::OutputDriver driver(path, name.file);
  haddr_t offset = HADDR_UNDEF;
  try {
    const Handle access = driver.access();
    const Handle file =
        h5::owned<OutputError>(is_new ? H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access.id())
                                      : H5Fopen(path.c_str(), H5F_ACC_RDWR, access.id()),
                               H5Fclose, name.text, ": cannot write its file");
    if (!is_new && is_replaced(file, name))
      h5::checked<OutputError>(H5Ldelete(file.id(), name.dataset.c_str(), H5P_DEFAULT), name.text,
                               ": cannot be replaced");
    const Handle dataset = make_empty(file, name, header);
    if (like.is_dataset()) copy_attributes(like, dataset);
    offset = H5Dget_offset(dataset.id());
    H5Eclear2(H5E_DEFAULT);
  } catch (const OutputError&) {
    driver.check();  // the reason, if the disk is to blame
    throw;
  }
  driver.check();
  return offset == HADDR_UNDEF ? 0 : static_cast<Index>(offset);
}

void check_output_dataset(const ArrayName& name) {
  const h5::Silence silence;
  std::error_code error;
  if (!std::filesystem::exists(name.file, error)) return;
  is_replaced(h5::open_file<OutputError>(name.file), name);
}

}  // namespace gridlops
