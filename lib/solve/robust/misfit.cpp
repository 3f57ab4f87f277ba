// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cmath>

#include "gridlops/solve/robust.hpp"

namespace gridlops {

const char* name_of(Misfit misfit) {
  switch (misfit) {
    case Misfit::l2:
      return "l2";
    case Misfit::huber:
      return "huber";
    case Misfit::l1:
      return "l1";
    case Misfit::cauchy:
      return "cauchy";
    case Misfit::tukey:
      break;
  }
  return "tukey";
}

namespace {

template <class Weight>
WeightFunction each(Weight weight) {
  return [weight](std::span<const double> t, std::span<double> weights) {
    std::transform(t.begin(), t.end(), weights.begin(), weight);
  };
}

}  // namespace

// The constants of Huber, Cauchy and Tukey give an efficiency of 95 % for normal residuals.
WeightFunction weights_of(Misfit misfit) {
  switch (misfit) {
    case Misfit::l2:
      return each([](double) { return 1.0; });
    case Misfit::huber:
      return each([](double t) { return t <= 1.345 ? 1 : 1.345 / t; });
    case Misfit::l1:
      return each([](double t) { return 1 / std::hypot(t, 0.1); });
    case Misfit::cauchy:
      return each([](double t) { return 1 / (1 + std::pow(t / 2.385, 2)); });
    case Misfit::tukey:
      break;
  }
  return each([](double t) { return t < 4.685 ? std::pow((1 - t / 4.685) * (1 + t / 4.685), 2) : 0.0; });
}

}  // namespace gridlops
