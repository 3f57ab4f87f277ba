// SPDX-License-Identifier: BSD-3-Clause
#include "bench/comm/message_ways.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "bench/measure/measurement.hpp"
#include "command_line/grid.hpp"
#include "gridlops/comm/failure.hpp"

namespace gridlops::bench {

namespace {

int rank_of(MPI_Comm comm) {
  int rank = 0;
  MPI_Comm_rank(comm, &rank);
  return rank;
}

/// Adds the seconds of a call to a sum.
template <class Call>
void timed(double& seconds, const Call& call) {
  const double begin = now();
  call();
  seconds += now() - begin;
}

/// Two-sided: rank 1 tells rank 0 when it has all messages.
class Sends final : public MessageWay {
 public:
  Sends(MPI_Comm pair, Index bytes) : pair_(pair), data_(static_cast<std::size_t>(bytes) / sizeof(double)) {}

  double run(Index often, Index messages, Index doubles) override {
    const bool sends = rank_of(pair_) == 0;
    const int count = static_cast<int>(doubles);
    std::vector<MPI_Request> requests(static_cast<std::size_t>(messages));
    double beginning = 0;
    for (Index turn = 0; turn < often; ++turn) {
      timed(beginning, [&] {
        for (Index k = 0; k < messages; ++k) {
          double* const message = data_.data() + k * doubles;
          MPI_Request* const request = &requests[static_cast<std::size_t>(k)];
          check_mpi(sends ? MPI_Isend(message, count, MPI_DOUBLE, 1, 0, pair_, request)
                          : MPI_Irecv(message, count, MPI_DOUBLE, 0, 0, pair_, request),
                    "MPI_Isend or MPI_Irecv");
        }
      });
      check_mpi(MPI_Waitall(static_cast<int>(messages), requests.data(), MPI_STATUSES_IGNORE), "MPI_Waitall");
      check_mpi(sends ? MPI_Recv(nullptr, 0, MPI_BYTE, 1, 1, pair_, MPI_STATUS_IGNORE)
                      : MPI_Send(nullptr, 0, MPI_BYTE, 0, 1, pair_),
                "the answer");
    }
    return beginning / static_cast<double>(often);
  }

  void write(const std::vector<double>& values) override {
    std::copy(values.begin(), values.end(), data_.begin());
  }
  std::vector<double> read(Index count) override { return {data_.begin(), data_.begin() + count}; }

 private:
  MPI_Comm pair_;
  std::vector<double> data_;
};

enum class Access { copy, put, get, accumulate };
enum class Epoch { fence, lock, flush };

/// One-sided: only rank 0 calls MPI, except for fences.
class WindowAccess final : public MessageWay {
 public:
  WindowAccess(const ProcessGrid& grid, MPI_Comm pair, Index bytes, WindowKind kind, Access access,
               Epoch epoch)
      : is_active_(rank_of(pair) == 0),
        access_(access),
        epoch_(epoch),
        data_(attempt(grid.comm(),
                      [&] { return std::vector<double>(static_cast<std::size_t>(bytes) / sizeof(double)); })),
        window_(grid.comm(), pair, bytes, kind) {
    if (epoch == Epoch::flush) access_to_all_.emplace(window_);
    if (access == Access::copy) peer_ = reinterpret_cast<double*>(window_.memory_of(1));
  }

  double run(Index often, Index messages, Index doubles) override {
    double beginning = 0;
    if (epoch_ == Epoch::fence) fence(MPI_MODE_NOPRECEDE);
    for (Index turn = 0; turn < often; ++turn) {
      if (is_active_) {
        if (epoch_ == Epoch::lock)
          check_mpi(MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, window_.handle()), "MPI_Win_lock");
        timed(beginning, [&] {
          for (Index k = 0; k < messages; ++k) begin_message(k * doubles, doubles);
        });
        if (epoch_ == Epoch::lock) check_mpi(MPI_Win_unlock(1, window_.handle()), "MPI_Win_unlock");
        if (epoch_ == Epoch::flush)
          check_mpi(
              access_ == Access::copy ? MPI_Win_sync(window_.handle()) : MPI_Win_flush(1, window_.handle()),
              "MPI_Win_flush");
      }
      if (epoch_ == Epoch::fence) fence(turn + 1 == often ? MPI_MODE_NOSUCCEED : 0);
    }
    return beginning / static_cast<double>(often);
  }

  // Rank 0 uses its own memory, rank 1 the window.
  void write(const std::vector<double>& values) override {
    std::copy(values.begin(), values.end(), memory());
  }
  std::vector<double> read(Index count) override { return {memory(), memory() + count}; }
  bool is_read() const override { return access_ == Access::get || access_ == Access::copy; }

 private:
  double* memory() { return is_active_ ? data_.data() : reinterpret_cast<double*>(window_.memory()); }
  void fence(int assertion) { check_mpi(MPI_Win_fence(assertion, window_.handle()), "MPI_Win_fence"); }

  void begin_message(Index first, Index doubles) {
    const int count = static_cast<int>(doubles);
    double* const mine = data_.data() + first;
    const MPI_Aint there = window_.displacement(1) + static_cast<MPI_Aint>(first * Index{sizeof(double)});
    const MPI_Win window = window_.handle();
    if (access_ == Access::copy) {
      std::memcpy(mine, peer_ + first, static_cast<std::size_t>(doubles) * sizeof(double));
    } else if (access_ == Access::put) {
      check_mpi(MPI_Put(mine, count, MPI_DOUBLE, 1, there, count, MPI_DOUBLE, window), "MPI_Put");
    } else if (access_ == Access::get) {
      check_mpi(MPI_Get(mine, count, MPI_DOUBLE, 1, there, count, MPI_DOUBLE, window), "MPI_Get");
    } else {
      check_mpi(MPI_Accumulate(mine, count, MPI_DOUBLE, 1, there, count, MPI_DOUBLE, MPI_SUM, window),
                "MPI_Accumulate");
    }
  }

  bool is_active_;
  Access access_;
  Epoch epoch_;
  std::vector<double> data_;
  Window window_;
  std::optional<AccessToAll> access_to_all_;
  const double* peer_ = nullptr;
};

/// NCCL: on two ranks, a broadcast from rank 0 is a message to rank 1. Both synchronise their devices.
class Broadcasts final : public MessageWay {
 public:
  Broadcasts(const ProcessGrid& grid, Index bytes)
      : grid_(grid), data_(grid.backend(), bytes / Index{sizeof(double)}) {}

  double run(Index often, Index messages, Index doubles) override {
    double beginning = 0;
    for (Index turn = 0; turn < often; ++turn) {
      timed(beginning, [&] {
        for (Index k = 0; k < messages; ++k)
          grid_.comm().broadcast(Elements(data_.data() + k * doubles, doubles), 0);
      });
      grid_.backend()->synchronize();
    }
    return beginning / static_cast<double>(often);
  }

  void write(const std::vector<double>& values) override {
    grid_.backend()->upload(values.data(), data_.data(), static_cast<Index>(values.size() * sizeof(double)));
  }
  std::vector<double> read(Index count) override {
    std::vector<double> values(static_cast<std::size_t>(count));
    grid_.backend()->download(data_.data(), values.data(), count * Index{sizeof(double)});
    return values;
  }

 private:
  const ProcessGrid& grid_;
  Buffer<double> data_;
};

}  // namespace

std::vector<NamedWay> message_ways(const std::string& device) {
  if (device == "gpu")
    return {{"nccl", [](MPI_Comm, const ProcessGrid& grid, Index bytes) {
               return std::make_unique<Broadcasts>(grid, bytes);
             }}};
  std::vector<NamedWay> ways{{"send", [](MPI_Comm pair, const ProcessGrid&, Index bytes) {
                                return std::make_unique<Sends>(pair, bytes);
                              }}};
  const auto add = [&](const std::string& name, WindowKind kind, Access access, Epoch epoch) {
    ways.push_back({name, [=](MPI_Comm pair, const ProcessGrid& grid, Index bytes) {
                      return std::make_unique<WindowAccess>(grid, pair, bytes, kind, access, epoch);
                    }});
  };
  add("copy", WindowKind::shared, Access::copy, Epoch::flush);
  const std::vector<std::pair<std::string, Access>> accesses{
      {"put", Access::put}, {"get", Access::get}, {"accumulate", Access::accumulate}};
  const std::vector<std::pair<std::string, Epoch>> epochs{
      {"fence", Epoch::fence}, {"lock", Epoch::lock}, {"flush", Epoch::flush}};
  for (const auto& [access_name, access] : accesses) {
    for (const auto& [epoch_name, epoch] : epochs) {
      const std::string name = fmt::format("{}, {}", access_name, epoch_name);
      add(name, WindowKind::allocated, access, epoch);
      add(fmt::format("{}, attached", name), WindowKind::dynamic, access, epoch);
    }
  }
  return ways;
}

}  // namespace gridlops::bench
