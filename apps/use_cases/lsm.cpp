// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <cmath>

#include "gridlops/dist/column_arithmetic.hpp"
#include "gridlops/ops/kirchhoff.hpp"
#include "subcommands.hpp"
#include "use_cases/use_case.hpp"

namespace gridlops::program {

namespace {

/// Lengths in metres, times in seconds.
struct LsmArguments {
  UseCaseArguments common;
  Index nx = 81, nz = 60;
  double spacing = 4, velocity = 1000;
  Index sources = 10, receivers = 11;
  double first = 40, last = 284;  ///< where the lines of sources and receivers begin and end
  double source_depth = 10, receiver_depth = 20;
  Index samples = 651, half_wavelet = 40;
  double interval = 0.004, frequency = 20;
};

/// This many points along x, evenly spaced, at one depth.
std::vector<Position> line(Index count, const LsmArguments& arguments, double depth) {
  std::vector<Position> positions;
  const double length = arguments.last - arguments.first;
  for (Index k = 0; k < count; ++k) {
    const double share = count == 1 ? 0 : static_cast<double>(k) / static_cast<double>(count - 1);
    positions.push_back({arguments.first + share * length, depth});
  }
  return positions;
}

/// Reflectors at half and five sixths of the depth.
double reflectivity(Index z, const LsmArguments& arguments) {
  return z == arguments.nz / 2 ? -1 : z == arguments.nz * 5 / 6 ? 0.5 : 0;
}

/// The operator from images to traces. Sources are cut along the rows of the grid, images along its columns.
template <Scalar T>
OperatorPtr<T> make_demigration(const LsmArguments& arguments,
                                const std::shared_ptr<const ProcessGrid>& grid) {
  const std::vector<Index> sizes{arguments.nx, arguments.nz};
  const Space image = grid->cols() == 1 ? array_space(grid, sizes, 0, Axis::uncut)
                                        : array_space(grid, sizes, 0, Axis::grid_cols);
  const Space data =
      array_space(grid, {arguments.sources, arguments.receivers, arguments.samples}, 0, Axis::grid_rows);
  const ImageAxes axes{{0, 0}, {arguments.spacing, arguments.spacing}};
  return kirchhoff<T>(
      data, image,
      straight_rays(sizes, axes, line(arguments.sources, arguments, arguments.source_depth),
                    line(arguments.receivers, arguments, arguments.receiver_depth), arguments.velocity),
      {arguments.interval, ricker(arguments.frequency, arguments.interval, arguments.half_wavelet),
       arguments.half_wavelet});
}

ExitStatus lsm(Communicator& world, const LsmArguments& arguments) {
  UseCase run(world, "lsm", arguments.common, {world.size(), 1}, {"model", "data", "migrated", "inverted"});
  return run.run([&]<Scalar T>() {
    const OperatorPtr<T> A = make_demigration<T>(arguments, run.grid());
    DistMatrix<T> model = allocate_matrix<T>(run.grid(), A->domain().layout(1));
    DistMatrix<T> image = allocate_matrix<T>(run.grid(), model.layout());
    DistMatrix<T> data = allocate_matrix<T>(run.grid(), A->range().layout(1));
    model.fill([&](Index i, Index) { return static_cast<T>(reflectivity(i % arguments.nz, arguments)); });
    A->apply(1, model, 0, data);
    run.save("model", A->domain(), model);
    run.save("data", A->range(), data);
    A->apply_adjoint(1, data, 0, image);
    run.save("migrated", A->domain(), image);
    run.solve(*A, data, image);
    run.save("inverted", A->domain(), image);
    const double norm = column_norms(model)[0];
    image -= model;
    run.figure("relative model error", column_norms(image)[0] / norm);
  });
}

}  // namespace

Action define_lsm(Options& options) {
  const auto arguments = std::make_shared<LsmArguments>();
  options.group("Survey");
  options.whole("--sources", arguments->sources, "N", 1, "Sources, of all ranks together [10]");
  options.whole("--receivers", arguments->receivers, "N", 1, "Receivers [11]");
  options.whole("--nx", arguments->nx, "N", 1, "Points of the image along x [81]");
  options.whole("--nz", arguments->nz, "N", 1, "Points of the image along z, the depth [60]");
  options.number("--spacing", arguments->spacing, "M", 0, "Metres between points of the image [4]");
  options.number("--velocity", arguments->velocity, "V", 0, "Of the waves, in metres per second [1000]");
  options.number("--first", arguments->first, "M", 0, "Where the lines of sources and receivers begin [40]");
  options.number("--last", arguments->last, "M", 0, "Where they end [284]");
  options.number("--source-depth", arguments->source_depth, "M", 0, "Depth of the sources [10]");
  options.number("--receiver-depth", arguments->receiver_depth, "M", 0, "Depth of the receivers [20]");
  options.whole("--samples", arguments->samples, "N", 2, "Samples of a trace [651]");
  options.number("--interval", arguments->interval, "S", 0, "Seconds between samples [0.004]");
  options.number("--frequency", arguments->frequency, "F", 0, "Of the Ricker wavelet, in Hz [20]");
  options.whole("--half-wavelet", arguments->half_wavelet, "N", 0,
                "Samples of the wavelet on either side of its peak [40]");
  define_use_case(options, arguments->common);
  options.examples({"mpirun -n 4 gridlops lsm --save lsm --cost lsm/cost.txt",
                    "gridlops lsm --solver lsqr --iterations 20 --dtype f32"});
  return [arguments](Communicator& world) { return lsm(world, *arguments); };
}

}  // namespace gridlops::program
