// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>

namespace gridlops {

/// Words that one thread sets, as often as it likes, and any thread reads together. Setting them waits for
/// nobody, and takes a nanosecond or two.
///
/// This is a sequence lock. The number of the version is odd while words change. A reader that finds the same
/// even number before and after has read one version. The words are atomic, so that a reader that comes in
/// between is no data race. They are released and acquired in place of fences, which the thread sanitizer
/// does not know: whoever sees a new word sees the odd number, too.
template <std::size_t count>
class Published {
 public:
  using Words = std::array<std::uint64_t, count>;

  void set(const Words& words) {
    const std::uint64_t version = begin();
    for (std::size_t k = 0; k < count; ++k) words_[k].store(words[k], std::memory_order_release);
    end(version);
  }
  /// Of one word; the others stay.
  void set(std::size_t k, std::uint64_t word) {
    const std::uint64_t version = begin();
    words_[k].store(word, std::memory_order_release);
    end(version);
  }

  Words get() const {
    for (;; std::this_thread::yield()) {
      const std::uint64_t before = version_.load(std::memory_order_acquire);
      Words words;
      for (std::size_t k = 0; k < count; ++k) words[k] = words_[k].load(std::memory_order_acquire);
      if (before % 2 == 0 && version_.load(std::memory_order_relaxed) == before) return words;
    }
  }

 private:
  std::uint64_t begin() {
    const std::uint64_t version = version_.load(std::memory_order_relaxed);
    version_.store(version + 1, std::memory_order_relaxed);
    return version;
  }
  void end(std::uint64_t version) { version_.store(version + 2, std::memory_order_release); }

  std::array<std::atomic<std::uint64_t>, count> words_{};
  std::atomic<std::uint64_t> version_ = 0;
};

}  // namespace gridlops
