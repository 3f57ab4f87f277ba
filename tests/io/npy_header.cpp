// SPDX-License-Identifier: BSD-3-Clause
#include "io/formats/npy_header.hpp"

#include <array>

#include "gridlops/base/error.hpp"
#include "support/catch.hpp"

using namespace gridlops;
using gridlops::testing::contains;
using gridlops::testing::message_of;

namespace {

/// The start of a file of this version whose dictionary is this text.
std::string file_start(const std::string& dictionary, int version = 1) {
  std::string start = "\x93NUMPY";
  start += static_cast<char>(version);
  start += '\0';
  for (int byte = 0; byte < (version == 1 ? 2 : 4); ++byte) {
    start += static_cast<char>(dictionary.size() >> (8 * byte) & 0xff);
  }
  return start + dictionary;
}

/// Parses a file that consists of `start` and this many bytes of elements.
MatrixHeader parse(const std::string& start, Index data_bytes) {
  return parse_npy_header(start, static_cast<Index>(start.size()) + data_bytes, "A.npy");
}

void check_refused(const std::string& start, Index data_bytes, const std::string& expected) {
  const std::string refusal = message_of<InputError>([&] { parse(start, data_bytes); });
  CAPTURE(start, expected, refusal);
  CHECK(contains(refusal, "A.npy: "));
  CHECK(contains(refusal, expected));
}

const std::string valid = file_start("{'descr': '<f8', 'fortran_order': True, 'shape': (3, 4), }      \n");

}  // namespace

TEST_CASE("Headers are read as NumPy writes them, and in every other spelling of Python", "[npy]") {
  struct Case {
    std::string dictionary;
    ScalarType type;
    Index rows, cols;
    int dimensions;
    bool fortran_order;
  };
  const Case cases[] = {
      {"{'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }   \n", ScalarType::f64, 3, 4, 2, false},
      {"{'descr': '<f4', 'fortran_order': True, 'shape': (7,), }\n", ScalarType::f32, 7, 1, 1, true},
      {"{'descr': '<c8', 'fortran_order': False, 'shape': (0, 4)}\n", ScalarType::c64, 0, 4, 2, false},
      {"{'descr': '<c16', 'fortran_order': True, 'shape': (5, 0), }\n", ScalarType::c128, 5, 0, 2, true},
      {"{\"shape\":(2,3,),\"fortran_order\":True,\"descr\":\"=f8\"}\n", ScalarType::f64, 2, 3, 2, true},
      {"{'descr': 'f8', 'fortran_order': False, 'shape': (3, 4), }\n", ScalarType::f64, 3, 4, 2, false},
      {"{'descr': '|f8', 'fortran_order': False, 'shape': (3, 4), }\n", ScalarType::f64, 3, 4, 2, false},
      {"{'descr': '<d', 'fortran_order': False, 'shape': (3, 4), }\n", ScalarType::f64, 3, 4, 2, false},
      {"{'descr': 'float64', 'fortran_order': False, 'shape': (3, 4), }\n", ScalarType::f64, 3, 4, 2, false},
      {"{u'descr': u'<f8', u'fortran_order': False, u\"shape\": (3, 4), }\n", ScalarType::f64, 3, 4, 2,
       false},
      {"{'descr': 'f', 'fortran_order': False, 'shape': (3, 4), }\n", ScalarType::f32, 3, 4, 2, false},
      {"{'descr': '=F', 'fortran_order': False, 'shape': (3, 4), }\n", ScalarType::c64, 3, 4, 2, false},
      {"{'descr': 'complex128', 'fortran_order': False, 'shape': (3, 4), }\n", ScalarType::c128, 3, 4, 2,
       false},
      {"{ 'shape' :( 2 , 3 )\n,\r'descr': '=c16' ,\t'fortran_order':False } \f\n\n", ScalarType::c128, 2, 3,
       2, false},
      {"{'descr': '<f8', 'fortran_order': False, 'shape': (0, 9007199254740992), }\n", ScalarType::f64, 0,
       9007199254740992, 2, false},
      {"{'descr': '<c16', 'fortran_order': False, 'shape': (4503599627370496, 0), }\n", ScalarType::c128,
       4503599627370496, 0, 2, false}};
  for (const Case& expected : cases) {
    for (const int version : {1, 2, 3}) {
      const std::string start = file_start(expected.dictionary, version);
      CAPTURE(start);
      const MatrixHeader header = parse(start, expected.rows * expected.cols * size_of(expected.type));
      CHECK(header.type == expected.type);
      CHECK(header.rows == expected.rows);
      CHECK(header.cols == expected.cols);
      CHECK(header.dimensions == expected.dimensions);
      CHECK(header.fortran_order == expected.fortran_order);
      CHECK(header.data_offset == static_cast<Index>(start.size()));
    }
  }
}

TEST_CASE("What is no .npy file, or none of a known version, is refused", "[npy]") {
  check_refused("", 0, "it is empty");
  check_refused("hello world", 0, "begins with 'hello '");
  check_refused("\x93NUMPX\1", 0, "begins with '?NUMPX'");
  check_refused("PK\3\4", 100, "numpy.save");
  check_refused(file_start("{}", 4), 0, "version 4.0");
  check_refused(file_start("{}", 0), 0, "version 0.0");
  std::string minor = valid;
  minor[7] = 1;
  check_refused(minor, 96, "version 1.1");
  check_refused(file_start(std::string(65537, ' '), 2), 0, "its header has 65537 bytes");
}

TEST_CASE("Element types that cannot be read are named, with the way out", "[npy]") {
  const std::string to_real = "array.astype('float64')", to_complex = "array.astype('complex128')",
                    to_columns = "numpy.lib.recfunctions.structured_to_unstructured(array)";
  const std::array<std::string, 3> types[] = {
      {"'<i8'", "integers ('<i8')", to_real},
      {"'int64'", "integers", to_real},
      {"'|u1'", "integers", to_real},
      {"'|b1'", "booleans", to_real},
      {"'?'", "booleans", to_real},
      {"'|O'", "Python objects", to_real},
      {"'<U10'", "text", to_real},
      {"'|S5'", "text", to_real},
      {"'|V16'", "raw bytes", "array.view('float64')"},
      {"'<M8[s]'", "dates", to_real},
      {"'>f8'", "big-endian", to_real},
      {"'>d'", "big-endian", to_real},
      {"'>c16'", "big-endian", to_complex},
      {"'<f2'", "unsupported", to_real},
      {"'<f16'", "unsupported", to_real},
      {"'<c32'", "unsupported", to_complex},
      {"'g'", "unsupported", to_real},
      {"'<float64'", "unsupported", to_real},
      {"''", "unsupported", to_real},
      {"'<'", "unsupported", to_real},
      {"'d8'", "unsupported", to_real},
      {"'<f80'", "unsupported", to_real},
      {"'\x01\xff'", "('?\?')", to_real},
      {"[('r', '<f8'), ('i', '<f8')]", "structured", "array.view('complex128')"},
      {"[(u'r', 'f4'), ('i', '<f4'), ]", "structured", "array.view('complex64')"},
      {"[('r', '<f8'), ('i', '<f4')]", "structured", to_columns},
      {"[('r', '<c8'), ('i', '<c8')]", "structured", to_columns},
      {"[('r', '<i8'), ('i', '<i8')]", "structured", to_columns},
      {"[('a', '<f8')]", "structured", to_columns},
      {"[('a', '<f8'), ('b', '<f8'), ('c', '<f8')]", "structured", to_columns},
      {"[('a', '<f8', (2,)), ('b', '<f8')]", "structured", to_columns},
      {"[('a', [('b', '<f8')])]", "structured", to_columns},
      {"('<f8', (2,))", "structured", to_columns}};
  for (const auto& [descr, expected, remedy] : types) {
    const std::string start =
        file_start("{'descr': " + descr + ", 'fortran_order': False, 'shape': (3,), }\n");
    check_refused(start, 24, expected);
    check_refused(start, 24, "Python: " + remedy);
  }
  check_refused(file_start("{'descr': [('r', '<f8"), 24, "a text that ends");
}

TEST_CASE("Files whose shape is no matrix's are refused", "[npy]") {
  const std::pair<const char*, const char*> shapes[] = {
      {"()", "0 dimensions"},
      {"(1, 2, 3)", "3 dimensions"},
      {"(1, 2, 3, 4, 5, 6, 7,)", "7 dimensions"},
      {"(-3, 4)", "negative size, '-3'"},
      {"(3, 9223372036854775808)", "beyond 64 bits, '9223372036854775808'"},
      {"(99999999999999999999999, 1)", "beyond 64 bits"},
      {"(4294967296, 4294967296)", "larger than any file"},
      {"(1152921504606846976, 1)", "larger than any file"},
      {"(1152921504606846975, 1)", "larger than any file"},
      {"(0, 9223372036854775807)", "larger than any file"},
      {"(9223372036854775807, 0)", "larger than any file"},
      {"(0, 9007199254740993)", "larger than any file"},
      {"(5)", "a comma before it"},
      {"(,)", "a size"},
      {"(2 3)", "a comma or the end of the shape"},
      {"(2,, 3)", "a size"},
      {"(2, 3", "a size, but there is '}'"},
      {"(2.0, 3)", "a comma or the end"},
      {"(07, 5)", "a size '07', but no size begins with a zero"},
      {"(00, 5)", "a size '00'"},
      {"(02L, 3)", "a size '02'"},
      {"(2 L, 3)", "a comma or the end"},
      {"(2\v, 3)", "a comma or the end"},
      {"(- 2, 3)", "a size"},
      {"[2, 3]", "'('"},
      {"7", "'('"},
      {"None", "'('"}};
  for (const auto& [shape, expected] : shapes) {
    check_refused(
        file_start(std::string("{'descr': '<f8', 'fortran_order': False, 'shape': ") + shape + ", }\n"), 48,
        expected);
  }
}

TEST_CASE("Sizes as Python 2 wrote them are read in the versions that it wrote", "[npy]") {
  const std::string python_2 = "{'descr': '<f4', 'fortran_order': False, 'shape': (3L, 4L), }\n";
  for (const int version : {1, 2}) CHECK(parse(file_start(python_2, version), 48).cols == 4);
  check_refused(file_start(python_2, 3), 48, "a comma or the end of the shape");
}

TEST_CASE("A header of any length takes little memory", "[npy]") {
  std::string shape;
  for (int k = 0; k < 65; ++k) shape += "1,";
  check_refused(file_start("{'descr': '<f8', 'fortran_order': True, 'shape': (" + shape + ")}\n"), 8,
                "more than 64 dimensions");
}

TEST_CASE("Headers with damaged dictionaries are refused, and the place is named", "[npy]") {
  const std::pair<const char*, const char*> dictionaries[] = {
      {"", "at byte 10 there should be '{', but there is the end of the header"},
      {"{}", "no descr"},
      {"{'descr': '<f8', 'shape': (6,)}", "no fortran_order"},
      {"{'descr': '<f8', 'fortran_order': False}", "no shape"},
      {"{'shape': (6,), 'fortran_order': False}", "no descr"},
      {"{'descr': '<f8', 'descr': '<f8', 'fortran_order': False, 'shape': (6,)}", "two entries 'descr'"},
      {"{'descr': '<f8', 'fortran_order': False, 'shape': (6,), 'shape': (6,)}", "two entries 'shape'"},
      {"{'descr': '<f8', 'order': False, 'shape': (6,)}", "an entry 'order'"},
      {"{'descr': '<f8', 'fortran_order': false, 'shape': (6,)}", "at byte 44 there should be True or False"},
      {"{'descr': '<f8', 'fortran_order': 1, 'shape': (6,)}", "True or False, but there is '1'"},
      {"{'descr': '<f8' 'fortran_order': False, 'shape': (6,)}", "'}'"},
      {"{'descr' '<f8', 'fortran_order': False, 'shape': (6,)}", "':'"},
      {"{'descr: <f8, fortran_order: False, shape: (6,)}", "a text that ends"},
      {"{'descr': 3, 'fortran_order': False, 'shape': (6,)}", "an element type in quotes"},
      {"{descr: '<f8', 'fortran_order': False, 'shape': (6,)}", "a key in quotes"},
      {"{, 'descr': '<f8', 'fortran_order': False, 'shape': (6,)}", "a key in quotes"},
      {"{'descr': '<f8', 'fortran_order': False, 'shape': (6,),,}", "a key in quotes"},
      {"{'descr': '<f8', 'fortran_order': False, 'shape': (6,)", "the end of the header"},
      {"{'descr': '<f8', 'fortran_order': False, 'shape': (6,)} x",
       "nothing after the dictionary, but there is 'x'"},
      {"{'descr': '<f8', 'fortran_order': False, 'shape': (6,)} \v\n", "nothing after the dictionary"},
      {"{'descr': '<f8', 'fortran_order': False, 'shape': (6,)}",
       "at byte 65 there should be a newline, but there is the end of the header"},
      {"{'descr': '<f8', 'fortran_order': False, 'shape': (6,)}\n  ", "there should be a newline"},
      {" {'descr': '<f8', 'fortran_order': False, 'shape': (6,)}\n", "at byte 10 there should be '{'"},
      {"({'descr': '<f8', 'fortran_order': False, 'shape': (6,)})\n", "at byte 10 there should be '{'"}};
  for (const auto& [dictionary, expected] : dictionaries) check_refused(file_start(dictionary), 48, expected);
  check_refused(file_start(std::string("{'descr': '<f8', 'fortran_order': False, 'shape': (6,)}\0", 56)), 48,
                "nothing after the dictionary, but there is '?'");
}

TEST_CASE("A file must be as long as its header says", "[npy]") {
  const auto size = static_cast<Index>(valid.size());
  const std::string needed = " needs " + std::to_string(size + 96);
  check_refused(valid, 95, "has " + std::to_string(size + 95) + " bytes");
  check_refused(valid, 95, needed);
  check_refused(valid, 95, "incomplete");
  check_refused(valid, 0, needed);
  check_refused(valid, 97, needed);
  check_refused(valid, 97, "other data after the array");
}

TEST_CASE("A header that is cut anywhere is refused", "[npy]") {
  for (const std::string& start : {valid, file_start(valid.substr(10), 2)}) {
    for (std::size_t length = 0; length < start.size(); ++length) {
      check_refused(start.substr(0, length), 0, length < 6 ? "is not a .npy file" : "ends within its header");
    }
  }
}

TEST_CASE("A header with any byte wrong is refused, or has the meaning of its text", "[npy]") {
  int accepted = 0;
  for (std::size_t position = 0; position < valid.size(); ++position) {
    for (int value = 0; value < 256; ++value) {
      std::string changed = valid;
      changed[position] = static_cast<char>(value);
      // There is room for elements of every size, so that the number of bytes is not what makes the reader
      // refuse.
      for (const Index bytes : {48, 96, 192}) {
        try {
          const MatrixHeader header = parse(changed, bytes);
          ++accepted;
          CHECK(header.data_offset + header.rows * header.cols * size_of(header.type) ==
                static_cast<Index>(changed.size()) + bytes);
        } catch (const InputError&) {
        }
      }
    }
  }
  CHECK(accepted >= static_cast<int>(valid.size()));
}

TEST_CASE("What is written can be read, and the elements are aligned", "[npy]") {
  for (const ScalarType type : {ScalarType::f32, ScalarType::f64, ScalarType::c64, ScalarType::c128}) {
    for (const Index rows : {Index{0}, Index{1}, Index{123456789}, Index{1} << 47}) {
      for (const int dimensions : {1, 2}) {
        const Index cols = dimensions == 1 ? 1 : 17;
        const std::string start = npy_header_text(MatrixHeader{type, rows, cols, dimensions, true, 0});
        CHECK(start.size() % 64 == 0);
        CHECK(start.back() == '\n');
        const MatrixHeader header = parse(start, rows * cols * size_of(type));
        CHECK((header.type == type && header.rows == rows && header.cols == cols));
        CHECK((header.dimensions == dimensions && header.fortran_order));
        CHECK(header.data_offset == static_cast<Index>(start.size()));
      }
    }
  }
  const Index most = 9223372036854775807;
  const std::string longest = npy_header_text(MatrixHeader{ScalarType::c128, most, most, 2, false, 0});
  CHECK(contains(longest, "(9223372036854775807, 9223372036854775807), } "));
  CHECK((longest.size() == 128 && longest.back() == '\n'));
  // A dictionary of 117 characters fills 128 bytes, with the 10 before it and a newline.
  for (Index size = 1; size <= 100000; size *= 10) {
    const std::string dictionary =
        "{'descr': '<f8', 'fortran_order': False, 'shape': (922337203685477, 9223372036854775807, "
        "9223372036854775807, " +
        std::to_string(size) + "), }";
    REQUIRE((size == 1) == (dictionary.size() < 116));
    const std::string text =
        npy_header_text(ArrayHeader{ScalarType::f64, {most / 10000, most, most, size}, false, 0});
    CAPTURE(text, dictionary.size());
    CHECK(text.substr(10, dictionary.size()) == dictionary);
    CHECK(text.size() == (dictionary.size() <= 117 ? 128 : 192));
    CHECK(static_cast<std::size_t>(static_cast<unsigned char>(text[8])) == text.size() - 10);
    CHECK(text[9] == '\0');
    CHECK(text.find_first_not_of(' ', 10 + dictionary.size()) == text.size() - 1);
    CHECK(text.back() == '\n');
  }
  CHECK(contains(npy_header_text(MatrixHeader{ScalarType::c128, 3, 4, 2, true, 0}),
                 "{'descr': '<c16', 'fortran_order': True, 'shape': (3, 4), }"));
  CHECK(contains(npy_header_text(MatrixHeader{ScalarType::f32, 3, 1, 1, false, 0}),
                 "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }"));
}
