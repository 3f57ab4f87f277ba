// SPDX-License-Identifier: BSD-3-Clause
#include "targets.hpp"

#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string_view>

#include "command_line/option_values.hpp"
#include "compressed/tile_tables.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/comm/process_grid.hpp"
#include "io/calibration_file.hpp"
#include "io/formats/array_name.hpp"
#include "io/formats/manifest.hpp"
#include "io/formats/npy_header.hpp"
#include "machine/machine_file.hpp"
#include "solve/methods/projected_problem.hpp"
#include "solve/run/active_columns.hpp"
#include "solve/run/column_state.hpp"

namespace {

std::size_t largest_allocation = 0;  // since a check has set it to 0

}  // namespace

// All other forms call these.
void* operator new(std::size_t bytes) {
  largest_allocation = std::max(largest_allocation, bytes);
  if (void* memory = std::malloc(std::max<std::size_t>(bytes, 1))) return memory;
  throw std::bad_alloc();
}
// Sanitizers have one of their own.
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  try {
    return operator new(bytes);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace gridlops::fuzz {

namespace {

void require(bool holds, const char* what) {
  if (!holds) throw std::logic_error(what);
}

/// The first three bytes say how many bytes of the file follow the text.
void check_npy_header(const std::string& text) {
  if (text.size() < 3) return;
  const auto byte = [&](std::size_t k) { return Index{static_cast<unsigned char>(text[k])}; };
  const std::string start = text.substr(3);
  const Index file_size = static_cast<Index>(start.size()) + byte(0) + (byte(1) << 8) + (byte(2) << 16);
  constexpr std::size_t messages = 1024;
  largest_allocation = 0;
  try {
    const ArrayHeader header = parse_npy_array_header(start, file_size, "fuzz.npy");
    require(!header.sizes.empty() && header.sizes.size() <= 5, "a number of dimensions that is impossible");
    Index elements = 1;
    for (const Index size : header.sizes) {
      require(size >= 0, "a size below zero");
      elements *= size;
    }
    const Index bytes = elements * size_of(header.type);
    require(header.data_offset + bytes == file_size, "a header that does not fit its file");
    const std::string again = npy_header_text(header);
    const ArrayHeader copy =
        parse_npy_array_header(again, static_cast<Index>(again.size()) + bytes, "again.npy");
    require(
        copy.sizes == header.sizes && copy.type == header.type && copy.fortran_order == header.fortran_order,
        "a header that is read otherwise than it is written");
    const MatrixHeader matrix = parse_npy_header(start, file_size, "fuzz.npy");
    require(matrix.rows * matrix.cols == elements, "a matrix that is no such array");
  } catch (const InputError&) {
  }
  require(largest_allocation <= 2 * text.size() + messages, "an allocation larger than twice the file");
}

void check_array_name(const std::string& text) {
  const std::vector<Index> sizes{5, 0, 4, 1, 1000};
  try {
    const ArrayName name = parse_array_name(text);
    require(name.is_dataset() || (name.file == text && name.slices.empty()),
            "a file that is not as it was named");
    if (!name.is_dataset()) return;
    require(text.starts_with(name.file), "a file of another name");
    require(name.dataset[0] == '/' && name.dataset.find("//") == std::string::npos &&
                (name.dataset == "/" || name.dataset.back() != '/'),
            "a path of a dataset that is not tidy");
    const ArrayName again = parse_array_name(name.file + ":" + name.dataset + "@:");
    require(again.file == name.file && again.dataset == name.dataset, "a name that is read otherwise again");
    const std::vector<Chosen> chosen = choose(name, sizes);
    require(chosen.size() == sizes.size(), "dimensions that are lost");
    for (std::size_t d = 0; d < sizes.size(); ++d) {
      const Chosen& each = chosen[d];
      require(each.begin >= 0 && each.count >= 0 && each.step > 0, "a choice that is none");
      require(each.count == 0 || each.begin + (each.count - 1) * each.step < sizes[d],
              "an index beyond the end");
    }
  } catch (const UsageError&) {
  } catch (const InputError&) {
  }
}

std::string signed_manifest(nlohmann::json json) {
  json.erase("xxh3");
  const std::string contents = json.dump();
  constexpr const char* digits = "0123456789abcdef";
  std::string hash;
  for (int shift = 60; shift >= 0; shift -= 4)
    hash += digits[(XXH3_64bits(contents.data(), contents.size()) >> shift) & 15];
  json["xxh3"] = hash;
  return json.dump();
}

/// The tables of a compressed matrix, of which nothing is there but the manifest.
void check_compressed(const Manifest& manifest) {
  constexpr std::size_t messages = 4096;
  const MatrixHeader header = header_in_manifest(manifest, "fuzz");
  require(header.rows >= 0 && header.cols >= 0 && fits_file(header.rows, header.cols, header.type),
          "a matrix of an impossible size");
  largest_allocation = 0;
  try {
    TileTables tables{.header = header};
    interpret(tables, std::vector<double>(6), {}, "fuzz");
    require(header.rows == 0 && header.cols == 0, "tables without rows of a matrix that has some");
    keep({}, {}, {}, header.rows, "fuzz");
  } catch (const InputError&) {
  }
  require(largest_allocation <= messages, "memory for tables that are not there");
}

void check_sound_manifest(const std::string& text) {
  try {
    const Manifest manifest = parse_manifest(text, "fuzz");
    require(manifest.folder.find('/') == std::string::npos, "a folder elsewhere");
    for (const auto& [name, matrix] : manifest.matrices) {
      require(name.find('/') == std::string::npos, "a file elsewhere");
      Index elements = 0;
      for (const SavedBlock& block : matrix.blocks) {
        require(0 <= block.rows.begin && block.rows.end() <= matrix.rows && 0 <= block.rows.size,
                "rows that are none");
        require(0 <= block.cols.begin && block.cols.end() <= matrix.cols && 0 <= block.cols.size,
                "columns that are none");
        elements += block.rows.size * block.cols.size;
      }
      require(elements == matrix.rows * matrix.cols, "blocks that are not the matrix");
      for (auto a = matrix.blocks.begin(); matrix.blocks.size() < 50 && a != matrix.blocks.end(); ++a)
        for (auto b = matrix.blocks.begin(); b != a; ++b)
          require(a->rows.end() <= b->rows.begin || b->rows.end() <= a->rows.begin ||
                      a->cols.end() <= b->cols.begin || b->cols.end() <= a->cols.begin,
                  "an element in two blocks");
    }
    const std::string again = manifest_text(manifest);
    require(manifest_text(parse_manifest(again, "again")) == again,
            "a manifest that is read otherwise than written");
    check_compressed(manifest);
  } catch (const InputError&) {
  }
}

/// The text as it is, and, if it is JSON, with the hash that it should have.
void check_manifest(const std::string& text) {
  check_sound_manifest(text);
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
  if (json.is_object() && text.size() < 10000) try {
      check_sound_manifest(signed_manifest(json));
    } catch (const nlohmann::json::exception&) {  // it has bytes that JSON cannot have
    }
}

template <Scalar S>
void check_projected(StateArchive& archive, Index columns) {
  ProjectedProblem<S> problem;
  problem.visit(archive, columns);
  require(problem.dimension() <= problem.steps() * columns, "blocks wider than the data");
  if (problem.dimension() * columns > 1000) return;  // takes long
  const auto solution = problem.solve(0.1, 1e-10);
  require(solution.y.rows() == problem.dimension() && solution.y.cols() == columns,
          "solutions of another problem");
  require(std::ssize(solution.residual) == columns, "norms of other columns");
}

/// The first byte says which kind of numbers follow, as saved spaces and other states of solvers have them.
void check_state(const std::string& text) {
  if (text.empty()) return;
  std::vector<double> numbers((text.size() - 1) / sizeof(double));
  if (!numbers.empty()) std::memcpy(numbers.data(), text.data() + 1, numbers.size() * sizeof(double));
  constexpr std::size_t messages = 4096;
  largest_allocation = 0;
  try {
    StateArchive archive(numbers);
    if (text[0] < 'c') {
      std::vector<int> powers;
      archive.visit_list(powers);
      const Index columns = std::ssize(powers);
      text[0] == 'a' ? check_projected<double>(archive, columns)
                     : check_projected<std::complex<double>>(archive, columns);
    } else {
      constexpr Index columns = 6;
      ActiveColumns active{Partition::balanced(columns, 2)};
      archive.visit(active);
      std::vector<char> seen(std::size_t{columns}, 0);
      for (Index k = 0; k < active.count(); ++k) {
        const Index column = active.column(k);
        require(0 <= column && column < columns && seen[static_cast<std::size_t>(column)]++ == 0,
                "a column twice, or none");
      }
      std::vector<ColumnState> states(2);
      archive.visit_all(states);
      require(states.size() == 2, "another number of columns");
      SpaceEnd end{};
      archive.visit(end);
      require(end <= SpaceEnd::non_finite, "an end that is none");
    }
  } catch (const InputError&) {
  }
  // A complex matrix of the numbers, with its transpose and what is made of it.
  require(largest_allocation <= 1000 * text.size() + messages, "memory beyond all numbers");
}

void check_machine(const std::string& text) {
  try {
    const program::Machine machine = program::parse_machine(text);
    const MachineModel& rates = machine.rates;
    for (const double seconds : rates.seconds_per_flop)
      require(std::isfinite(seconds) && seconds > 0, "a rate that is none");
    require(std::isfinite(rates.seconds_per_read_byte) && std::isfinite(rates.seconds_per_copied_byte),
            "a rate that is none");
    for (const auto& [name, links] : machine.links)
      for (const CommOperation operation : program::linked_operations()) {
        const LinkModel& link = links[static_cast<std::size_t>(operation)];
        require(std::isfinite(link.seconds_per_call) && std::isfinite(link.seconds_per_byte),
                "a link that is none");
      }
    require(rates.ranks_of_links > 0, "ranks that are none");
    static_cast<void>(program::json_of(machine));
  } catch (const InputError&) {
  }
}

void check_calibration(const std::string& text) {
  const CalibrationFile file = parse_calibration(text, {{"cpu", "fuzz"}});
  require(file.is_of_machine == file.problem.empty(),
          "a calibration that is refused without a word, or used with one");
  require(file.is_of_machine || file.types.empty(), "figures of a calibration that is refused");
  for (const auto& entry : file.types.items()) times_in(entry.value().at("seconds"));
}

template <class Parse>
void check_usage(Parse&& parse) {
  try {
    parse();
  } catch (const UsageError&) {
  }
}

void check_numbers(const std::string& text) {
  check_usage([&] {
    const std::vector<Index> numbers = program::numbers(text);
    for (const Index number : numbers) require(number >= 0, "a number below zero");
    require(numbers.size() <= 10000 * program::items(text).size(), "too many numbers");
  });
  check_usage([&] { require(program::whole_number(text, -5, 7) >= -5, "a whole number below the lowest"); });
  check_usage([&] { require(program::size_number(text, 1024) >= 1024, "a size below the lowest"); });
  check_usage([&] { require(std::isfinite(program::number(text, 1)), "a number that is none"); });
}

void check_grid(const std::string& text) {
  check_usage([&] {
    for (const std::string& item : program::items(text)) {
      const GridShape shape = parse_grid_shape(item);
      require(shape.rows > 0 && shape.cols > 0 && shape.size() / shape.rows == shape.cols,
              "a grid that is none");
    }
  });
}

}  // namespace

const std::array<Target, 8> targets{{{"npy_header", check_npy_header},
                                     {"array_name", check_array_name},
                                     {"manifest", check_manifest},
                                     {"state", check_state},
                                     {"machine", check_machine},
                                     {"calibration", check_calibration},
                                     {"numbers", check_numbers},
                                     {"grid", check_grid}}};

}  // namespace gridlops::fuzz

// For libFuzzer: checks the target that the variable GRIDLOPS_TEST_TARGET names.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const gridlops::fuzz::Target* const chosen = [] {
    const char* const name = std::getenv("GRIDLOPS_TEST_TARGET");
    for (const gridlops::fuzz::Target& target : gridlops::fuzz::targets)
      if (name != nullptr && std::string_view(name) == target.name) return &target;
    std::fprintf(stderr, "GRIDLOPS_TEST_TARGET names no target\n");
    std::exit(2);
  }();
  chosen->check(std::string(reinterpret_cast<const char*>(data), size));
  return 0;
}
