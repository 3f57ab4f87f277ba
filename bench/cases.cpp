// SPDX-License-Identifier: BSD-3-Clause
#include "cases.hpp"

#include "gridlops/calibration.hpp"

namespace gridlops::bench {

namespace {

/// The case with the algorithm and the storage that were left open.
Case resolved(const Cases& cases, const ProductShape& shape, const std::shared_ptr<const ProcessGrid>& grid,
              Algorithm asked, std::optional<Storage> storage) {
  const Algorithm algorithm = program::resolve(asked, shape, *grid);
  if (!storage)
    storage = cases.device == "cpu" ? faster_storage(algorithm, shape, grid->shape()) : Storage::columns;
  return {matrix_grid(algorithm, grid), shape, algorithm, cases.panel, *storage};
}

}  // namespace

void for_each_case(Communicator& world, const Cases& cases, const std::function<void(const Case&)>& run) {
  load_calibration(world);
  std::vector<GridShape> shapes = cases.grids;
  if (shapes.empty()) shapes.push_back(near_square(world.size()));
  std::vector<std::shared_ptr<const ProcessGrid>> grids;
  for (const GridShape shape : shapes)
    for (const std::string& transport : cases.transports)
      grids.push_back(program::make_grid(world, shape, cases.device, transport));
  for (const auto& grid : grids) {
    program::run_on_grid(world, *grid, [&] {
      for (const ScalarType type : cases.types)
        for (const Index rows : cases.rows)
          for (const Index cols : cases.cols)
            for (const Index nrhs : cases.nrhs)
              for (const Algorithm asked : cases.algorithms)
                for (const std::optional<Storage> storage : cases.storages)
                  run(resolved(cases, {rows, cols, nrhs, type}, grid, asked, storage));
    });
  }
}

}  // namespace gridlops::bench
