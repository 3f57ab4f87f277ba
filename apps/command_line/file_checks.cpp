// SPDX-License-Identifier: BSD-3-Clause
#include "command_line/file_checks.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cmath>
#include <filesystem>
#include <optional>
#include <system_error>

#include "command_line/grid.hpp"
#include "command_line/trace_output.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/comm/failure.hpp"
#include "gridlops/dist/dist_matrix.hpp"
#include "gridlops/io/output_folder.hpp"
#include "gridlops/io/text_file.hpp"
#include "gridlops/local/backend.hpp"

namespace gridlops::program {

namespace {

namespace fs = std::filesystem;

std::optional<struct stat> status_of(const fs::path& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return std::nullopt;
  return status;
}

bool is_same(const struct stat& one, const struct stat& other) {
  return one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

/// Where a file is: a folder and a name in it, the file if there is one, and the dataset that is meant in it.
struct Place {
  explicit Place(const NamedFile& named) {
    const ArrayPlace place =
        named.kind == NamedFile::array ? place_of_array(named.path) : ArrayPlace{named.path, ""};
    const fs::path target = written_file(place.file);
    name = target.filename();
    folder = status_of(target.has_parent_path() ? target.parent_path() : fs::path("."));
    file = status_of(target);
    dataset = place.dataset;
  }

  std::string name, dataset;
  std::optional<struct stat> folder, file;
};

/// Whether a dataset is in the other's place: both are the same, or one would be a group for the other. Where
/// one is no dataset, it is the whole file.
bool is_in_place_of(const Place& one, const Place& other) {
  if (one.dataset.empty() || other.dataset.empty()) return true;
  return (one.dataset + "/").starts_with(other.dataset + "/") ||
         (other.dataset + "/").starts_with(one.dataset + "/");
}

/// Whether writing one file, or dataset, replaces the other. Writing to one of several hard links leaves the
/// others unchanged, and devices and pipes take one text after the other.
bool is_same(const Place& one, const Place& other) {
  if (!is_in_place_of(one, other)) return false;
  if (one.file && !S_ISREG(one.file->st_mode)) return false;
  if (one.file && other.file && one.file->st_nlink == 1 && is_same(*one.file, *other.file)) return true;
  return one.folder && other.folder && is_same(*one.folder, *other.folder) && one.name == other.name;
}

void check_different(const std::vector<NamedFile>& inputs, const std::vector<NamedFile>& outputs) {
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    if (outputs[k].path.empty()) continue;
    const Place place(outputs[k]);
    for (std::size_t other = 0; other < k; ++other) {
      if (outputs[other].path.empty() || !is_same(place, Place(outputs[other]))) continue;
      throw UsageError(fmt::format("{} {} and {} {} are the same file; give each its own",
                                   outputs[other].option, outputs[other].path, outputs[k].option,
                                   outputs[k].path));
    }
    for (const NamedFile& input : inputs) {
      if (input.path.empty() || !is_same(place, Place(input))) continue;
      throw UsageError(fmt::format("{} {} would replace {} {}, which is the same file; give another name",
                                   outputs[k].option, outputs[k].path, input.option, input.path));
    }
  }
}

void check_writable(const NamedFile& output) {
  try {
    output.kind == NamedFile::text ? check_text_file(output.path) : check_output_array(output.path);
  } catch (const OutputError& error) {
    throw OutputError(
        fmt::format("{} {}; nothing was computed, as its result would be lost", output.option, error.what()));
  }
}

}  // namespace

void check_operand(const std::string& matrix_path, const MatrixHeader& matrix, const std::string& path,
                   const MatrixHeader& header, Fit fit) {
  if (header.rows != fit.rows) {
    const bool fits_adjoint = header.rows == (fit.rows == matrix.rows ? matrix.cols : matrix.rows);
    const std::string advice = header.cols == fit.rows ? "; did you transpose it? Its transpose would fit"
                               : fits_adjoint          ? fmt::format("; {}", fit.otherwise)
                                                       : "";
    throw InputError(fmt::format("{} is {} x {}, but {} is {} x {}: it needs one row for each of the {} {}{}",
                                 path, header.rows, header.cols, matrix_path, matrix.rows, matrix.cols,
                                 fit.rows, fit.dimension, advice));
  }
  const ScalarType type = gridlops::common_type(matrix.type, header.type);
  for (const Index rows : {matrix.rows, matrix.cols}) {
    if (fits_file(rows, header.cols, type)) continue;
    throw InputError(fmt::format(
        "{} is {} x {} and {} {} x {}: the result, {} x {}, is larger than any file can be", matrix_path,
        matrix.rows, matrix.cols, path, header.rows, header.cols, rows, header.cols));
  }
}

CommonType common_type(const std::vector<std::pair<std::string, MatrixHeader>>& files) {
  CommonType common{files.front().second.type, ""};
  for (const auto& [path, header] : files) common.type = gridlops::common_type(common.type, header.type);
  for (const auto& [path, header] : files)
    if (header.type != common.type)
      common.promotions += fmt::format("{} has elements of type {}, which become {}, as others are\n", path,
                                       name_of(header.type), name_of(common.type));
  return common;
}

std::vector<double> read_vector(Communicator& world, const std::string& path, const char* one,
                                const char* many, bool may_be_negative) {
  const MatrixHeader header = read_matrix_header(world, path);
  if (header.rows != 1 && header.cols != 1)
    throw InputError(fmt::format("{} is {} x {}, but {} are a vector", path, header.rows, header.cols, many));
  if (header.rows * header.cols == 0) throw InputError(fmt::format("{} holds no numbers", path));
  const auto grid =
      std::make_shared<const ProcessGrid>(world, GridShape{world.size(), 1}, make_host_backend());
  std::vector<double> numbers;
  with_scalar_type(header.type, [&]<Scalar T>() {
    if constexpr (is_complex<T>) {
      throw InputError(fmt::format("{} holds {}, but {} are real", path, name_of(header.type), many));
    } else {
      DistMatrix<T> values = allocate_matrix<T>(grid, replicated(header.rows, header.cols));
      read_matrix(path, header, values);
      const MatrixView<const T> local = std::as_const(values).local();
      for (Index j = 0; j < local.cols; ++j)
        for (Index i = 0; i < local.rows; ++i) numbers.push_back(static_cast<double>(local.column(j)[i]));
    }
  });
  for (std::size_t k = 0; k < numbers.size(); ++k)
    if (!((may_be_negative || numbers[k] >= 0) && std::isfinite(numbers[k])))
      throw InputError(fmt::format("{} holds {} at {}, but {} is a finite number{}", path, numbers[k], k, one,
                                   may_be_negative ? "" : " from 0 on"));
  return numbers;
}

NamedFile manifest_in(const char* option, const std::string& directory) {
  return {option, directory.empty() ? directory : directory + "/manifest.json"};
}

void make_directory(Communicator& world, const std::string& directory) {
  attempt(world, [&] {
    std::error_code error;
    if (world.rank() == 0) std::filesystem::create_directories(directory, error);
    if (error) throw OutputError(fmt::format("{}: cannot make this folder: {}", directory, error.message()));
  });
}

void claim_folder(Communicator& world, const std::string& directory, const std::string& kind,
                  const std::set<std::string>& names) {
  attempt(world, [&] {
    if (world.rank() == 0)
      gridlops::claim_folder(directory, kind, [&](const std::string& name) { return names.contains(name); });
  });
}

void check_outputs(Communicator& world, const std::vector<NamedFile>& inputs,
                   std::vector<NamedFile> outputs) {
  outputs.push_back({"GRIDLOPS_TRACE", trace_file(), NamedFile::text});
  attempt(world, [&] {
    if (world.rank() != 0) return;
    check_different(inputs, outputs);
    for (const NamedFile& output : outputs) {
      if (output.kind == NamedFile::array && output.path.ends_with(".npz"))
        throw UsageError(fmt::format("{} {}: archives (.npz) are not written; name a .npy file",
                                     output.option, output.path));
      if (!output.path.empty()) check_writable(output);
    }
  });
}

}  // namespace gridlops::program
