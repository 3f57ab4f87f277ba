// SPDX-License-Identifier: BSD-3-Clause
#include "gridlops/ops/linear_operator.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <utility>

#include "base/instantiate.hpp"
#include "base/message.hpp"
#include "base/numbers.hpp"
#include "comm/failure/failure.hpp"
#include "comm/scratch.hpp"
#include "dist/matrix_checks.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/base/trace.hpp"
#include "ops/operator/library_operator.hpp"
#include "ops/operator/stored_matrix.hpp"

namespace gridlops {

namespace {

/// Whether memory for this many columns in each part is enough for `columns`.
bool covers(const std::vector<Index>& most, const Partition& columns) {
  for (int part = 0; part < columns.parts(); ++part)
    if (most.empty() || columns.size(part) > most[at(part)]) return false;
  return true;
}

}  // namespace

template <Scalar T>
LinearOperator<T>::LinearOperator(Space range, Space domain)
    : range_(std::move(range)), domain_(std::move(domain)) {
  require<ShapeError>(range_.grid == domain_.grid && range_.columns == domain_.columns, "an operator from ",
                      domain_.describe(), " to ", range_.describe(),
                      " would change the grid or the axis of the columns; both must stay the same");
  range_.layout(0).check(*range_.grid);
  domain_.layout(0).check(*domain_.grid);
}

template <Scalar T>
void LinearOperator<T>::require_operands(const ConstDistMatrix<T>& model, const ConstDistMatrix<T>& data,
                                         std::string_view caller) const {
  const bool have_same_columns = model.layout().cols.partition == data.layout().cols.partition;
  if (have_same_columns && domain_.contains(model) && range_.contains(data)) return;
  const std::string prefix = caller.empty() ? "" : message(caller, ": ");
  domain_.require_contains(model, prefix + "the model");
  range_.require_contains(data, prefix + "the data");
  throw ShapeError(message(prefix, "model and data have ", model.cols(), " and ", data.cols(),
                           " columns, or cut them at different places; they must agree column for column"));
}

template <Scalar T>
void LinearOperator<T>::apply(T alpha, const ConstDistMatrix<T>& X, T beta, DistMatrix<T>& Y) const {
  const TraceRegion region("apply");
  const bool moves_data = prepare(
      ProductKind::forward, X, Y,
      [&](Agreement& agreement) { agreement.on("alpha", alpha).on("beta", beta); },
      [&] {
        require_operands(X, Y);
        require_apart(X, Y, "apply", "operand and result");
      });
  ++activity_.forward_applications;
  activity_.forward_columns += X.cols();
  if (!moves_data) return;
  if (check_level() == Check::all) require_equal_copies(X, "the model");
  carry_out([&] { do_apply(alpha, X, beta, Y); });
}

template <Scalar T>
void LinearOperator<T>::apply_adjoint(T alpha, const ConstDistMatrix<T>& Y, T beta, DistMatrix<T>& X) const {
  const TraceRegion region("apply_adjoint");
  const bool moves_data = prepare(
      ProductKind::adjoint, X, Y,
      [&](Agreement& agreement) { agreement.on("alpha", alpha).on("beta", beta); },
      [&] {
        require_operands(X, Y);
        require_apart(Y, X, "apply_adjoint", "operand and result");
      });
  ++activity_.adjoint_applications;
  activity_.adjoint_columns += Y.cols();
  if (!moves_data) return;
  if (check_level() == Check::all) require_equal_copies(Y, "the data");
  carry_out([&] { do_apply_adjoint(alpha, Y, beta, X); });
}

template <Scalar T>
void LinearOperator<T>::normal_product(const ConstDistMatrix<T>& P, const ConstDistMatrix<T>& R,
                                       DistMatrix<T>& Q, DistMatrix<T>& U, DistMatrix<T>& V) const {
  const TraceRegion region("normal_product");
  const bool moves_data = prepare(
      ProductKind::normal, P, R, [](Agreement&) {},
      [&] {
        require_operands(P, R, "normal product of P and R");
        require_operands(U, R, "normal product of R to U");
        require_operands(V, Q, "normal product of Q to V");
        for (const auto* operand : {&P, &R})
          for (const auto* result : {&Q, &U, &V})
            require_apart(*operand, *result, "normal_product", "operand and result");
      });
  ++activity_.forward_applications;
  activity_.forward_columns += P.cols();
  activity_.adjoint_applications += 2;
  activity_.adjoint_columns += 2 * P.cols();
  if (!moves_data) return;
  if (check_level() == Check::all) {
    require_equal_copies(P, "normal product of P and R: P");
    require_equal_copies(R, "normal product of P and R: R");
  }
  carry_out([&] { do_normal_product(P, R, Q, U, V); });
}

template <Scalar T>
void LinearOperator<T>::reserve(ProductKind kind, const Partition& columns) const {
  const InnerScratch scratch(*domain_.grid);  // callers' code may apply operators
  if (kind == ProductKind::normal) {
    FailureScope failures;  // other ranks wait for this one in the second step, even if the first one throws
    if (!has_one_pass())
      for (const Op op : {Op::none, Op::adjoint}) failures.run([&] { do_connect(op); });
    do_reserve_normal_product(columns);
  } else {
    const Op op = kind == ProductKind::forward ? Op::none : Op::adjoint;
    do_connect(op);
    do_reserve(op, columns);
  }
}

template <Scalar T>
void LinearOperator<T>::do_reserve_normal_product(const Partition& columns) const {
  for (const Op op : {Op::none, Op::adjoint}) do_reserve(op, columns);
}

template <Scalar T>
void LinearOperator<T>::do_normal_product(const ConstDistMatrix<T>& P, const ConstDistMatrix<T>& R,
                                          DistMatrix<T>& Q, DistMatrix<T>& U, DistMatrix<T>& V) const {
  FailureScope failures;  // a rank goes on to the next product, since others wait for it there
  failures.run([&] { do_apply(T(1), P, T(0), Q); });
  failures.run([&] { do_apply_adjoint(T(1), R, T(0), U); });
  failures.run([&] { do_apply_adjoint(T(1), Q, T(0), V); });
  failures.close(domain_.grid->comm());
}

template <Scalar T>
Index LinearOperator<T>::scratch_bytes(ProductKind kind, const Partition& columns) const {
  if (runs_callers_code() || !domain_.grid->is_member()) return 0;
  if (kind != ProductKind::normal || has_one_pass()) return do_scratch_bytes(kind, columns);
  return std::max(do_scratch_bytes(ProductKind::forward, columns),
                  do_scratch_bytes(ProductKind::adjoint, columns));
}

template <Scalar T>
Index LinearOperator<T>::kept_bytes(const Partition& columns) const {
  KeptBytes kept;
  add_kept_bytes(kept, columns);
  return kept.total();
}

template <Scalar T>
void LinearOperator<T>::add_kept_bytes(KeptBytes& kept, const Partition& columns) const {
  if (domain_.grid->is_member()) do_add_kept_bytes(kept, columns);
}

template <Scalar T>
auto LinearOperator<T>::preparation(ProductKind kind, Index scratch) const -> Preparation& {
  for (Preparation& before : prepared_)
    if (before.kind == kind && before.scratch == scratch) return before;
  constexpr std::size_t most =
      16;  // of several callers' operators that apply this one, or of memory given back
  if (prepared_.size() == most) prepared_.erase(prepared_.begin());
  return prepared_.emplace_back(Preparation{kind, scratch});
}

/// Checks the operands, and takes memory if some part has more columns than ever before. All ranks agree
/// before the first application, by itself and within others, and before and after taking memory. The
/// outermost operator takes the scratch memory of all within it. Returns whether this rank has something to
/// multiply.
template <Scalar T>
template <class Name, class Test>
bool LinearOperator<T>::prepare(ProductKind kind, const ConstDistMatrix<T>& model,
                                const ConstDistMatrix<T>& data, Name&& name_factors, Test&& test) const {
  constexpr std::array names{"apply", "apply_adjoint", "normal_product"};
  const char* const name = names[static_cast<std::size_t>(kind)];
  const ProcessGrid& grid = *domain_.grid;
  if (!grid.is_member()) {
    test();
    return false;
  }
  const Partition& columns = model.layout().cols.partition;
  ScratchStack& scratch = detail::scratch_of(grid);
  const bool is_outermost = !runs_callers_code() && !scratch.has_operator();
  Preparation& before = preparation(kind, is_outermost ? scratch.serial() : -scratch.losses());
  const Check level = check_level();
  const bool compares = level == Check::all || (level == Check::entry && !before.is_agreed);
  if (!compares) test();
  const bool takes_memory = columns.total() > 0 && !covers(before.most, columns);
  if (compares || takes_memory) {
    const TraceRegion region("reserve");
    const auto* const stored = level == Check::all ? dynamic_cast<const SeesChanges*>(this) : nullptr;
    agree(grid.comm(), name, [&](Agreement& agreement) {
      describe_operator(agreement, *this);
      describe_layout(agreement, "the model", model.layout());
      describe_layout(agreement, "the data", data.layout());
      name_factors(agreement);
      test();
      if (stored != nullptr) stored->require_unchanged();
    });
    if (takes_memory) {
      try {
        agree(grid.comm(), name, [&](Agreement&) {
          FailureScope failures;  // other ranks wait in reserve(), even if there is no scratch memory
          if (is_outermost) failures.run([&] { scratch.reserve(scratch_bytes(kind, columns)); });
          reserve(kind, columns);
        });
      } catch (...) {
        // This may have freed memory that other operators use as well, also those around the callers' code
        // that is at work. All ranks are here.
        prepared_.clear();
        scratch.note_loss();
        is_outermost ? scratch.release() : scratch.renew_serials();
        throw;
      }
    }
    before.is_agreed = true;
    before.most.resize(at(columns.parts()), 0);
    for (int part = 0; part < columns.parts(); ++part)
      before.most[at(part)] = std::max(before.most[at(part)], columns.size(part));
  }
  return columns.total() > 0;
}

/// Multiplies. If the operator runs user code, the ranks agree on its outcome at the end of the outermost
/// FailureScope: this one, unless a solver has one around it.
template <Scalar T>
template <class Multiply>
void LinearOperator<T>::carry_out(Multiply&& multiply) const {
  const ProcessGrid& grid = *domain_.grid;
  FailureScope failures;
  if (runs_callers_code()) {
    failures.note_callers_code();
    failures.run([&] {
      const InnerScratch scratch(grid);
      multiply();
    });
  } else {
    const ScratchStack::Working working(detail::scratch_of(grid));
    failures.run(multiply);
  }
  failures.close(grid.comm());
}

#define GRIDLOPS_INSTANTIATE(T) template class LinearOperator<T>;
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
