// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace emulation {

inline constexpr int most_ranks = 64;

enum class Kind : int { broadcast, reduce, all_reduce, all_gather, reduce_scatter, send, receive };

/// The facts of a collective operation that all ranks must agree on.
struct Signature {
  Kind kind;
  int type, op, root;
  std::int64_t count;
  bool operator==(const Signature&) const = default;
  std::string text() const;
};

/// The file in memory that the ranks of one communicator share. Numbers only grow, so that a rank that is
/// late still sees what has happened.
struct Segment {
  /// Of one rank: the collective operation that it has come to, and how far it has got with the others' data.
  struct Slot {
    std::atomic<long> posted, taken;
    std::atomic<int> connects;  // it has come to its first collective operation
    Signature signature;
    std::size_t offset;  // of its data in its device memory
  };
  /// From one rank to another.
  struct Line {
    std::atomic<long> sent, taken;
    std::atomic<int> sender_connects, receiver_connects;  // it has come to its first message on this line
    Signature signature;
    std::size_t offset;
  };
  /// For exchanges between hosts, in rounds; two boxes, because a rank may be one round ahead.
  struct Mail {
    std::atomic<long> round;
    std::array<std::array<long, 4>, 2> words;
  };
  struct Process {
    int id, device_file;
  };

  std::atomic<int> joined, aborted;
  long uid;
  std::array<Process, most_ranks> processes;
  std::array<Slot, most_ranks> slots;
  std::array<Mail, most_ranks> mail;
  std::array<std::array<Line, most_ranks>, most_ranks> lines;  // [from][to]
};

/// A segment that other processes can open by (process, file).
struct SegmentName {
  int process = 0, file = -1;
  long uid = 0;
};
SegmentName make_segment();
Segment* open_segment(const SegmentName& name);
void close_segment(Segment* segment);

/// Waits, as a host does inside NCCL, until is_over() returns true; false if is_given_up() returns true
/// before. Ends the process if it takes too long.
bool wait_in_host(const char* function, const std::function<bool()>& is_over,
                  const std::function<bool()>& is_given_up);

}  // namespace emulation
