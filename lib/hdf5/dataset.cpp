// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <vector>

#include "base/at_work.hpp"
#include "base/message.hpp"
#include "base/numbers.hpp"
#include "gridlops/base/error.hpp"
#include "hdf5/element_type.hpp"
#include "hdf5/handles.hpp"
#include "hdf5/missing_values.hpp"
#include "hdf5/sources.hpp"
#include "io/files/file.hpp"
#include "io/formats/hdf5.hpp"

namespace gridlops {

namespace {

using h5::Handle;

/// A fixed-length text in an attribute; empty if it has none.
std::string text_attribute(hid_t object, const char* name) {
  if (!h5::has_attribute(object, name)) return "";
  const Handle attribute(H5Aopen(object, name, H5P_DEFAULT), H5Aclose);
  const Handle type(H5Aget_type(attribute.id()), H5Tclose);
  const hsize_t size = H5Aget_storage_size(attribute.id());
  if (H5Tget_class(type.id()) != H5T_STRING || H5Tis_variable_str(type.id()) != 0 || size > 64) return "";
  std::string text(size, '\0');
  if (size != H5Tget_size(type.id()) || H5Aread(attribute.id(), type.id(), text.data()) < 0) return "";
  return text.c_str();
}

/// Opens what has this path in a file, which must be a dataset.
Handle open_object(const Handle& file, const ArrayName& name) {
  Handle object(H5Oopen(file.id(), name.dataset.c_str(), H5P_DEFAULT), H5Oclose);
  if (!object.is_open()) {
    const std::string why = h5::reason();
    const Handle root(H5Gopen2(file.id(), "/", H5P_DEFAULT), H5Gclose);
    throw InputError(message(name.text, ": there is no dataset ", name.dataset, " in ", name.file,
                             ", whose first level is this: ", h5::contents_of(root.id()),
                             "; HDF5 says: ", why));
  }
  const H5I_type_t kind = H5Iget_type(object.id());
  if (kind == H5I_GROUP) {
    require<InputError>(!h5::has_attribute(object.id(), "MATLAB_sparse"), name.text,
                        ": is a sparse matrix of MATLAB; save it as full(A)");
    throw InputError(message(name.text, ": is a group, and not a dataset: ", h5::contents_of(object.id()),
                             "; name a dataset, such as ", name.file, ":", name.dataset,
                             name.dataset == "/" ? "" : "/", "A"));
  }
  require<InputError>(kind == H5I_DATASET, name.text, ": is no dataset; a dataset is needed");
  return object;
}

std::vector<Index> sizes_of(const Handle& dataset, const ArrayName& name) {
  const Handle space =
      h5::owned<InputError>(H5Dget_space(dataset.id()), H5Sclose, name.text, ": cannot read its shape");
  require<InputError>(H5Sget_simple_extent_type(space.id()) != H5S_NULL, name.text, ": is empty");
  const int dimensions = H5Sget_simple_extent_ndims(space.id());
  std::vector<hsize_t> sizes(at(std::max(dimensions, 0)));
  h5::checked<InputError>(H5Sget_simple_extent_dims(space.id(), sizes.data(), nullptr), name.text,
                          ": cannot read its shape");
  for (const hsize_t size : sizes)
    require<InputError>(size <= hsize_t{std::numeric_limits<Index>::max()}, name.text,
                        ": its shape has a size beyond 64 bits, ", size, "; the file is damaged");
  return {sizes.begin(), sizes.end()};
}

/// Throws InputError if HDF5 lacks a filter that the chunks have gone through.
void check_filters(const Handle& properties, const ArrayName& name) {
  for (int k = 0; k < H5Pget_nfilters(properties.id()); ++k) {
    unsigned flags = 0, configuration = 0;
    std::size_t values = 0;
    std::array<char, 100> filter{};
    const H5Z_filter_t id = H5Pget_filter2(properties.id(), static_cast<unsigned>(k), &flags, &values,
                                           nullptr, filter.size() - 1, filter.data(), &configuration);
    require<InputError>(H5Zfilter_avail(id) > 0, name.text, ": is compressed by filter ", id, " (",
                        filter.data(),
                        "), which HDF5 does not find here; name the folder of its plugin in "
                        "HDF5_PLUGIN_PATH, or rewrite the file: h5repack -f GZIP=1");
  }
}

class StoredDataset : public Dataset {
 public:
  explicit StoredDataset(const ArrayName& name)
      : name_(name),
        file_(h5::open_file<InputError>(name.file)),
        dataset_(open_object(file_, name)),
        properties_(h5::owned<InputError>(H5Dget_create_plist(dataset_.id()), H5Pclose, name.text,
                                          ": cannot read how it is stored")),
        sources_(dataset_.id(), properties_.id(), name.text),
        missing_(dataset_.id(), name.text) {
    check_matlab();
    const Handle stored = h5::owned<InputError>(H5Dget_type(dataset_.id()), H5Tclose, name.text,
                                                ": cannot read its element type");
    h5::ElementType elements = h5::element_type(stored.id(), name.text);
    in_memory_ = std::move(elements.in_memory);
    header_.type = elements.type;
    sizes_ = sizes_of(dataset_, name);
    set_shape();
    check_storage(stored);
    is_native_ = H5Tequal(stored.id(), in_memory_.id()) > 0;
    header_.data_offset = is_native_ && missing_.is_empty() ? plain_offset() : -1;
    if (H5Pget_layout(properties_.id()) == H5D_CHUNKED) set_chunks();
  }

  void read(const Box& box, void* to, Index stride) const override {
    const h5::Silence silence;
    const Handle in_file = select(box), in_memory = memory_space(box, stride);
    const AtWork at_work;
    sources_.require_complete(in_file.id());
    h5::checked<InputError>(
        H5Dread(dataset_.id(), in_memory_.id(), in_memory.id(), in_file.id(), H5P_DEFAULT, to), name_.text,
        ": cannot read elements of this array of ", shape_text(header_.sizes));
    if (missing_.is_empty()) return;
    with_scalar_type(header_.type, [&]<Scalar T>() {
      require_none_missing(box, reinterpret_cast<const Real<T>*>(to), is_complex<T> ? 2 : 1, stride);
    });
  }

  std::vector<Index> chunk_offsets() const override {
    const h5::Silence silence;
    const AtWork at_work;
    require_plain_chunks();
    std::vector<Index> chunk, counts;
    Index count = 1;
    for (std::size_t d = 0; d < sizes_.size(); ++d) {
      chunk.push_back(chunks_[d].size);
      counts.push_back((sizes_[d] + chunk[d] - 1) / chunk[d]);
      count *= counts[d];
    }
    require_all_chunks(count);
    Index bytes = size_of(header_.type);
    for (const Index size : chunk) bytes *= size;
    const Index file_size = InputFile(name_.file).size();
    std::vector<Index> offsets;
    for (const StoredChunk& stored : stored_chunks(chunk, counts, count)) {
      require<InputError>(stored.bytes == static_cast<hsize_t>(bytes) && bytes <= file_size &&
                              stored.address <= static_cast<haddr_t>(file_size - bytes),
                          name_.text, ": has a chunk of ", stored.bytes, " bytes at byte ", stored.address,
                          " of the file, which has ", file_size, "; chunks have ", bytes,
                          " bytes: the file is damaged");
      offsets.push_back(static_cast<Index>(stored.address));
    }
    require<InputError>(std::ssize(offsets) == count, name_.text, ": has ", offsets.size(), " of its ", count,
                        " chunks; was it changed meanwhile?");
    return offsets;
  }

 private:
  struct StoredChunk {
    std::vector<hsize_t> begin{};  ///< the indices of its first element, or of the chunk
    haddr_t address = HADDR_UNDEF;
    hsize_t bytes = 0;

    bool operator<(const StoredChunk& other) const { return begin < other.begin; }
  };

  /// Throws UsageError unless the elements of chunks lie in the named file as in memory.
  void require_plain_chunks() const {
    const auto require_plain = [&](bool is_plain, const char* found) {
      require<UsageError>(is_plain, name_.text, ": ", found, "; that cannot be read in place");
    };
    require_plain(is_native_, "has elements of another format than this processor's");
    require_plain(missing_.is_empty(), "has attributes that say which elements are missing");
    require_plain(name_.slices.empty(), "is a part of a dataset");
    require_plain(!is_matlab_, "is of MATLAB, with its columns one after the other");
    require_plain(H5Pget_layout(properties_.id()) == H5D_CHUNKED,
                  "is neither in chunks nor, in this file, in one piece that was written");
    require_plain(H5Pget_nfilters(properties_.id()) == 0, "is compressed, or goes through another filter");
    require_plain(is_in_named_file(), "is a link to another file");
    const Handle creation(H5Fget_create_plist(file_.id()), H5Pclose);
    hsize_t user_block = 0;
    require_plain(creation.is_open() && H5Pget_userblock(creation.id(), &user_block) >= 0 && user_block == 0,
                  "is in a file with a user block");
  }

  /// Throws UsageError unless there are this many chunks, and these are few enough to look for.
  void require_all_chunks(Index count) const {
    // Before 1.14 HDF5 goes through all to find one. Each takes about 100 bytes until all are known.
    constexpr Index most = H5_VERSION_GE(1, 14, 0) ? 100000 : 3000;
    require<UsageError>(count <= most, name_.text, ": has ", count, " chunks, of which no more than ", most,
                        " are read in place with HDF5 ", hdf5_text());
    const Handle space(H5Dget_space(dataset_.id()), H5Sclose);
    hsize_t stored = 0;
    h5::checked<InputError>(H5Dget_num_chunks(dataset_.id(), space.id(), &stored), name_.text,
                            ": cannot count its chunks");
    require<UsageError>(stored == static_cast<hsize_t>(count), name_.text, ": has ", stored, " of its ",
                        count, " chunks; the others were never written, and cannot be read in place");
  }

  /// In C order.
  std::vector<StoredChunk> stored_chunks(const std::vector<Index>& chunk, const std::vector<Index>& counts,
                                         Index count) const {
    std::vector<StoredChunk> found;
#if H5_VERSION_GE(1, 14, 0)
    static_cast<void>(counts);
    struct Gathered {
      std::size_t dimensions;
      std::vector<StoredChunk>& chunks;
    } gathered{chunk.size(), found};
    found.reserve(at(count));
    const auto gather = [](const hsize_t* begin, unsigned, haddr_t address, hsize_t bytes, void* to) {
      auto& all = *static_cast<Gathered*>(to);
      all.chunks.push_back({{begin, begin + all.dimensions}, address, bytes});
      return H5_ITER_CONT;
    };
    h5::checked<InputError>(H5Dchunk_iter(dataset_.id(), H5P_DEFAULT, gather, &gathered), name_.text,
                            ": cannot find its chunks");
    std::sort(found.begin(), found.end());
#else
    for (Index number = 0; number < count; ++number) {
      StoredChunk& next = found.emplace_back();
      next.begin.resize(chunk.size());
      for (Index d = std::ssize(chunk) - 1, rest = number; d >= 0; rest /= counts[at(d)], --d)
        next.begin[at(d)] = static_cast<hsize_t>(rest % counts[at(d)] * chunk[at(d)]);
      unsigned filters = 0;
      h5::checked<InputError>(
          H5Dget_chunk_info_by_coord(dataset_.id(), next.begin.data(), &filters, &next.address, &next.bytes),
          name_.text, ": cannot find its chunks");
    }
#endif
    return found;
  }

  void check_matlab() {
    is_matlab_ = h5::has_attribute(dataset_.id(), "MATLAB_class");
    header_.fortran_order = is_matlab_;
    if (!is_matlab_) return;
    require<InputError>(!h5::has_attribute(dataset_.id(), "MATLAB_empty"), name_.text,
                        ": is an empty array of MATLAB");
    require<InputError>(text_attribute(dataset_.id(), "MATLAB_class") != "char", name_.text,
                        ": is a text of MATLAB; real or complex numbers are needed");
  }

  /// Dimensions in the order in which a user sees them, or in that of the file: the one turned around.
  template <class T>
  std::vector<T> turned(std::vector<T> of_dimensions) const {
    if (is_matlab_) std::reverse(of_dimensions.begin(), of_dimensions.end());
    return of_dimensions;
  }

  void set_shape() {
    const std::vector<Index> seen = turned(sizes_);
    require<InputError>(fits_file(seen, header_.type), name_.text, ": its shape, ", shape_text(seen),
                        ", is larger than any file can be, a dimension of 0 counted as 1; the file is "
                        "damaged");
    chosen_ = choose(name_, seen);
    for (const Chosen& chosen : chosen_)
      if (!chosen.is_index) header_.sizes.push_back(chosen.count);
    const std::size_t dimensions = header_.sizes.size();
    require<InputError>(1 <= dimensions && dimensions <= std::size_t{Dims::most}, name_.text, ": is ",
                        seen.empty() ? "a single number" : shape_text(seen), ", of which ", dimensions,
                        " dimensions are wanted; one to five are possible");
    chunks_.assign(dimensions, {});
  }

  /// Throws InputError unless the file has room for all elements. HDF5 reads beyond its memory otherwise.
  void check_storage(const Handle& stored) const {
    const hsize_t bytes = H5Dget_storage_size(dataset_.id());
    if (H5Pget_layout(properties_.id()) > H5D_CONTIGUOUS || bytes == 0) return;
    hsize_t wanted = H5Tget_size(stored.id());
    for (const Index size : sizes_) wanted *= static_cast<hsize_t>(size);
    require<InputError>(bytes == wanted, name_.text, ": has ", bytes, " bytes of elements, but an array of ",
                        shape_text(turned(sizes_)), " needs ", wanted, "; the file is damaged");
  }

  /// Whether no link has led to another file.
  bool is_in_named_file() const {
    std::string file(name_.file.size() + 2, '\0');
    const auto length = H5Fget_name(dataset_.id(), file.data(), file.size());
    return length >= 0 && file.c_str() == name_.file;
  }

  /// The number of bytes before the first element, if the elements lie in the file one after the other.
  Index plain_offset() const {
    const Index elsewhere = -1;
    if (!is_in_named_file()) return elsewhere;
    if (!name_.slices.empty() || H5Pget_layout(properties_.id()) != H5D_CONTIGUOUS ||
        H5Pget_external_count(properties_.id()) != 0)
      return elsewhere;
    if (H5Dget_storage_size(dataset_.id()) == 0) return elsewhere;  // nothing was written yet
    const haddr_t offset = H5Dget_offset(dataset_.id());
    Index bytes = size_of(header_.type);
    for (const Index size : header_.sizes) bytes *= size;
    const Index file_size = InputFile(name_.file).size();
    require<InputError>(
        offset <= static_cast<haddr_t>(file_size) && bytes <= file_size - static_cast<Index>(offset),
        name_.text, ": is an array of ", shape_text(header_.sizes), ", which ends at byte ",
        offset + static_cast<haddr_t>(bytes), ", but the file has ", file_size, " bytes; it is incomplete");
    return static_cast<Index>(offset);
  }

  void set_chunks() {
    check_filters(properties_, name_);
    std::vector<hsize_t> chunk(sizes_.size());
    if (H5Pget_chunk(properties_.id(), static_cast<int>(chunk.size()), chunk.data()) < 0) return;
    const std::vector<hsize_t> seen = turned(chunk);
    chunks_.clear();
    for (std::size_t d = 0; d < seen.size(); ++d) {
      const Chosen& chosen = chosen_[d];
      // Steps may skip whole chunks; those of 1 begin where the first chunk does, or within it.
      const Index size = std::max<Index>(static_cast<Index>(seen[d]) / chosen.step, 1);
      if (!chosen.is_index) chunks_.push_back({size, -(chosen.begin / chosen.step % size)});
    }
  }

  /// Throws InputError if an element of a box that was read stands for none. parts: numbers of an element.
  template <class R>
  void require_none_missing(const Box& box, const R* numbers, Index parts, Index stride) const {
    const std::vector<Range> dimensions = turned(std::vector<Range>(box.begin(), box.end()));
    const Index length = dimensions.back().size;
    Index lines = 1;
    for (std::size_t d = 0; d + 1 < dimensions.size(); ++d) lines *= dimensions[d].size;
    for (Index line = 0; line < lines; ++line) {
      const R* const begin = numbers + line * stride * parts;
      const Index found = missing_.find(begin, length * parts);
      if (found == length * parts) continue;
      std::vector<Index> place(dimensions.size());
      place.back() = dimensions.back().begin + found / parts;
      for (Index d = std::ssize(place) - 2, left = line; d >= 0; left /= dimensions[at(d)].size, --d)
        place[at(d)] = dimensions[at(d)].begin + left % dimensions[at(d)].size;
      std::string indices;
      for (const Index index : turned(place)) indices += message(indices.empty() ? "" : ", ", index);
      throw InputError(message(name_.text, ": the element at (", indices, ") is missing: it is ",
                               begin[found], ", and of its attributes ", missing_.text(),
                               "; leave such rows or columns out, or write numbers for them"));
    }
  }

  Handle select(const Box& box) const {
    std::vector<hsize_t> begin, count, step;
    std::size_t dimension = 0;
    for (const Chosen& chosen : chosen_) {
      const Range range = chosen.is_index ? Range{0, 1} : box[dimension++];
      begin.push_back(static_cast<hsize_t>(chosen.begin + range.begin * chosen.step));
      count.push_back(static_cast<hsize_t>(range.size));
      step.push_back(static_cast<hsize_t>(chosen.step));
    }
    begin = turned(begin);
    count = turned(count);
    step = turned(step);
    Handle space =
        h5::owned<InputError>(H5Dget_space(dataset_.id()), H5Sclose, name_.text, ": cannot read its shape");
    h5::checked<InputError>(
        H5Sselect_hyperslab(space.id(), H5S_SELECT_SET, begin.data(), step.data(), count.data(), nullptr),
        name_.text, ": cannot choose elements of this array of ", shape_text(header_.sizes));
    return space;
  }

  Handle memory_space(const Box& box, Index stride) const {
    std::vector<hsize_t> count;
    for (const Range& range : box) count.push_back(static_cast<hsize_t>(range.size));
    count = turned(count);
    std::vector<hsize_t> extent = count;
    // A single line may be shorter than the way to the next one, where memory may end.
    const bool has_lines = std::any_of(count.begin(), count.end() - 1, [](hsize_t n) { return n > 1; });
    if (has_lines) extent.back() = static_cast<hsize_t>(stride);
    Handle space =
        h5::owned<InputError>(H5Screate_simple(static_cast<int>(extent.size()), extent.data(), nullptr),
                              H5Sclose, name_.text, ": cannot describe elements in memory");
    if (extent == count) return space;
    const std::vector<hsize_t> begin(count.size(), 0);
    h5::checked<InputError>(
        H5Sselect_hyperslab(space.id(), H5S_SELECT_SET, begin.data(), nullptr, count.data(), nullptr),
        name_.text, ": cannot describe elements in memory");
    return space;
  }

  const ArrayName name_;
  const Handle file_, dataset_, properties_;
  const h5::Sources sources_;
  const h5::MissingValues missing_;
  Handle in_memory_;
  bool is_matlab_ = false, is_native_ = false;
  std::vector<Index> sizes_;    // in the file
  std::vector<Chosen> chosen_;  // of the dimensions as a user sees them
};

}  // namespace

std::unique_ptr<Dataset> open_dataset(const ArrayName& name) {
  const h5::Silence silence;
  return std::make_unique<StoredDataset>(name);
}

std::string hdf5_text() {
  unsigned major = 0, minor = 0, release = 0;
  H5get_libversion(&major, &minor, &release);
  return message(major, ".", minor, ".", release);
}

}  // namespace gridlops
