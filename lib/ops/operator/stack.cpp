// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <utility>

#include "base/instantiate.hpp"
#include "base/message.hpp"
#include "base/numbers.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/ops/operator_algebra.hpp"
#include "ops/operator/library_operator.hpp"

namespace gridlops {

namespace {

/// The part that each rank of the grid holds along the axis, with ranks in row-major order.
std::vector<int> parts_by_rank(const ProcessGrid& grid, Axis axis) {
  std::vector<int> parts;
  for (int row = 0; row < grid.rows(); ++row)
    for (int col = 0; col < grid.cols(); ++col) parts.push_back(grid.part_at(axis, row, col));
  return parts;
}

/// Whether ranks that hold the same part along one axis also hold the same part along the other.
bool held_by_same_ranks(const ProcessGrid& grid, Axis a, Axis b) {
  constexpr int unknown = -1;
  std::vector<int> b_of_a(at(grid.parts(a)), unknown), a_of_b(at(grid.parts(b)), unknown);
  for (int row = 0; row < grid.rows(); ++row) {
    for (int col = 0; col < grid.cols(); ++col) {
      const int in_a = grid.part_at(a, row, col), in_b = grid.part_at(b, row, col);
      int &partner_of_a = b_of_a[at(in_a)], &partner_of_b = a_of_b[at(in_b)];
      if (partner_of_a == unknown) partner_of_a = in_b;
      if (partner_of_b == unknown) partner_of_b = in_a;
      if (partner_of_a != in_b || partner_of_b != in_a) return false;
    }
  }
  return true;
}

/// The rows of spaces[k], with X's columns, as a Matrix in X's memory.
template <class Matrix, class View>
Matrix rows_of(const std::vector<Space>& spaces, std::size_t k, const Layout& layout_of_X, View local) {
  const Space& space = spaces.at(k);
  Range rows;
  if (space.grid->is_member()) {
    for (std::size_t before = 0; before < k; ++before) rows.begin += spaces[before].local_rows();
    rows.size = space.local_rows();
  }
  return {space.grid, {space.rows, layout_of_X.cols}, local.row_block(rows)};
}

template <Scalar T>
std::vector<Space> ranges_of(const std::vector<OperatorPtr<T>>& operators) {
  std::vector<Space> spaces;
  for (const OperatorPtr<T>& op : operators) spaces.push_back(op->range());
  return spaces;
}

template <Scalar T>
std::vector<Space> domains_of(const std::vector<OperatorPtr<T>>& operators) {
  std::vector<Space> spaces;
  for (const OperatorPtr<T>& op : operators) spaces.push_back(op->domain());
  return spaces;
}

template <Scalar T>
const LinearOperator<T>& first_of(const std::vector<OperatorPtr<T>>& operators) {
  require<ShapeError>(!operators.empty(), "a stack needs at least one operator");
  return *operators.front();
}

template <Scalar T>
bool any_has_one_pass(const std::vector<OperatorPtr<T>>& operators) {
  return std::any_of(operators.begin(), operators.end(),
                     [](const OperatorPtr<T>& op) { return op->has_one_pass(); });
}

template <Scalar T>
Index most_scratch_bytes(const std::vector<OperatorPtr<T>>& operators, ProductKind kind,
                         const Partition& columns) {
  Index most = 0;
  for (const OperatorPtr<T>& op : operators) most = std::max(most, op->scratch_bytes(kind, columns));
  return most;
}

/// how: for example "vertically"; sides: for example "domains", which must be the same.
template <Scalar T>
void require_same_spaces(const std::vector<OperatorPtr<T>>& operators, const std::vector<Space>& spaces,
                         const char* how, const char* sides) {
  for (std::size_t k = 1; k < spaces.size(); ++k)
    require<ShapeError>(spaces[k] == spaces[0], "operators of ", operators[0]->rows(), " x ",
                        operators[0]->cols(), " and ", operators[k]->rows(), " x ", operators[k]->cols(),
                        " cannot be stacked ", how, ": their ", sides,
                        " must be the same, layouts included, but are ", spaces[0].describe_with(spaces[k]));
}

/// The dims of a stack of spaces that have parts along one axis: of arrays S, or m × S, it is Σ m × S.
Dims stacked_dims(const std::vector<Space>& spaces) {
  const Space& smallest = *std::min_element(spaces.begin(), spaces.end(), [](const Space& a, const Space& b) {
    return a.dims.count() < b.dims.count();
  });
  std::vector<Partition> stacked = smallest.dims.cuts();
  if (stacked.empty() || smallest.dims.count() == Dims::most) return {};
  stacked.insert(stacked.begin(), Partition::balanced(0, 1));
  for (const Space& space : spaces) {
    std::vector<Partition> cuts = space.dims.cuts();
    if (cuts.size() < stacked.size()) cuts.insert(cuts.begin(), Partition::balanced(1, 1));
    const bool fits = space.rows.axis == spaces.front().rows.axis && cuts.size() == stacked.size() &&
                      cuts.front().parts() == 1 &&
                      std::equal(cuts.begin() + 1, cuts.end(), stacked.begin() + 1);
    if (!fits) return {};
    stacked.front() = Partition::balanced(stacked.front().total() + cuts.front().total(), 1);
  }
  return Dims(std::move(stacked));
}

template <Scalar T>
class VerticalStack final : public LibraryOperator<T> {
 public:
  explicit VerticalStack(std::vector<OperatorPtr<T>> operators)
      : LibraryOperator<T>(stack_spaces(ranges_of(operators)), first_of(operators).domain()),
        operators_(std::move(operators)),
        ranges_(ranges_of(operators_)) {}

  bool has_one_pass() const override { return any_has_one_pass(operators_); }

 private:
  void do_apply(T alpha, const ConstDistMatrix<T>& X, T beta, DistMatrix<T>& Y) const override {
    for (std::size_t k = 0; k < operators_.size(); ++k) {
      DistMatrix<T> part = stack_rows(ranges_, k, Y);
      operators_[k]->apply(alpha, X, beta, part);
    }
  }
  void do_apply_adjoint(T alpha, const ConstDistMatrix<T>& Y, T beta, DistMatrix<T>& X) const override {
    for (std::size_t k = 0; k < operators_.size(); ++k)
      operators_[k]->apply_adjoint(alpha, stack_rows(ranges_, k, Y), k == 0 ? beta : T(1), X);
  }

  /// A part below the first that has one pass needs room for what it adds to U and V.
  Index do_scratch_bytes(ProductKind kind, const Partition& columns) const override {
    const bool adds =
        kind == ProductKind::normal && std::any_of(operators_.begin() + 1, operators_.end(),
                                                   [](const auto& op) { return op->has_one_pass(); });
    return most_scratch_bytes(operators_, kind, columns) +
           (adds ? 2 * ScratchMatrix<T>::bytes(this->domain(), columns) : 0);
  }
  void do_add_kept_bytes(KeptBytes& kept, const Partition& columns) const override {
    for (const OperatorPtr<T>& op : operators_) op->add_kept_bytes(kept, columns);
  }
  void do_normal_product(const ConstDistMatrix<T>& P, const ConstDistMatrix<T>& R, DistMatrix<T>& Q,
                         DistMatrix<T>& U, DistMatrix<T>& V) const override {
    for (std::size_t k = 0; k < operators_.size(); ++k) {
      const LinearOperator<T>& A = *operators_[k];
      const ConstDistMatrix<T> r = stack_rows(ranges_, k, R);
      DistMatrix<T> q = stack_rows(ranges_, k, Q);
      if (!A.has_one_pass()) {
        const T beta(k == 0 ? 0 : 1);
        A.apply(T(1), P, T(0), q);
        A.apply_adjoint(T(1), r, beta, U);
        A.apply_adjoint(T(1), q, beta, V);
      } else if (k == 0) {
        A.normal_product(P, r, q, U, V);
      } else {
        const Kernels<T>& kernels = U.grid()->backend()->template kernels<T>();
        ScratchMatrix<T> u(this->domain(), P.layout().cols.partition),
            v(this->domain(), P.layout().cols.partition);
        A.normal_product(P, r, q, u.matrix(), v.matrix());
        kernels.add(T(1), std::as_const(u.matrix()).local(), T(1), U.local());
        kernels.add(T(1), std::as_const(v.matrix()).local(), T(1), V.local());
      }
    }
  }

  std::vector<OperatorPtr<T>> operators_;
  std::vector<Space> ranges_;
};

template <Scalar T>
class BlockDiagonal final : public LibraryOperator<T> {
 public:
  explicit BlockDiagonal(std::vector<OperatorPtr<T>> operators)
      : LibraryOperator<T>(stack_spaces(ranges_of(operators)), stack_spaces(domains_of(operators))),
        operators_(std::move(operators)),
        ranges_(ranges_of(operators_)),
        domains_(domains_of(operators_)) {}

  bool has_one_pass() const override { return any_has_one_pass(operators_); }

 private:
  void do_apply(T alpha, const ConstDistMatrix<T>& X, T beta, DistMatrix<T>& Y) const override {
    for (std::size_t k = 0; k < operators_.size(); ++k) {
      DistMatrix<T> part = stack_rows(ranges_, k, Y);
      operators_[k]->apply(alpha, stack_rows(domains_, k, X), beta, part);
    }
  }
  void do_apply_adjoint(T alpha, const ConstDistMatrix<T>& Y, T beta, DistMatrix<T>& X) const override {
    for (std::size_t k = 0; k < operators_.size(); ++k) {
      DistMatrix<T> part = stack_rows(domains_, k, X);
      operators_[k]->apply_adjoint(alpha, stack_rows(ranges_, k, Y), beta, part);
    }
  }
  Index do_scratch_bytes(ProductKind kind, const Partition& columns) const override {
    return most_scratch_bytes(operators_, kind, columns);
  }
  void do_add_kept_bytes(KeptBytes& kept, const Partition& columns) const override {
    for (const OperatorPtr<T>& op : operators_) op->add_kept_bytes(kept, columns);
  }
  void do_normal_product(const ConstDistMatrix<T>& P, const ConstDistMatrix<T>& R, DistMatrix<T>& Q,
                         DistMatrix<T>& U, DistMatrix<T>& V) const override {
    for (std::size_t k = 0; k < operators_.size(); ++k) {
      DistMatrix<T> q = stack_rows(ranges_, k, Q), u = stack_rows(domains_, k, U),
                    v = stack_rows(domains_, k, V);
      operators_[k]->normal_product(stack_rows(domains_, k, P), stack_rows(ranges_, k, R), q, u, v);
    }
  }

  std::vector<OperatorPtr<T>> operators_;
  std::vector<Space> ranges_, domains_;
};

}  // namespace

Space stack_spaces(const std::vector<Space>& spaces) {
  require<ShapeError>(!spaces.empty(), "a stack needs at least one space");
  const Space& first = spaces.front();
  const ProcessGrid& grid = *first.grid;
  std::vector<Index> sizes(static_cast<std::size_t>(grid.parts(first.rows.axis)), 0);
  for (const Space& space : spaces) {
    require<ShapeError>(
        space.grid == first.grid && space.columns == first.columns &&
            held_by_same_ranks(grid, first.rows.axis, space.rows.axis),
        "spaces of ", first.describe(), " and ", space.describe(),
        space.grid == first.grid ? "" : " on another grid",
        " cannot be stacked in place, since their parts are not held by the same ranks; put an "
        "identity() that redistributes before one of them");
    const std::vector<int> part_in_first = parts_by_rank(grid, first.rows.axis);
    const std::vector<int> part_in_space = parts_by_rank(grid, space.rows.axis);
    std::vector<bool> counted(sizes.size(), false);
    for (std::size_t rank = 0; rank < part_in_first.size(); ++rank) {
      const auto part = static_cast<std::size_t>(part_in_first[rank]);
      if (!counted[part]) sizes[part] += space.rows.partition.size(part_in_space[rank]);
      counted[part] = true;
    }
  }
  if (spaces.size() == 1) return first;
  return {first.grid, {first.rows.axis, Partition::with_sizes(sizes)}, first.columns, stacked_dims(spaces)};
}

template <Scalar T>
DistMatrix<T> stack_rows(const std::vector<Space>& spaces, std::size_t k, DistMatrix<T>& X) {
  return rows_of<DistMatrix<T>>(spaces, k, X.layout(), X.local());
}

template <Scalar T>
ConstDistMatrix<T> stack_rows(const std::vector<Space>& spaces, std::size_t k, const ConstDistMatrix<T>& X) {
  return rows_of<ConstDistMatrix<T>>(spaces, k, X.layout(), X.local());
}

template <Scalar T>
OperatorPtr<T> vertical_stack(std::vector<OperatorPtr<T>> operators) {
  require_same_spaces(operators, domains_of(operators), "vertically", "domains");
  return std::make_shared<VerticalStack<T>>(std::move(operators));
}

template <Scalar T>
OperatorPtr<T> horizontal_stack(std::vector<OperatorPtr<T>> operators) {
  require_same_spaces(operators, ranges_of(operators), "horizontally", "ranges");
  for (OperatorPtr<T>& op : operators) op = adjoint(std::move(op));
  return adjoint(vertical_stack(std::move(operators)));
}

template <Scalar T>
OperatorPtr<T> block_diagonal(std::vector<OperatorPtr<T>> operators) {
  return std::make_shared<BlockDiagonal<T>>(std::move(operators));
}

std::vector<Space> damped_range(const Space& data, const Space& model) {
  if (held_by_same_ranks(*model.grid, data.rows.axis, model.rows.axis)) return {data, model};
  return {data, moved_to(data.rows.axis, model)};
}

template <Scalar T>
OperatorPtr<T> damped(OperatorPtr<T> A, double damp) {
  const std::vector<Space> range = damped_range(A->range(), A->domain());
  OperatorPtr<T> penalty_operator = scale(to_scalar<T>(damp), identity<T>(range[1], A->domain()));
  return vertical_stack<T>({std::move(A), std::move(penalty_operator)});
}

#define GRIDLOPS_INSTANTIATE(T)                                                                              \
  template DistMatrix<T> stack_rows(const std::vector<Space>&, std::size_t, DistMatrix<T>&);                 \
  template ConstDistMatrix<T> stack_rows(const std::vector<Space>&, std::size_t, const ConstDistMatrix<T>&); \
  template OperatorPtr<T> vertical_stack(std::vector<OperatorPtr<T>>);                                       \
  template OperatorPtr<T> horizontal_stack(std::vector<OperatorPtr<T>>);                                     \
  template OperatorPtr<T> block_diagonal(std::vector<OperatorPtr<T>>);                                       \
  template OperatorPtr<T> damped(OperatorPtr<T>, double);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
