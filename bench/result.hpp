// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "arguments.hpp"
#include "limits.hpp"

namespace gridlops::bench {

/// One combination of the lists; the algorithm is resolved.
struct Case {
  std::shared_ptr<const ProcessGrid> grid;
  ProductShape shape;
  Algorithm algorithm = Algorithm::automatic;
  Index panel = 0;
  SummaForm summa_form = SummaForm::broadcast;
  Storage storage = Storage::columns;
};

/// Calls run() for every combination, with a grid that this rank is a member of (collective over world).
/// Throws on all ranks what run() throws on all members.
void for_each_case(Communicator& world, const Cases& cases, const std::function<void(const Case&)>& run);

/// One repetition, and the limits just before it.
struct Sample {
  double seconds = 0;  ///< of the slowest rank
  MachineLimits limits;
  double waiting = 0;  ///< for data and for other ranks: the share of the time, mean over the ranks
};

/// The work that is compared with the limits: no machine does it faster than the slower of its two parts.
struct Work {
  double flops = 0;
  double bytes = 0;  ///< of A that must be read

  double roofline_seconds(const MachineLimits& limits) const;
};

/// Of one product; the additions and multiplications are real ones.
template <Scalar T>
Work product_work(const ProductShape& shape) {
  const double elements = static_cast<double>(shape.rows) * static_cast<double>(shape.cols);
  return {(is_complex<T> ? 8.0 : 2.0) * elements * static_cast<double>(shape.nrhs), elements * sizeof(T)};
}

struct Result {
  Case what;
  bool adjoint = false;
  std::string solver{};  ///< empty for products
  std::string peer{};    ///< whose routine was timed, if not ours
  std::vector<Sample> samples{};
  Work work{};  ///< of one product, or of one iteration
  double error = 0;
  Index bytes_sent = -1;     ///< by all ranks together, in one product or iteration; negative if unknown
  Index launches = 0;        ///< of an iteration on a GPU: kernels and products
  double total_seconds = 0;  ///< of a whole solve: median
};

struct KernelCase {
  std::string kernel;
  Index rows = 0, cols = 0;  ///< on a rank
  ScalarType type = ScalarType::f64;
  std::string device;
};

struct KernelResult {
  KernelCase what;
  double bytes = 0;  ///< read and written, by all ranks together
  std::vector<Sample> samples;
};

struct CommCase {
  std::string operation, transport;
  Index bytes = 0;  ///< as in CommArguments, but as large as the operation really is
};

struct CommResult {
  CommCase what;
  int ranks = 1;
  Index bytes_sent = 0;         ///< by all ranks together, in one operation
  std::vector<double> seconds;  ///< of one operation, of the slowest rank
};

}  // namespace gridlops::bench
