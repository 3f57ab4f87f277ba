// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <functional>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/numbers.hpp"
#include "gridlops/base/error.hpp"

namespace gridlops {

// Loops of one rank on the host run in its threads (threads_per_rank() in backend.hpp). The threads share the
// rank's memory. They make no MPI call. How many there are changes no bit of the results of the library's own
// loops. Reasons: docs/decisions/0050-threads.md.

/// For each processor of the machine, 1 if the system lets this process use it, else 0.
std::vector<int> usable_processors();
/// Makes the default number of threads this rank's share of the processors that it may use, given how many
/// ranks may use each.
void share_processors(const std::vector<int>& usable, const std::vector<int>& ranks);
/// Whether that share is less than one: then a rank that waits for another may keep it from working.
bool ranks_outnumber_processors();

/// Makes it this many threads, at least 1, whatever else was said.
void choose_threads(int threads);

/// The error for a thread that the system refuses: it names the limits of this process.
OutOfMemory refused_thread(const std::system_error& reason);

/// Starts a thread. Throws OutOfMemory on this rank alone.
template <class Work>
std::jthread start_thread(Work&& work) {
  try {
    return std::jthread(std::forward<Work>(work));
  } catch (const std::system_error& error) {
    throw refused_thread(error);
  }
}

/// A thread for less takes longer to start than it saves.
inline double operations_worth_a_thread = 1 << 17;

/// Returns the number of threads that pay for this many operations, or bytes to be read: all of them, fewer
/// for little work, and 1 in a thread of in_threads().
int threads_for(double operations);

/// Calls work(part) for each part < parts, in a thread of its own as far as threads are left, and returns
/// when all have returned. BLAS has one thread meanwhile. If some throw, rethrows one of their exceptions.
void in_threads(int parts, const std::function<void(int)>& work);

/// Cuts `units` pieces of `unit` elements, the last of which ends at count, into a range for each thread, and
/// calls work(thread, range) in it. Empty ranges get no call.
template <class Work>
void for_ranges_of(Index units, Index unit, Index count, int threads, Work&& work) {
  const auto parts = static_cast<int>(std::min<Index>(threads, units));
  if (parts == 1) return work(0, Range{0, count});
  in_threads(parts, [&](int part) {
    const Range range = balanced_part(units, parts, part);
    const Index begin = range.begin * unit, end = range.end() == units ? count : range.end() * unit;
    work(part, Range{begin, end - begin});
  });
}

/// Cuts [0, count) into a range for each thread, and calls work(thread, range) in it. Ranges begin at
/// multiples of `unit`. Empty ranges get no call.
template <class Work>
void for_ranges(Index count, Index unit, int threads, Work&& work) {
  for_ranges_of((count + unit - 1) / unit, unit, count, threads, work);
}

/// Cuts and calls as for_ranges(), but no range is shorter than `unit`, unless there is only one.
template <class Work>
void for_long_ranges(Index count, Index unit, int threads, Work&& work) {
  for_ranges_of(count == 0 ? 0 : std::max<Index>(1, count / unit), unit, count, threads, work);
}

/// As for_ranges(), with ranges of `unit`, but for the last, which are the same for any number of threads.
template <class Work>
void for_units(Index count, Index unit, int threads, Work&& work) {
  for_ranges(count, unit, threads, [&](int thread, Range range) {
    for (Index begin = range.begin; begin < range.end(); begin += unit)
      work(thread, Range{begin, std::min(unit, range.end() - begin)});
  });
}

/// Calls work(i) for each i < count: each in one thread, if there are enough for all threads; otherwise one
/// after the other, so that each may use all threads.
template <class Work>
void for_each_of(Index count, double operations, Work&& work) {
  const int threads = threads_for(operations);
  for_ranges(count, 1, count < threads ? 1 : threads, [&](int, Range range) {
    for (Index i = range.begin; i < range.end(); ++i) work(i);
  });
}

/// Long columns are cut into pieces of this many rows.
inline constexpr Index piece_rows = 1 << 14;
constexpr Index pieces_of(Index rows) { return (rows + piece_rows - 1) / piece_rows; }

/// Calls work(rows, j) for the pieces of all columns j.
template <class Work>
void for_each_piece(Index rows, Index cols, Work&& work) {
  const Index pieces = pieces_of(rows);
  for_ranges(pieces * cols, 1, threads_for(8.0 * static_cast<double>(rows * cols)), [&](int, Range range) {
    for (Index i = range.begin; i < range.end(); ++i) {
      const Index begin = i % pieces * piece_rows;
      work(Range{begin, std::min(piece_rows, rows - begin)}, i / pieces);
    }
  });
}

}  // namespace gridlops
