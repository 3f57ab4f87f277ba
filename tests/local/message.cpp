// SPDX-License-Identifier: BSD-3-Clause
#include "base/message.hpp"

#include <limits>
#include <locale>
#include <sstream>

#include "gridlops/solve/solve_observer.hpp"
#include "io/formats/manifest.hpp"
#include "io/formats/npy_header.hpp"
#include "support/catch.hpp"

using namespace gridlops;

namespace {

/// Numbers as in German: 1.234.567,5.
struct German : std::numpunct<char> {
  char do_thousands_sep() const override { return '.'; }
  std::string do_grouping() const override { return "\3"; }
  char do_decimal_point() const override { return ','; }
};

/// The locale of all streams that are made while it lives.
class GlobalLocale {
 public:
  explicit GlobalLocale(const std::locale& locale) : before_(std::locale::global(locale)) {}
  ~GlobalLocale() { std::locale::global(before_); }
  GlobalLocale(const GlobalLocale&) = delete;
  GlobalLocale& operator=(const GlobalLocale&) = delete;

 private:
  std::locale before_;
};

std::string table() {
  std::ostringstream out;
  const auto printer = print_table(out);
  printer->start({"cgls", 12345, 6789, 2, ScalarType::f64, 1e-8, 0.5, 1000, 0});
  printer->end({});
  const std::string text = out.str();
  return text.substr(0, text.find("Total time"));
}

std::string all_texts() {
  const Manifest manifest{"generation-1",
                          "",
                          {{"panel", "1024"}},
                          {{"x", {ScalarType::f64, 123456, 1, {{{0, 123456}, {0, 1}, 17}}}}}};
  return message(1234567, " ", Index{1} << 40, " ", 1234.5, " ", 1e100) +
         npy_header_text(MatrixHeader{ScalarType::f64, 1234567, 1000, 2, true, 0}) + manifest_text(manifest) +
         table();
}

}  // namespace

TEST_CASE("Numbers in texts look the same in every locale, and are read again") {
  const std::string expected = all_texts();
  CHECK(message(1234567, " ", 1234.5) == "1234567 1234.5");
  const GlobalLocale german(std::locale(std::locale::classic(), new German));
  std::ostringstream other;
  other << 1234567 << ' ' << 1234.5;
  REQUIRE(other.str() == "1.234.567 1.234,5");
  CHECK(all_texts() == expected);
  const std::string start = npy_header_text(MatrixHeader{ScalarType::f64, 1234567, 1000, 2, true, 0});
  CHECK(parse_npy_header(start, static_cast<Index>(start.size()) + 1234567000 * Index{8}, "A.npy").rows ==
        1234567);
}
