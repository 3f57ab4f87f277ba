// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>

#include "gridlops/comm/communicator.hpp"
#include "ops/matrix/panel_operands.hpp"

namespace gridlops {

/// A product with op(A) in steps: where its operands come from, and where its sums go.
template <Scalar T>
struct PanelPlan {
  std::size_t steps = 0;
  std::function<Panel(std::size_t)> panel;  ///< of the step with this number
  std::shared_ptr<PanelSource<T>> A, B;
  std::shared_ptr<PanelSum<T>> C;
  Communicator* family = nullptr;  ///< if given, what A and B start for a step goes out as one group
};

/// Gives a loop the panels of a plan, one after the other, to be multiplied. Meanwhile the panels of the next
/// `lookahead` steps travel, and so do the sums of the last lookahead + 1 steps.
template <Scalar T>
class Pipeline {
 public:
  /// cols: the columns of the block B.
  Pipeline(const PanelPlan<T>& plan, std::size_t lookahead, Index cols)
      : plan_(plan), steps_(plan.steps), lookahead_(lookahead), cols_(cols) {}

  struct End {};
  class Iterator {
   public:
    explicit Iterator(const Pipeline& pipeline) : pipeline_(pipeline) { pipeline_.enter(step_); }
    Panel operator*() const { return pipeline_.plan_.panel(step_); }
    Iterator& operator++() {
      pipeline_.plan_.C->start(**this);
      pipeline_.enter(++step_);
      return *this;
    }
    bool operator!=(End) const { return step_ < pipeline_.steps_; }

   private:
    const Pipeline& pipeline_;
    std::size_t step_ = 0;
  };

  Iterator begin() const {
    for (std::size_t step = 0; step < std::min(lookahead_, steps_); ++step) start(step);
    return Iterator(*this);
  }
  End end() const { return {}; }

 private:
  void enter(std::size_t step) const {
    if (step == steps_) return finish_last();
    if (step + lookahead_ < steps_) start(step + lookahead_);
    if (step > lookahead_) plan_.C->finish(plan_.panel(step - lookahead_ - 1));
    plan_.A->advance();
    plan_.B->advance();
    plan_.C->advance();
  }
  void finish_last() const {
    const std::size_t travelling = std::min(lookahead_ + 1, steps_);
    for (std::size_t step = steps_ - travelling; step < steps_; ++step) plan_.C->finish(plan_.panel(step));
  }
  void start(std::size_t step) const {
    const Panel K = plan_.panel(step);
    std::optional<CommunicationGroup> together;
    if (plan_.family != nullptr) together.emplace(*plan_.family);
    plan_.A->start(step, K.A);
    plan_.B->start(step, K.B.all_of(cols_));
    if (together) together->close();
  }

  const PanelPlan<T>& plan_;
  std::size_t steps_, lookahead_;
  Index cols_;
};

}  // namespace gridlops
