// SPDX-License-Identifier: BSD-3-Clause
#include "gridlops/io/calibration.hpp"

#include <unistd.h>
#include <algorithm>
#include <ctime>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "base/hash.hpp"
#include "base/message.hpp"
#include "base/settings.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/base/version.hpp"
#include "gridlops/comm/failure.hpp"
#include "gridlops/comm/gpu.hpp"
#include "gridlops/io/text_file.hpp"
#include "gridlops/local/backend.hpp"
#include "io/calibration_file.hpp"
#include "io/files/file.hpp"
#include "io/files/temporary_file.hpp"
#include "io/formats/json_text.hpp"
#include "local/products/product_times.hpp"
#include "local/tiles/kernel_set.hpp"

namespace gridlops {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

/// Everything on which figures depend, as one text; counts the same number of ranks on all ranks
/// (collective).
Json machine_of(Communicator& comm) {
  std::array<std::int32_t, 1> ranks{rank_on_host(comm) + 1};
  comm.all_reduce(ranks, ReduceOp::max);
  const BlasInfo blas = blas_info();
  return {{"version", version},
          {"cpu", cpu_model()},
          {"cores", sysconf(_SC_NPROCESSORS_ONLN)},
          {"instruction_set", kernel_choice().set->text},
          {"blas", blas.library},
          {"blas_kernel", blas.kernel},
          {"threads", threads_per_rank()},
          {"blas_threads", blas.threads},
          {"ranks_on_machine", ranks[0]}};
}

/// The file of the calibration, or the reason why there is none.
Calibration place_for(const Json& machine) {
  Calibration place;
  const std::string wanted = variable("GRIDLOPS_CALIBRATION");
  // XDG's rules say to ignore a relative folder.
  fs::path folder = variable("XDG_CACHE_HOME");
  if (const fs::path home = variable("HOME"); !folder.is_absolute() && home.is_absolute())
    folder = home / ".cache";
  if (kernel_choice().use != KernelChoice::Use::where_faster) {
    place.note = "GRIDLOPS_KERNELS has chosen";
  } else if (wanted == "off") {
    place.note = "GRIDLOPS_CALIBRATION is off";
  } else if (!wanted.empty()) {
    place.file = wanted;
  } else if (!folder.is_absolute()) {
    place.note = "there is no home folder to keep one in";
  } else {
    const std::string text = json_text(machine);
    const std::string name = message("calibration-", hash_of_text(text), ".json");
    place.file = (folder / "gridlops" / name).string();
  }
  return place;
}

/// The facts that rank 0 has found.
struct Found {
  Calibration calibration;  ///< the file
  Json machine, types = Json::object();
  Json rates;                  ///< of the file, on rank 0 alone
  bool is_free = true;         ///< there is no file, or its figures are of this machine
  bool is_calibration = true;  ///< there is no file, or it is a calibration
};

/// Reads the file. Only rank 0 calls it.
void look(Found& found) {
  constexpr Index most_bytes = 1 << 16;
  const std::string& path = found.calibration.file;
  std::error_code unknown;
  if (path.empty() || !fs::exists(path, unknown)) return;
  found.is_free = found.is_calibration = false;
  std::string problem;
  try {
    CalibrationFile file = parse_calibration(InputFile(path).text(most_bytes), found.machine);
    found.is_calibration = file.is_calibration;
    found.is_free = file.is_of_machine;
    found.types = std::move(file.types);
    found.rates = std::move(file.rates);
    problem = std::move(file.problem);
  } catch (const InputError& error) {
    problem = error.what();
  }
  if (!found.is_free) found.calibration.note = message("it is not used: ", problem);
}

/// Rank 0's findings, on all ranks (collective).
Found find(Communicator& comm) {
  Found found;
  found.machine = machine_of(comm);
  if (comm.rank() == 0) {
    found.calibration = place_for(found.machine);
    look(found);
  }
  const std::string kernels = own_kernels();
  const Json sent{{"file", found.calibration.file},
                  {"note", found.calibration.note},
                  {"types", found.types},
                  {"is_free", found.is_free},
                  {"is_calibration", found.is_calibration},
                  {"machine", found.machine},
                  {"kernels", kernels}};
  const Json got = Json::parse(broadcast_text(comm, json_text(sent), 0));
  std::array<std::int32_t, 1> alike{got.at("machine") == found.machine && got.at("kernels") == kernels};
  comm.all_reduce(alike, ReduceOp::min);
  if (alike[0] == 0) {
    found.calibration.file.clear();
  } else if (comm.rank() != 0) {  // rank 0 has the path itself, whatever its bytes
    found.calibration.file = got.at("file").get<std::string>();
  }
  found.calibration.note = alike[0] == 0
                               ? "the ranks run on several kinds of machines, or with several libraries"
                               : got.at("note").get<std::string>();
  found.types = alike[0] == 0 ? Json::object() : got.at("types");
  found.is_free = got.at("is_free").get<bool>();
  found.is_calibration = got.at("is_calibration").get<bool>();
  return found;
}

/// Makes this process choose by the figures, as far as they are certain.
Calibration use(const Found& found) {
  constexpr double most_unsteady = 1.1;
  Calibration calibration = found.calibration;
  for (const ScalarType type : all_scalar_types) {
    use_product_times(type, std::nullopt);
    const auto entry = found.types.find(name_of(type));
    if (entry == found.types.end()) continue;
    const ProductTimes times = times_in(entry->at("seconds"));
    if (times.unsteadiness() > most_unsteady) {
      calibration.note += message(calibration.note.empty() ? "" : "; ", name_of(type),
                                  " was measured on a busy machine, and is not used");
      continue;
    }
    use_product_times(type, times);
    calibration.measured[static_cast<std::size_t>(type)] = entry->at("measured").get<std::string>();
  }
  return calibration;
}

/// The slowest rank's time in each repetition, which all ranks run at once (collective).
template <Scalar T>
ProductTimes measure(Communicator& comm) {
  constexpr Index bytes = Index{64} << 20;  // twice the size from which storage and passes matter
  std::optional<ProductTimer<T>> timer;
  attempt(comm, [&] { timer.emplace(bytes); });
  constexpr std::size_t sizes = ProductTimes::columns.size(), count = kinds_of_work * sizes;
  std::array<std::vector<double>, count> samples;
  constexpr int least_repetitions = 3;
  constexpr double enough_seconds = 1;
  double elapsed = 0;
  for (int repetition = 0; repetition < least_repetitions || elapsed < enough_seconds; ++repetition) {
    std::vector<double> seconds(count);
    for (std::size_t k = 0; k < count; ++k) {
      comm.barrier();
      seconds[k] = timer->seconds(static_cast<Work>(k / sizes), k % sizes);
    }
    comm.all_reduce(seconds, ReduceOp::max);
    for (std::size_t k = 0; k < count; ++k) {
      samples[k].push_back(seconds[k]);
      elapsed += seconds[k];
    }
  }
  ProductTimes times;
  for (std::size_t k = 0; k < count; ++k) {
    std::sort(samples[k].begin(), samples[k].end());
    times.times[k / sizes][k % sizes] = {samples[k][0], samples[k][1]};
  }
  return times;
}

std::string time_text() {
  const std::time_t now = std::time(nullptr);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", std::gmtime(&now));
  return text.data();
}

/// Why rank 0 failed to write; empty if it did not (collective).
template <class Function>
std::string problem_of_writing(Communicator& comm, Function&& rank_0) {
  std::string problem;
  try {
    if (comm.rank() == 0) rank_0();
  } catch (const OutputError& error) {
    problem = message("it cannot be kept: ", error.what());
  }
  return broadcast_text(comm, problem, 0);
}

void check_place(const std::string& path) {
  // If this fails, making a file fails too, and says why.
  std::error_code failed;
  if (fs::path(path).has_parent_path()) fs::create_directories(fs::path(path).parent_path(), failed);
  check_output_file(path);
}

void write(const Found& found) {
  write_text_file(found.calibration.file,
                  [text = calibration_file_text(found.machine, found.types, found.rates)]() mutable {
                    return std::exchange(text, {});
                  });
}

}  // namespace

Calibration load_calibration(Communicator& comm) { return use(find(comm)); }

Calibration measure_calibration(Communicator& comm, ScalarType type, bool anew) {
  Found found = find(comm);
  const std::string name(name_of(type));
  const std::string& file = found.calibration.file;
  if (file.empty() || (found.types.contains(name) && !anew)) return use(found);
  // Does not replace what someone else needs.
  if (anew ? !found.is_calibration : !found.is_free) return use(found);
  std::string& note = found.calibration.note;
  if (note = problem_of_writing(comm, [&] { check_place(file); }); !note.empty()) return use(found);
  try {
    found.types[name] = {
        {"measured", time_text()},
        {"seconds", with_scalar_type(type, [&]<Scalar T>() { return json_of(measure<T>(comm)); })}};
    found.types = Json::parse(broadcast_text(comm, json_text(found.types), 0));  // with rank 0's time
    note = problem_of_writing(comm, [&] { write(found); });
    found.calibration.is_new = true;
  } catch (const OutOfMemory& error) {
    note = message("nothing was measured: ", error.what());
  }
  return use(found);
}

}  // namespace gridlops
