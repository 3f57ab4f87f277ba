// SPDX-License-Identifier: BSD-3-Clause
#include "solve/known_errors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>

#include "gridlops/base/error.hpp"
#include "gridlops/solve/spectrum.hpp"

namespace gridlops::program {

template <Scalar T>
double sigma_min_of(const SolveArguments& arguments, const LinearOperator<T>& A) {
  if (arguments.sigma_min_way.empty()) return arguments.sigma_min.value_or(0);
  const double found = arguments.sketches() ? probable_sigma_min(A, sketch_failure) : proven_sigma_min(A);
  // NaN comes with a verdict of its own.
  if (found == 0 && A.domain().grid->is_member() && arguments.options.error > 0 && !arguments.is_damped())
    throw UsageError(
        fmt::format("--error needs what --sigma-min {} does not find: the smallest singular value of A is "
                    "hidden by rounding, so that only --damp bounds errors",
                    arguments.sigma_min_way));
  return std::isnan(found) ? 0 : found;
}

namespace {
double relative(double bound, double norm) { return bound == 0 ? 0 : bound / norm; }
}  // namespace

double largest_relative(const std::vector<double>& bounds, const std::vector<double>& norms) {
  double largest = 0;
  for (std::size_t j = 0; j < bounds.size(); ++j) {
    if (!std::isfinite(relative(bounds[j], norms[j]))) return std::numeric_limits<double>::infinity();
    largest = std::max(largest, relative(bounds[j], norms[j]));
  }
  return largest;
}

std::string error_text(const SolveTask& task, double sigma_min, const std::vector<double>& bounds,
                       const std::vector<double>& norms) {
  for (std::size_t j = 0; j < bounds.size(); ++j)
    if (!std::isfinite(relative(bounds[j], norms[j])))
      return fmt::format("error: nothing bounds that of column {}\n", j);
  const double largest = largest_relative(bounds, norms);
  if (task.arguments.proves_sigma_min())
    return fmt::format(
        "error: |x - x*| is at most {:.1e} |x| in every column: it is proven that no singular value of A is "
        "below {:.3g}\n",
        largest, sigma_min);
  if (!task.arguments.sketches())
    return fmt::format("error: |x - x*| is at most {:.1e} |x| in every column\n", largest);
  return fmt::format(
      "error: |x - x*| is probably at most {:.1e} |x| in every column: a random sketch of A with {} rows "
      "says "
      "that no singular value is below {:.3g}, which is wrong at most once in {:.0e} times\n",
      largest, sketch_rows(task.shape.cols), sigma_min, 1 / sketch_failure);
}

#define GRIDLOPS_INSTANTIATE(T) template double sigma_min_of(const SolveArguments&, const LinearOperator<T>&);
GRIDLOPS_INSTANTIATE(float)
GRIDLOPS_INSTANTIATE(double)
GRIDLOPS_INSTANTIATE(std::complex<float>)
GRIDLOPS_INSTANTIATE(std::complex<double>)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops::program
