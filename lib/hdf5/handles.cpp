// SPDX-License-Identifier: BSD-3-Clause
#include "hdf5/handles.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "gridlops/base/error.hpp"
#include "io/files/file.hpp"

namespace gridlops::h5 {

namespace {

/// Text from a file or from HDF5, made printable.
std::string printable(std::string text) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < ' ' || c == '\x7f') c = '?';
  return text;
}

}  // namespace

std::string reason() {
  std::string text;
  const auto note = [](unsigned, const H5E_error2_t* error, void* to) -> herr_t {
    static_cast<std::string*>(to)->assign(error->desc == nullptr ? "" : error->desc);
    return 0;
  };
  // The last one is the deepest.
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_DOWNWARD, note, &text);
  H5Eclear2(H5E_DEFAULT);
  return text.empty() ? "nothing" : printable(text);
}

template <class E>
Handle open_file(const std::string& path, H5F_close_degree_t degree) {
  static_cast<void>(InputFile(path));  // for the system's reason
  const htri_t is_hdf5 = H5Fis_hdf5(path.c_str());
  H5Eclear2(H5E_DEFAULT);
  require<E>(is_hdf5 > 0, path, ": is no HDF5 file",
             path.ends_with(".mat") ? "; save it in MATLAB with '-v7.3'" : "");
  const Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  // Locks that the file system does not know are left out.
  H5Pset_file_locking(access.id(), true, true);
  H5Pset_fclose_degree(access.id(), degree);
  return owned<E>(H5Fopen(path.c_str(), H5F_ACC_RDONLY, access.id()), H5Fclose, path,
                  ": cannot open the file");
}
template Handle open_file<InputError>(const std::string&, H5F_close_degree_t);
template Handle open_file<OutputError>(const std::string&, H5F_close_degree_t);

bool has_attribute(hid_t object, const char* name) { return H5Aexists(object, name) > 0; }

std::string contents_of(hid_t group) {
  H5G_info_t info{};
  constexpr hsize_t most = 10;
  if (H5Gget_info(group, &info) < 0 || info.nlinks == 0) return "it is empty";
  std::string text = "it has ";
  for (hsize_t k = 0; k < std::min(most, info.nlinks); ++k) {
    std::array<char, 200> name{};
    H5Lget_name_by_idx(group, ".", H5_INDEX_NAME, H5_ITER_INC, k, name.data(), name.size(), H5P_DEFAULT);
    text += message(k == 0 ? "" : ", ", printable(name.data()));
  }
  return info.nlinks > most ? message(text, " and ", info.nlinks - most, " more") : text;
}

}  // namespace gridlops::h5
