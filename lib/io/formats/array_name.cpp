// SPDX-License-Identifier: BSD-3-Clause
#include "io/formats/array_name.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>
#include <system_error>

#include "base/message.hpp"
#include "base/numbers.hpp"
#include "gridlops/base/error.hpp"

namespace gridlops {

namespace {

constexpr std::array<std::string_view, 3> endings{".h5", ".hdf5", ".mat"};

/// Where the name of an HDF5 file ends: at the first colon after one of the endings, or at the end of the
/// whole name; nothing if it names another file. Earlier versions took all that ends in .npy for a file.
std::optional<std::size_t> end_of_file_name(std::string_view name) {
  if (name.ends_with(".npy")) return std::nullopt;
  for (std::size_t colon = name.find(':');; colon = name.find(':', colon + 1)) {
    const std::string_view file = name.substr(0, colon);
    for (const std::string_view ending : endings)
      if (file.ends_with(ending) && file.size() > ending.size()) return file.size();
    if (colon == std::string_view::npos) return std::nullopt;
  }
}

/// The path from the root without empty names and dots, which mean nothing to HDF5.
std::string tidy_path(std::string_view path) {
  std::string tidy;
  while (!path.empty()) {
    const std::string_view name = path.substr(0, path.find('/'));
    path.remove_prefix(std::min(name.size() + 1, path.size()));
    if (!name.empty() && name != ".") tidy.append("/").append(name);
  }
  return tidy.empty() ? "/" : tidy;
}

class SliceParser {
 public:
  SliceParser(std::string_view text, const std::string& name) : text_(text), name_(name) {}

  std::vector<Slice> parse() {
    std::vector<Slice> slices;
    do {
      slices.push_back(parse_slice());
    } while (accept(','));
    if (!text_.empty()) fail("a comma or the end");
    return slices;
  }

 private:
  Slice parse_slice() {
    Slice slice;
    slice.begin = parse_number();
    if (!accept(':')) {
      if (!slice.begin) fail("an index or a range");
      slice.is_index = true;
      return slice;
    }
    slice.end = parse_number();
    if (accept(':')) slice.step = parse_number().value_or(1);
    require<UsageError>(slice.step > 0, name_, ": steps of ", slice.step,
                        " lead nowhere; give a step from 1 on");
    return slice;
  }

  std::optional<Index> parse_number() {
    Index number = 0;
    const auto [stopped, error] = std::from_chars(text_.data(), text_.data() + text_.size(), number);
    if (error == std::errc::invalid_argument) return std::nullopt;
    require<UsageError>(error == std::errc(), name_, ": has a number beyond 64 bits after the @");
    text_.remove_prefix(static_cast<std::size_t>(stopped - text_.data()));
    return number;
  }

  bool accept(char wanted) {
    if (!text_.starts_with(wanted)) return false;
    text_.remove_prefix(1);
    return true;
  }

  [[noreturn]] void fail(const char* wanted) const {
    throw UsageError(message(name_, ": there should be ", wanted, " where '", text_,
                             "' is; a part of a dataset is written as in P.h5:/A@0:3,:,5"));
  }

  std::string_view text_;
  const std::string& name_;
};

/// A number that counts from the end if it is below zero.
Index from_start(Index number, Index size) { return number < 0 ? size + number : number; }

}  // namespace

ArrayName parse_array_name(const std::string& name) {
  ArrayName parsed;
  parsed.text = name;
  const std::optional<std::size_t> end = end_of_file_name(name);
  parsed.file = name.substr(0, end.value_or(name.size()));
  if (!end) return parsed;
  std::string_view rest = std::string_view(name).substr(std::min(*end + 1, name.size()));
  const std::size_t at_sign = rest.rfind('@');
  if (at_sign != std::string_view::npos &&
      rest.find_first_not_of("0123456789:,-", at_sign + 1) == std::string_view::npos) {
    parsed.slices = SliceParser(rest.substr(at_sign + 1), name).parse();
    rest = rest.substr(0, at_sign);
  }
  parsed.dataset = tidy_path(rest);
  return parsed;
}

ArrayPlace place_of_array(const std::string& name) { return parse_array_name(name); }

std::vector<Chosen> choose(const ArrayName& name, const std::vector<Index>& sizes) {
  require<InputError>(name.slices.size() <= sizes.size(), name.text, ": the part after the @ is of ",
                      name.slices.size(), " dimensions, but the dataset has ", sizes.size(), ": ",
                      shape_text(sizes));
  const Slice whole;
  std::vector<Chosen> chosen;
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    const Index size = sizes[d];
    const Slice& slice = d < name.slices.size() ? name.slices[d] : whole;
    const Index begin = from_start(slice.begin.value_or(0), size);
    const Index end = slice.is_index ? std::min(begin, size) + 1
                      : slice.end    ? from_start(*slice.end, size)
                                     : size;
    require<InputError>(
        0 <= begin && begin <= end && end <= size, name.text, ": of dimension ", d,
        slice.is_index ? message(" the index ", *slice.begin) : message(" the range ", begin, ":", end),
        " is wanted, but the dataset, ", shape_text(sizes), ", has ", size, " there");
    const Index count = end > begin ? (end - begin - 1) / slice.step + 1 : 0;
    chosen.push_back({begin, count, slice.step, slice.is_index});
  }
  return chosen;
}

std::string shape_text(const std::vector<Index>& sizes) {
  std::string text;
  for (const Index size : sizes) text += message(text.empty() ? "" : " x ", size);
  return text;
}

bool fits_file(const std::vector<Index>& sizes, ScalarType type) {
  Index room = (Index{1} << 56) / size_of(type);
  for (const Index size : sizes) room /= std::max<Index>(size, 1);
  return room > 0;
}

}  // namespace gridlops
