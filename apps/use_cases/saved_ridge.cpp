// SPDX-License-Identifier: BSD-3-Clause
#include "use_cases/saved_ridge.hpp"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "command_line/console.hpp"
#include "command_line/file_checks.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/base/random.hpp"
#include "gridlops/comm/failure.hpp"
#include "gridlops/io/output_folder.hpp"
#include "gridlops/io/text_file.hpp"

namespace gridlops::program {

namespace {

// The rows of a batch's figures, before its scores.
enum Figure {
  chosen,
  alpha,
  score,
  intercept,
  imaginary,
  reason,
  residual,
  gradient,
  of_run,
  of_targets,
  count
};

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

constexpr const char* elements_of_A = "elements of A";

/// The bits of a number that tells these arguments from others.
std::uint64_t mixed(std::uint64_t x, Index i = 0, Index j = 0) {
  return std::bit_cast<std::uint64_t>(gridlops::counter_uniform(x, i, j));
}
template <class Number>
std::uint64_t bits_of(Number x) {
  if constexpr (sizeof(Number) == 4) {
    return std::bit_cast<std::uint32_t>(x);
  } else {
    return std::bit_cast<std::uint64_t>(x);
  }
}

/// As many bits of a hash as a number has.
double as_number(std::uint64_t hash) { return static_cast<double>(hash >> 11U); }

}  // namespace

template <Scalar T>
std::uint64_t hash_of_elements(const ConstDistMatrix<T>& A) {
  const MatrixView<const T> mine = A.local();
  const Range rows = A.local_row_range(), cols = A.local_col_range();
  std::uint64_t sum = 0;  // which has no order
  for (Index j = 0; j < mine.cols; ++j)
    for (Index i = 0; i < mine.rows; ++i) {
      const Index row = rows.begin + i, col = cols.begin + j;
      if constexpr (gridlops::is_complex<T>) {
        sum += mixed(bits_of(mine(i, j).real()), row, col) + mixed(~bits_of(mine(i, j).imag()), row, col);
      } else {
        sum += mixed(bits_of(mine(i, j)), row, col);
      }
    }
  Communicator& comm = A.grid()->comm();
  std::vector<Index> sums(static_cast<std::size_t>(comm.size()));
  const auto my_sum = std::bit_cast<Index>(sum);
  comm.all_gather(std::span(&my_sum, 1), sums);
  sum = 0;
  for (const Index of_rank : sums) sum += std::bit_cast<std::uint64_t>(of_rank);
  return sum;
}

namespace {

/// A value in a few words.
std::string in_short(const nlohmann::ordered_json& value) {
  if (!value.is_array() || value.size() < 3) return json_text(value);
  return fmt::format("{} numbers from {} to {}", value.size(), json_text(value.front()),
                     json_text(value.back()));
}

/// Says by what a value differs from that of a run, which has it by this name.
std::string difference(const std::string& name, const nlohmann::ordered_json& run,
                       const nlohmann::ordered_json& value) {
  if (!run.is_object() || !run.contains(name)) return fmt::format("no {}", name);
  const nlohmann::ordered_json& other = run[name];
  if (value.is_object())
    for (const auto& [part, of_part] : value.items())
      if (!other.is_object() || !other.contains(part) || other[part] != of_part)
        return difference(part, other, of_part);
  const bool is_hash = name == "folds" || name == "groups" || name == "weights";
  if (is_hash && value.is_string() && value.get<std::string>().size() == 16)
    return fmt::format("other {} of {}", name == "weights" ? "numbers" : "labels", name);
  return fmt::format("{} {}, here {}", name, in_short(other), in_short(value));
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
        throw InputError(
            fmt::format("{} is of another run, with {}: go on with the files and options of that "
                        "run, or begin anew without --restart",
                        path, difference(name, found_, value)));
    if (!found_.contains("batch") || !found_["batch"].is_number_integer() || found_["batch"] < 1 ||
        !found_.contains(elements_of_A) || !found_[elements_of_A].is_string())
      throw InputError(fmt::format("{} is damaged: it lacks the batch or the hash of A", path));
    batch_ = found_["batch"].get<Index>();
  }
  if (checkpoint_.empty()) return;
  refuse_another_run();
  attempt(world, [&] {
    if (world.rank() != 0) return;
    gridlops::claim_folder(checkpoint_, "ridge", [](const std::string& name) {
      return name == "manifest.json" || name.starts_with("scored-") || name.starts_with("fitted-");
    });
    lock_ = lock_folder(checkpoint_, "save batches there");
  });
}

/// Throws OutputError if `checkpoint` has batches of a run that this one does not go on with (collective).
void SavedRidge::refuse_another_run() const {
  std::error_code error;
  std::array<Index, 1> same{0};
  if (world_.rank() == 0 && !restart_.empty())
    same[0] = std::filesystem::equivalent(checkpoint_, restart_, error) ? 1 : 0;
  world_.broadcast(same, 0);
  if (same[0] == 0 && exists(world_, manifest_of(checkpoint_)))
    throw OutputError(fmt::format(
        "{} holds the batches of another run: go on with them by --restart {}, or take another directory",
        checkpoint_, checkpoint_));
}

void SavedRidge::begin(const std::shared_ptr<const ProcessGrid>& grid, const std::string& hash_of_A,
                       Index batch) {
  grid_ = grid;
  if (!is_used()) return;
  if (!restart_.empty() && found_[elements_of_A] != hash_of_A)
    throw InputError(
        fmt::format("{} is of a run with another A: its elements have the hash {}, and those of "
                    "this A {}",
                    manifest_of(restart_), json_text(found_[elements_of_A]), hash_of_A));
  nlohmann::ordered_json json = problem_;
  json[elements_of_A] = hash_of_A;
  json["batch"] = this->batch(batch);
  std::uint64_t hash = 0;
  for (const char letter : json_text(json)) hash = mixed(hash ^ static_cast<unsigned char>(letter));
  of_this_run_ = as_number(hash);
  if (checkpoint_.empty()) return;
  refuse_another_run();  // which may have begun meanwhile
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
  const MatrixHeader saved = read_matrix_header(world_, path);
  const auto at = [](Index i) { return static_cast<std::size_t>(i); };
  const Index scores = std::ssize(report.fold_scores) / columns.size;
  if (saved.rows != count + scores || saved.cols != columns.size || saved.type != ScalarType::f64)
    return false;
  DistMatrix<double> figures = allocate_matrix<double>(grid_, replicated(saved.rows, saved.cols));
  read_matrix(path, saved, figures);
  const MatrixView<const double> all = std::as_const(figures).local();
  if (all(of_run, 0) != of_this_run_) return false;
  DistMatrix<T> B = allocate_matrix<T>(grid_, column_blocks(*grid_, header.rows, columns.size));
  read_columns(rhs, header, columns.begin, B);
  if (all(of_targets, 0) != as_number(hash_of_elements<T>(B)))
    throw InputError(fmt::format(
        "{} is of other targets: columns {} to {} (from 0) of {} are not as they were; give the targets of "
        "that run, or begin anew without --restart",
        path, columns.begin, columns.end() - 1, rhs));
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
  if (checkpoint_.empty()) return;
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
  const double hash = as_number(hash_of_elements<T>(B));
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
      case of_run:
        return of_this_run_;
      case of_targets:
        return hash;
      default:
        return report.fold_scores[at(i - count + j * scores)];
    }
  });
  write_matrix<double>(path, figures);
}

#define GRIDLOPS_INSTANTIATE(T)                                                                            \
  template std::uint64_t hash_of_elements(const ConstDistMatrix<T>&);                                      \
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
