// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <limits>
#include <memory>
#include <vector>

#include "base/message.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/base/random.hpp"
#include "gridlops/comm/failure.hpp"
#include "gridlops/comm/mpi.hpp"
#include "gridlops/local/buffer.hpp"
#include "gridlops/streamed/streamed_matrix.hpp"
#include "streamed/disk/part_plan.hpp"
#include "streamed/disk/read_ahead.hpp"

namespace gridlops {

namespace {

/// A ring for reading this many bytes as products read them with this memory.
class Trial {
 public:
  static constexpr Index slots = PartPlan::least_slots;

  Trial(Index bytes, Index memory_allowed) {
    constexpr Index least = PartPlan::least_bytes;
    const Index wanted = std::min(PartPlan::good_bytes(0, memory_allowed), bytes / (slots + 1));
    slab_ = std::max(wanted / least, Index{1}) * least;
    slabs_ = std::max<Index>(bytes / slab_, slots + 1);
  }

  Index slab() const { return slab_; }
  Index slabs() const { return slabs_; }

  /// Throws OutOfMemory on this rank alone.
  void take_memory() { memory_ = Buffer<std::byte>(make_host_backend(), slab_ * slots + DiskFile::block); }
  std::byte* memory() {
    void* first = memory_.data();
    auto room = static_cast<std::size_t>(memory_.size());
    return static_cast<std::byte*>(std::align(std::size_t{DiskFile::block}, at(slab_), first, room));
  }

  /// Reads the slabs, which begin at these places, or fewer, in some passes. Returns what all ranks read in a
  /// second (collective over comm).
  DiskRate read(Communicator& comm, std::shared_ptr<const DiskFile> file, const std::vector<Index>& begins) {
    std::unique_ptr<FileParts> source;
    std::unique_ptr<ReadAhead> reader;
    attempt(comm, [&] {
      ReadAhead::Order pass;
      std::vector<FileParts::Extent> parts;
      for (const Index begin : begins) {
        pass.parts.push_back(std::ssize(parts));
        parts.push_back({begin, slab_});
      }
      source = std::make_unique<FileParts>(std::move(file), std::move(parts));
      reader = std::make_unique<ReadAhead>(*source, ReadAhead::Ring{memory(), slots, slab_},
                                           std::vector{pass}, [](Index, const std::byte*) {});
    });
    // The best of some passes, because a disturbed pass shows no limit, and the first follows what was
    // written.
    constexpr int passes = 4;
    std::array<double, 1> seconds{std::numeric_limits<double>::infinity()};
    for (int pass = 0; pass < passes; ++pass) {
      std::array<double, 1> of_pass{};
      attempt(comm, [&] {
        const auto begin = std::chrono::steady_clock::now();
        reader->begin_pass(0);
        for (Index k = 0; k < std::ssize(begins); ++k) {
          reader->get(k);
          reader->release_before(k + 1);
          keep_alive();
        }
        of_pass[0] = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
      });
      comm.all_reduce(of_pass, ReduceOp::max);
      seconds[0] = std::min(seconds[0], of_pass[0]);
    }
    return {static_cast<double>(std::ssize(begins) * slab_) * comm.size() / seconds[0]};
  }

 private:
  Index slab_ = 0, slabs_ = 0;
  Buffer<std::byte> memory_;  // as products have it: a disk fills large pages faster
};

}  // namespace

DiskRate measure_disk(Communicator& comm, const std::string& scratch, Index bytes, Index memory) {
  Trial trial(bytes / comm.size(), memory);
  std::shared_ptr<DiskFile> file;
  std::vector<Index> begins;
  attempt(comm, [&] {
    trial.take_memory();
    // Numbers that no disk compresses.
    for (Index k = 0; k < trial.slab(); k += Index{sizeof(double)}) {
      const double value = counter_random<double>(1, k, comm.rank());
      std::memcpy(trial.memory() + k, &value, sizeof value);
    }
    file = std::make_shared<DiskFile>(DiskFile::nameless(scratch, trial.slabs() * trial.slab()));
    for (Index k = 0; k < trial.slabs(); ++k) {
      keep_alive();
      begins.push_back(k * trial.slab());
      const DiskWait wait = file->writing(trial.slab());
      file->write(trial.memory(), trial.slab(), begins.back());
    }
    file->finish();
  });
  return trial.read(comm, file, begins);
}

DiskRate measure_file(Communicator& comm, const std::string& path, Index bytes, Index memory) {
  Trial trial(bytes / comm.size(), memory);
  std::shared_ptr<DiskFile> file;
  std::vector<Index> begins;
  attempt(comm, [&] {
    trial.take_memory();
    file = std::make_shared<DiskFile>(DiskFile::to_read(path));
    require<InputError>(InputFile(path).size() >= trial.slab(), path,
                        ": is too short to measure how fast it ", "is read; ", trial.slab(),
                        " bytes are needed");
    // A short file is read again and again.
    const auto whole_blocks = [](Index bytes_of_file) {
      return std::max<Index>(bytes_of_file, 0) / DiskFile::block * DiskFile::block;
    };
    const Index size = InputFile(path).size(), room = whole_blocks(size / comm.size()),
                last = whole_blocks(size - trial.slab()), different = std::max<Index>(room / trial.slab(), 1);
    for (Index k = 0; k < trial.slabs(); ++k)
      begins.push_back(std::min(comm.rank() * room + k % different * trial.slab(), last));
  });
  return trial.read(comm, file, begins);
}

}  // namespace gridlops
