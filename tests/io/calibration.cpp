// SPDX-License-Identifier: BSD-3-Clause
// tests/apps/calibration_test.py has the cases that need other files than the library writes.
#include "gridlops/io/calibration.hpp"

#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "gridlops/io/text_file.hpp"
#include "gridlops/ops/cost_model.hpp"
#include "local/tiles/kernel_set.hpp"
#include "support/catch.hpp"
#include "support/programs/mpi_main.hpp"
#include "support/variable.hpp"

using namespace gridlops;
using namespace gridlops::testing;

namespace {

std::string text_in(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Writes a text that one rank makes.
void write(const std::string& path, std::string text) {
  write_text_file(path, [text = std::move(text)]() mutable { return std::exchange(text, {}); });
}

}  // namespace

TEST_CASE("All ranks choose by what rank 0 has kept, and by nothing that only others have", "[calibration]") {
  if (kernel_choice().use != KernelChoice::Use::where_faster) return;
  namespace fs = std::filesystem;
  const std::string folder = broadcast_text(
      world(), (fs::temp_directory_path() / ("calibration-" + std::to_string(getpid()))).string(), 0);
  const std::string path = folder + "/new/folder/c.json";
  const ProductChoices built_in = product_choices(ScalarType::f32);
  const Variable variable("GRIDLOPS_CALIBRATION", path.c_str());
  CHECK(load_calibration(world()).when(ScalarType::f32).empty());
  const Calibration measured = measure_calibration(world(), ScalarType::f32);
  CHECK((measured.is_new && measured.file == path));
  CHECK(measured.when(ScalarType::f64).empty());
  CHECK_FALSE(measure_calibration(world(), ScalarType::f32).is_new);
  world().barrier();

  // As rank 0 finds it, one pass never pays. The other ranks have another file.
  const std::string others = folder + "/other.json";
  if (world().rank() == 0) {
    nlohmann::json json = nlohmann::json::parse(text_in(path));
    nlohmann::json& figures = json.at("types").at("f32");
    figures["measured"] = "then";
    for (const auto& row : figures.at("seconds").items())
      for (auto& times : row.value()) times = row.key() == "one pass" ? std::array{9, 9} : std::array{1, 1};
    write(path, json.dump());
    write(others, "{\"schema\": 5}");
  }
  world().barrier();
  if (world().rank() > 0) setenv("GRIDLOPS_CALIBRATION", others.c_str(), 1);
  const Calibration loaded = load_calibration(world());
  CHECK((loaded.file == path && loaded.note.empty()));
  CHECK(loaded.when(ScalarType::f32) == "then");
  CHECK(built_in.one_pass != "none");
  CHECK(product_choices(ScalarType::f32).one_pass == "none");

  // A file that only others have is used by nobody.
  setenv("GRIDLOPS_CALIBRATION", world().rank() == 0 ? "off" : path.c_str(), 1);
  const Calibration none = load_calibration(world());
  CHECK((none.file.empty() && none.note == "GRIDLOPS_CALIBRATION is off"));
  CHECK(product_choices(ScalarType::f32) == built_in);
  world().barrier();
  if (world().rank() == 0) fs::remove_all(folder);
}
