// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "gridlops/dist/column_arithmetic.hpp"
#include "gridlops/ops/kirchhoff.hpp"
#include "subcommands.hpp"
#include "use_cases/own_arrays.hpp"
#include "use_cases/use_case.hpp"

namespace gridlops::program {

namespace {

/// Lengths in metres, times in seconds.
struct LsmArguments {
  UseCaseArguments common;
  Index nx = 81, nz = 60;
  Index ny = 0;  ///< 0: in two dimensions
  double origin = 0, origin_y = 0, spacing = 4, velocity = 1000;
  Index sources = 10, receivers = 11;
  Index pairs = 0;  ///< own data: traces of this many pairs of a source and a receiver; 0: of all
  double first = 40, last = 284;  ///< where the lines of sources and receivers begin and end
  double source_depth = 10, receiver_depth = 20;
  Index samples = 651, half_wavelet = 40;
  double interval = 0.004, frequency = 20;
  std::optional<double> trace_distance{};        ///< over whose delay arrivals are spread
  std::string data, geometry, wavelet, weights;  ///< names of arrays; empty: generated, or no weights

  bool has_own_data() const { return !data.empty(); }
  /// The sizes of an image, and those of the data.
  std::vector<Index> image_sizes() const {
    return ny > 0 ? std::vector<Index>{nx, ny, nz} : std::vector<Index>{nx, nz};
  }
  std::vector<Index> data_sizes() const {
    return pairs > 0 ? std::vector<Index>{pairs, samples} : std::vector<Index>{sources, receivers, samples};
  }
};

/// Where the traces were recorded: those of all sources at all receivers, unless each has ends of its own.
struct Survey {
  std::vector<Position> sources, receivers;
  std::function<TraceEnds(Index trace)> ends{};
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

/// Numbers each position by its place among those before, and adds it there if it is new.
class Numbering {
 public:
  Index number_of(const Position& position) {
    const auto [place, is_new] = numbers_.emplace(position, std::ssize(positions_));
    if (is_new) positions_.push_back(position);
    return place->second;
  }
  std::vector<Position> take() { return std::move(positions_); }

 private:
  std::map<Position, Index> numbers_;
  std::vector<Position> positions_;
};

/// Several coordinates of a row, from column `first` on.
Position position_in(const Table& table, Index row, Index first, Index count) {
  Position position;
  for (Index k = first; k < first + count; ++k) position.push_back(table(row, k));
  return position;
}

/// The survey in a table of positions: with a row for each source, and then for each receiver, or, if data
/// are traces of pairs, for each trace.
Survey survey_in(const LsmArguments& arguments, const Table& table) {
  const Index coordinates = std::ssize(arguments.image_sizes());
  const char* const names = coordinates == 3 ? "x, y and depth" : "x and depth";
  Survey survey;
  if (arguments.pairs > 0) {
    if (table.rows != arguments.pairs || table.cols != 2 * coordinates)
      throw InputError(
          fmt::format("{} is {} x {}, but the geometry of {} traces is {} x {}: {} of the source "
                      "of each trace, and then of its receiver",
                      arguments.geometry, table.rows, table.cols, arguments.pairs, arguments.pairs,
                      2 * coordinates, names));
    Numbering sources, receivers;
    std::vector<TraceEnds> ends;
    for (Index i = 0; i < table.rows; ++i)
      ends.push_back({sources.number_of(position_in(table, i, 0, coordinates)),
                      receivers.number_of(position_in(table, i, coordinates, coordinates))});
    return {sources.take(), receivers.take(),
            [ends = std::move(ends)](Index trace) { return ends[static_cast<std::size_t>(trace)]; }};
  }
  if (table.rows != arguments.sources + arguments.receivers || table.cols != coordinates)
    throw InputError(
        fmt::format("{} is {} x {}, but the geometry of {} sources and {} receivers is {} x {}: {} of each "
                    "source, then of each receiver",
                    arguments.geometry, table.rows, table.cols, arguments.sources, arguments.receivers,
                    arguments.sources + arguments.receivers, coordinates, names));
  for (Index i = 0; i < table.rows; ++i)
    (i < arguments.sources ? survey.sources : survey.receivers)
        .push_back(position_in(table, i, 0, coordinates));
  return survey;
}

/// The positions of the user's own survey, or those of the generated one (collective over the grid).
Survey survey_of(const LsmArguments& arguments, const std::shared_ptr<const ProcessGrid>& grid) {
  if (arguments.geometry.empty())
    return {line(arguments.sources, arguments, arguments.source_depth),
            line(arguments.receivers, arguments, arguments.receiver_depth)};
  return survey_in(arguments, read_table(grid, arguments.geometry));
}

/// Reflectors at half and five sixths of the depth.
double reflectivity(Index z, const LsmArguments& arguments) {
  return z == arguments.nz / 2 ? -1 : z == arguments.nz * 5 / 6 ? 0.5 : 0;
}

/// The operator from images to traces. Sources are cut along the rows of the grid, and those of a row, as
/// evenly, over its ranks; images along the columns of the grid.
template <Scalar T>
OperatorPtr<T> make_demigration(const LsmArguments& arguments,
                                const std::shared_ptr<const ProcessGrid>& grid) {
  const std::vector<Index> sizes = arguments.image_sizes();
  const Space image = grid->cols() == 1 ? array_space(grid, sizes, 0, Axis::uncut)
                                        : array_space(grid, sizes, 0, Axis::grid_cols);
  const std::vector<Index> recorded = arguments.data_sizes();
  std::vector<Partition> cuts{
      Partition::nested(Partition::balanced(recorded.front(), grid->rows()), grid->cols())};
  for (std::size_t d = 1; d < recorded.size(); ++d) cuts.push_back(Partition::balanced(recorded[d], 1));
  const Space data = array_space(grid, Dims(std::move(cuts)), Axis::all);
  ImageAxes axes{{arguments.origin, 0}, Position(sizes.size(), arguments.spacing)};
  if (arguments.ny > 0) axes.origin.insert(axes.origin.begin() + 1, arguments.origin_y);
  Survey survey = survey_of(arguments, grid);
  const std::vector<double> wavelet =
      arguments.wavelet.empty() ? ricker(arguments.frequency, arguments.interval, arguments.half_wavelet)
                                : read_wavelet(grid, arguments.wavelet);
  const Index centre = static_cast<Index>(wavelet.size()) / 2;
  KirchhoffOptions options;
  if (arguments.trace_distance)
    options.spread = {straight_ray_delays(sizes, axes, survey.sources, survey.receivers, arguments.velocity,
                                          0, *arguments.trace_distance)};
  return kirchhoff<T>(
      data, image,
      straight_rays(sizes, axes, std::move(survey.sources), std::move(survey.receivers), arguments.velocity),
      {arguments.interval, wavelet, centre, std::move(survey.ends)}, std::move(options));
}

/// Takes the sizes and the type of the user's own data (collective over world).
void read_own_sizes(Communicator& world, LsmArguments& arguments) {
  std::vector<const char*> dimensions{"sources", "receivers", "samples"};
  if (read_array_header(world, arguments.data).sizes.size() == 2) dimensions = {"traces", "samples"};
  const ArrayHeader header = read_own_header(world, arguments.data, "--data", dimensions);
  if (header.sizes.size() == 2) {
    arguments.pairs = header.sizes[0];
  } else {
    arguments.sources = header.sizes[0];
    arguments.receivers = header.sizes[1];
  }
  arguments.samples = header.sizes.back();
  arguments.common.type = header.type;
}

ExitStatus lsm(Communicator& world, LsmArguments arguments) {
  const bool own = arguments.has_own_data();
  if (own) read_own_sizes(world, arguments);
  std::vector<std::string> saved{"migrated", "inverted"};
  if (!own) saved.insert(saved.end(), {"model", "data"});
  UseCase run(world, "lsm", arguments.common, {world.size(), 1}, saved,
              {{"--data", arguments.data},
               {"--geometry", arguments.geometry},
               {"--wavelet", arguments.wavelet},
               {"--weights", arguments.weights}});
  return run.run([&]<Scalar T>() {
    OwnData<T> problem{make_demigration<T>(arguments, run.grid()), {}};
    if (own) problem = read_own_data<T>(problem.A, arguments.data, arguments.weights, run.is_dry());
    auto& [A, data] = problem;
    // Generated data have a model.
    const Index elements = (own ? 1 : 2) * A->domain().local_rows() + A->range().local_rows();
    if (run.plan({.solve = solve_bytes(arguments.common.solver, *A, 1),
                  .arrays = elements * static_cast<Index>(sizeof(T))}))
      return;
    DistMatrix<T> model;  // of generated data
    DistMatrix<T> image = allocate_matrix<T>(run.grid(), A->domain().layout(1));
    if (!own) {
      data = allocate_matrix<T>(run.grid(), A->range().layout(1));
      model = allocate_matrix<T>(run.grid(), image.layout());
      model.fill([&](Index i, Index) { return static_cast<T>(reflectivity(i % arguments.nz, arguments)); });
      A->apply(1, model, 0, data);
      run.save("model", A->domain().dims, model);
      run.save("data", A->range().dims, data);
    }
    A->apply_adjoint(1, data, 0, image);
    if (own && column_norms(image)[0] == 0 && column_norms(data)[0] > 0)
      throw InputError(fmt::format(
          "{}: no sample of these traces comes from the image, which has {} points, {} m apart, "
          "from x = {} m on, and is seen for {} s; set --nx, --nz, --spacing and --origin, and in three "
          "dimensions --ny and --origin-y",
          arguments.data, fmt::join(arguments.image_sizes(), " x "), arguments.spacing, arguments.origin,
          arguments.interval * static_cast<double>(arguments.samples)));
    run.save("migrated", A->domain().dims, image);
    run.solve(*A, data, image);
    run.save("inverted", A->domain().dims, image);
    if (own) return;
    const double norm = column_norms(model)[0];
    image -= model;
    run.figure("relative model error", column_norms(image)[0] / norm);
  });
}

}  // namespace

Action define_lsm(Options& options) {
  const auto arguments = std::make_shared<LsmArguments>();
  options.group("Own data");
  options.text("--data", arguments->data, "D",
               "Real traces, sources x receivers x samples, or traces x samples, of any pairs of a source "
               "and a receiver; --dtype is that of the file");
  options.text("--geometry", arguments->geometry, "G",
               "A matrix of x and depth, in metres, with a row for each source, and then for each receiver; "
               "for traces x samples, with a row for each trace: x and depth of its source, and then of its "
               "receiver. With --ny, of x, y and depth");
  options.text("--wavelet", arguments->wavelet, "W",
               "A vector of odd length, in the samples of the data, whose middle is time 0 [Ricker]");
  define_weights(options, arguments->weights);
  options.group("Image and traces");
  options.whole("--nx", arguments->nx, "N", 1, "Points of the image along x [81]");
  options.whole("--ny", arguments->ny, "N", 1, "The same along y [two dimensions, x and z]");
  options.whole("--nz", arguments->nz, "N", 1, "Points of the image along z, the depth [60]");
  options.number("--origin", arguments->origin, "M", std::numeric_limits<double>::lowest(),
                 "Where the image begins along x, in metres [0]");
  options.number("--origin-y", arguments->origin_y, "M", std::numeric_limits<double>::lowest(),
                 "Where it begins along y [0]");
  options.number("--spacing", arguments->spacing, "M", 0, "Metres between points of the image [4]");
  options.number("--velocity", arguments->velocity, "V", 0,
                 "Of the waves, in metres per second [1000; own data need it]");
  options.number("--interval", arguments->interval, "S", 0,
                 "Seconds between samples [0.004; own data need it]");
  options.number("--frequency", arguments->frequency, "F", 0, "Of the Ricker wavelet, in Hz [20]");
  options.whole("--half-wavelet", arguments->half_wavelet, "N", 0,
                "Samples of the wavelet on either side of its peak [40]");
  options.number("--anti-alias", arguments->trace_distance, "M", 0,
                 "Spreads arrivals over the delay of waves between receivers M metres apart, over up to 8 "
                 "samples on either side [off]");
  options.group("Generated survey");
  for (CLI::Option* generated :
       {options.whole("--sources", arguments->sources, "N", 1, "Sources, of all ranks together [10]"),
        options.whole("--receivers", arguments->receivers, "N", 1, "Receivers [11]"),
        options.number("--first", arguments->first, "M", 0,
                       "Where the lines of sources and receivers begin [40]"),
        options.number("--last", arguments->last, "M", 0, "Where they end [284]"),
        options.number("--source-depth", arguments->source_depth, "M", 0, "Depth of the sources [10]"),
        options.number("--receiver-depth", arguments->receiver_depth, "M", 0, "Depth of the receivers [20]"),
        options.whole("--samples", arguments->samples, "N", 2, "Samples of a trace [651]")})
    generated->excludes(options.find("--data"));
  for (const char* of_data : {"--geometry", "--velocity", "--interval"}) options.need("--data", of_data);
  for (const char* of_own : {"--geometry", "--ny"}) options.need(of_own, "--data");
  options.need("--origin-y", "--ny");
  for (const char* of_ricker : {"--frequency", "--half-wavelet"}) options.exclude(of_ricker, "--wavelet");
  define_use_case(options, arguments->common);
  options.examples({"mpirun -n 4 gridlops lsm --save lsm --cost lsm/cost.txt",
                    "gridlops lsm --solver lsqr --iterations 20 --dtype f32",
                    "mpirun -n 4 gridlops lsm --data shots.npy --geometry positions.npy --interval 0.004 "
                    "--velocity 1500 --save mine"});
  return [arguments](Communicator& world) { return lsm(world, *arguments); };
}

}  // namespace gridlops::program
