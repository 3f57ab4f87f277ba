// SPDX-License-Identifier: BSD-3-Clause
#include "use_cases/saved_ridge.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <utility>

#include "command_line/console.hpp"
#include "command_line/file_checks.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/comm/failure.hpp"
#include "gridlops/io/text_file.hpp"

namespace gridlops::program {

namespace {

// The rows of a batch's figures, before its scores.
enum Figure { chosen, alpha, score, intercept, imaginary, reason, residual, gradient, of_target, count };

std::string manifest_of(const std::string& directory) { return directory + "/manifest.json"; }
std::string file_of(const std::string& directory, const std::string& pass, Range columns, const char* what) {
  return fmt::format("{}/{}-{}-{}.npy", directory, pass, columns.begin, what);
}

/// Whether a file is there, by rank 0 (collective).
bool exists(Communicator& comm, const std::string& path) {
  std::array<Index, 1> found{0};
  std::error_code error;
  if (comm.rank() == 0) found[0] = std::filesystem::exists(path, error) ? 1 : 0;
  comm.broadcast(found, 0);
  return found[0] == 1;
}

/// The text of a small file, on all ranks (collective). Throws InputError on all ranks.
std::string text_of(Communicator& comm, const std::string& path) {
  std::string text;
  attempt(comm, [&] {
    if (comm.rank() != 0) return;
    std::ifstream file(path);
    text.assign(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    if (!file) throw InputError(fmt::format("{} cannot be read", path));
  });
  return broadcast_text(comm, text, 0);
}

bool is_close(double one, double other) {
  return std::abs(one - other) <= 1e-5 * std::max(std::abs(one), std::abs(other));
}

}  // namespace

SavedRidge::SavedRidge(Communicator& world, std::string checkpoint, std::string restart,
                       const nlohmann::ordered_json& problem)
    : world_(world), checkpoint_(std::move(checkpoint)), restart_(std::move(restart)), problem_(problem) {
  if (!restart_.empty()) {
    const std::string path = manifest_of(restart_);
    if (!exists(world, path))
      throw InputError(fmt::format("{} is missing, so that there are no batches to go on with", path));
    found_ = nlohmann::ordered_json::parse(text_of(world, path), nullptr, false);
    const auto same = [&](const char* name) {
      return found_.contains(name) && found_[name] == problem_[name];
    };
    for (const auto& [name, value] : problem_.items())
      if (!found_.is_object() || !same(name.c_str()))
        throw InputError(fmt::format(
            "{} is of another run, whose {} is {} and not {}: go on with the files and options of that run, "
            "or begin anew without --restart",
            path, name, found_.contains(name) ? json_text(found_[name]) : "unknown", json_text(value)));
    if (!found_.contains("batch") || !found_["batch"].is_number_integer() || found_["batch"] < 1 ||
        !found_.contains("fingerprint") || !found_["fingerprint"].is_number())
      throw InputError(fmt::format("{} is damaged: it lacks the batch or the fingerprint", path));
    batch_ = found_["batch"].get<Index>();
  }
  if (checkpoint_.empty()) return;
  std::error_code error;
  std::array<Index, 1> same{0};
  if (world.rank() == 0 && !restart_.empty())
    same[0] = std::filesystem::equivalent(checkpoint_, restart_, error) ? 1 : 0;
  world.broadcast(same, 0);
  if (same[0] == 0 && exists(world, manifest_of(checkpoint_)))
    throw OutputError(fmt::format(
        "{} holds the batches of another run: go on with them by --restart {}, or take another directory",
        checkpoint_, checkpoint_));
  claim_folder(world, checkpoint_, "ridge", {"manifest.json"});
}

void SavedRidge::begin(const std::shared_ptr<const ProcessGrid>& grid, double fingerprint, Index batch) {
  grid_ = grid;
  if (!restart_.empty() && !is_close(found_["fingerprint"].get<double>(), fingerprint))
    throw InputError(
        fmt::format("{} is of a run with another A: its products have the mark {}, and those of this A {}",
                    manifest_of(restart_), found_["fingerprint"].get<double>(), fingerprint));
  if (checkpoint_.empty()) return;
  nlohmann::ordered_json json = problem_;
  json["fingerprint"] = fingerprint;
  json["batch"] = batch;
  attempt(world_, [&] {
    if (world_.rank() == 0)
      write_text_file(manifest_of(checkpoint_),
                      [text = json_text(json, 1) + "\n"]() mutable { return std::exchange(text, {}); });
  });
}

template <Scalar T>
bool SavedRidge::load(const std::string& pass, Range columns, const std::string& rhs,
                      const MatrixHeader& header, RidgeReport& report, DistMatrix<T>* X) const {
  if (restart_.empty()) return false;
  const std::string path = file_of(restart_, pass, columns, "figures");
  if (!exists(world_, path)) return false;
  DistMatrix<T> one = allocate_matrix<T>(grid_, column_blocks(*grid_, header.rows, 1));
  read_columns(rhs, header, columns.begin, one);
  const double norm = column_norms(one).front();
  const MatrixHeader saved = read_matrix_header(world_, path);
  const auto at = [](Index i) { return static_cast<std::size_t>(i); };
  const Index scores = std::ssize(report.fold_scores) / columns.size;
  if (saved.rows != count + scores || saved.cols != columns.size || saved.type != ScalarType::f64)
    throw InputError(fmt::format("{} has figures of {} x {}, but {} x {} are expected: remove {}", path,
                                 saved.rows, saved.cols, count + scores, columns.size, path));
  DistMatrix<double> figures = allocate_matrix<double>(grid_, replicated(saved.rows, saved.cols));
  read_matrix(path, saved, figures);
  const MatrixView<const double> all = std::as_const(figures).local();
  if (!is_close(all(of_target, 0), norm))
    throw InputError(fmt::format("{} is of other targets: column {} of {} has norm {}, but had {}", path,
                                 columns.begin, rhs, norm, all(of_target, 0)));
  for (Index j = 0; j < columns.size; ++j) {
    RidgeColumn& column = report.columns[at(j)];
    column.chosen = static_cast<Index>(all(chosen, j));
    column.alpha = all(alpha, j);
    column.score = all(score, j);
    column.intercept = {all(intercept, j), all(imaginary, j)};
    column.reason = static_cast<StopReason>(static_cast<int>(all(reason, j)));
    column.residual_norm = all(residual, j);
    column.normal_residual_norm = all(gradient, j);
    for (Index k = 0; k < scores; ++k) report.fold_scores[at(k + j * scores)] = all(count + k, j);
  }
  if (X == nullptr) return true;
  const std::string coefficients = file_of(restart_, pass, columns, "coefficients");
  read_matrix(coefficients, read_matrix_header(world_, coefficients), *X);
  return true;
}

template <Scalar T>
void SavedRidge::save(const std::string& pass, Range columns, const ConstDistMatrix<T>& B,
                      const RidgeReport& report, const DistMatrix<T>* X) const {
  if (checkpoint_.empty() || exists(world_, file_of(checkpoint_, pass, columns, "figures"))) return;
  try {
    write<T>(pass, columns, B, report, X);
  } catch (const OutputError& error) {
    if (world_.rank() == 0) warn(fmt::format("a batch is not saved: {}; the run goes on", error.what()));
  }
}

template <Scalar T>
void SavedRidge::write(const std::string& pass, Range columns, const ConstDistMatrix<T>& B,
                       const RidgeReport& report, const DistMatrix<T>* X) const {
  const std::string path = file_of(checkpoint_, pass, columns, "figures");
  if (X != nullptr) write_matrix<T>(file_of(checkpoint_, pass, columns, "coefficients"), *X);
  const auto at = [](Index i) { return static_cast<std::size_t>(i); };
  const Index scores = std::ssize(report.fold_scores) / columns.size;
  const double norm = column_norms(B).front();
  DistMatrix<double> figures =
      allocate_matrix<double>(grid_, column_blocks(*grid_, count + scores, columns.size));
  figures.fill([&](Index i, Index j) -> double {
    const RidgeColumn& column = report.columns[at(j)];
    switch (i) {
      case chosen:
        return static_cast<double>(column.chosen);
      case alpha:
        return column.alpha;
      case score:
        return column.score;
      case intercept:
        return column.intercept.real();
      case imaginary:
        return column.intercept.imag();
      case reason:
        return static_cast<double>(column.reason);
      case residual:
        return column.residual_norm;
      case gradient:
        return column.normal_residual_norm;
      case of_target:
        return norm;
      default:
        return report.fold_scores[at(i - count + j * scores)];
    }
  });
  write_matrix<double>(path, figures);
}

#define GRIDLOPS_INSTANTIATE(T)                                                                            \
  template bool SavedRidge::load(const std::string&, Range, const std::string&, const MatrixHeader&,       \
                                 RidgeReport&, DistMatrix<T>*) const;                                      \
  template void SavedRidge::save(const std::string&, Range, const ConstDistMatrix<T>&, const RidgeReport&, \
                                 const DistMatrix<T>*) const;
GRIDLOPS_INSTANTIATE(float)
GRIDLOPS_INSTANTIATE(double)
GRIDLOPS_INSTANTIATE(std::complex<float>)
GRIDLOPS_INSTANTIATE(std::complex<double>)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops::program
