// SPDX-License-Identifier: BSD-3-Clause
#include <vector>

#include "gridlops/base/error.hpp"
#include "gridlops/local/matrix_view.hpp"
#include "local/conjugate_transpose.hpp"
#include "support/catch.hpp"
#include "support/reference.hpp"

using namespace gridlops;
using namespace gridlops::testing;

TEMPLATE_LIST_TEST_CASE("A row-major block becomes a column-major one, and back", "[transpose]", Scalars) {
  using T = TestType;
  const Index stride = GENERATE(70, 75), m = GENERATE(0, 1, 32, 67), n = GENERATE(0, 1, 33, 70);
  std::vector<T> lines(static_cast<std::size_t>(m * stride), T(-1));
  for (Index i = 0; i < m; ++i)
    for (Index j = 0; j < n; ++j) lines[static_cast<std::size_t>(i * stride + j)] = small_integer<T>(1, i, j);
  std::vector<T> columns(static_cast<std::size_t>((m + 2) * n), T(-2));
  const MatrixView<T> block(columns.data(), m, n, m + 2);
  transpose<T>({lines.data(), n, m, stride}, block);
  bool equal = true;
  for (Index j = 0; j < n; ++j) {
    for (Index i = 0; i < m; ++i) equal = equal && block(i, j) == small_integer<T>(1, i, j);
    equal = equal && block.data[m + j * (m + 2)] == T(-2);  // the gap
  }
  CHECK(equal);

  std::vector<T> again(lines.size(), T(-1));
  transpose<T>(block, {again.data(), n, m, stride});
  CHECK(again == lines);
}

TEMPLATE_LIST_TEST_CASE("The conjugate transpose has the conjugates of the elements", "[transpose]",
                        Scalars) {
  using T = TestType;
  const Index m = GENERATE(0, 1, 67), n = GENERATE(0, 33), gap = GENERATE(0, 3);
  std::vector<T> from(static_cast<std::size_t>((m + gap) * n)), to(static_cast<std::size_t>((n + gap) * m));
  const MatrixView<T> A(from.data(), m, n, m + gap), adjoint(to.data(), n, m, n + gap);
  for (Index j = 0; j < n; ++j)
    for (Index i = 0; i < m; ++i) A(i, j) = small_integer<T>(1, i, j);
  conjugate_transpose<T>(A, adjoint);
  bool equal = true;
  for (Index j = 0; j < n; ++j)
    for (Index i = 0; i < m; ++i) equal = equal && adjoint(j, i) == conjugate(A(i, j));
  CHECK(equal);
}

TEST_CASE("A block of another shape is refused", "[transpose]") {
  std::vector<double> data(12);
  const MatrixView<double> block(data.data(), 3, 2), other(data.data() + 6, 2, 2);
  CHECK(contains(message_of<ShapeError>([&] { transpose<double>(block, other); }), "needs 2 x 3"));
}
