// SPDX-License-Identifier: BSD-3-Clause
// Compares a GPU's kernels with the host's, which tests/local compares with plain loops: for all shapes,
// strides and types, with NaN around the blocks, and with NaN in outputs that must not be read.
#include <array>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>

#include "gridlops/base/random.hpp"
#include "gridlops/local/buffer.hpp"
#include "local/arrays/array_kernels.hpp"
#include "support/catch.hpp"
#include "support/problems.hpp"
#include "support/programs/mpi_main.hpp"
#include "support/test_data.hpp"

using namespace gridlops;
using namespace gridlops::testing;

namespace {

struct Shape {
  Index rows, cols, padding;
};
// Shapes: empty, single, with and without gaps, sums of a few shares and of more than one thread block adds
// at once, and more columns than have their scalars in one launch.
constexpr std::array shapes{Shape{0, 0, 0},    Shape{0, 3, 2},    Shape{3, 0, 0},      Shape{1, 1, 0},
                            Shape{1, 4, 6},    Shape{7, 1, 1},    Shape{9, 3, 0},      Shape{31, 5, 4},
                            Shape{9001, 3, 0}, Shape{9001, 2, 5}, Shape{300001, 1, 0}, Shape{2, 1100, 1}};

/// A matrix of a backend in a larger array of NaN; or all NaN.
template <Scalar T>
struct Block {
  Buffer<T> memory;
  MatrixView<T> view;

  Block(const std::shared_ptr<Backend>& backend, Shape shape, std::uint64_t seed, bool holds_nan = false)
      : memory(backend, (shape.rows + shape.padding) * shape.cols),
        view(memory.data(), shape.rows, shape.cols, shape.rows + shape.padding) {
    std::vector<T> values(static_cast<std::size_t>(memory.size()), quiet_nan<T>());
    for (Index j = 0; j < shape.cols && !holds_nan; ++j)
      for (Index i = 0; i < shape.rows; ++i)
        values[static_cast<std::size_t>(i + j * view.stride)] = counter_random<T>(seed, i, j);
    backend->upload(values.data(), memory.data(), bytes());
  }
  std::vector<T> values(Backend& backend) const {
    std::vector<T> result(static_cast<std::size_t>(memory.size()));
    backend.download(memory.data(), result.data(), bytes());
    return result;
  }
  Index bytes() const { return memory.size() * static_cast<Index>(sizeof(T)); }
};

/// The operands of one kernel: three blocks of one shape, one scalar per row and per column, and room on the
/// host for two sums of each column.
template <Scalar T>
struct Operands {
  std::shared_ptr<Backend> backend;
  Block<T> X, Y, output, rows;
  std::vector<double> sums;
  std::vector<T> columns;
  std::vector<double> thresholds;

  Operands(std::shared_ptr<Backend> of, Shape shape)
      : backend(std::move(of)),
        X(backend, shape, 1),
        Y(backend, shape, 2),
        output(backend, shape, 0, true),
        rows(backend, {shape.rows, 1, 0}, 3),
        sums(static_cast<std::size_t>(2 * shape.cols), quiet_nan<double>()) {
    for (Index j = 0; j < shape.cols; ++j) {
      columns.push_back(counter_random<T>(4, 0, j));
      thresholds.push_back(0.4 * std::abs(counter_random<double>(5, 0, j)));
    }
  }
};

template <class T>
Index differences(const std::vector<T>& found, const std::vector<T>& expected, double tolerance) {
  Index wrong = 0;
  for (std::size_t k = 0; k < expected.size(); ++k) {
    const bool both_nan = is_nan(found[k]) && is_nan(expected[k]);
    if (!both_nan && !(std::abs(found[k] - expected[k]) <= tolerance)) ++wrong;
  }
  return wrong;
}

/// Runs a kernel on the host and on the GPU, and compares everything that either could have changed.
template <Scalar T>
void compare(const std::function<void(const Kernels<T>&, Operands<T>&)>& kernel) {
  const auto gpu = make_backend();
  for (const Shape shape : shapes) {
    CAPTURE(shape.rows, shape.cols, shape.padding);
    Operands<T> here(gpu, shape), there(make_host_backend(), shape);
    kernel(here.backend->template kernels<T>(), here);
    kernel(there.backend->template kernels<T>(), there);
    // Products of a few numbers below one, and thresholds: roundings of single operations.
    const double tolerance = 32 * epsilon_of<T>;
    for (const auto block : {&Operands<T>::X, &Operands<T>::Y, &Operands<T>::output})
      CHECK(differences((here.*block).values(*here.backend), (there.*block).values(*there.backend),
                        tolerance) == 0);
    // Sums of terms below two, in another order.
    CHECK(differences(here.sums, there.sums, 2e-16 * 2 * static_cast<double>(shape.rows) * 10) == 0);
  }
}

template <Scalar T>
Accumulator<T>* as_sums(Operands<T>& o) {
  return reinterpret_cast<Accumulator<T>*>(o.sums.data());
}

}  // namespace

TEMPLATE_TEST_CASE("Kernels of a GPU that work element by element give what the host's give", "", float,
                   double, std::complex<float>, std::complex<double>) {
  using T = TestType;
  using K = const Kernels<T>&;
  using O = Operands<T>&;
  const T a = number<T>(0.5, -0.75), b = number<T>(-1.5, 0.25);
  compare<T>([](K k, O o) { k.copy(o.X.view, o.output.view); });
  compare<T>([=](K k, O o) { k.fill(a, o.output.view); });
  compare<T>([=](K k, O o) { k.add(a, o.X.view, T(0), o.output.view); });
  compare<T>([=](K k, O o) { k.add(a, o.X.view, b, o.Y.view); });
  for (const bool conjugated : {false, true}) {
    compare<T>([=](K k, O o) {
      k.diagonal_multiply(a, o.rows.memory.data(), conjugated, o.X.view, T(0), o.output.view);
      k.diagonal_multiply(a, o.rows.memory.data(), conjugated, o.X.view, b, o.Y.view);
    });
  }
  compare<T>([](K k, O o) { k.column_axpy(o.columns.data(), o.X.view, o.Y.view); });
  compare<T>([](K k, O o) { k.column_xpby(o.X.view, o.columns.data(), o.Y.view); });
  compare<T>([](K k, O o) {
    o.columns.assign(o.columns.size(), T(0));
    k.column_xpby(o.X.view, o.columns.data(), o.output.view);
  });
  compare<T>([](K k, O o) { k.column_scale(o.columns.data(), o.X.view); });
  compare<T>([](K k, O o) { k.clip(-0.25, 0.5, o.X.view); });
  for (const Threshold kind : {Threshold::soft, Threshold::hard, Threshold::half}) {
    compare<T>([=](K k, O o) { k.column_threshold(kind, o.thresholds.data(), o.X.view); });
    compare<T>([=](K k, O o) { k.column_threshold(kind, o.thresholds.data(), o.output.view); });
  }
  for (const BoxKind kind :
       {BoxKind::nearest, BoxKind::free, BoxKind::chopped, BoxKind::arc, BoxKind::reach, BoxKind::step}) {
    compare<T>([=](K k, O o) {
      // Bounds below and above Y, then V = X and a point in the box.
      const MatrixView<T> V = o.X.view, x = o.Y.view, lower = o.output.view;
      k.copy(x, lower);
      k.clip(-std::numeric_limits<double>::infinity(), 0.25, lower);
      k.arrays().box_update({BoxKind::nearest, o.thresholds.data(), V, x, lower, V, x});
      k.arrays().box_update({kind, o.thresholds.data(), V, x, lower, V, lower});
    });
  }
  for (const bool of_neighbours : {false, true}) {
    compare<T>([=](K k, O o) {
      const MatrixView<T> X = o.X.view;
      const Index count = X.rows % 3 == 0 ? 3 : X.rows % 7 == 0 ? 7 : 1, others = X.rows / count;
      const RowGroups groups = of_neighbours ? RowGroups{others, count, 1} : RowGroups{1, count, others};
      const MatrixView<T> N(o.output.view.data, others, X.cols, X.stride);
      k.arrays().group_norms(groups, X, N);
      k.arrays().shrink_groups(o.thresholds.data(), groups, N, X);
    });
  }
}

TEMPLATE_TEST_CASE("Kernels of a GPU that sum columns give what the host's give", "", float, double,
                   std::complex<float>, std::complex<double>) {
  using T = TestType;
  using K = const Kernels<T>&;
  using O = Operands<T>&;
  compare<T>([](K k, O o) { k.column_dots(o.X.view, o.Y.view, as_sums(o)); });
  compare<T>([](K k, O o) { k.column_norms_squared(o.X.view, o.sums.data()); });
  for (const double p : {0.0, 0.5, 1.0, 3.5, std::numeric_limits<double>::infinity()}) {
    compare<T>([=](K k, O o) { k.column_power_sums(p, o.X.view, o.sums.data()); });
    compare<T>([=](K k, O o) { k.column_power_sums(p, o.output.view, o.sums.data()); });  // of NaN
  }
}

TEMPLATE_TEST_CASE("Sums of several shapes that a GPU takes at once are those that it takes one by one", "",
                   float, double, std::complex<float>, std::complex<double>) {
  using T = TestType;
  const auto gpu = make_backend();
  const auto& kernels = gpu->template kernels<T>();
  Block<T> X(gpu, {9001, 3, 5}, 1), Y(gpu, {9001, 3, 0}, 2), Z(gpu, {7, 2, 1}, 3);
  const MatrixView<const T> none(nullptr, 0, 3, 1);
  const auto infinity = std::numeric_limits<double>::infinity();
  const std::vector<ColumnTerm<T>> given{
      {SumKind::norms_squared, X.view, {}, 2, nullptr}, {SumKind::dots, X.view, Y.view, 0, nullptr},
      {SumKind::norms_squared, Z.view, {}, 2, nullptr}, {SumKind::power_sums, Z.view, {}, 1, nullptr},
      {SumKind::norms_squared, none, {}, 2, nullptr},   {SumKind::power_sums, Y.view, {}, infinity, nullptr},
      {SumKind::dots, Z.view, Z.view, 0, nullptr}};
  constexpr std::size_t room = 6;  // doubles for each term
  const auto sums_by = [&](const auto& compute) {
    std::vector<double> found(room * given.size(), quiet_nan<double>());
    std::vector<ColumnTerm<T>> terms = given;
    for (std::size_t k = 0; k < terms.size(); ++k) terms[k].sums = found.data() + room * k;
    compute(terms);
    return found;
  };
  const auto one_by_one = sums_by([&](const std::vector<ColumnTerm<T>>& terms) {
    for (const ColumnTerm<T>& term : terms) kernels.column_sums({&term, 1});
  });
  const Index before = gpu->launches();
  const auto at_once = sums_by([&](const std::vector<ColumnTerm<T>>& terms) { kernels.column_sums(terms); });
  CHECK(gpu->launches() - before == 2);
  CHECK(differences(at_once, one_by_one, 0) == 0);
  CHECK(at_once[room * 4] == 0);
}

TEST_CASE("The largest number of a column may have the bits that mark a sum which is not there yet") {
  const auto gpu = make_backend();
  const double mark = std::bit_cast<double>(std::uint64_t{0x7ff0'5eed'0f90'71de});
  Buffer<double> x(gpu, 1);
  gpu->upload(&mark, x.data(), 8);
  double largest = 0;
  gpu->kernels<double>().column_power_sums(std::numeric_limits<double>::infinity(), x.matrix(1, 1), &largest);
  CHECK(std::isnan(largest));
}

TEMPLATE_TEST_CASE("Updates of several shapes that a GPU makes at once are those that it makes one by one",
                   "", float, double, std::complex<float>, std::complex<double>) {
  using T = TestType;
  const auto gpu = make_backend();
  const auto& kernels = gpu->template kernels<T>();
  // Z has more columns than have their factors in one launch of four updates.
  constexpr Index many = 300;
  std::vector<T> a, b;
  for (Index j = 0; j < many; ++j) {
    a.push_back(counter_random<T>(4, 0, j));
    b.push_back(j % 3 == 0 ? T(0) : counter_random<T>(5, 0, j));
  }
  const auto results_by = [&](const auto& make) {
    Block<T> X(gpu, {9001, 3, 5}, 1), Y(gpu, {9001, 3, 0}, 2), Z(gpu, {7, many, 1}, 3);
    const MatrixView<T> none(nullptr, 0, 3, 1);
    make(std::vector<BlockUpdate<T>>{{UpdateKind::scale, a.data(), {}, X.view},
                                     {UpdateKind::xpby, b.data(), X.view, Y.view},
                                     {UpdateKind::scale, a.data(), {}, Z.view},
                                     {UpdateKind::axpy, b.data(), Y.view, X.view},
                                     {UpdateKind::scale, b.data(), {}, none},
                                     {UpdateKind::axpy, a.data(), Z.view, Z.view}});
    std::vector<T> found = X.values(*gpu);
    for (const auto& more : {Y.values(*gpu), Z.values(*gpu)})
      found.insert(found.end(), more.begin(), more.end());
    return found;
  };
  const auto one_by_one = results_by([&](const std::vector<BlockUpdate<T>>& updates) {
    for (const BlockUpdate<T>& update : updates) kernels.column_updates({&update, 1});
  });
  const Index before = gpu->launches();
  const auto at_once =
      results_by([&](const std::vector<BlockUpdate<T>>& updates) { kernels.column_updates(updates); });
  constexpr Index in_launch = 3584 / static_cast<Index>(sizeof(T));
  const auto launches = [](Index updates) { return 1 + (many - 1) / (in_launch / updates); };
  CHECK(gpu->launches() - before == launches(4) + launches(2));
  CHECK(differences(at_once, one_by_one, 0) == 0);
}

TEMPLATE_TEST_CASE("Bands whose products a GPU sums at once are those that it adds one by one", "", float,
                   double, std::complex<float>, std::complex<double>) {
  using T = TestType;
  using R = Real<T>;
  const auto gpu = make_backend();
  const auto& kernels = gpu->template kernels<T>().arrays();
  // Arrays of 5 × 7 × 6. The first and the last row of a band have weights of their own.
  const std::array<R, 9> weights{0, 2, -1, 3, R(0.5), 4, -2, 1, 0};
  Buffer<R> bands(gpu, 9);
  gpu->upload(weights.data(), bands.data(), 9 * Index{sizeof(R)});
  std::vector<BandTerm<R>> terms;
  for (const auto& [outer, n, inner] : {std::array<Index, 3>{1, 5, 42}, {5, 7, 6}, {35, 6, 1}}) {
    const BandWeights<R> A{bands.data(), n, -1, 3, {0, n}, {1, n - 2}};
    terms.push_back({A, {outer, inner, {0, n}, {0, n}, {0, n}}});
    terms.push_back({A, {outer, inner, {0, n}, {0, n}, {1, n - 2}}});
  }
  for (const T beta : {T(0), number<T>(-1.5, 0.25)}) {
    const auto sum_by = [&](const auto& add) {
      Block<T> X(gpu, {210, 3, 5}, 1), Y(gpu, {210, 3, 2}, 2, beta == T(0));
      add(X.view, Y.view);
      return Y.values(*gpu);
    };
    const T alpha = number<T>(0.5, -0.75);
    const auto one_by_one = sum_by([&](MatrixView<const T> X, MatrixView<T> Y) {
      for (std::size_t k = 0; k < terms.size(); ++k)
        kernels.add_band(alpha, terms[k].A, X, k == 0 ? beta : T(1), Y, terms[k].extent);
    });
    const Index before = gpu->launches();
    const auto at_once =
        sum_by([&](MatrixView<const T> X, MatrixView<T> Y) { kernels.add_bands(alpha, terms, X, beta, Y); });
    CHECK(gpu->launches() - before == 2);  // of five bands and one
    CHECK(differences(at_once, one_by_one, 0) == 0);
  }
}

TEMPLATE_TEST_CASE("Products of many blocks on a GPU are those of the host", "", float, double,
                   std::complex<float>, std::complex<double>) {
  using T = TestType;
  const T a = number<T>(0.5, -0.75), b = number<T>(-1.5, 0.25);
  for (const Index count : {0, 1, 5}) {
    for (const Op op : {Op::none, Op::transpose, Op::adjoint}) {
      for (const T beta : {T(0), b}) {
        std::vector<std::vector<T>> found;
        for (const auto& backend : {make_backend(), make_host_backend()}) {
          // Blocks of 4 × 3, 3 × 2 and 4 × 2 or their like, in columns with gaps.
          const bool plain = op == Op::none;
          Block<T> A(backend, {4, 3 * count, 2}, 1), B(backend, {plain ? 3 : 4, 2 * count, 1}, 2),
              C(backend, {plain ? 4 : 3, 2 * count, 3}, 3, beta == T(0));
          const auto batch = [](auto view, Index cols) {
            return MatrixBatch<T>{{view.data, view.rows, cols, view.stride}, cols * view.stride};
          };
          backend->template kernels<T>().gemm_batched(count, op, Op::none, a, batch(A.view, 3),
                                                      batch(B.view, 2), beta, batch(C.view, 2));
          found.push_back(C.values(*backend));
        }
        CHECK(differences(found[0], found[1], 32 * epsilon_of<T>) == 0);
      }
    }
  }
}

TEMPLATE_TEST_CASE("Products on a GPU are those of the host", "", float, double, std::complex<float>,
                   std::complex<double>) {
  using T = TestType;
  const T a = number<T>(0.5, -0.75), b = number<T>(-1.5, 0.25);
  for (const Op op : {Op::none, Op::transpose, Op::adjoint}) {
    compare<T>([=](const Kernels<T>& k, Operands<T>& o) {
      // A square corner of X, so that shapes fit in all three cases.
      const Range corner{0, std::min<Index>({o.X.view.rows, o.X.view.cols, 3})};
      const MatrixView<const T> A = o.X.view.block(corner, corner);
      k.gemm(op, Op::none, a, A, o.Y.view.row_block(corner), T(0), o.output.view.row_block(corner));
      k.gemm(op, Op::none, a, A, o.output.view.row_block(corner), b, o.Y.view.row_block(corner));
    });
    compare<T>([=](const Kernels<T>& k, Operands<T>& o) {
      const MatrixView<const T> nothing(nullptr, o.Y.view.rows, 0, std::max<Index>(1, o.Y.view.rows));
      const MatrixView<const T> none(nullptr, 0, o.Y.view.cols, 1);
      k.gemm(Op::none, Op::none, a, nothing, none, b, o.Y.view);
      k.gemm(Op::none, Op::none, a, nothing, none, T(0), o.output.view);
    });
  }
}
