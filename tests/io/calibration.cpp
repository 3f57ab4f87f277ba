// SPDX-License-Identifier: BSD-3-Clause
// tests/apps/calibration_test.py has the cases that need other files than the library writes.
#include "gridlops/calibration.hpp"

#include <filesystem>
#include <fstream>
#include <iterator>

#include "gridlops/cost_model.hpp"
#include "gridlops/text_file.hpp"
#include "local/instruction_set.hpp"
#include "support/catch.hpp"
#include "support/mpi_main.hpp"
#include "support/variable.hpp"

using namespace gridlops;
using namespace gridlops::testing;

namespace {

std::string text_in(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

void swap_words(std::string& text, const std::string& a, const std::string& b) {
  std::string swapped;
  for (std::size_t k = 0; k < text.size();) {
    const bool is_a = text.compare(k, a.size(), a) == 0, is_b = text.compare(k, b.size(), b) == 0;
    swapped += is_a ? b : is_b ? a : text.substr(k, 1);
    k += is_a ? a.size() : is_b ? b.size() : 1;
  }
  text = swapped;
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

  // Packed products, and then A in columns, take the seconds of the other. A rank that is not 0 has another
  // file.
  const std::string others = folder + "/other.json";
  if (world().rank() == 0) {
    std::string text = text_in(path);
    const auto write = [](const std::string& name, const std::string& all) {
      write_text_file(name, [text = all]() mutable { return std::exchange(text, {}); });
    };
    write(others, "{\"schema\": 5}");
    for (const char* product : {"A X, ", "A^H Y, "}) {
      swap_words(text, std::string(product) + "packed", std::string(product) + "own kernels");
    }
    write(path, text);
  }
  world().barrier();
  if (world().rank() > 0) setenv("GRIDLOPS_CALIBRATION", others.c_str(), 1);
  const Calibration swapped = load_calibration(world());
  CHECK(swapped.file == path);
  const auto alike = [](const std::string& text) { return broadcast_text(world(), text, 0) == text; };
  CHECK(alike(swapped.note));
  CHECK(alike(swapped.when(ScalarType::f32)));
  const ProductChoices now = product_choices(ScalarType::f32);
  for (const std::string& text : {now.forward, now.adjoint, now.packed, now.one_pass}) CHECK(alike(text));
  if (!swapped.when(ScalarType::f32).empty()) CHECK(now.packed != built_in.packed);

  // On one rank the other's file: nobody uses it.
  setenv("GRIDLOPS_CALIBRATION", world().rank() == 0 ? "off" : path.c_str(), 1);
  const Calibration none = load_calibration(world());
  CHECK((none.file.empty() && none.note == "GRIDLOPS_CALIBRATION is off"));
  CHECK(product_choices(ScalarType::f32) == built_in);
  world().barrier();
  if (world().rank() == 0) fs::remove_all(folder);
}
