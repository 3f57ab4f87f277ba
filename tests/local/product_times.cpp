// SPDX-License-Identifier: BSD-3-Clause
#include "local/products/product_times.hpp"

#include "gridlops/ops/cost_model.hpp"
#include "local/products/packed_matrix.hpp"
#include "support/catch.hpp"

using namespace gridlops;

namespace {

/// All work takes a second, one pass two, and no repetition is disturbed.
ProductTimes equal_times() {
  ProductTimes times;
  for (auto& row : times.times) row.fill({1, 1});
  times.times.back().fill({2, 2});
  return times;
}

void set(ProductTimes& times, Work work, Timing timing) {
  times.times[static_cast<std::size_t>(work)].fill(timing);
}

/// Lets this process choose by times while it lives.
class Measured {
 public:
  explicit Measured(ScalarType type, const ProductTimes& times) : type_(type) {
    use_product_times(type, times);
  }
  ~Measured() { use_product_times(type_, std::nullopt); }
  Measured(const Measured&) = delete;
  Measured& operator=(const Measured&) = delete;

 private:
  ScalarType type_;
};

}  // namespace

TEST_CASE("Without measurements, and with equal ones, usual choices are taken", "[product_times]") {
  const auto check = [] {
    for (const bool usual : {false, true})
      for (const Index columns : {0, 1, 3, 17, 128, 129}) {
        CHECK(own_kernels_pay(usual, ScalarType::f64, Op::none, columns) == usual);
        CHECK(packing_pays(usual, ScalarType::f64, columns) == usual);
        CHECK(one_pass_pays(usual, ScalarType::f64, columns) == usual);
      }
  };
  check();
  const Measured equal(ScalarType::f64, equal_times());
  check();
}

TEST_CASE("What is clearly faster on both sides replaces the usual choice", "[product_times]") {
  ProductTimes times = equal_times();
  for (std::size_t k = 2; k <= 4; ++k) {  // 4, 8 and 16 columns
    times.times[static_cast<std::size_t>(Work::own)][k] = {0.5, 0.5};
    times.times[static_cast<std::size_t>(Work::blas_adjoint)][k] = {0.5, 0.5};
  }
  const Measured measured(ScalarType::c64, times);
  for (Index columns = 1; columns <= 200; ++columns) {
    const bool replaced = 4 <= columns && columns <= 16;
    CAPTURE(columns);
    CHECK(own_kernels_pay(false, ScalarType::c64, Op::none, columns) == replaced);
    CHECK(own_kernels_pay(true, ScalarType::c64, Op::none, columns));
    CHECK(own_kernels_pay(true, ScalarType::c64, Op::adjoint, columns) == !replaced);
    CHECK(own_kernels_pay(true, ScalarType::c64, Op::transpose, columns) == !replaced);
    CHECK_FALSE(own_kernels_pay(false, ScalarType::c64, Op::adjoint, columns));
    CHECK_FALSE(own_kernels_pay(false, ScalarType::c128, Op::none, columns));
  }
}

TEST_CASE("A little faster is not enough, nor is faster than a disturbed repetition", "[product_times]") {
  const auto replaces = [](Timing other) {
    ProductTimes times = equal_times();
    set(times, Work::own, other);
    const Measured measured(ScalarType::f32, times);
    return own_kernels_pay(false, ScalarType::f32, Op::none, 8);
  };
  CHECK(replaces({0.85, 0.89}));
  CHECK_FALSE(replaces({0.85, 0.91}));
  const auto replaced = [](Timing usual) {
    ProductTimes times = equal_times();
    set(times, Work::blas, usual);
    const Measured measured(ScalarType::f32, times);
    return own_kernels_pay(false, ScalarType::f32, Op::none, 8);
  };
  CHECK(replaced({5, 5.4}));
  CHECK_FALSE(replaced({5, 5.6}));
  CHECK_FALSE(replaced({1, 100}));
}

TEST_CASE("Packed products are compared with the faster ones of A in columns", "[product_times]") {
  ProductTimes times = equal_times();
  set(times, Work::packed, {0.5, 0.5});
  {
    const Measured measured(ScalarType::f64, times);
    CHECK(packing_pays(false, ScalarType::f64, 3));  // 1.5 instead of 2
  }
  set(times, Work::own_adjoint, {0.5, 0.5});
  const Measured measured(ScalarType::f64, times);
  CHECK_FALSE(packing_pays(false, ScalarType::f64, 3));
}

TEST_CASE("Storage, passes and kernels of large blocks follow the measurements", "[product_times]") {
  const KernelChoice choice{KernelChoice::Use::where_faster, &kernel_sets().front()};
  const ProductShape shape{1 << 14, 1 << 14, 8};
  const auto own = [](Index rows) {
    return few_columns_gemm_is_faster<double>(Op::none, rows, 1 << 14, 8, kernel_sets().front());
  };
  CHECK_FALSE(own(1 << 14));
  CHECK_FALSE(one_pass_is_faster(shape, {1, 1}));
  ProductTimes times = equal_times();
  for (const Work work : {Work::packed, Work::packed_adjoint}) set(times, work, {0.5, 0.5});
  set(times, Work::own, {0.8, 0.8});
  set(times, Work::one_pass, {0.5, 0.5});
  {
    const Measured measured(ScalarType::f64, times);
    CHECK(own(1 << 14));
    CHECK_FALSE(own(1));
    CHECK(packed_is_faster(ScalarType::f64, 1 << 14, 1 << 14, 8, choice));
    CHECK(packed_is_faster(ScalarType::f64, 100, 1 << 14, 8, choice));
    CHECK_FALSE(packed_is_faster(ScalarType::f64, 99, 1 << 14, 8, choice));
    CHECK_FALSE(packed_is_faster(ScalarType::f64, 1 << 14, 100, 34, choice));
    CHECK_FALSE(packed_is_faster(ScalarType::f64, 1 << 14, 1 << 14, 8,
                                 {KernelChoice::Use::never, &kernel_sets().back()}));
    CHECK(one_pass_is_faster(shape, {1, 1}));
    CHECK(one_pass_is_faster(shape, {2, 1}));
    CHECK_FALSE(one_pass_is_faster(shape, {1, 2}));
    CHECK(product_choices(ScalarType::f64).packed ==
          (kernel_choice().use == KernelChoice::Use::never ? "none" : "1-128"));
    CHECK(product_choices(ScalarType::f64).one_pass == "1-128");
  }
  set(times, Work::one_pass, {5, 5});
  const Measured measured(ScalarType::f64, times);
  for (const GridShape grid : {GridShape{1, 1}, GridShape{1, 2}}) {
    CHECK(one_pass_is_faster({1 << 14, 1 << 14, 1, ScalarType::f32}, grid));
    CHECK_FALSE(one_pass_is_faster({1 << 14, 1 << 14, 1, ScalarType::f64}, grid));
  }
  CHECK(product_choices(ScalarType::f64).one_pass == "none");
}

TEST_CASE("Disturbed repetitions show", "[product_times]") {
  ProductTimes times = equal_times();
  CHECK(times.unsteadiness() == 1);
  set(times, Work::blas, {1, 3});
  CHECK(times.unsteadiness() == 1);
  for (const Work work : {Work::own, Work::packed, Work::packed_adjoint}) set(times, work, {1, 3});
  CHECK(times.unsteadiness() == 3);
}

TEMPLATE_TEST_CASE("All work can be timed", "[product_times]", float, double, std::complex<float>,
                   std::complex<double>) {
  const ProductTimer<TestType> timer(1 << 20);
  for (std::size_t work = 0; work < kinds_of_work; ++work)
    for (std::size_t k = 0; k < ProductTimes::columns.size(); ++k) {
      CAPTURE(name_of(static_cast<Work>(work)), k);
      CHECK(timer.seconds(static_cast<Work>(work), k) > 0);
    }
}
