// SPDX-License-Identifier: BSD-3-Clause
#include <utility>
#include <vector>

#include "base/instantiate.hpp"
#include "base/numbers.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/ops/operator_algebra.hpp"
#include "gridlops/solve/proximal.hpp"
#include "local/arrays/array_kernels.hpp"
#include "ops/operator/array_products.hpp"
#include "solve/regularised/proximal_support.hpp"

namespace gridlops {

namespace {

template <Scalar T>
const ArrayKernels<T>& array_kernels(const ConstDistMatrix<T>& X) {
  return X.grid()->backend()->template kernels<T>().arrays();
}

/// An L2,1 norm whose groups each lie on one rank. Part p of the rows has the groups that groups_of(p)
/// returns.
template <Scalar T>
class LocalGroups {
 public:
  template <class GroupsOf>
  DistMatrix<T>& norms(const GroupsOf& groups_of, const ConstDistMatrix<T>& X) const {
    const Layout& layout = X.layout();
    std::vector<Index> counts;
    for (int part = 0; part < layout.rows.partition.parts(); ++part)
      counts.push_back(groups_of(part).groups());
    DistMatrix<T>& N =
        norms_.matrix(X.grid(), {{layout.rows.axis, Partition::with_sizes(counts)}, layout.cols});
    if (X.grid()->is_member())
      array_kernels(X).group_norms(groups_of(X.grid()->my_part(layout.rows.axis)), X.local(), N.local());
    return N;
  }

  template <class GroupsOf>
  void shrink(const GroupsOf& groups_of, const ColumnScalars& t, DistMatrix<T>& X) const {
    if (!X.grid()->is_member()) return;
    const ConstDistMatrix<T>& N = norms(groups_of, X);
    const double* const here = t.values().data() + X.local_col_range().begin;
    array_kernels(X).shrink_groups(here, groups_of(X.grid()->my_part(X.layout().rows.axis)), N.local(),
                                   X.local());
  }

 private:
  mutable Scratch<T> norms_;
};

template <Scalar T>
class L21OfStack final : public ProximalOperator<T> {
 public:
  L21OfStack(const std::vector<Space>& stack, double sigma)
      : stack_(stack_spaces(stack)),
        members_(static_cast<Index>(stack.size())),
        sigma_(checked_sigma(sigma)) {
    for (const Space& space : stack)
      require<ShapeError>(space == stack.front(), "an L2,1 norm of a stack of ", stack.front().describe(),
                          " and ", space.describe(), " is impossible: its members must be of one space");
  }
  std::string describe() const override {
    return weighted(sigma_, message("the L2,1 norm of ", members_, " stacked vectors"));
  }
  void prox(ColumnOperand tau, DistMatrix<T>& X) const override {
    stack_.require_contains(X, "the operand of an L2,1 norm");
    groups_.shrink(groups(), sigma_ * for_columns(tau, X.cols()), X);
  }
  std::vector<ColumnSum<T>> sums(const ConstDistMatrix<T>& X) const override {
    stack_.require_contains(X, "the operand of an L2,1 norm");
    return {penalty<T>(Threshold::soft, groups_.norms(groups(), X))};
  }
  double value_of(std::span<const double> sums) const override { return sigma_ * sums[0]; }

 private:
  auto groups() const {
    return [this](int part) { return RowGroups{1, members_, stack_.rows.partition.size(part) / members_}; };
  }
  Space stack_;
  Index members_;
  double sigma_;
  LocalGroups<T> groups_;
};

/// An array that is cut along the dimension is moved to a space in which it is not.
template <Scalar T>
class L21OfLines final : public ProximalOperator<T> {
 public:
  L21OfLines(const Space& space, int dim, double sigma)
      : space_(space), whole_(space), dim_(dim), sigma_(checked_sigma(sigma)) {
    require_dim(space, dim, "an L2,1 norm");
    if (space.dims.cut(dim).parts() == 1) return;
    whole_ = whole_along(space, dim);
    move_ = identity<T>(whole_, space_);
  }
  std::string describe() const override {
    return weighted(sigma_, message("the L2,1 norm along dimension ", dim_, " of ", space_.dims.describe()));
  }
  void prox(ColumnOperand tau, DistMatrix<T>& X) const override {
    require_operand(X);
    const ColumnScalars t = sigma_ * for_columns(tau, X.cols());
    if (!move_) return groups_.shrink(groups(), t, X);
    DistMatrix<T>& moved = moved_in(X);
    groups_.shrink(groups(), t, moved);
    move_->apply_adjoint(T(1), moved, T(0), X);
  }
  std::vector<ColumnSum<T>> sums(const ConstDistMatrix<T>& X) const override {
    require_operand(X);
    if (!move_) return {penalty<T>(Threshold::soft, groups_.norms(groups(), X))};
    return {penalty<T>(Threshold::soft, groups_.norms(groups(), moved_in(X)))};
  }
  double value_of(std::span<const double> sums) const override { return sigma_ * sums[0]; }

 private:
  void require_operand(const ConstDistMatrix<T>& X) const {
    space_.require_contains(X, "the operand of an L2,1 norm");
  }
  auto groups() const {
    return [this](int part) {
      RowGroups groups;
      const Box box = whole_.dims.block(part);
      for (std::size_t d = 0; d < box.size(); ++d)
        (d < at(dim_) ? groups.outer : d == at(dim_) ? groups.count : groups.inner) *= box[d].size;
      return groups;
    };
  }
  DistMatrix<T>& moved_in(const ConstDistMatrix<T>& X) const {
    DistMatrix<T>& moved = moved_.matrix(X.grid(), whole_.layout(X.layout().cols.partition));
    move_->apply(T(1), X, T(0), moved);
    return moved;
  }
  Space space_, whole_;
  int dim_;
  double sigma_;
  OperatorPtr<T> move_;  // null if the dimension is not cut
  mutable Scratch<T> moved_;
  LocalGroups<T> groups_;
};

}  // namespace

template <Scalar T>
ProximalPtr<T> l21_norm(const std::vector<Space>& stack, double sigma) {
  return std::make_shared<L21OfStack<T>>(stack, sigma);
}

template <Scalar T>
ProximalPtr<T> l21_norm_along(const Space& space, int dim, double sigma) {
  return std::make_shared<L21OfLines<T>>(space, dim, sigma);
}

#define GRIDLOPS_INSTANTIATE(T)                                        \
  template ProximalPtr<T> l21_norm(const std::vector<Space>&, double); \
  template ProximalPtr<T> l21_norm_along(const Space&, int, double);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
