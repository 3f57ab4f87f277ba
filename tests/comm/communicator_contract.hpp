// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <complex>
#include <cstddef>
#include <functional>
#include <memory>
#include <numeric>
#include <vector>

#include "gridlops/comm/communicator.hpp"
#include "gridlops/local/buffer.hpp"
#include "support/catch.hpp"

namespace gridlops::testing {

/// The subject of the contract: an implementation, and the memory that it works on.
struct Subject {
  std::unique_ptr<Communicator> comm;
  std::shared_ptr<Backend> memory;
};

/// Checks what every Communicator must do, in sections of the calling test case. make() is collective.
void check_communicator_contract(const std::function<Subject()>& make);

/// An array of T in the memory of the subject.
template <class T>
class Operand {
 public:
  Operand(const Subject& subject, const std::vector<T>& values)
      : memory_(subject.memory), buffer_(memory_, static_cast<Index>(values.size())) {
    if (!values.empty()) memory_->upload(values.data(), buffer_.data(), bytes());
  }

  std::vector<T> values() const {
    std::vector<T> host(static_cast<std::size_t>(buffer_.size()));
    if (!host.empty()) memory_->download(buffer_.data(), host.data(), bytes());
    return host;
  }

  operator Elements() const { return part(0, buffer_.size()); }
  operator ConstElements() const { return part(0, buffer_.size()); }
  Elements part(Index begin, Index count) const { return {buffer_.data() + begin, count}; }

 private:
  Index bytes() const { return buffer_.size() * static_cast<Index>(sizeof(T)); }

  std::shared_ptr<Backend> memory_;
  Buffer<T> buffer_;
};

/// Element i of rank's array. Elements are integers so small that their sums are exact in every type.
template <class T>
T value(int rank, Index i) {
  const auto number = [](Index n) { return static_cast<int>(n % 101) - 50; };
  const Index n = rank * 31 + i * 7;
  if constexpr (is_complex<T>) {
    return {static_cast<Real<T>>(number(n)), static_cast<Real<T>>(number(n + 13))};
  } else {
    return static_cast<T>(number(n));
  }
}

template <class T>
std::vector<T> values(int rank, Index count, Index begin = 0) {
  std::vector<T> result;
  for (Index i = 0; i < count; ++i) result.push_back(value<T>(rank, begin + i));
  return result;
}

/// The content of an output before an operation. No operation may leave this value.
template <class T>
std::vector<T> untouched(Index count) {
  return std::vector<T>(static_cast<std::size_t>(count), static_cast<T>(99));
}

template <class T>
std::vector<T> concatenate(int ranks, const std::function<std::vector<T>(int)>& part) {
  std::vector<T> all;
  for (int rank = 0; rank < ranks; ++rank) {
    const std::vector<T> one = part(rank);
    all.insert(all.end(), one.begin(), one.end());
  }
  return all;
}

/// Lengths of parts. Each rank has an empty part in some pattern, and in pattern 0 all are
/// empty.
inline std::vector<Index> uneven_counts(int ranks, int pattern) {
  std::vector<Index> counts;
  for (int rank = 0; rank < ranks; ++rank) counts.push_back(pattern == 0 ? 0 : (rank * 3 + pattern * 4) % 7);
  return counts;
}
inline constexpr int count_patterns = 8;

inline Index sum(const std::vector<Index>& counts) {
  return std::accumulate(counts.begin(), counts.end(), Index{0});
}
inline Index offset_of(const std::vector<Index>& counts, int rank) {
  return std::accumulate(counts.begin(), counts.begin() + rank, Index{0});
}
inline Index count_of(const std::vector<Index>& counts, int rank) {
  return counts[static_cast<std::size_t>(rank)];
}

/// Checks what one operation adds to the traffic of this rank.
class Ledger {
 public:
  explicit Ledger(const Communicator& comm) : comm_(comm), before_(comm.traffic()) {}

  void expect(CommOperation operation, Index elements_sent, Index elements_received,
              Index element_size) const {
    CHECK(comm_.traffic().bytes_sent - before_.bytes_sent == elements_sent * element_size);
    CHECK(comm_.traffic().bytes_received - before_.bytes_received == elements_received * element_size);
    for (std::size_t i = 0; i < comm_operation_count; ++i) {
      const Index expected = i == static_cast<std::size_t>(operation) ? 1 : 0;
      CHECK(comm_.traffic().calls[i] - before_.calls[i] == expected);
    }
  }

 private:
  const Communicator& comm_;
  Traffic before_;
};

enum class Form { blocking, started };
inline constexpr Form forms[] = {Form::blocking, Form::started};

/// Runs an operation in one of its two forms. Half of the non-blocking ones are completed by test().
template <class Blocking, class Start>
void perform(Form form, int rank, Blocking&& blocking, Start&& start) {
  if (form == Form::blocking) return blocking();
  Request request = start();
  if (rank % 2 == 0) {
    while (!request.test()) {
    }
  }
  request.wait();
  CHECK(request.test());
}

}  // namespace gridlops::testing
