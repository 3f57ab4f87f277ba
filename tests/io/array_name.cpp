// SPDX-License-Identifier: BSD-3-Clause
#include "io/formats/array_name.hpp"

#include "gridlops/base/error.hpp"
#include "support/catch.hpp"

using namespace gridlops;
using namespace gridlops::testing;

TEST_CASE("A name says which file is meant, and which dataset", "[array_name]") {
  struct Case {
    const char *name, *file, *dataset;
  };
  for (const Case& each : {Case{"A.npy", "A.npy", ""},
                           {"folder/A", "folder/A", ""},
                           {"", "", ""},
                           {".h5", ".h5", ""},
                           {"A.h5.bak", "A.h5.bak", ""},
                           {"x.h5:/A.npy", "x.h5:/A.npy", ""},
                           {"P.h5:/A", "P.h5", "/A"},
                           {"P.h5:A", "P.h5", "/A"},
                           {"a:b/P.hdf5:/g/./h//A/", "a:b/P.hdf5", "/g/h/A"},
                           {"P.mat:/x:y", "P.mat", "/x:y"},
                           {"P.h5:/A@0:3,:", "P.h5", "/A"},
                           {"P.h5:/me@home", "P.h5", "/me@home"},
                           {"P.h5", "P.h5", "/"},
                           {"P.h5:", "P.h5", "/"},
                           {"P.h5:/", "P.h5", "/"},
                           {"a.h5:/b.h5:/c", "a.h5", "/b.h5:/c"}}) {
    CAPTURE(each.name);
    const ArrayPlace place = place_of_array(each.name);
    CHECK(place.file == each.file);
    CHECK(place.dataset == each.dataset);
  }
}

TEST_CASE("A part chooses indices of each dimension", "[array_name]") {
  const std::vector<Chosen> chosen = choose(parse_array_name("P.h5:/A@-1,1:8:3,:2"), {4, 9, 5, 6});
  REQUIRE(chosen.size() == 4);
  CHECK((chosen[0].begin == 3 && chosen[0].count == 1 && chosen[0].is_index));
  CHECK((chosen[1].begin == 1 && chosen[1].count == 3 && chosen[1].step == 3 && !chosen[1].is_index));
  CHECK((chosen[2].begin == 0 && chosen[2].count == 2 && chosen[2].step == 1));
  CHECK((chosen[3].begin == 0 && chosen[3].count == 6));
  const std::string most = "9223372036854775807";
  CHECK(choose(parse_array_name("P.h5:/A@0:5:" + most), {5})[0].count == 1);
  for (const std::string part : {"5", "-6", "0:6", "3:2", "-9:", most.c_str(), "-9223372036854775808"}) {
    CAPTURE(part);
    CHECK_THROWS_AS(choose(parse_array_name("P.h5:/A@" + part), {5}), InputError);
  }
  CHECK_THROWS_AS(choose(parse_array_name("P.h5:/A@0,0"), {5}), InputError);
  for (const char* part :
       {"", ",", "0,", "0:1:0", "0:1:-1", "1:2:3:4", "1-2", "--1", "9223372036854775808"}) {
    CAPTURE(part);
    CHECK_THROWS_AS(parse_array_name(std::string("P.h5:/A@") + part), UsageError);
  }
}
