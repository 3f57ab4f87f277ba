// SPDX-License-Identifier: BSD-3-Clause
#include "product_setup.hpp"

#include <fmt/format.h>

#include <array>
#include <thread>

namespace gridlops::program {

namespace {

/// As request.wait(), but leaves the processor to others.
void sleep_until_done(Request request) {
  while (!request.test()) std::this_thread::sleep_for(std::chrono::milliseconds(2));
}

}  // namespace

std::shared_ptr<const ProcessGrid> make_grid(Communicator& world, const ProductArguments& arguments) {
  if (arguments.transport != "auto" && arguments.transport != world.transport()) {
    throw UsageError(fmt::format("transport '{}' is not part of this build; it has {}", arguments.transport,
                                 world.transport()));
  }
  const std::shared_ptr<Backend> backend =
      arguments.device == "gpu" ? make_gpu_backend(0) : make_host_backend();
  return std::make_shared<const ProcessGrid>(world, arguments.grid.value_or(near_square(world.size())),
                                             backend);
}

Algorithm resolve(Algorithm asked, const ProductShape& shape, GridShape grid) {
  return asked == Algorithm::automatic ? choose_algorithm(shape, grid) : asked;
}

void check_operand(const std::string& matrix_path, const NpyHeader& matrix, const std::string& path,
                   const NpyHeader& header, Fit fit) {
  if (header.type != matrix.type) {
    throw InputError(
        fmt::format("{} has elements of type {}, but {} of {}; convert one of them, with NumPy say", path,
                    name_of(header.type), matrix_path, name_of(matrix.type)));
  }
  if (header.rows != fit.rows) {
    throw InputError(fmt::format("{} is {} x {}, but {} is {} x {}: it needs one row for each of the {} {}",
                                 path, header.rows, header.cols, matrix_path, matrix.rows, matrix.cols,
                                 fit.rows, fit.dimension));
  }
}

void run_on_members(Communicator& world, const ProcessGrid& grid, const std::function<void()>& work) {
  ExitStatus status = ExitStatus::done;
  std::string text;
  if (grid.is_member()) {
    try {
      work();
    } catch (const CommunicationError&) {
      throw;
    } catch (const OutOfMemory&) {
      throw;
    } catch (const Error& error) {
      status = error.status();
      text = error.what();
    }
  }
  std::array<std::int32_t, 1> outcome{static_cast<std::int32_t>(status)};
  sleep_until_done(world.start_broadcast(outcome, 0));
  status = static_cast<ExitStatus>(outcome[0]);
  if (status != ExitStatus::done) throw Error(status, broadcast_text(world, text, 0));
}

}  // namespace gridlops::program
