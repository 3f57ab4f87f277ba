// SPDX-License-Identifier: BSD-3-Clause
#include "local/arrays/correlate.hpp"

#include <cmath>
#include <limits>
#include <vector>

#include "support/catch.hpp"
#include "support/reference.hpp"

using namespace gridlops;
using namespace gridlops::testing;

TEMPLATE_TEST_CASE("Correlations are exact on integers for every instruction set and length", "[correlate]",
                   float, double) {
  using R = TestType;
  const auto at = [](Index i) { return static_cast<std::size_t>(i); };
  for (const KernelSet& set : kernel_sets()) {
    for (const Index n : {0, 1, 2, 15, 16, 33, 64, 130, 301}) {
      for (const Index step : {1, 2, 4, 5, 16}) {
        for (const Index width : {0, 1, 3, 41}) {
          for (const R beta : {R(0), R(2)}) {
            CAPTURE(set.text, n, step, width, beta);
            std::vector<R> weights(at(width)), x(at(n + width * step)),
                y(at(n), beta == 0 ? quiet_nan<R>() : R(3));
            for (Index k = 0; k < width; ++k) weights[at(k)] = small_integer<R>(1, k, 0);
            // Elements before and behind the weights that are not zero must not be read, others with a weight
            // of zero must not count.
            if (width > 2) weights[0] = weights[at(width / 2)] = weights[at(width - 1)] = 0;
            for (Index i = 0; i < n + width * step; ++i) x[at(i)] = small_integer<R>(2, i, 0);
            if (width > 2 && n == 1) x[0] = x[at(width / 2 * step)] = quiet_nan<R>();
            set.of<R>().correlate(n, R(3), weights.data(), width, x.data(), step, beta, y.data());
            Index wrong = 0;
            for (Index i = 0; i < n; ++i) {
              R sum = 0;
              for (Index k = 0; k < width; ++k)
                if (weights[at(k)] != 0) sum += weights[at(k)] * x[at(i + k * step)];
              if (y[at(i)] != 3 * sum + beta * 3) ++wrong;
            }
            CHECK(wrong == 0);
          }
        }
      }
    }
  }
}

TEMPLATE_TEST_CASE("Correlations by weights of each element are exact on integers for every instruction set",
                   "[correlate]", float, double) {
  using R = TestType;
  const auto at = [](Index i) { return static_cast<std::size_t>(i); };
  for (const KernelSet& set : kernel_sets()) {
    for (const Index n : {0, 1, 2, 15, 16, 33, 64, 130, 301}) {
      for (const Index width : {0, 1, 3, 41}) {
        for (const Index parts : {1, 2}) {
          for (const bool side_by_side : {false, true}) {
            for (const R beta : {R(0), R(2)}) {
              CAPTURE(set.text, n, width, parts, side_by_side, beta);
              const Index step = side_by_side ? n + 3 : 1, apart = n + 2;
              const auto place = [&](Index i, Index k) {
                return side_by_side ? i + k * apart : i * width + k;
              };
              std::vector<R> weights(at((n + 2) * (width + 1))), x(at(parts * (n + width * step))),
                  y(at(parts * n), beta == 0 ? quiet_nan<R>() : R(3));
              for (std::size_t k = 0; k < weights.size(); ++k)
                weights[k] = small_integer<R>(1, static_cast<Index>(k), 0);
              for (std::size_t k = 0; k < x.size(); ++k) x[k] = small_integer<R>(2, static_cast<Index>(k), 0);
              // One number is not one, and no weight of it counts. Others are zero, too.
              if (width > 2 && n > 0) {
                const Index nan = n / 2 + 2 * step;
                x[at(parts * nan)] = quiet_nan<R>();
                for (Index i = 0; i < n; ++i) {
                  weights[at(place(i, (i + 1) % 3))] = 0;
                  for (Index k = 0; k < width; ++k)
                    if (i + k * step == nan) weights[at(place(i, k))] = 0;
                }
              }
              const RealKernels<R>& kernels = set.of<R>();
              if (side_by_side) {
                kernels.correlate_neighbours(n, R(3), weights.data(), width, apart, parts, x.data(), step,
                                             beta, y.data());
              } else {
                kernels.correlate_rows(n, R(3), weights.data(), width, parts, x.data(), beta, y.data());
              }
              Index wrong = 0;
              for (Index i = 0; i < n; ++i) {
                for (Index part = 0; part < parts; ++part) {
                  R sum = 0;
                  for (Index k = 0; k < width; ++k) {
                    const R weight = weights[at(place(i, k))];
                    if (weight != 0) sum += weight * x[at(parts * (i + k * step) + part)];
                  }
                  if (y[at(parts * i + part)] != 3 * sum + beta * 3) ++wrong;
                }
              }
              CHECK(wrong == 0);
            }
          }
        }
      }
    }
  }
}

TEMPLATE_TEST_CASE("Stencils are exact on integers for every instruction set and length", "[correlate]",
                   float, double) {
  using R = TestType;
  const auto at = [](Index i) { return static_cast<std::size_t>(i); };
  const std::vector<Index> offsets{7, 0, 3, 3, 20};
  const std::vector<R> weights{2, -3, 5, 1, 0};
  for (const KernelSet& set : kernel_sets()) {
    for (const Index n : {0, 1, 2, 15, 16, 33, 64, 130, 300}) {
      for (const R beta : {R(0), R(2)}) {
        CAPTURE(set.text, n, beta);
        // The last weight is zero, so what it is for must not be read.
        std::vector<R> x(at(n + 7), 0), y(at(n), beta == 0 ? quiet_nan<R>() : R(3));
        for (Index i = 0; i < n + 7; ++i) x[at(i)] = small_integer<R>(2, i, 0);
        set.of<R>().add_stencil(n, R(3), weights.data(), offsets.data(), 5, x.data(), beta, y.data());
        Index wrong = 0;
        for (Index i = 0; i < n; ++i) {
          const R sum = 2 * x[at(i + 7)] - 3 * x[at(i)] + 6 * x[at(i + 3)];
          if (y[at(i)] != 3 * sum + beta * 3) ++wrong;
        }
        CHECK(wrong == 0);
      }
    }
  }
}

TEMPLATE_TEST_CASE("Arrivals are found by every instruction set", "[correlate]", float, double) {
  using R = TestType;
  constexpr R never = std::numeric_limits<R>::infinity(), end = 20;
  const std::vector<R> there{0, 0.25, 3, 7.5, 19, 19.5, 20, never, quiet_nan<R>(), 12.125, 5};
  for (const KernelSet& set : kernel_sets()) {
    for (std::size_t count = 0; count <= there.size(); ++count) {
      CAPTURE(set.text, count);
      const std::vector<R> back(count, R(0.5));
      std::vector<std::int32_t> sample(count, -1);
      std::vector<R> behind(count, R(-1));
      set.of<R>().find_arrivals(static_cast<Index>(count), there.data(), back.data(), end, sample.data(),
                                behind.data());
      for (std::size_t i = 0; i < count; ++i) {
        const R time = there[i] + back[i] < end ? there[i] + back[i] : end;
        CHECK(static_cast<R>(sample[i]) == std::floor(time));
        CHECK(behind[i] == time - std::floor(time));
      }
    }
  }
}
