// SPDX-License-Identifier: BSD-3-Clause
#include "result.hpp"

#include <algorithm>

#include "gpu_grid.hpp"
#include "host_grid.hpp"
#include "members.hpp"

namespace gridlops::bench {

double Work::roofline_seconds(const MachineLimits& limits) const {
  return std::max(flops / limits.flops_per_second, bytes / limits.bytes_per_second);
}

namespace {

/// With what was left open.
Case chosen(const Cases& cases, const ProductShape& shape, const std::shared_ptr<const ProcessGrid>& grid,
            Algorithm asked, std::optional<Storage> storage) {
  const Algorithm algorithm =
      asked == Algorithm::automatic ? choose_algorithm(shape, grid->shape(), machine_model(*grid)) : asked;
  if (!storage)
    storage = cases.device == "cpu" ? faster_storage(algorithm, shape, grid->shape()) : Storage::columns;
  return {
      program::with_memory_for(algorithm, grid), shape, algorithm, cases.panel, cases.summa_form, *storage};
}

}  // namespace

void for_each_case(Communicator& world, const Cases& cases, const std::function<void(const Case&)>& run) {
  std::vector<GridShape> shapes = cases.grids;
  if (shapes.empty()) shapes.push_back(near_square(world.size()));
  std::vector<std::shared_ptr<const ProcessGrid>> grids;
  for (const GridShape shape : shapes)
    for (const std::string& transport : cases.transports)
      grids.push_back(cases.device == "gpu" ? program::make_gpu_grid(world, shape, transport)
                                            : program::make_host_grid(world, shape, transport));
  for (const auto& grid : grids) {
    program::run_on_members(world, *grid, [&] {
      for (const ScalarType type : cases.types)
        for (const Index rows : cases.rows)
          for (const Index cols : cases.cols)
            for (const Index nrhs : cases.nrhs)
              for (const Algorithm asked : cases.algorithms)
                for (const std::optional<Storage> storage : cases.storages)
                  run(chosen(cases, {rows, cols, nrhs, type}, grid, asked, storage));
    });
  }
}

}  // namespace gridlops::bench
