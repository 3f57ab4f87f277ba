// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace gridlops {

/// The steps of a product, and slots for what they need while they are under way: operands of the next
/// `lookahead` steps travel, and sums of the last ones, while a step multiplies. Slot::advance() tests the
/// requests of a slot.
template <class Slot>
class StepRing {
 public:
  StepRing(std::size_t steps, int lookahead)
      : steps_(steps),
        lookahead_(std::clamp<std::size_t>(steps, 1, static_cast<std::size_t>(lookahead))),
        slots_(lookahead_ + 1) {}

  Slot& slot(std::size_t step) { return slots_[step % slots_.size()]; }

  /// For each step send(step), begun ahead, then use(step), which waits for what was sent and multiplies;
  /// receive(step), for its sum, before its slot is needed again.
  template <class Send, class Use, class Receive>
  void run(Send&& send, Use&& use, Receive&& receive) {
    for (std::size_t step = 0; step < std::min(lookahead_, steps_); ++step) send(step);
    for (std::size_t step = 0; step < steps_; ++step) {
      if (step + lookahead_ < steps_) send(step + lookahead_);
      if (step >= slots_.size()) receive(step - slots_.size());
      // Many MPI libraries move data only while they are called.
      for (Slot& slot : slots_) slot.advance();
      use(step);
    }
    for (std::size_t step = steps_ - std::min(slots_.size(), steps_); step < steps_; ++step) receive(step);
  }

  /// Without sums.
  template <class Send, class Use>
  void run(Send&& send, Use&& use) {
    run(send, use, [](std::size_t) {});
  }

 private:
  std::size_t steps_, lookahead_;  // lookahead: no more than there are steps
  std::vector<Slot> slots_;
};

}  // namespace gridlops
