// SPDX-License-Identifier: BSD-3-Clause
#include "ops/panels/panel_mult.hpp"

#include <utility>

#include "base/instantiate.hpp"
#include "comm/failure/failure.hpp"
#include "ops/matrix/algorithms.hpp"
#include "ops/operator/library_operator.hpp"

namespace gridlops {

template <Scalar T>
PanelMult<T>::PanelMult(Algorithm algorithm, DistMatrix<T> A, const MatrixMultOptions& options,
                        PanelPlan<T> for_A, PanelPlan<T> for_adjoint)
    : LibraryOperator<T>(range_in_blocks(A), domain_in_blocks(A)),
      A_(std::move(A)),
      product_(A_.matrix().grid()->backend(), options.column_stable),
      plans_{std::move(for_A), std::move(for_adjoint)},
      algorithm_(algorithm),
      panel_(options.panel) {}

template <Scalar T>
void PanelMult<T>::do_connect(Op op) const {
  FailureScope failures;  // other ranks wait for this one in the second step, even if the first one throws
  failures.run([&] { plan(op).A->connect(); });
  failures.run([&] { plan(op).B->connect(); });
}

template <Scalar T>
void PanelMult<T>::do_reserve(Op op, const Partition& columns) const {
  const PanelPlan<T>& by = plan(op);
  const Index cols = this->domain().local_columns(columns);
  const Index rows = (op == Op::none ? this->domain() : this->range()).local_rows();
  by.A->reserve_block(A_.matrix().local());
  by.B->reserve_block({nullptr, rows, cols});
  for (std::size_t step = 0; step < by.steps; ++step) {
    const Panel K = by.panel(step);
    product_.reserve(K.B.rows.size, K.C.rows.size);
    by.A->reserve(K.step, K.A);
    by.B->reserve(K.step, K.B.all_of(cols));
    by.C->reserve(K, cols);
  }
}

template <Scalar T>
void PanelMult<T>::renew_copies() const {
  for (const PanelPlan<T>& by : plans_)
    if (by.A != nullptr) by.A->renew();
}

#define GRIDLOPS_INSTANTIATE(T) template class PanelMult<T>;
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
