// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "bench/benchmarks.hpp"
#include "bench/measure/results.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/comm/failure.hpp"
#include "gridlops/local/buffer.hpp"

namespace gridlops::bench {

namespace {

/// The kernels that solvers apply to their vectors.
const std::vector<std::string>& kernel_names() {
  static const std::vector<std::string> names{"copy", "dots", "norms", "axpy", "xpby", "scale"};
  return names;
}

struct KernelArguments {
  std::vector<std::string> kernels = kernel_names();
  std::vector<Index> rows, cols{1};
  std::vector<ScalarType> types{ScalarType::f64};
  std::string device = "cpu";
  int repetitions = 5, calls = 1;
  Index limit_mib = 0;  ///< as in Method
  std::string json;
};

/// The operands of the solvers' kernels on one rank.
template <Scalar T>
class Columns {
 public:
  Columns(std::shared_ptr<Backend> backend, Index rows, Index cols)
      : backend_(std::move(backend)),
        X_(backend_, rows * cols),
        Y_(backend_, rows * cols),
        scalars_(static_cast<std::size_t>(cols), T(1)),  // ones: repetitions do not overflow
        sums_(static_cast<std::size_t>(cols)),
        norms_(static_cast<std::size_t>(cols)),
        rows_(rows),
        cols_(cols) {
    kernels().fill(T(1), X_.matrix(rows, cols));
    kernels().fill(T(2), Y_.matrix(rows, cols));
  }

  /// Calls the kernel as often as asked, and waits for the last. Sums are waited for one by one.
  void run(const std::string& kernel, int calls) {
    for (int call = 0; call < calls; ++call) begin(kernel);
    backend_->synchronize();
  }

 private:
  void begin(const std::string& kernel) {
    const MatrixView<T> X = X_.matrix(rows_, cols_), Y = Y_.matrix(rows_, cols_);
    const T* const ones = scalars_.data();
    if (kernel == "copy") {
      kernels().copy(X, Y);
    } else if (kernel == "dots") {
      kernels().column_dots(X, Y, sums_.data());
    } else if (kernel == "norms") {
      kernels().column_norms_squared(X, norms_.data());
    } else if (kernel == "axpy") {
      kernels().column_axpy(ones, X, Y);
    } else if (kernel == "xpby") {
      kernels().column_xpby(X, ones, Y);
    } else {
      kernels().column_scale(ones, X);
    }
  }

  const Kernels<T>& kernels() const { return backend_->template kernels<T>(); }

  std::shared_ptr<Backend> backend_;
  Buffer<T> X_, Y_;
  std::vector<T> scalars_;
  std::vector<Accumulator<T>> sums_;
  std::vector<double> norms_;
  Index rows_, cols_;
};

/// The number of blocks that a kernel reads or writes.
int blocks_touched(const std::string& kernel) {
  return kernel == "norms" ? 1 : kernel == "axpy" || kernel == "xpby" ? 3 : 2;
}

ExitStatus kernels(Communicator& world, const KernelArguments& arguments) {
  ResultWriter writer(world, arguments.json);
  constexpr Index unused_limit_order = 64;
  LimitMeter meter(unused_limit_order, arguments.limit_mib);
  const GridShape all{1, world.size()};
  const auto grid =
      program::make_grid(world, all, arguments.device, arguments.device == "gpu" ? "auto" : "mpi");
  const auto largest = [](const std::vector<Index>& values) {
    return *std::max_element(values.begin(), values.end());
  };
  Index most = 0;
  if (__builtin_mul_overflow(largest(arguments.rows), largest(arguments.cols), &most) ||
      most > std::numeric_limits<Index>::max() / Index{sizeof(std::complex<double>)})
    throw UsageError(fmt::format("{} rows and {} columns are more than can be counted",
                                 largest(arguments.rows), largest(arguments.cols)));
  for (const ScalarType type : arguments.types) {
    for (const Index rows : arguments.rows) {
      for (const Index cols : arguments.cols) {
        with_scalar_type(type, [&]<Scalar T>() {
          std::optional<Columns<T>> columns;
          attempt(world, [&] { columns.emplace(grid->backend(), rows, cols); });
          for (const std::string& kernel : arguments.kernels) {
            const double bytes =
                static_cast<double>(rows * cols * Index{sizeof(T)}) * blocks_touched(kernel) * world.size();
            std::vector<Sample> taken = samples<T>(*grid, meter, arguments.repetitions,
                                                   [&] { columns->run(kernel, arguments.calls); });
            for (Sample& sample : taken) sample.seconds /= arguments.calls;
            writer.add(KernelResult{{kernel, rows, cols, type, arguments.device}, bytes, std::move(taken)});
          }
        });
      }
    }
  }
  return writer.close();
}

}  // namespace

Action define_kernels(Options& options) {
  const auto arguments = std::make_shared<KernelArguments>();
  options.numbers("--rows", arguments->rows, "M[,...]", "Rows on each rank")->required();
  options.numbers("--cols", arguments->cols, "N[,...]", "Columns [1]");
  options.choices("--dtype", arguments->types, program::scalar_types(), "Types of the elements [f64]");
  options.choices("--kernel", arguments->kernels, words(kernel_names()), "Kernels [all]");
  options.choice("--device", arguments->device, words({"cpu", "gpu"}), "Where they run [cpu]");
  options.whole("--reps", arguments->repetitions, "K", 1, "Repetitions; the median counts [5]");
  options.whole("--calls", arguments->calls, "K", 1,
                "Calls in a repetition, which waits for the last, or for each sum; their mean counts [1]");
  options.whole("--limit-mib", arguments->limit_mib, "MIB", 0, about_limit_mib);
  options.text("--json", arguments->json, "F", "Writes the figures as JSON");
  explain_columns_of_kernels(options);
  return [arguments](Communicator& world) { return kernels(world, *arguments); };
}

}  // namespace gridlops::bench
