// SPDX-License-Identifier: BSD-3-Clause
#include "io/formats/npy_header.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <optional>
#include <string_view>
#include <vector>

#include "base/message.hpp"
#include "gridlops/base/error.hpp"
#include "io/formats/array_name.hpp"

namespace gridlops {
namespace {

static_assert(std::endian::native == std::endian::little, "the elements of .npy files are not swapped");

constexpr std::string_view magic = "\x93NUMPY";

/// NumPy's names for an element type: its size, a letter, and a name that has no byte order.
struct ElementNames {
  ScalarType type;
  std::string_view sized, letter, name;
};
constexpr std::array<ElementNames, 4> all_element_names{{{ScalarType::f32, "f4", "f", "float32"},
                                                         {ScalarType::f64, "f8", "d", "float64"},
                                                         {ScalarType::c64, "c8", "F", "complex64"},
                                                         {ScalarType::c128, "c16", "D", "complex128"}}};

const ElementNames& names_of(ScalarType type) {
  return *std::find_if(all_element_names.begin(), all_element_names.end(),
                       [type](const ElementNames& names) { return names.type == type; });
}

/// A descr without its byte order.
std::string_view without_order(std::string_view descr) {
  return descr.substr(descr.find_first_of("<>=|") == 0 ? 1 : 0);
}

/// The type of these elements, if this library can read them. A descr without a byte order means this
/// machine's, as do "=" and "|" for numbers.
std::optional<ScalarType> type_named(std::string_view descr) {
  const std::string_view bare = without_order(descr);
  for (const ElementNames& names : all_element_names) {
    if (descr == names.name) return names.type;
    if (descr.substr(0, 1) != ">" && (bare == names.sized || bare == names.letter)) return names.type;
  }
  return std::nullopt;
}

/// Text from a file, made printable for a message.
std::string quoted(std::string_view text) {
  std::string shown(text.substr(0, 40));
  for (char& c : shown) {
    if (c < ' ' || c > '~') c = '?';
  }
  return "'" + shown + (text.size() > shown.size() ? "…'" : "'");
}

/// NumPy's name for the elements of an unsupported descr.
std::string_view elements_of(std::string_view descr) {
  if (descr.substr(0, 1) == ">") return "big-endian";
  const std::string_view bare = without_order(descr);
  switch (bare.empty() ? '\0' : bare[0]) {
    case 'i':
    case 'u':
      return "integers";
    case 'b':
    case '?':
      return "booleans";
    case 'O':
      return "Python objects";
    case 'S':
    case 'a':
    case 'U':
      return "text";
    case 'V':
      return "raw bytes";
    case 'm':
    case 'M':
      return "dates or times";
    default:
      return "of an unsupported type";
  }
}

/// remedy: the expression that converts these elements to a type that can be read.
[[noreturn]] void refuse_type(const std::string& path, std::string_view elements, std::string_view descr,
                              std::string_view remedy) {
  throw InputError(message(
      path, ": its elements are ", elements, " (", quoted(descr),
      "), but only f4, f8, c8 and c16 in little-endian order can be read; convert the array in Python: ",
      remedy));
}

ScalarType type_of(std::string_view descr, const std::string& path) {
  if (const auto type = type_named(descr)) return *type;
  const std::string_view kind = without_order(descr).substr(0, 1);
  refuse_type(path, elements_of(descr), descr,
              kind == "c"   ? "array.astype('complex128')"
              : kind == "V" ? "array.view('float64'), if that is what its bytes are"
                            : "array.astype('float64')");
}

/// Reads the dictionary, which begins at byte `offset` of the file. It accepts some of the spellings that
/// Python allows, and none that NumPy refuses.
class DictParser {
 public:
  DictParser(std::string_view text, Index offset, Index version, const std::string& path)
      : text_(text), offset_(offset), version_(version), path_(path) {}

  ArrayHeader parse() {
    if (peek() != '{') fail("'{'");
    ++position_;
    while (!accept('}')) {
      parse_entry();
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip_space();
    if (position_ < text_.size()) fail("nothing after the dictionary");
    for (const auto& [given, key] :
         {std::pair(type_given_, "descr"), std::pair(order_given_, "fortran_order"),
          std::pair(shape_given_, "shape")}) {
      require<InputError>(given, path_, ": its header has no ", key, "; the file is damaged");
    }
    if (text_.back() != '\n') fail("a newline");
    return header_;
  }

 private:
  void parse_entry() {
    const std::string_view key = parse_string("a key in quotes");
    expect(':');
    if (key == "descr") {
      once(type_given_, key);
      skip_space();
      if (peek() == '[' || peek() == '(') refuse_structure();
      header_.type = type_of(parse_string("an element type in quotes"), path_);
    } else if (key == "fortran_order") {
      once(order_given_, key);
      header_.fortran_order = parse_bool();
    } else if (key == "shape") {
      once(shape_given_, key);
      parse_shape();
    } else {
      throw InputError(message(path_, ": its header has an entry ", quoted(key),
                               ", which no .npy file has; the file is damaged"));
    }
  }

  [[noreturn]] void refuse_structure() {
    const std::string_view descr = text_.substr(position_);
    const std::optional<ScalarType> pair = parse_pair();
    refuse_type(path_, "structured", descr,
                pair == ScalarType::f32   ? "array.view('complex64')"
                : pair == ScalarType::f64 ? "array.view('complex128')"
                                          : "numpy.lib.recfunctions.structured_to_unstructured(array)");
  }

  /// The common type of the two fields of a structure like [('r', '<f8'), ('i', '<f8')]; nothing for other
  /// structures.
  std::optional<ScalarType> parse_pair() {
    std::array<std::optional<ScalarType>, 2> types;
    if (!accept('[')) return std::nullopt;
    for (std::optional<ScalarType>& type : types) {
      if (!accept('(') || !accept_string() || !accept(',')) return std::nullopt;
      const std::optional<std::string_view> descr = accept_string();
      if (!descr || !accept(')')) return std::nullopt;
      type = type_named(*descr);
      accept(',');
    }
    return accept(']') && types[0] == types[1] ? types[0] : std::nullopt;
  }

  void once(bool& given, std::string_view key) {
    require<InputError>(!given, path_, ": its header has two entries ", quoted(key), "; the file is damaged");
    given = true;
  }

  void parse_shape() {
    expect('(');
    bool comma = true;
    while (!accept(')')) {
      if (!comma) fail("a comma or the end of the shape");
      require<InputError>(header_.sizes.size() < most_dimensions_of_numpy, path_,
                          ": its shape has more than ", most_dimensions_of_numpy,
                          " dimensions, which no array has; the file is damaged");
      header_.sizes.push_back(parse_size());
      comma = accept(',');
    }
    if (header_.sizes.size() == 1 && !comma)
      fail("a comma before it: (n) is a number in Python, (n,) a shape");
  }

  Index parse_size() {
    skip_space();
    const std::size_t begin = position_;
    const bool negative = accept('-');
    if (peek() < '0' || peek() > '9') fail("a size");
    const bool begins_with_zero = peek() == '0';
    Index size = 0;
    bool overflow = false;
    for (; peek() >= '0' && peek() <= '9'; ++position_) {
      overflow = __builtin_mul_overflow(size, Index{10}, &size) || overflow;
      overflow = __builtin_add_overflow(size, Index{peek() - '0'}, &size) || overflow;
    }
    const std::string digits = quoted(text_.substr(begin, position_ - begin));
    require<InputError>(!negative, path_, ": its shape has a negative size, ", digits,
                        "; the file is damaged");
    require<InputError>(!overflow, path_, ": its shape has a size beyond 64 bits, ", digits,
                        "; the file is damaged");
    require<InputError>(!begins_with_zero || position_ - begin == 1, path_, ": its shape has a size ", digits,
                        ", but no size begins with a zero; the file is damaged");
    if (peek() == 'L' && version_ < 3) ++position_;  // a Python 2 long integer
    return size;
  }

  bool parse_bool() {
    skip_space();
    for (const auto& [word, value] : {std::pair<std::string_view, bool>("True", true), {"False", false}}) {
      if (text_.substr(position_, word.size()) == word) {
        position_ += word.size();
        return value;
      }
    }
    fail("True or False");
  }

  std::string_view parse_string(const char* what) {
    if (const auto text = accept_string()) return *text;
    fail(what);
  }
  /// A quoted text, including Python 2's u'…'.
  std::optional<std::string_view> accept_string() {
    skip_space();
    const std::size_t begin = position_ + (peek() == 'u' ? 1 : 0);
    const char quote = begin < text_.size() ? text_[begin] : '\0';
    if (quote != '\'' && quote != '"') return std::nullopt;
    position_ = begin + 1;
    const std::size_t end = text_.find(quote, position_);
    if (end == std::string_view::npos) fail("a text that ends");
    const std::string_view text = text_.substr(position_, end - position_);
    position_ = end + 1;
    return text;
  }

  void expect(char wanted) {
    if (!accept(wanted)) fail(quoted({&wanted, 1}));
  }
  bool accept(char wanted) {
    skip_space();
    if (peek() != wanted) return false;
    ++position_;
    return true;
  }
  void skip_space() { position_ = std::min(text_.find_first_not_of(" \t\n\r\f", position_), text_.size()); }
  /// The next character, or NUL at the end.
  char peek() const { return position_ < text_.size() ? text_[position_] : '\0'; }

  [[noreturn]] void fail(const std::string& wanted) const {
    throw InputError(
        message(path_, ": its header is damaged: at byte ", offset_ + static_cast<Index>(position_),
                " there should be ", wanted, ", but there is ",
                position_ < text_.size() ? quoted(text_.substr(position_, 1)) : "the end of the header"));
  }

  static constexpr std::size_t most_dimensions_of_numpy = 64;

  std::string_view text_;
  Index offset_, version_;
  const std::string& path_;
  std::size_t position_ = 0;
  ArrayHeader header_;
  bool type_given_ = false, order_given_ = false, shape_given_ = false;
};

/// Where the dictionary begins, and its length.
Range dictionary_range(std::string_view start, Index file_size, const std::string& path) {
  require<InputError>(start.substr(0, 2) != "PK", path,
                      ": is an archive (.npz), not a .npy file; save the array alone in Python: numpy.save");
  require<InputError>(start.substr(0, magic.size()) == magic, path, ": is not a .npy file: it ",
                      start.empty() ? "is empty" : "begins with " + quoted(start.substr(0, magic.size())));
  const auto byte = [&](std::size_t position) {
    require<InputError>(position < start.size(), path, ": ends within its header, after ", file_size,
                        " bytes; the file is incomplete");
    return Index{static_cast<unsigned char>(start[position])};
  };
  const Index version = byte(6);
  const Index minor = byte(7);
  require<InputError>(1 <= version && version <= 3 && minor == 0, path, ": is a .npy file of version ",
                      version, ".", minor, "; versions 1.0, 2.0 and 3.0 can be read");
  Range range{version == 1 ? 10 : 12, byte(8) + (byte(9) << 8)};
  if (version > 1) range.size += (byte(10) << 16) + (byte(11) << 24);
  require<InputError>(range.end() <= npy_header_limit, path, ": its header has ", range.size,
                      " bytes, where a real one has about a hundred; the file is damaged");
  require<InputError>(range.end() <= static_cast<Index>(start.size()), path,
                      ": ends within its header, after ", file_size, " bytes of ", range.end(),
                      "; the file is incomplete");
  return range;
}

}  // namespace

namespace {

ArrayHeader parse(std::span<const char> start_of_file, Index file_size, const std::string& path,
                  std::size_t most_dimensions) {
  const std::string_view start(start_of_file.data(), start_of_file.size());
  const Range range = dictionary_range(start, file_size, path);
  const std::string_view dictionary =
      start.substr(static_cast<std::size_t>(range.begin), static_cast<std::size_t>(range.size));
  ArrayHeader header = DictParser(dictionary, range.begin, start_of_file[6], path).parse();
  header.data_offset = range.end();

  const std::size_t dimensions = header.sizes.size();
  require<InputError>(1 <= dimensions && dimensions <= most_dimensions, path, ": its array has ", dimensions,
                      " dimensions, but ",
                      most_dimensions == 2
                          ? "a matrix has two and a vector one; reshape it in Python: array.reshape(m, n)"
                          : "one to five are possible; reshape it in Python");
  require<InputError>(fits_file(header.sizes, header.type), path, ": its shape, ", shape_text(header.sizes),
                      ", is larger than any file can be, a dimension of 0 counted as 1; the file is damaged");
  Index elements = 1;
  for (const Index size : header.sizes) elements *= size;
  const Index expected_size = header.data_offset + elements * size_of(header.type);
  require<InputError>(
      file_size == expected_size, path, ": has ", file_size, " bytes, but an array of ",
      shape_text(header.sizes), " elements of ", size_of(header.type), " bytes needs ", expected_size,
      "; the file is ",
      file_size < expected_size ? "incomplete" : "damaged, or has other data after the array");
  return header;
}

}  // namespace

ArrayHeader parse_npy_array_header(std::span<const char> start_of_file, Index file_size,
                                   const std::string& path) {
  return parse(start_of_file, file_size, path, Dims::most);
}

MatrixHeader parse_npy_header(std::span<const char> start_of_file, Index file_size, const std::string& path) {
  const ArrayHeader array = parse(start_of_file, file_size, path, 2);
  const int dimensions = static_cast<int>(array.sizes.size());
  return {array.type, array.sizes[0],      dimensions == 2 ? array.sizes[1] : 1,
          dimensions, array.fortran_order, array.data_offset};
}

std::string npy_header_text(const ArrayHeader& header) {
  std::string dictionary = message("{'descr': '<", names_of(header.type).sized,
                                   "', 'fortran_order': ", header.fortran_order ? "True" : "False",
                                   ", 'shape': (", header.sizes.front(), ",");
  for (std::size_t d = 1; d < header.sizes.size(); ++d)
    dictionary += message(d == 1 ? " " : ", ", header.sizes[d]);
  dictionary += "), }";
  // NumPy requires the first element at a multiple of 64 bytes. With five sizes of 19 digits it is at 192.
  constexpr std::size_t before = 10, unit = 64;
  const std::size_t length = (before + dictionary.size() + unit) / unit * unit - before;
  dictionary.resize(length - 1, ' ');
  return std::string(magic) + '\1' + '\0' + static_cast<char>(length) + '\0' + dictionary + '\n';
}

std::string npy_header_text(const MatrixHeader& header) {
  std::vector<Index> sizes{header.rows};
  if (header.dimensions == 2) sizes.push_back(header.cols);
  return npy_header_text(ArrayHeader{header.type, sizes, header.fortran_order, 0});
}

}  // namespace gridlops
