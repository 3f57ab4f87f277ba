// SPDX-License-Identifier: BSD-3-Clause
#include "io/formats/manifest.hpp"
#include <algorithm>
#include <string>

#include "gridlops/base/error.hpp"
#include "support/catch.hpp"

using namespace gridlops;
using namespace gridlops::testing;

namespace {

Manifest example() {
  Manifest manifest;
  manifest.folder = "generation-3";
  manifest.previous = "generation-2";
  manifest.facts = {{"grid", "2x3"}, {"path", "a \"quoted\" name\n"}};
  manifest.matrices["x"] = {
      ScalarType::c64, 5, 2, {{{0, 3}, {0, 2}, 0xfedcba9876543210U}, {{3, 2}, {0, 2}, 7}}};
  manifest.matrices["empty"] = {ScalarType::f64, 0, 4, {}};
  return manifest;
}

}  // namespace

TEST_CASE("A manifest comes back as it was written") {
  const Manifest read = parse_manifest(manifest_text(example()), "m");
  CHECK(read.folder == "generation-3");
  CHECK(read.previous == "generation-2");
  CHECK(read.facts == example().facts);
  REQUIRE(read.matrices.size() == 2);
  const SavedMatrix& x = read.matrices.at("x");
  CHECK(x.type == ScalarType::c64);
  CHECK((x.rows == 5 && x.cols == 2));
  REQUIRE(x.blocks.size() == 2);
  CHECK(x.blocks[0].hash == 0xfedcba9876543210U);
  CHECK((x.blocks[1].rows == Range{3, 2}));
  CHECK(read.matrices.at("empty").blocks.empty());
}

TEST_CASE("A manifest of which any byte changed that is not white space is refused") {
  const std::string sound = manifest_text(example());
  for (std::size_t k = 0; k < sound.size(); ++k) {
    if (sound[k] == ' ' || sound[k] == '\n') continue;
    std::string text = sound;
    text[k] = text[k] == '1' ? '2' : '1';
    CAPTURE(k, text);
    CHECK_THROWS_AS(parse_manifest(text, "m"), InputError);
    CHECK_THROWS_AS(parse_manifest(sound.substr(0, k), "m"), InputError);
  }
}

TEST_CASE("Blocks of a manifest must make up their matrix, each element once") {
  const auto check = [](const std::vector<SavedBlock>& blocks, bool is_sound) {
    Manifest manifest = example();
    manifest.matrices["x"].blocks = blocks;
    const std::string text = manifest_text(manifest);
    if (is_sound) {
      CHECK(parse_manifest(text, "m").matrices.at("x").blocks.size() == blocks.size());
    } else {
      CHECK_THROWS_AS(parse_manifest(text, "m"), InputError);
    }
  };
  const SavedBlock upper{{0, 3}, {0, 2}, 1}, lower{{3, 2}, {0, 2}, 2}, corner{{0, 2}, {0, 1}, 3},
      under{{2, 3}, {0, 1}, 4}, right{{0, 5}, {1, 1}, 5};
  check({upper, lower}, true);
  check({lower, upper}, true);
  check({right, under, corner}, true);
  check({upper, upper}, false);
  check({lower, lower}, false);
  check({corner, corner, right, SavedBlock{{2, 1}, {0, 1}, 6}}, false);  // as many elements as there are
  check({under, SavedBlock{{1, 2}, {0, 1}, 7}, right}, false);
  check({right, right}, false);
  check({upper, lower, SavedBlock{{0, 0}, {0, 2}, 8}}, false);
}

TEST_CASE("What is said of a damaged manifest is text, whatever bytes it has") {
  std::string text = manifest_text(Manifest());
  text.insert(text.find("schema") + 2, "\xf8\x1b[2J");
  try {
    parse_manifest(text, "saved");
    FAIL_CHECK("nothing was thrown");
  } catch (const InputError& error) {
    const std::string said = error.what();
    CHECK(said.find("no JSON from byte") != std::string::npos);
    CHECK(std::all_of(said.begin(), said.end(), [](char c) { return c >= ' ' && c <= '~'; }));
  }
}

TEST_CASE("Facts may have any bytes; those that are no UTF-8 are replaced") {
  Manifest manifest = example();
  manifest.facts["path"] = "caf\xe9.npy";
  CHECK(parse_manifest(manifest_text(manifest), "m").facts.at("path") == "caf\xef\xbf\xbd.npy");
}

TEST_CASE("A manifest that is sound but impossible is refused") {
  const auto refused = [](const Manifest& manifest) {
    return message_of<InputError>([&] { parse_manifest(manifest_text(manifest), "the path"); });
  };
  Manifest manifest = example();
  manifest.folder = "../elsewhere";
  CHECK(contains(refused(manifest), "the path"));
  CHECK(contains(refused(manifest), "'../elsewhere' is no name"));
  manifest = example();
  manifest.matrices["x"].blocks.pop_back();
  CHECK(contains(refused(manifest), "do not make up their matrix"));
  manifest = example();
  manifest.matrices["x"].blocks[1].rows = {3, 3};
  CHECK(contains(refused(manifest), "outside its matrix"));
}
