// SPDX-License-Identifier: BSD-3-Clause
#include "command_line/finite_checks.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <complex>

#include "gridlops/base/error.hpp"

namespace gridlops::program {

namespace {

std::string text_of(const std::string& path, const NonFiniteElement& found, const std::string& place,
                    int rank) {
  const double real = found.value.real(), imag = found.value.imag();
  return fmt::format("{} holds {} at {} (from 0), in the part of rank {}", path,
                     imag == 0 ? fmt::format("{}", real) : fmt::format("{} + {}i", real, imag), place, rank);
}

/// The index of the element that is this row of a matrix.
std::vector<Index> index_in(const Dims& dims, Index row) {
  const Partition rows = dims.rows();
  const int part = rows.owner_of(row);
  const Box box = dims.block(part);
  Index within = row - rows.begin(part);
  std::vector<Index> index(box.size());
  for (std::size_t d = box.size(); d-- > 0; within /= box[d].size)
    index[d] = box[d].begin + within % box[d].size;
  return index;
}

}  // namespace

std::string non_finite_text(const std::string& path, const NonFiniteElement& found) {
  return text_of(path, found, fmt::format("row {}, column {}", found.row, found.col), found.rank);
}

template <Scalar T>
void require_finite(const std::string& path, const ConstDistMatrix<T>& X) {
  if (const auto found = find_non_finite(X)) throw InputError(non_finite_text(path, *found));
}

template <Scalar T>
void require_finite(const std::string& path, const ConstDistMatrix<T>& X, const ArrayPart& part) {
  const auto found = find_non_finite(X);
  if (!found) return;
  std::vector<Index> index = index_in(part.dims, found->row);
  if (X.cols() != 1) index.push_back(found->col);
  for (std::size_t d = 0; d < part.begin.size(); ++d) index[d] += part.begin[d];
  throw InputError(
      text_of(path, *found, fmt::format("({})", fmt::join(index, ", ")), part.first_rank + found->rank));
}

#define GRIDLOPS_INSTANTIATE(T)                                                \
  template void require_finite(const std::string&, const ConstDistMatrix<T>&); \
  template void require_finite(const std::string&, const ConstDistMatrix<T>&, const ArrayPart&);
GRIDLOPS_INSTANTIATE(float)
GRIDLOPS_INSTANTIATE(double)
GRIDLOPS_INSTANTIATE(std::complex<float>)
GRIDLOPS_INSTANTIATE(std::complex<double>)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops::program
