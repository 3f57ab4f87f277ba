// SPDX-License-Identifier: BSD-3-Clause
#include "base/instantiate.hpp"
#include "base/message.hpp"
#include "base/numbers.hpp"
#include "gridlops/error.hpp"
#include "gridlops/operator_algebra.hpp"

namespace gridlops {

namespace {

/// The row-major numbers of the parts that the ranks of the grid hold.
std::vector<int> parts_by_rank(const ProcessGrid& grid, Axis axis) {
  std::vector<int> parts;
  for (int row = 0; row < grid.rows(); ++row)
    for (int col = 0; col < grid.cols(); ++col) parts.push_back(grid.part_at(axis, row, col));
  return parts;
}

/// Whether two ranks that hold the same part along one axis always hold the same part along the other.
bool held_by_same_ranks(const ProcessGrid& grid, Axis a, Axis b) {
  const std::vector<int> in_a = parts_by_rank(grid, a);
  const std::vector<int> in_b = parts_by_rank(grid, b);
  for (std::size_t i = 0; i < in_a.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      if ((in_a[i] == in_a[j]) != (in_b[i] == in_b[j])) return false;
  return true;
}

/// Member k's rows of X, with X's columns, as a Matrix of its own in X's memory.
template <class Matrix, class View>
Matrix member_of(const std::vector<Space>& members, std::size_t k, const Layout& layout_of_X, View local) {
  const Space& member = members.at(k);
  Range rows;
  if (member.grid->is_member()) {
    for (std::size_t before = 0; before < k; ++before) rows.begin += members[before].local_rows();
    rows.size = member.local_rows();
  }
  return {member.grid, {member.rows, layout_of_X.cols}, local.row_block(rows)};
}

template <Scalar T>
std::vector<Space> ranges_of(const std::vector<OperatorPtr<T>>& members) {
  std::vector<Space> spaces;
  for (const OperatorPtr<T>& member : members) spaces.push_back(member->range());
  return spaces;
}

template <Scalar T>
std::vector<Space> domains_of(const std::vector<OperatorPtr<T>>& members) {
  std::vector<Space> spaces;
  for (const OperatorPtr<T>& member : members) spaces.push_back(member->domain());
  return spaces;
}

template <Scalar T>
const LinearOperator<T>& first_of(const std::vector<OperatorPtr<T>>& members) {
  require<ShapeError>(!members.empty(), "a stack of operators needs at least one member");
  return *members.front();
}

template <Scalar T>
class VerticalStack final : public LinearOperator<T> {
 public:
  explicit VerticalStack(std::vector<OperatorPtr<T>> members)
      : LinearOperator<T>(stack_spaces(ranges_of(members)), first_of(members).domain()),
        members_(std::move(members)),
        ranges_(ranges_of(members_)) {
    for (const OperatorPtr<T>& member : members_)
      require<ShapeError>(
          member->domain() == this->domain(), "operators with ", this->cols(), " and ", member->cols(),
          " columns cannot be stacked vertically: their domains must be the same, layouts included");
  }

 private:
  void do_apply(T alpha, const ConstDistMatrix<T>& X, T beta, DistMatrix<T>& Y) const override {
    for (std::size_t k = 0; k < members_.size(); ++k) {
      DistMatrix<T> part = stack_member(ranges_, k, Y);
      members_[k]->apply(alpha, X, beta, part);
    }
  }
  void do_apply_adjoint(T alpha, const ConstDistMatrix<T>& Y, T beta, DistMatrix<T>& X) const override {
    for (std::size_t k = 0; k < members_.size(); ++k)
      members_[k]->apply_adjoint(alpha, stack_member(ranges_, k, Y), k == 0 ? beta : T(1), X);
  }
  std::vector<OperatorPtr<T>> members_;
  std::vector<Space> ranges_;
};

template <Scalar T>
class BlockDiagonal final : public LinearOperator<T> {
 public:
  explicit BlockDiagonal(std::vector<OperatorPtr<T>> members)
      : LinearOperator<T>(stack_spaces(ranges_of(members)), stack_spaces(domains_of(members))),
        members_(std::move(members)),
        ranges_(ranges_of(members_)),
        domains_(domains_of(members_)) {}

 private:
  void do_apply(T alpha, const ConstDistMatrix<T>& X, T beta, DistMatrix<T>& Y) const override {
    for (std::size_t k = 0; k < members_.size(); ++k) {
      DistMatrix<T> part = stack_member(ranges_, k, Y);
      members_[k]->apply(alpha, stack_member(domains_, k, X), beta, part);
    }
  }
  void do_apply_adjoint(T alpha, const ConstDistMatrix<T>& Y, T beta, DistMatrix<T>& X) const override {
    for (std::size_t k = 0; k < members_.size(); ++k) {
      DistMatrix<T> part = stack_member(domains_, k, X);
      members_[k]->apply_adjoint(alpha, stack_member(ranges_, k, Y), beta, part);
    }
  }
  std::vector<OperatorPtr<T>> members_;
  std::vector<Space> ranges_, domains_;
};

}  // namespace

Space stack_spaces(const std::vector<Space>& members) {
  require<ShapeError>(!members.empty(), "a stack needs at least one member");
  const Space& first = members.front();
  const ProcessGrid& grid = *first.grid;
  std::vector<Index> sizes(static_cast<std::size_t>(grid.parts(first.rows.axis)), 0);
  for (const Space& member : members) {
    require<ShapeError>(member.grid == first.grid && member.columns == first.columns &&
                            held_by_same_ranks(grid, first.rows.axis, member.rows.axis),
                        "rows along ", name_of(first.rows.axis), " and along ", name_of(member.rows.axis),
                        " are not held by the same ranks part for part, so they cannot be stacked in place; "
                        "put an identity() "
                        "that redistributes before one of them");
    const std::vector<int> part_in_first = parts_by_rank(grid, first.rows.axis);
    const std::vector<int> part_in_member = parts_by_rank(grid, member.rows.axis);
    std::vector<bool> counted(sizes.size(), false);
    for (std::size_t rank = 0; rank < part_in_first.size(); ++rank) {
      const auto part = static_cast<std::size_t>(part_in_first[rank]);
      if (!counted[part]) sizes[part] += member.rows.partition.size(part_in_member[rank]);
      counted[part] = true;
    }
  }
  return {first.grid, {first.rows.axis, Partition::with_sizes(sizes)}, first.columns};
}

template <Scalar T>
DistMatrix<T> stack_member(const std::vector<Space>& members, std::size_t k, DistMatrix<T>& X) {
  return member_of<DistMatrix<T>>(members, k, X.layout(), X.local());
}

template <Scalar T>
ConstDistMatrix<T> stack_member(const std::vector<Space>& members, std::size_t k,
                                const ConstDistMatrix<T>& X) {
  return member_of<ConstDistMatrix<T>>(members, k, X.layout(), X.local());
}

template <Scalar T>
OperatorPtr<T> vertical_stack(std::vector<OperatorPtr<T>> members) {
  return std::make_shared<VerticalStack<T>>(std::move(members));
}

template <Scalar T>
OperatorPtr<T> horizontal_stack(std::vector<OperatorPtr<T>> members) {
  for (OperatorPtr<T>& member : members) member = adjoint(std::move(member));
  return adjoint(vertical_stack(std::move(members)));
}

template <Scalar T>
OperatorPtr<T> block_diagonal(std::vector<OperatorPtr<T>> members) {
  return std::make_shared<BlockDiagonal<T>>(std::move(members));
}

std::vector<Space> damped_range(const Space& data, const Space& model) {
  const ProcessGrid& grid = *model.grid;
  if (held_by_same_ranks(grid, data.rows.axis, model.rows.axis)) return {data, model};
  return {data, {model.grid, Cut::balanced(data.rows.axis, model.dimension(), grid), model.columns}};
}

template <Scalar T>
OperatorPtr<T> damped(OperatorPtr<T> A, double damp) {
  const std::vector<Space> range = damped_range(A->range(), A->domain());
  OperatorPtr<T> penalty_operator = scale(to_scalar<T>(damp), identity<T>(range[1], A->domain()));
  return vertical_stack<T>({std::move(A), std::move(penalty_operator)});
}

#define GRIDLOPS_INSTANTIATE(T)                                                                \
  template DistMatrix<T> stack_member(const std::vector<Space>&, std::size_t, DistMatrix<T>&); \
  template ConstDistMatrix<T> stack_member(const std::vector<Space>&, std::size_t,             \
                                           const ConstDistMatrix<T>&);                         \
  template OperatorPtr<T> vertical_stack(std::vector<OperatorPtr<T>>);                         \
  template OperatorPtr<T> horizontal_stack(std::vector<OperatorPtr<T>>);                       \
  template OperatorPtr<T> block_diagonal(std::vector<OperatorPtr<T>>);                         \
  template OperatorPtr<T> damped(OperatorPtr<T>, double);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)

}  // namespace gridlops
