// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <map>

namespace emulation {

/// What has happened before some point: of each stream, how many of its operations (a vector clock).
class Moment {
 public:
  void advance(int stream, long tick) { ticks_[stream] = std::max(ticks_[stream], tick); }
  void join(const Moment& other) {
    for (const auto& [stream, tick] : other.ticks_) advance(stream, tick);
  }
  bool includes(int stream, long tick) const {
    const auto found = ticks_.find(stream);
    return found != ticks_.end() && found->second >= tick;
  }

 private:
  std::map<int, long> ticks_;
};

}  // namespace emulation
