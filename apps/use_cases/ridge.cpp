// SPDX-License-Identifier: BSD-3-Clause
#include "gridlops/solve/ridge.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <utility>

#include "command_line/console.hpp"
#include "command_line/file_checks.hpp"
#include "command_line/grid.hpp"
#include "gridlops/comm/failure.hpp"
#include "gridlops/compressed/compressed_matrix.hpp"
#include "gridlops/ops/matrix_mult.hpp"
#include "machine/limits.hpp"
#include "matrix/matrix_file.hpp"
#include "matrix/memory_plan.hpp"
#include "measure/file_hash.hpp"
#include "measure/report.hpp"
#include "solve/sweep.hpp"
#include "subcommands.hpp"
#include "use_cases/saved_ridge.hpp"
#include "use_cases/streamed_ridge.hpp"

namespace gridlops::program {

namespace {

struct RidgeArguments {
  std::string matrix, rhs, output, intercepts, chosen, scores, report, transport = "auto";
  std::string checkpoint, restart, row_weights;
  std::string dampings, alphas;  ///< one of both: a number, FIRST:LAST:COUNT, or a file
  std::string folds;             ///< their number, a file of labels, "loo", "gcv" or "none"
  std::string choose_for = "each";
  RidgeOptions options;
  bool no_intercept = false, dry_run = false;
};

constexpr const char* default_folds = "5";

struct RidgeFiles {
  MatrixFile A;
  MatrixHeader B;
  CommonType common;
};

/// D² of the dampings or alphas that were asked for (collective).
std::vector<double> read_alphas(Communicator& world, const RidgeArguments& arguments) {
  if (arguments.dampings.empty() == arguments.alphas.empty())
    throw UsageError(
        "give --dampings D, or --alphas D^2 as scikit-learn has them; both are a number, FIRST:LAST:COUNT, "
        "or "
        "a file");
  const std::string& text = arguments.dampings.empty() ? arguments.alphas : arguments.dampings;
  std::vector<double> values;
  const char* const option = arguments.dampings.empty() ? "--alphas" : "--dampings";
  try {
    if (text.find_first_not_of("0123456789.eE+-") == std::string::npos) {
      values = {number(text, 0)};
    } else if (const auto range = damping_range(text)) {
      values = *range;
    } else {
      values = read_vector(world, text, "a damping", "dampings");
    }
  } catch (const UsageError& error) {
    throw UsageError(fmt::format("{} {}: {}", option, text, error.what()));
  }
  if (!arguments.dampings.empty())
    for (double& value : values) value *= value;
  return values;
}

/// Whether the text is the number of folds.
bool is_count(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
}

std::vector<Index> whole_numbers(Communicator& world, const std::string& path, const char* one,
                                 const char* many) {
  std::vector<Index> labels;
  for (const double value : read_vector(world, path, one, many, true)) {
    if (value != std::floor(value) || std::abs(value) > 9e15)
      throw InputError(fmt::format("{} holds {}, but {} are whole numbers", path, value, many));
    labels.push_back(static_cast<Index>(value));
  }
  return labels;
}

/// The options with their values (collective).
RidgeOptions resolved(Communicator& world, const RidgeArguments& arguments, Index rows) {
  RidgeOptions options = arguments.options;
  options.intercept = !arguments.no_intercept;
  options.alphas = read_alphas(world, arguments);
  const std::string folds = !arguments.folds.empty()     ? arguments.folds
                            : options.alphas.size() == 1 ? "none"
                                                         : default_folds;
  if (folds == "none") {
    options.validation = RidgeValidation::none;
  } else if (folds == "loo" || folds == "leave-one-out" || folds == "gcv") {
    options.validation = folds == "gcv" ? RidgeValidation::gcv : RidgeValidation::leave_one_out;
  } else if (is_count(folds)) {
    const Index count = whole_number(folds, 0);
    if (count < 2 || count > rows)
      throw UsageError(fmt::format("--folds {}: there must be at least 2, and A has {} rows", count, rows));
    options.folds = contiguous_folds(rows, count);
  } else {
    options.folds = whole_numbers(world, folds, "a label", "labels of folds");
  }
  if (!arguments.row_weights.empty())
    options.weights = read_vector(world, arguments.row_weights, "a weight", "weights of rows");
  return options;
}

/// Writes numbers as a one-dimensional array, or as a matrix with this many rows (collective over the grid).
template <Scalar T>
void write_numbers(const std::string& name, const std::shared_ptr<const ProcessGrid>& grid, Index rows,
                   Index cols, int dimensions, const std::function<T(Index i, Index j)>& value) {
  if (name.empty()) return;
  DistMatrix<T> X =
      allocate_matrix<T>(grid, cols == 1 ? row_blocks(*grid, rows, cols) : column_blocks(*grid, rows, cols));
  X.fill(value);
  write_matrix(name, X, dimensions);
}

template <Scalar T>
T intercept_as(std::complex<double> value) {
  if constexpr (gridlops::is_complex<T>) {
    return T(value);
  } else {
    return static_cast<T>(value.real());
  }
}

/// Of its file, or of the manifest of its folder, which has the hashes of the files (collective).
std::string hash_of_compressed(Communicator& comm, const std::string& name) {
  std::string hash;
  attempt(comm, [&] {
    if (comm.rank() != 0) return;
    std::error_code ignored;
    hash = hash_of_file(std::filesystem::is_directory(name, ignored) ? name + "/manifest.json" : name);
  });
  return broadcast_text(comm, hash, 0);
}

template <Scalar T>
RidgeReport ridge_on_grid(const RidgeArguments& arguments, const RidgeOptions& options,
                          const std::shared_ptr<const ProcessGrid>& grid, const RidgeFiles& files,
                          SavedRidge& saved, Measurements& measured) {
  Stopwatch clock;
  const auto at = [](Index i) { return static_cast<std::size_t>(i); };
  OperatorPtr<T> op;
  std::string hash_of_A;
  if (files.A.is_compressed()) {
    op = read_compressed<T>(grid, files.A.name(), files.A.header());
    if (saved.is_used()) hash_of_A = hash_of_compressed(grid->comm(), files.A.name());
  } else {
    DistMatrix<T> A = allocate_matrix<T>(
        grid, matrix_layout(Algorithm::stationary_a, *grid, files.A.rows(), files.A.cols()));
    read_matrix(files.A.name(), files.A.header(), A);
    if (saved.is_used()) hash_of_A = fmt::format("{:016x}", hash_of_elements<T>(A));
    op = matrix_mult(Algorithm::stationary_a, std::move(A));
  }
  measured.read_seconds += clock.lap();
  const bool fits = !arguments.output.empty();
  std::optional<PreparedRidge<T>> prepared;
  measured.compute(*grid, [&] {
    RidgeOptions each = options;
    each.groups.clear();
    prepared.emplace(*op, each, fits, files.B.cols);
    op.reset();
  });
  saved.begin(grid, hash_of_A, std::max<Index>(prepared->columns_at_a_time(), 1));
  const StreamedRidge stream{arguments.rhs,  arguments.output, files.B,
                             files.A.cols(), options,          !arguments.scores.empty()};
  const RidgeReport found = TargetStream<T>(stream, grid, *prepared, saved, measured).run();
  clock.lap();
  const Index r = files.B.cols, dampings = std::ssize(options.alphas);
  write_numbers<T>(arguments.intercepts, grid, r, 1, 1,
                   [&](Index j, Index) { return intercept_as<T>(found.columns[at(j)].intercept); });
  write_numbers<double>(arguments.chosen, grid, r, 1, 1,
                        [&](Index j, Index) { return found.columns[at(j)].alpha; });
  write_numbers<double>(arguments.scores, grid, dampings, r, 2,
                        [&](Index d, Index j) { return found.scores[at(d + j * dampings)]; });
  measured.write_seconds += clock.lap();
  return found;
}

struct Summary {
  std::vector<std::pair<std::string, double>> figures;
  Index unsolved = 0;
};
Summary summary_of(const RidgeReport& found, bool fits, bool validates) {
  Summary summary;
  std::vector<double> alphas, scores;
  for (const RidgeColumn& column : found.columns) {
    alphas.push_back(column.alpha);
    scores.push_back(column.score);
    const bool is_solved = column.reason == StopReason::converged || column.reason == StopReason::stagnated;
    if (fits && !is_solved) ++summary.unsolved;
  }
  if (found.columns.empty()) return summary;
  summary.figures = {{"median alpha", median(alphas)}};
  if (validates) {
    double sum = 0;
    for (const double score : scores) sum += score;
    summary.figures.insert(summary.figures.end(),
                           {{"median score", median(scores)},
                            {"mean score", sum / static_cast<double>(scores.size())},
                            {"chose the smallest damping", static_cast<double>(found.at_smallest)},
                            {"chose the largest damping", static_cast<double>(found.at_largest)}});
  }
  if (fits) summary.figures.emplace_back("not solved", static_cast<double>(summary.unsolved));
  return summary;
}

/// Of those that are predicted.
Index count_folds(std::vector<Index> labels) {
  std::erase_if(labels, [](Index label) { return label < 0; });
  std::sort(labels.begin(), labels.end());
  return std::unique(labels.begin(), labels.end()) - labels.begin();
}

/// Returns the bytes on the rank with the largest part, which do not depend on how many targets there are,
/// but for their scores and choices.
constexpr std::array memory_labels{"matrix", "a batch of targets and coefficients",
                                   "folds, and work on the batch", "scores and choices of all targets",
                                   "in all"};
std::array<Index, memory_labels.size()> memory_of(const RidgeOptions& options, const ProductShape& shape,
                                                  bool fits, bool keeps_scores, int ranks) {
  RidgeOptions each = options;
  each.groups.clear();
  RidgeOptions some = each;  // of a batch
  if (some.validation == RidgeValidation::none) some.alphas.resize(1);
  const Index element = size_of(shape.type),
              batch =
                  ridge_columns_at_a_time(shape.rows, shape.cols, shape.nrhs, shape.type, each, fits, ranks),
              share = (batch + ranks - 1) / ranks, dampings = std::ssize(options.alphas);
  std::array<Index, memory_labels.size()> bytes{
      (shape.rows + ranks - 1) / ranks * shape.cols * element,
      (shape.rows + (fits ? shape.cols : 0)) * share * element,
      ridge_bytes(shape.rows, shape.cols, batch, shape.type, some, fits, ranks),
      shape.nrhs * (2 * Index{sizeof(RidgeColumn)} + (keeps_scores ? dampings * Index{sizeof(double)} : 0)),
      0};
  for (std::size_t k = 0; k + 1 < bytes.size(); ++k) bytes.back() += bytes[k];
  return bytes;
}

nlohmann::ordered_json options_json(const RidgeArguments& arguments, const RidgeOptions& options) {
  nlohmann::ordered_json json{{"alphas", options.alphas},
                              {"validation", name_of(options.validation)},
                              {"score", name_of(options.score)},
                              {"intercept", options.intercept},
                              {"standardize", options.standardize}};
  if (!arguments.row_weights.empty()) json["row_weights"] = arguments.row_weights;
  if (options.validation == RidgeValidation::none) return json;
  json["folds"] = arguments.folds.empty() ? default_folds : arguments.folds;
  json["choose_for"] = arguments.choose_for;
  json["one_standard_error"] = options.one_standard_error;
  return json;
}

/// The facts that a run that goes on must have in common with the one before.
nlohmann::ordered_json problem_json(const RidgeArguments& arguments, const RidgeOptions& options,
                                    const ProductShape& shape, bool fits) {
  const auto hash = [](const auto& numbers) {
    std::uint64_t mixed = 14695981039346656037U;  // FNV-1a, by numbers
    for (const auto number : numbers) mixed = (mixed ^ std::bit_cast<std::uint64_t>(number)) * 1099511628211U;
    return fmt::format("{:016x}", mixed);
  };
  return {{"rows of A", shape.rows},
          {"columns of A", shape.cols},
          {"targets", shape.nrhs},
          {"type", name_of(shape.type)},
          {"coefficients", fits},
          {"options", options_json(arguments, options)},
          {"folds", hash(options.folds)},
          {"groups", hash(options.groups)},
          {"weights", hash(options.weights)}};
}

void tell(const RidgeReport& found, const Summary& summary, const RidgeOptions& options,
          const ProductShape& shape, const std::string& effort) {
  for (const auto& [name, value] : summary.figures) print(fmt::format("{}: {:.6g}\n", name, value));
  print(fmt::format("{} targets, {} dampings, {}\n", shape.nrhs, options.alphas.size(), effort));
  const Index at_end = found.at_smallest + found.at_largest;
  if (at_end > 0)
    warn(
        fmt::format("{} of {} targets chose an end of the range: {} the smallest damping, {} the largest; a "
                    "wider range may have a better one",
                    at_end, shape.nrhs, found.at_smallest, found.at_largest));
  if (found.deciding_row >= 0)
    warn(fmt::format(
        "row {} (from 0) of A decides its own prediction with some dampings, which have no scores: it "
        "alone has some feature; leave the row or the feature out, or take --folds 5",
        found.deciding_row));
  if (summary.unsolved > 0)
    warn(fmt::format("{} of {} targets have coefficients whose gradient is larger than the tolerance",
                     summary.unsolved, shape.nrhs));
}

RidgeFiles open_files(Communicator& world, const RidgeArguments& arguments) {
  check_outputs(world,
                {{"--matrix", arguments.matrix},
                 {"--rhs", arguments.rhs},
                 {"--row-weights", arguments.row_weights},
                 manifest_in("--restart", arguments.restart)},
                {{"--output", arguments.output},
                 {"--intercepts", arguments.intercepts},
                 {"--chosen", arguments.chosen},
                 {"--scores", arguments.scores},
                 {"--report", arguments.report, NamedFile::text}});
  if (arguments.output.empty() && !arguments.intercepts.empty())
    throw UsageError("--intercepts are those of coefficients, which only --output asks for");
  RidgeFiles files{MatrixFile(world, arguments.matrix), read_matrix_header(world, arguments.rhs), {}};
  check_operand(arguments.matrix, files.A.header(), arguments.rhs, files.B,
                {files.A.rows(), "rows of A", "did you transpose A?"});
  files.common = common_type({{arguments.matrix, files.A.header()}, {arguments.rhs, files.B}});
  files.A.require_fits(Algorithm::stationary_a, files.common.type);
  files.A.read_tables(world);
  return files;
}

/// Says what memory the ranks would take.
template <class Bytes>
ExitStatus plan(Communicator& world, const RidgeOptions& options, const Bytes& memory) {
  const std::string folds = options.folds.empty() ? name_of(options.validation)
                                                  : fmt::format("{} folds", count_folds(options.folds));
  if (world.rank() == 0)
    print(fmt::format("{} rank{}, {} dampings, {}\n{}", world.size(), world.size() == 1 ? "" : "s",
                      options.alphas.size(), folds, bytes_table(memory_labels, memory, memory)));
  return ExitStatus::done;
}

ExitStatus run_ridge(Communicator& world, const RidgeArguments& arguments) {
  Stopwatch clock;
  Measurements measured;
  const bool fits = !arguments.output.empty();
  RidgeFiles files = open_files(world, arguments);
  RidgeOptions options = resolved(world, arguments, files.A.rows());
  const bool validates = options.validation != RidgeValidation::none;
  if (!validates && !arguments.scores.empty())
    throw UsageError(
        "--scores are those of folds, but there are none; give --folds, or --alphas FIRST:LAST:COUNT");
  if (!validates && arguments.choose_for != "each")
    throw UsageError(fmt::format(
        "--choose-for {} shares the choice of a damping, but without folds none is chosen; give --folds, or "
        "--alphas FIRST:LAST:COUNT",
        arguments.choose_for));
  const ProductShape shape{files.A.rows(), files.A.cols(), files.B.cols, files.common.type};
  if (arguments.choose_for == "all") {
    options.groups.assign(static_cast<std::size_t>(shape.nrhs), 0);
  } else if (arguments.choose_for != "each") {
    options.groups = whole_numbers(world, arguments.choose_for, "a group", "numbers of groups");
    if (std::ssize(options.groups) != shape.nrhs)
      throw InputError(fmt::format("{} has {} numbers of groups, but {} has {} columns; give one for each",
                                   arguments.choose_for, options.groups.size(), arguments.rhs, shape.nrhs));
  }
  if (arguments.folds.empty() && validates && shape.nrhs > 1 && std::ssize(options.alphas) == shape.nrhs &&
      world.rank() == 0)
    warn(
        fmt::format("there are as many dampings as targets, {}, of which each target gets the best; with "
                    "--folds none each gets its own",
                    shape.nrhs));
  const bool keeps_scores = !arguments.scores.empty() || !options.groups.empty();
  const auto memory = memory_of(options, shape, fits, keeps_scores, world.size());
  if (arguments.dry_run) return plan(world, options, memory);
  SavedRidge saved(world, arguments.checkpoint, arguments.restart,
                   problem_json(arguments, options, shape, fits));
  measured.planned_bytes = memory.back();
  const Calibration calibration = calibration_for(world, shape, false, false);
  const Ranks ranks = make_ranks(world, "cpu", arguments.transport);
  // Whole rows are what is wanted of A, so that ranks need not exchange them.
  const auto grid = make_grid(ranks, {world.size(), 1});
  measured.setup_seconds = clock.lap();
  RidgeReport found;
  run_on_grid(world, *grid, [&] {
    with_scalar_type(shape.type, [&]<Scalar T>() {
      found = ridge_on_grid<T>(arguments, options, grid, files, saved, measured);
    });
  });
  const Summary summary = summary_of(found, fits, validates);
  write_report(world, arguments.report,
               {.command = "ridge",
                .grid = grid->shape(),
                .shape = shape,
                .device = "cpu",
                .transport = transport_of(*grid),
                .choices = calibration.source_of_choices(shape.type),
                .figures = summary.figures,
                .problem = "minimise |b - beta - A x|^2 + alpha |x|^2",
                .options = options_json(arguments, options),
                .files = {{"--matrix", arguments.matrix, files.A.header()},
                          {"--rhs", arguments.rhs, files.B},
                          {"--output", arguments.output, std::nullopt},
                          {"--intercepts", arguments.intercepts, std::nullopt},
                          {"--chosen", arguments.chosen, std::nullopt},
                          {"--scores", arguments.scores, std::nullopt}}},
               measured, nullptr);
  if (world.rank() == 0) {
    print(files.common.promotions);
    tell(found, summary, options, shape,
         fmt::format("{} rank{}, in {}", world.size(), world.size() == 1 ? "" : "s",
                     duration_text(measured.compute_seconds)));
  }
  return summary.unsolved > 0 ? ExitStatus::not_converged : ExitStatus::done;
}

}  // namespace

Action define_ridge(Options& options) {
  const auto arguments = std::make_shared<RidgeArguments>();
  options.text("--matrix", arguments->matrix, "A.npy", "The features: a row for each observation")
      ->required();
  options.text("--rhs", arguments->rhs, "B.npy", "The targets: a column for each")->required();
  options.group("Results");
  options.text("--output", arguments->output, "X.npy", "Gets the coefficients, a column for each target");
  options.text("--intercepts", arguments->intercepts, "FILE", "Gets the intercepts of the coefficients");
  options.text("--chosen", arguments->chosen, "FILE", "Gets the chosen alpha of each target");
  options.text("--scores", arguments->scores, "FILE", "Gets the mean score of each alpha and target");
  options.text("--report", arguments->report, "R.json", "Writes figures of the run as JSON");
  options.group("Model");
  options.text(
      "--dampings", arguments->dampings, "D1:D2:N",
      "Minimises |b - A x|^2 + D^2 |x|^2 with N dampings D in equal ratios, those in a file, or one");
  options.text("--alphas", arguments->alphas, "A1:A2:N", "The same with alpha = D^2, as scikit-learn has it");
  options.flag("--no-intercept", arguments->no_intercept, "Fits no constant, which is else not damped");
  options.flag("--standardize", arguments->options.standardize,
               "Divides features by their standard deviation in the training rows");
  options.text("--row-weights", arguments->row_weights, "FILE",
               "Multiplies the square of each row's error by a weight, also in means and scores");
  options.group("Validation");
  options.text(
      "--folds", arguments->folds, "5|FILE|loo|gcv|none",
      "How many contiguous folds; a file with the label of each row's fold, below 0 always in training; "
      "leave one row out; generalised cross-validation; or none, with one damping, or one for each target in "
      "a file [5; with one damping none]");
  options.choice("--score", arguments->options.score,
                 names_of({RidgeScore::r2, RidgeScore::correlation, RidgeScore::negative_mse}),
                 "What a prediction of a fold is worth [r2]");
  options.text("--choose-for", arguments->choose_for, "each|all|FILE",
               "Who shares a damping: nobody, all targets, or those with the same number in a file [each]");
  options.flag(
      "--one-standard-error", arguments->options.one_standard_error,
      "Takes the largest damping that is at most one standard error of the folds worse than the best");
  options.group("Checkpoints");
  options.text("--checkpoint", arguments->checkpoint, "DIR",
               "Saves each batch of targets there when it is done, so that a job that is killed can go on");
  options.text("--restart", arguments->restart, "DIR",
               "Goes on with the batches that a run with the same files and options has saved there");
  options.group("Ranks");
  options.whole("--batch", arguments->options.batch, "COLUMNS", 0,
                "The most targets that are in memory, and worked on, at a time [0: chosen]");
  options.choice("--transport", arguments->transport, transports(), "What carries the data [auto]");
  options.flag("--dry-run", arguments->dry_run, "Says what memory each rank would take, and stops");
  options.examples(
      {"mpirun -n 4 gridlops ridge --matrix A.npy --rhs B.npy --alphas 1e-2:1e4:13 --output "
       "X.npy --intercepts beta.npy --chosen alphas.npy --scores R2.npy",
       "mpirun -n 4 gridlops ridge --matrix A.npy --rhs B.npy --dampings 0.1:100:13 "
       "--folds loo --choose-for all --chosen alphas.npy"});
  return [arguments](Communicator& world) { return run_ridge(world, *arguments); };
}

}  // namespace gridlops::program
