// SPDX-License-Identifier: BSD-3-Clause
#include "hdf5/sources.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/message.hpp"
#include "base/numbers.hpp"
#include "gridlops/base/error.hpp"
#include "io/files/file.hpp"

namespace gridlops::h5 {

namespace {

namespace fs = std::filesystem;

std::string file_of(hid_t dataset) {
  const auto length = H5Fget_name(dataset, nullptr, 0);
  std::string name(length > 0 ? static_cast<std::size_t>(length) : 0, '\0');
  if (length > 0) H5Fget_name(dataset, name.data(), name.size() + 1);
  return name;
}

/// The folders of a variable of HDF5's, of which ${ORIGIN} is the folder of the file.
std::vector<fs::path> folders_in(const char* variable, const fs::path& origin) {
  const char* const value = std::getenv(variable);
  std::vector<fs::path> folders;
  for (std::string_view left = value == nullptr ? "" : value; !left.empty();) {
    const std::string_view one = left.substr(0, left.find(':'));
    left.remove_prefix(std::min(one.size() + 1, left.size()));
    constexpr std::string_view word = "${ORIGIN}";
    if (one.starts_with(word))
      folders.push_back(origin.string() + std::string(one.substr(word.size())));
    else if (!one.empty())
      folders.emplace_back(one);
  }
  return folders;
}

fs::path folder_of(const std::string& file) {
  const fs::path folder = fs::path(file).parent_path();
  return folder.empty() ? fs::path(".") : folder;
}

/// Whether a path leads into a folder, or into one within it.
bool is_within(const fs::path& folder, const fs::path& path) {
  std::error_code error;
  const fs::path whole = fs::canonical(path, error),
                 outer = error ? fs::path() : fs::canonical(folder, error);
  if (error) return false;
  return std::mismatch(outer.begin(), outer.end(), whole.begin(), whole.end()).first == outer.end();
}

void check_external(hid_t dataset, hid_t properties, const std::string& name, const std::string& own_file) {
  const fs::path own_folder = folder_of(own_file);
  const std::vector<fs::path> given = folders_in("HDF5_EXTFILE_PREFIX", own_folder);
  const Handle type(H5Dget_type(dataset), H5Tclose), space(H5Dget_space(dataset), H5Sclose);
  hsize_t left = static_cast<hsize_t>(std::max<hssize_t>(H5Sget_simple_extent_npoints(space.id()), 0)) *
                 H5Tget_size(type.id());
  for (int k = 0; k < H5Pget_external_count(properties); ++k) {
    std::string named(4096, '\0');
    off_t begin = 0;
    hsize_t room = 0;
    checked<InputError>(
        H5Pget_external(properties, static_cast<unsigned>(k), named.size() - 1, named.data(), &begin, &room),
        name, ": cannot read where its elements are");
    named = named.c_str();
    const fs::path path = given.empty() || fs::path(named).is_absolute() ? fs::path(named) : given[0] / named;
    require<InputError>(
        is_within(own_folder, path) || (!given.empty() && is_within(given[0], path)), name,
        ": has elements in the file ", named, ", which is not there, or not in the folder of ", own_file,
        "; a file that is not trusted could name any file of this user. Move it there, or name its folder in "
        "HDF5_EXTFILE_PREFIX; relative names begin there, or else in the working directory");
    const hsize_t bytes = std::min(left, room);  // H5F_UNLIMITED is the largest number
    const Index found = std::max<Index>(InputFile(path.string()).size() - begin, 0);
    require<InputError>(begin >= 0 && static_cast<hsize_t>(found) >= bytes, name, ": has ", bytes,
                        " bytes of elements in the file ", named, " from byte ", begin, " on, of which ",
                        found, " are there; the file is incomplete");
    left -= bytes;
  }
}

/// Whether a mapping goes on as far as its source does.
bool has_no_end(hid_t space) {
  if (H5Sis_regular_hyperslab(space) <= 0) return false;
  const auto dimensions = static_cast<std::size_t>(std::max(H5Sget_simple_extent_ndims(space), 0));
  std::vector<hsize_t> begin(dimensions), step(dimensions), count(dimensions), block(dimensions);
  H5Sget_regular_hyperslab(space, begin.data(), step.data(), count.data(), block.data());
  const auto is_endless = [](hsize_t n) { return n == H5S_UNLIMITED; };
  return std::any_of(count.begin(), count.end(), is_endless) ||
         std::any_of(block.begin(), block.end(), is_endless);
}

/// A name of HDF5's, in which %% stands for %. Nothing if it stands for many, one for each %b.
std::optional<std::string> plain_name(const std::string& pattern) {
  std::string name;
  for (std::size_t k = 0; k < pattern.size(); ++k) {
    if (pattern[k] == '%' && pattern.substr(k, 2) != "%%") return std::nullopt;
    name += pattern[k];
    if (pattern[k] == '%') ++k;
  }
  return name;
}

template <class Get>
std::string text_by(Get&& get) {
  const auto length = get(nullptr, 0);
  std::string text(length > 0 ? static_cast<std::size_t>(length) : 0, '\0');
  if (length > 0) get(text.data(), text.size() + 1);
  return text;
}

/// The smallest and the largest index of chosen elements in each dimension.
struct Bounds {
  explicit Bounds(hid_t space)
      : first(static_cast<std::size_t>(std::max(H5Sget_simple_extent_ndims(space), 0))), last(first) {
    is_any = H5Sget_select_npoints(space) > 0 && H5Sget_select_bounds(space, first.data(), last.data()) >= 0;
  }
  bool meets(const Bounds& other) const {
    if (!is_any || !other.is_any || first.size() != other.first.size()) return false;
    for (std::size_t d = 0; d < first.size(); ++d)
      if (first[d] > other.last[d] || other.first[d] > last[d]) return false;
    return true;
  }
  std::vector<hsize_t> first, last;
  bool is_any = false;
};

/// Whether a source of this shape has the elements that a mapping takes. HDF5 keeps no shape with "all".
bool has_chosen(hid_t source, hid_t chosen, hid_t mapped_to) {
  if (H5Sget_select_type(chosen) == H5S_SEL_ALL)
    return H5Sget_simple_extent_npoints(source) == H5Sget_select_npoints(mapped_to);
  const Bounds wanted(chosen);
  std::vector<hsize_t> sizes(wanted.last.size());
  bool has = H5Sget_simple_extent_ndims(source) == std::ssize(sizes) &&
             H5Sget_simple_extent_dims(source, sizes.data(), nullptr) >= 0;
  for (std::size_t d = 0; has && wanted.is_any && d < sizes.size(); ++d) has = wanted.last[d] < sizes[d];
  return has;
}

/// The file that HDF5 takes for the name of a virtual source; empty if there is none.
std::string found_file(const std::string& named, const std::string& own_file) {
  if (named == ".") return own_file;
  std::vector<fs::path> places;
  fs::path name = named;
  if (name.is_absolute()) {
    places.push_back(name);
    name = name.filename();
  }
  for (const fs::path& folder : folders_in("HDF5_VDS_PREFIX", folder_of(own_file)))
    places.push_back(folder / name);
  places.push_back(folder_of(own_file) / name);
  places.push_back(name);
  std::error_code error;
  places.push_back(fs::canonical(own_file, error).parent_path() / name);
  const auto found = std::find_if(places.begin(), places.end(), [](const fs::path& place) {
    std::error_code none;
    return fs::is_regular_file(place, none) && H5Fis_hdf5(place.c_str()) > 0;
  });
  H5Eclear2(H5E_DEFAULT);
  return found == places.end() ? "" : found->string();
}

}  // namespace

Sources::Sources(hid_t dataset, hid_t properties, std::string name, std::vector<std::string> above)
    : name_(std::move(name)), files_(std::move(above)) {
  files_.push_back(file_of(dataset));
  if (H5Pget_external_count(properties) > 0) check_external(dataset, properties, name_, files_.back());
  if (H5Pget_layout(properties) != H5D_VIRTUAL) return;
  std::size_t count = 0;
  checked<InputError>(H5Pget_virtual_count(properties, &count), name_, ": cannot read its sources");
  for (std::size_t k = 0; k < count; ++k) {
    const auto file =
        text_by([&](char* to, std::size_t size) { return H5Pget_virtual_filename(properties, k, to, size); });
    const auto of_file =
        text_by([&](char* to, std::size_t size) { return H5Pget_virtual_dsetname(properties, k, to, size); });
    Mapping mapping{plain_name(file).value_or(""),
                    plain_name(of_file).value_or(""),
                    {H5Pget_virtual_vspace(properties, k), H5Sclose},
                    {H5Pget_virtual_srcspace(properties, k), H5Sclose}};
    mapping.is_unlimited = has_no_end(mapping.to.id());
    require<InputError>(
        !mapping.file.empty() && !mapping.dataset.empty() && (!mapping.is_unlimited || count == 1), name_,
        ": has sources whose number or length is not fixed, such as ", file, ":", of_file,
        "; what is missing of them could not be told from what was never there. Copy it: h5repack, or "
        "numpy.save of the array");
    unknown_.push_back(std::move(mapping));
  }
}

void Sources::require_complete(hid_t chosen) const {
  if (unknown_.empty()) return;
  const Bounds wanted(chosen);
  const auto is_known = [&](const Mapping& mapping) {
    if (!mapping.is_unlimited && !Bounds(mapping.to.id()).meets(wanted)) return false;
    require_source(mapping);
    return true;
  };
  unknown_.erase(std::remove_if(unknown_.begin(), unknown_.end(), is_known), unknown_.end());
}

void Sources::require_source(const Mapping& mapping) const {
  const std::string file_name = found_file(mapping.file, files_.back());
  const auto require_found = [&](bool is_found, const std::string& what) {
    require<InputError>(is_found, name_, ": gets elements from ", mapping.file, ":", mapping.dataset, ", ",
                        what, ", so that fill values would be read for them");
  };
  require_found(!file_name.empty(), "of which there is no such file here");
  // A file that is open cannot be opened by HDF5 once more, as it does for a name.
  std::error_code error;
  const bool is_open = std::any_of(files_.begin(), files_.end(), [&](const std::string& file) {
    return fs::equivalent(file, file_name, error);
  });
  constexpr std::size_t most = 16;
  require_found(mapping.file == "." || !is_open, "which is the file that has it; there its name must be '.'");
  require_found(files_.size() < most, "by more than 16 others, one the source of the other");
  // A file is open in one way at a time: as HDF5 itself opens it, but for the first.
  const bool is_first = fs::equivalent(files_.front(), file_name, error);
  const Handle file = open_file<InputError>(file_name, is_first ? H5F_CLOSE_STRONG : H5F_CLOSE_WEAK);
  const Handle dataset(H5Dopen2(file.id(), mapping.dataset.c_str(), H5P_DEFAULT), H5Dclose);
  H5Eclear2(H5E_DEFAULT);
  require_found(dataset.is_open(), message("of which there is no such dataset in ", file_name));
  const Handle space(H5Dget_space(dataset.id()), H5Sclose);
  require_found(mapping.is_unlimited || has_chosen(space.id(), mapping.from.id(), mapping.to.id()),
                message("which has fewer elements now, in ", file_name));
  const Handle properties(H5Dget_create_plist(dataset.id()), H5Pclose);
  const Sources further(dataset.id(), properties.id(), message(file_name, ":", mapping.dataset), files_);
  further.require_complete(space.id());
}

}  // namespace gridlops::h5
