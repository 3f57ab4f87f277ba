// SPDX-License-Identifier: BSD-3-Clause
#include "use_cases/own_arrays.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <utility>

#include "command_line/finite_checks.hpp"
#include "command_line/grid.hpp"
#include "gridlops/ops/array_operators.hpp"
#include "gridlops/ops/operator_algebra.hpp"

namespace gridlops::program {

namespace {

/// Copies this rank's block, whose leading dimension is its number of rows.
template <Scalar T>
std::vector<T> on_host(const DistMatrix<T>& X) {
  std::vector<T> values(static_cast<std::size_t>(X.local().size()));
  X.grid()->backend()->download(X.local().data, values.data(), X.local().size() * Index{sizeof(T)});
  return values;
}

template <Scalar T>
std::vector<double> read_whole(const std::shared_ptr<const ProcessGrid>& grid, const std::string& path,
                               const MatrixHeader& header) {
  DistMatrix<T> X = allocate_matrix<T>(grid, replicated(header.rows, header.cols));
  read_matrix(path, header, X);
  require_finite<T>(path, X);
  const std::vector<T> values = on_host(X);
  return {values.begin(), values.end()};
}

void require_real(ScalarType type, const std::string& path) {
  if (type != ScalarType::f32 && type != ScalarType::f64)
    throw InputError(fmt::format("{}: its elements are {}, but must be real", path, name_of(type)));
}

/// Weights of data in this space, in a file that has one for each element, or for each trace.
template <Scalar T>
DistMatrix<T> read_weights(const std::string& path, const Space& data) {
  Communicator& comm = data.grid->comm();
  ArrayHeader header = read_array_header(comm, path);
  require_real(header.type, path);
  std::vector<Index> sizes;
  for (int dim = 0; dim < data.dims.count(); ++dim) sizes.push_back(data.dims.size(dim));
  const std::vector<Index> of_traces(sizes.begin(), sizes.end() - 1);
  const bool by_trace = header.sizes == of_traces;
  if (!by_trace && header.sizes != sizes)
    throw InputError(fmt::format("{} is {}, but weights of these data are {}, or {}, one for each trace",
                                 path, fmt::join(header.sizes, " x "), fmt::join(sizes, " x "),
                                 fmt::join(of_traces, " x ")));
  if (by_trace) header.sizes.push_back(1);
  const Space given = by_trace ? with_last_dimension(data, 1) : data;
  std::vector<double> values;
  const auto read = [&]<Scalar R>(R) {
    DistMatrix<R> weights = allocate_matrix<R>(data.grid, given.layout(1));
    read_array(path, header, given.dims, weights);
    require_finite<R>(path, weights, {given.dims});
    const std::vector<R> own = on_host(weights);
    values.assign(own.begin(), own.end());
  };
  header.type == ScalarType::f32 ? read(float()) : read(double());
  std::array<double, 2> extremes{0, 0};  // of −w and w
  for (const double weight : values)
    extremes = {std::max(extremes[0], -weight), std::max(extremes[1], weight)};
  comm.all_reduce(extremes, ReduceOp::max);
  if (extremes[0] > 0)
    throw InputError(
        fmt::format("{}: a weight is {}, but must not be negative; 0 leaves data out", path, -extremes[0]));
  if (extremes[1] == 0) throw InputError(fmt::format("{}: all weights are 0, so that no data count", path));
  DistMatrix<T> W = allocate_matrix<T>(data.grid, data.layout(1));
  const Index first = W.local_row_range().begin, samples = by_trace ? data.local_box().back().size : 1;
  W.fill([&](Index i, Index) {
    return static_cast<T>(values[static_cast<std::size_t>((i - first) / samples)]);
  });
  return W;
}

/// Reads an array, times W where that is given, and 0 where W is.
template <Scalar T>
DistMatrix<T> read_weighted(const std::string& path, const Space& space, const DistMatrix<T>* W) {
  DistMatrix<T> X = allocate_matrix<T>(space.grid, space.layout(1));
  read_array(path, read_array_header(space.grid->comm(), path), space.dims, X);
  if (W != nullptr) {
    const std::vector<T> weights = on_host(*W);
    std::vector<T> values = on_host(X);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = weights[i] == 0 ? 0 : weights[i] * values[i];
    space.grid->backend()->upload(values.data(), X.local().data, X.local().size() * Index{sizeof(T)});
  }
  require_finite<T>(path, X, {space.dims});
  return X;
}

}  // namespace

MatrixHeader read_table_header(Communicator& comm, const std::string& path) {
  const MatrixHeader header = read_matrix_header(comm, path);
  require_real(header.type, path);
  if (header.rows == 0 || header.cols == 0)
    throw InputError(fmt::format("{} has no elements: {} x {}", path, header.rows, header.cols));
  return header;
}

Table read_table(const std::shared_ptr<const ProcessGrid>& grid, const std::string& path) {
  const MatrixHeader header = read_table_header(grid->comm(), path);
  Table table{header.rows, header.cols,
              header.type == ScalarType::f32 ? read_whole<float>(grid, path, header)
                                             : read_whole<double>(grid, path, header)};
  return table;
}

std::vector<double> read_wavelet(const std::shared_ptr<const ProcessGrid>& grid, const std::string& path) {
  Table table = read_table(grid, path);
  if (std::min(table.rows, table.cols) != 1 || table.values.size() % 2 == 0)
    throw InputError(
        fmt::format("{} is {} x {}, but a wavelet is a vector of odd length, whose middle is time 0", path,
                    table.rows, table.cols));
  return std::move(table.values);
}

ArrayHeader read_own_header(Communicator& comm, const std::string& path, const char* option,
                            const std::vector<const char*>& dimensions) {
  const ArrayHeader header = read_array_header(comm, path);
  require_real(header.type, path);
  const bool is_empty = std::find(header.sizes.begin(), header.sizes.end(), 0) != header.sizes.end();
  if (header.sizes.size() != dimensions.size() || is_empty)
    throw InputError(fmt::format("{}: {} must be an array of {}, but is {}", path, option,
                                 fmt::join(dimensions, " x "), fmt::join(header.sizes, " x ")));
  return header;
}

template <Scalar T>
DistMatrix<T> read_own_array(const std::string& path, const Space& space) {
  return read_weighted<T>(path, space, nullptr);
}

Space with_last_dimension(const Space& space, Index length) {
  std::vector<Partition> cuts;
  for (int dim = 0; dim < space.dims.count(); ++dim) cuts.push_back(space.dims.cut(dim));
  // Otherwise all ranks have parts of every line.
  const bool has_whole_lines = cuts.back().parts() == 1;
  cuts.back() = Partition::balanced(length, 1);
  return array_space(space.grid, Dims(std::move(cuts)), has_whole_lines ? space.rows.axis : Axis::uncut);
}

void define_weights(Options& options, std::string& weights) {
  options.text("--weights", weights, "W",
               "A number >= 0 for each sample of the data, or for each trace, an array without their last "
               "dimension, by which its residual counts; what counts 0 may be missing, also NaN [1]");
  options.need("--weights", "--data");
}

template <Scalar T>
OwnData<T> read_own_data(OperatorPtr<T> A, const std::string& data, const std::string& weights,
                         bool is_planned) {
  const Space space = A->range();
  DistMatrix<T> d, W;
  if (!weights.empty())
    W = is_planned ? planned_matrix<T>(space.grid, space.layout(1)) : read_weights<T>(weights, space);
  if (!is_planned) d = read_weighted<T>(data, space, weights.empty() ? nullptr : &W);
  if (!weights.empty()) A = product(diagonal(space, std::move(W)), std::move(A));
  return {std::move(A), std::move(d)};
}

#define GRIDLOPS_INSTANTIATE(T)                                            \
  template DistMatrix<T> read_own_array(const std::string&, const Space&); \
  template OwnData<T> read_own_data(OperatorPtr<T>, const std::string&, const std::string&, bool);
GRIDLOPS_INSTANTIATE(float)
GRIDLOPS_INSTANTIATE(double)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops::program
