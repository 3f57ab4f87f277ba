// SPDX-License-Identifier: BSD-3-Clause
#include "matrix/product_arguments.hpp"

#include "machine/machine_file.hpp"

namespace gridlops::program {

void define_products(Options& options, ProductArguments& product) {
  options.group("Ranks and products");
  options.parsed(
      "--grid", [&product](const std::string& text) { product.grid = parse_grid_shape(text); }, "PxQ",
      "Process grid: its rows and columns [the fastest by the model]");
  options.choice("--algorithm", product.algorithm, algorithms(), "How products are formed [auto]");
  options.whole("--panel", product.panel, "W", 0, "Width of the panels that travel [0: chosen]");
  options.choice("--transport", product.transport, transports(), "What carries the data [auto]");
  options.choice("--device", product.device, words({"cpu", "gpu"}),
                 "Where matrices live and products run [cpu]");
  options.text("--machine", product.machine, "FILE", about_machine);
}

void define_product_report(Options& options, ProductArguments& product) {
  options.group("Results");
  options.text("--report", product.report, "R.json",
               "Writes the problem and figures of the run as JSON, which gridlops report compares");
  options.flag("--hashes", product.hashes,
               "The report has the files' XXH3 hashes, as xxhsum -H3 prints them");
}

}  // namespace gridlops::program
