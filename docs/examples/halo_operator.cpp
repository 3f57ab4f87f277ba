// SPDX-License-Identifier: BSD-3-Clause
// A matrix-free operator of your own that needs neighbours: minus the Laplacian of an array that is cut along
// both its dimensions. The library fetches the cells around each block; you write what one rank does with its
// block, and the adjoint of that.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numbers>

#include "gridlops/comm/mpi.hpp"
#include "gridlops/ops/array_operators.hpp"
#include "gridlops/ops/dot_test.hpp"
#include "gridlops/ops/local_operator.hpp"
#include "gridlops/ops/operator_algebra.hpp"
#include "gridlops/solve/solver.hpp"

namespace gl = gridlops;

/// (Au)ᵢⱼ = 4uᵢⱼ − uᵢ₋₁,ⱼ − uᵢ₊₁,ⱼ − uᵢ,ⱼ₋₁ − uᵢ,ⱼ₊₁, where u is 0 beyond the array.
gl::OperatorPtr<double> minus_laplacian(const gl::Space& space) {
  // One cell more on every side; beyond the array they are 0.
  const auto halo_of = gl::halo<double>(space, {.before = {1, 1}, .behind = {1, 1}});
  const gl::Box box = space.local_box();
  const gl::Index rows = box[0].size, cols = box[1].size;
  // Elements are in C order: (i, j) of my block is number i·cols + j, and with the halo in front of and
  // behind it number (i + 1)·width + (j + 1). Each column of the views is the block of one right-hand side.
  const gl::Index width = cols + 2;
  const auto with_halo = [width](gl::Index i, gl::Index j) { return (i + 1) * width + (j + 1); };
  const auto forward = [=](gl::MatrixView<const double> u, gl::MatrixView<double> Au) {
    for (gl::Index k = 0; k < u.cols; ++k)
      for (gl::Index i = 0; i < rows; ++i)
        for (gl::Index j = 0; j < cols; ++j)
          Au(i * cols + j, k) = 4 * u(with_halo(i, j), k) - u(with_halo(i - 1, j), k) -
                                u(with_halo(i + 1, j), k) - u(with_halo(i, j - 1), k) -
                                u(with_halo(i, j + 1), k);
  };
  const auto adjoint = [=](gl::MatrixView<const double> v, gl::MatrixView<double> Av) {
    for (gl::Index k = 0; k < v.cols; ++k) {
      for (gl::Index place = 0; place < Av.rows; ++place) Av(place, k) = 0;
      for (gl::Index i = 0; i < rows; ++i)
        for (gl::Index j = 0; j < cols; ++j) {
          const double value = v(i * cols + j, k);
          Av(with_halo(i, j), k) += 4 * value;
          for (const gl::Index neighbour :
               {with_halo(i - 1, j), with_halo(i + 1, j), with_halo(i, j - 1), with_halo(i, j + 1)})
            Av(neighbour, k) -= value;
        }
    }
  };
  return gl::product(gl::local_operator<double>(space, halo_of->range(), forward, adjoint), halo_of);
}

int main(int argc, char** argv) {
  gl::MpiSession session(&argc, &argv);
  return session.run([&] {
    gl::Communicator& world = session.world();
    const auto grid =
        std::make_shared<gl::ProcessGrid>(world, gl::near_square(world.size()), gl::make_host_backend());
    const gl::Index height = 31, width = 24;
    const gl::Dims dims(
        {gl::Partition::balanced(height, grid->rows()), gl::Partition::balanced(width, grid->cols())});
    const gl::Space space = gl::array_space(grid, dims, gl::Axis::all);
    const auto A = minus_laplacian(space);
    const gl::DotTestResult dot = gl::dot_test(*A);

    // Waves with p half periods along i and one along j are eigenvectors; right-hand side k has p = k + 1.
    const gl::Index nrhs = 3;
    const auto wave = [](gl::Index number, gl::Index place, gl::Index length) {
      const double period = std::numbers::pi * static_cast<double>(number) / static_cast<double>(length + 1);
      return std::pair(std::sin(period * static_cast<double>(place + 1)), 2 - 2 * std::cos(period));
    };
    auto B = gl::allocate_matrix<double>(grid, space.layout(nrhs));
    auto X = gl::allocate_matrix<double>(grid, space.layout(nrhs)),
         truth = gl::allocate_matrix<double>(grid, space.layout(nrhs));
    const gl::Box box = space.local_box();
    for (gl::Index k = 0; k < nrhs; ++k)
      for (gl::Index i = 0; i < box[0].size; ++i)
        for (gl::Index j = 0; j < box[1].size; ++j) {
          const auto [u, lambda] = wave(k + 1, box[0].begin + i, height);
          const auto [v, mu] = wave(1, box[1].begin + j, width);
          truth.local()(i * box[1].size + j, k) = u * v;
          B.local()(i * box[1].size + j, k) = (lambda + mu) * u * v;
        }
    cg(*A, B, X, {.tolerance = 1e-12});

    double error = 0;
    for (gl::Index k = 0; k < nrhs; ++k)
      for (gl::Index i = 0; i < box[0].size * box[1].size; ++i)
        error = std::max(error, std::abs(X.local()(i, k) - truth.local()(i, k)));
    world.all_reduce(std::span(&error, 1), gl::ReduceOp::max);
    if (world.rank() == 0) std::printf("dot test %.1e, error %.1e\n", dot.mismatch, error);
    return dot.passed && error <= 1e-9 ? 0 : 1;
  });
}
