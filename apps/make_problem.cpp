// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <filesystem>
#include <system_error>

#include "console.hpp"
#include "gridlops/matrix_mult.hpp"
#include "output_file.hpp"
#include "problems.hpp"
#include "product_setup.hpp"
#include "subcommands.hpp"

namespace gridlops::program {

namespace {

struct ProblemFiles {
  std::string A, B, X;

  explicit ProblemFiles(const std::filesystem::path& directory)
      : A(directory / "A.npy"), B(directory / "B.npy"), X(directory / "X_true.npy") {}
};

void make_directory(Communicator& world, const std::string& directory) {
  succeed_together(world, [&] {
    std::error_code error;
    if (world.rank() == 0) std::filesystem::create_directories(directory, error);
    if (error) throw OutputError(fmt::format("{}: cannot make this folder: {}", directory, error.message()));
  });
}

template <Scalar T>
void make_on_grid(const MakeProblemArguments& arguments, const std::shared_ptr<const ProcessGrid>& grid,
                  const ProblemFiles& files) {
  // All three matrices lie as this algorithm wants them.
  constexpr Algorithm algorithm = Algorithm::summa;
  DistMatrix<T> A = allocate_matrix<T>(grid, blocks_2d(*grid, arguments.rows, arguments.cols));
  DistMatrix<T> X = allocate_matrix<T>(grid, blocks_2d(*grid, arguments.cols, arguments.nrhs));
  DistMatrix<T> B = allocate_matrix<T>(grid, blocks_2d(*grid, arguments.rows, arguments.nrhs));
  fill_matrix(arguments, A);
  fill_model(arguments, X);
  write_npy(files.A, A);
  write_npy(files.X, X);
  matrix_mult(algorithm, std::move(A))->apply(T(1), X, T(0), B);
  add_noise(arguments, B);
  write_npy(files.B, B);
}

}  // namespace

ExitStatus make_problem(Communicator& world, const MakeProblemArguments& arguments) {
  check(arguments);
  const ProblemFiles files(arguments.directory);
  make_directory(world, arguments.directory);
  check_outputs(world, {}, {{"--out", files.A}, {"--out", files.B}, {"--out", files.X}});
  const auto grid = make_grid(world, {});
  run_on_members(world, *grid, [&] {
    with_scalar_type(type_of(arguments), [&]<Scalar T>() { make_on_grid<T>(arguments, grid, files); });
  });
  if (world.rank() == 0) {
    print(fmt::format("{}: A.npy {} x {}, X_true.npy {} x {}, B.npy {} x {} of {}\n", arguments.directory,
                      arguments.rows, arguments.cols, arguments.cols, arguments.nrhs, arguments.rows,
                      arguments.nrhs, name_of(type_of(arguments))));
  }
  return ExitStatus::done;
}

}  // namespace gridlops::program
