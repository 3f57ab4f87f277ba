// SPDX-License-Identifier: BSD-3-Clause
#include "result.hpp"

#include <algorithm>

#include "members.hpp"

namespace gridlops::bench {

double Work::roofline_seconds(const MachineLimits& limits) const {
  return std::max(flops / limits.flops_per_second, bytes / limits.bytes_per_second);
}

void for_each_case(Communicator& world, const Cases& cases, const std::function<void(const Case&)>& run) {
  std::vector<GridShape> shapes = cases.grids;
  if (shapes.empty()) shapes.push_back(near_square(world.size()));
  const std::shared_ptr<Backend> backend = make_host_backend();
  for (const GridShape shape : shapes) {
    const auto grid = std::make_shared<const ProcessGrid>(world, shape, backend);
    program::run_on_members(world, *grid, [&] {
      for (const ScalarType type : cases.types)
        for (const Index rows : cases.rows)
          for (const Index cols : cases.cols)
            for (const Index nrhs : cases.nrhs)
              for (const Algorithm asked : cases.algorithms) {
                const ProductShape product{rows, cols, nrhs, type};
                run({grid, product, asked == Algorithm::automatic ? choose_algorithm(product, shape) : asked,
                     cases.panel});
              }
    });
  }
}

}  // namespace gridlops::bench
