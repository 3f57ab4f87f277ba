// SPDX-License-Identifier: BSD-3-Clause
#include "bench/measure/results.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <ctime>
#include <utility>

#include "bench/commit.hpp"
#include "build_facts.hpp"
#include "command_line/console.hpp"
#include "command_line/file_checks.hpp"
#include "gridlops/base/version.hpp"
#include "gridlops/comm/failure.hpp"
#include "gridlops/comm/gpu.hpp"
#include "gridlops/io/text_file.hpp"
#include "gridlops/local/backend.hpp"

namespace gridlops::bench {

namespace {

using Json = nlohmann::ordered_json;

std::string host_name() {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

std::string time_text() {
  const std::time_t now = std::time(nullptr);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", std::gmtime(&now));
  return text.data();
}

std::string gpu_text() {
  const GpuInfo gpus = gpu_info();
  if (gpus.devices == 0) return "none";
  return fmt::format("{}, {}, {} on the host", gpus.model, gpus.versions, gpus.devices);
}

/// The load of the last minute; negative if unknown.
double load_average() {
  double load = -1;
  return getloadavg(&load, 1) == 1 ? load : -1;
}

}  // namespace

Json environment(Communicator& world) {
  const BlasInfo blas = blas_info();
  return {{"version", version},
          {"commit", commit},
          {"compiler", program::compiler},
          {"build_type", program::build_type},
          {"time", time_text()},
          {"host", host_name()},
          {"cpu", cpu_model()},
          {"cores", sysconf(_SC_NPROCESSORS_ONLN)},
          {"instruction_set", blas.best_kernel},
          {"ranks", world.size()},
          {"mpi", program::mpi_library_text()},
          {"blas", blas.library},
          {"blas_kernel", blas.kernel},
          {"blas_pinned_by", blas.pinned_by},
          {"own_kernels", own_kernels()},
          {"threads", threads_per_rank()},
          {"blas_threads", blas.threads},
          {"fft", fft_library()},
          {"gpu", gpu_text()},
          {"placement", placement(world)},
          {"settings", settings()},
          {"load_average", load_average()}};
}

namespace {

/// The medians over the repetitions.
struct Figures {
  double seconds, flops_per_second, limit_flops, limit_bytes, roofline_seconds, roofline_fraction, waiting;
};

Figures figures_of(const std::vector<Sample>& samples, const Work& work) {
  std::vector<double> seconds, limit_flops, limit_bytes, roofline, fraction, waiting;
  for (const Sample& sample : samples) {
    seconds.push_back(sample.seconds);
    limit_flops.push_back(sample.limits.flops_per_second);
    limit_bytes.push_back(sample.limits.bytes_per_second);
    roofline.push_back(work.roofline_seconds(sample.limits));
    waiting.push_back(sample.waiting);
    fraction.push_back(roofline.back() / sample.seconds);  // relative to the limits of its own repetition
  }
  const double typical = median(seconds);
  return {typical,          work.flops / typical, median(limit_flops), median(limit_bytes),
          median(roofline), median(fraction),     median(waiting)};
}

std::string algorithm_of(const Result& result) {
  return result.peer.empty() ? name_of(result.what.algorithm) : result.peer;
}

/// A peer's matrix is cut along both sides of the grid.
MatrixForm form_of(const Result& result) {
  return bench::form_of(result.peer.empty() ? result.what.algorithm : Algorithm::summa,
                        result.what.grid->shape());
}

std::string transport_of(const Result& result) {
  return result.peer.empty() ? result.what.grid->comm().transport() : "mpi";
}

/// The seconds of a product, or of an iteration, in each repetition.
std::vector<double> seconds_of(const std::vector<Sample>& samples) {
  std::vector<double> seconds;
  for (const Sample& sample : samples) seconds.push_back(sample.seconds);
  return seconds;
}

std::string storage_of(const Result& result) {
  if (!result.peer.empty()) return "-";
  return result.high_plane ? "high" : name_of(result.what.storage);
}

Json json_of(const Result& result, const Figures& figures) {
  const Case& what = result.what;
  Json json{{"rows", what.shape.rows},
            {"cols", what.shape.cols},
            {"nrhs", what.shape.nrhs},
            {"dtype", name_of(what.shape.type)},
            {"adjoint", result.adjoint},
            {"grid", {what.grid->rows(), what.grid->cols()}},
            {"algorithm", algorithm_of(result)},
            {"form", form_of(result).text()},
            {"copies", form_of(result).copies},
            {"panel", what.panel},
            {"storage", name_of(what.storage)},
            {"high_plane", result.high_plane},
            {"transport", transport_of(result)},
            {"device", what.grid->backend()->memory_space() == MemorySpace::device ? "gpu" : "cpu"},
            {"asked",
             {{"algorithm", result.peer.empty() ? what.asked.algorithm : result.peer},
              {"storage", what.asked.storage},
              {"transport", what.asked.transport}}},
            {"repetitions", result.samples.size()},
            {"samples", seconds_of(result.samples)},
            {"seconds", result.solver.empty() ? figures.seconds : result.total_seconds},
            {"gflops", figures.flops_per_second / 1e9},
            {"limit_gflops", figures.limit_flops / 1e9},
            {"limit_read_gbs", figures.limit_bytes / 1e9},
            {"roofline_seconds", figures.roofline_seconds},
            {"roofline_fraction", figures.roofline_fraction},
            {"bytes_sent", result.bytes_sent < 0 ? Json() : Json(result.bytes_sent)},
            {"waiting", result.peer.empty() ? Json(figures.waiting) : Json()},
            {"error", result.error},
            {"allowed_error", result.allowed_error}};
  if (!result.solver.empty()) {
    json["solver"] = result.solver;
    json["seconds_per_iteration"] = figures.seconds;
    json["launches_per_iteration"] = result.launches;
  }
  return json;
}

std::string row_of(const Result& result, const Figures& figures) {
  const Case& what = result.what;
  return fmt::format(
      "{:<13} {:>6} {:>6} {:>5} {:<4} {:>5} {:<12} {:<11} {:<7} {:<10} {:>10.3f} {:>8.1f} {:>8.1f} {:>6.1f} "
      "{:>8.2f} {:>9} {:>5} {:>8.1e}\n",
      !result.solver.empty() ? result.solver : (result.adjoint ? "A^H Y" : "A X"), what.shape.rows,
      what.shape.cols, what.shape.nrhs, name_of(what.shape.type),
      fmt::format("{}x{}", what.grid->rows(), what.grid->cols()), algorithm_of(result),
      form_of(result).text(), storage_of(result), transport_of(result), 1e3 * figures.seconds,
      figures.flops_per_second / 1e9, figures.limit_flops / 1e9, figures.limit_bytes / 1e9,
      figures.roofline_fraction,
      result.bytes_sent < 0 ? "-" : fmt::format("{:.2f}", static_cast<double>(result.bytes_sent) / 1e6),
      result.peer.empty() ? fmt::format("{:.0f}%", 100 * figures.waiting) : "-", result.error);
}

std::string title_of_products() {
  return fmt::format(
      "{:<13} {:>6} {:>6} {:>5} {:<4} {:>5} {:<12} {:<11} {:<7} {:<10} {:>10} {:>8} {:>8} {:>6} {:>8} {:>9} "
      "{:>5} {:>8}\n",
      "work", "rows", "cols", "rhs", "type", "grid", "algorithm", "form", "A in", "transport", "ms",
      "GFLOP/s", "limit", "GB/s", "fraction", "MB sent", "wait", "error");
}

constexpr const char* about_wait =
    "wait                    share of the time in communication and for slower ranks, mean of the ranks";

}  // namespace

void explain_columns(Options& options, const std::vector<std::string>& lines) {
  options.closing("Columns:", lines);
}

void explain_columns_of_products(Options& options) {
  explain_columns(
      options,
      {"work                    the product, or the solver, of which an iteration is timed",
       "rows, cols, rhs, type   A is rows x cols; right-hand sides; the type of their elements",
       "grid, form              the process grid; how it cuts A; x2: in two copies",
       "algorithm, transport    of products; of their data",
       "A in                    how A is stored, as --storage; high: only its high plane is read",
       "ms                      on the slowest rank: the median of the repetitions",
       "GFLOP/s                 additions and multiplications of all ranks in that time",
       "limit                   GFLOP/s of BLAS with square matrices on all ranks (--limit-order)",
       "GB/s                    the limit of reading: blocks larger than caches on all ranks (--limit-mib)",
       "fraction                the time that these limits allow, for the flops and reading A, over ms;",
       "                        above 1 where A is read from caches, which are faster than GB/s",
       "MB sent                 by all ranks together, in a product or an iteration", about_wait,
       "error                   of the result, relative: against another product, or of the recurrence"});
}

void explain_columns_of_kernels(Options& options) {
  explain_columns(
      options, {"kernel, rows, cols, type  on each rank",
                "us                      a call on the slowest rank: the median of the repetitions",
                "GB/s                    all ranks read and write in that time",
                "limit                   GB/s of blocks larger than caches, measured by the same ranks",
                "fraction                GB/s over limit; it exceeds 1 where the columns fit into caches"});
}

void explain_columns_of_operators(Options& options) {
  explain_columns(
      options,
      {"operator, sizes, rhs    the operator, its dimensions, and right-hand sides",
       "product                 forward, or adjoint",
       "ms                      on the slowest rank: the median of the repetitions",
       "GFLOP/s, limit          of all ranks; the limit is BLAS with square matrices (--limit-order)",
       "GB/s, limit             what must be read and written; the limit is blocks larger than caches",
       "fraction                the time that both limits allow, over ms; it exceeds 1 for data in caches",
       about_wait});
}

ResultWriter::ResultWriter(Communicator& world, std::string json_path)
    : world_(world), path_(std::move(json_path)) {
  program::check_outputs(world, {}, {{"--json", path_, program::NamedFile::text}});
  document_ = {
      {"schema", "gridlops.bench/1"}, {"environment", environment(world)}, {"results", Json::array()}};
}

void ResultWriter::add(const Result& result) {
  if (world_.rank() != 0) return;
  const Figures figures = figures_of(result.samples, result.work);
  print(title_of_products(), row_of(result, figures));
  document_["results"].push_back(json_of(result, figures));
  const ProductShape& shape = result.what.shape;
  count(!(result.error <= result.allowed_error),
        fmt::format("{} {} x {} x {} of {} by {}: error {:.1e} where rounding allows {:.1e}",
                    result.solver.empty() ? "product" : result.solver, shape.rows, shape.cols, shape.nrhs,
                    name_of(shape.type), algorithm_of(result), result.error, result.allowed_error));
}

void ResultWriter::add(const KernelResult& result) {
  if (world_.rank() != 0) return;
  std::vector<double> seconds, limit, fraction;
  for (const Sample& sample : result.samples) {
    seconds.push_back(sample.seconds);
    limit.push_back(sample.limits.bytes_per_second);
    fraction.push_back(result.bytes / sample.seconds / sample.limits.bytes_per_second);
  }
  const KernelCase& what = result.what;
  const double typical = median(seconds), rate = result.bytes / typical / 1e9;
  print(
      fmt::format("{:<8} {:>10} {:>5} {:<4} {:>10} {:>8} {:>8} {:>8}\n", "kernel", "rows", "cols", "type",
                  "us", "GB/s", "limit", "fraction"),
      fmt::format("{:<8} {:>10} {:>5} {:<4} {:>10.2f} {:>8.1f} {:>8.1f} {:>8.2f}\n", what.kernel, what.rows,
                  what.cols, name_of(what.type), 1e6 * typical, rate, median(limit) / 1e9, median(fraction)));
  document_["results"].push_back({{"kernel", what.kernel},
                                  {"rows", what.rows},
                                  {"cols", what.cols},
                                  {"dtype", name_of(what.type)},
                                  {"device", what.device},
                                  {"repetitions", result.samples.size()},
                                  {"samples", seconds},
                                  {"seconds", typical},
                                  {"gbs", rate},
                                  {"limit_gbs", median(limit) / 1e9},
                                  {"fraction", median(fraction)}});
}

void ResultWriter::add(const OperatorResult& result) {
  if (world_.rank() != 0) return;
  const Figures figures = figures_of(result.samples, result.work);
  const char* const direction = result.adjoint ? "adjoint" : "forward";
  const double bytes_per_second = result.work.bytes / figures.seconds;
  print(fmt::format("{:<14} {:<14} {:>4} {:<8} {:>10} {:>8} {:>8} {:>8} {:>8} {:>8} {:>5}\n", "operator",
                    "sizes", "rhs", "product", "ms", "GFLOP/s", "limit", "GB/s", "limit", "fraction", "wait"),
        fmt::format(
            "{:<14} {:<14} {:>4} {:<8} {:>10.3f} {:>8.2f} {:>8.1f} {:>8.2f} {:>8.1f} {:>8.2f} {:>4.0f}%\n",
            result.operation, result.sizes, result.nrhs, direction, 1e3 * figures.seconds,
            figures.flops_per_second / 1e9, figures.limit_flops / 1e9, bytes_per_second / 1e9,
            figures.limit_bytes / 1e9, figures.roofline_fraction, 100 * figures.waiting));
  document_["results"].push_back({{"operator", result.operation},
                                  {"sizes", result.sizes},
                                  {"nrhs", result.nrhs},
                                  {"adjoint", result.adjoint},
                                  {"repetitions", result.samples.size()},
                                  {"samples", seconds_of(result.samples)},
                                  {"seconds", figures.seconds},
                                  {"gflops", figures.flops_per_second / 1e9},
                                  {"limit_gflops", figures.limit_flops / 1e9},
                                  {"gbs", bytes_per_second / 1e9},
                                  {"limit_read_gbs", figures.limit_bytes / 1e9},
                                  {"roofline_fraction", figures.roofline_fraction},
                                  {"waiting", figures.waiting}});
}

void ResultWriter::print(const std::string& title, const std::string& row) {
  if (title != title_) program::print(title);
  title_ = title;
  program::print(row);
}

void ResultWriter::count(bool is_wrong, const std::string& what) {
  ++results_;
  if (is_wrong) wrong_.push_back(what);
}

void ResultWriter::print_verdict() const {
  if (!wrong_.empty()) {
    constexpr std::size_t most = 3;
    std::string text = fmt::format("# WRONG: {} of {} results", wrong_.size(), results_);
    for (std::size_t k = 0; k < wrong_.size() && k < most; ++k) text += (k == 0 ? ": " : "; ") + wrong_[k];
    program::print(text + (wrong_.size() > most ? "; …\n" : "\n"));
  } else if (measured_nothing()) {
    program::print("# nothing measured\n");
  } else if (has_header_) {
    program::print(fmt::format("# correct: {} results, none wrong\n", results_));
  }
}

void ResultWriter::add_row(const std::string& list, const std::string& title, const std::string& row,
                           const Json& json, const std::optional<std::string>& wrong) {
  if (world_.rank() != 0) return;
  print(title, row);
  document_[list].push_back(json);
  if (wrong) count(!wrong->empty(), *wrong);
}

ExitStatus ResultWriter::close() {
  std::array<std::int32_t, 1> has_failed{!wrong_.empty() || measured_nothing()};
  world_.broadcast(has_failed, 0);
  if (world_.rank() == 0) print_verdict();
  if (!path_.empty()) {
    attempt(world_, [&] {
      if (world_.rank() != 0) return;
      document_["environment"]["load_average_at_end"] = load_average();
      write_text_file(path_, [text = program::json_text(document_, 1) + "\n"]() mutable {
        return std::exchange(text, {});
      });
    });
  }
  return has_failed[0] == 0 ? ExitStatus::done : ExitStatus::check_failed;
}

}  // namespace gridlops::bench
