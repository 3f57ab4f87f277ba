// SPDX-License-Identifier: BSD-3-Clause
#include "emulation/memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <limits>

#include "emulation/device.hpp"
#include "emulation/report.hpp"

namespace emulation {

namespace {

constexpr std::size_t page = 4096;
constexpr std::size_t alignment = 256;  // as CUDA's

std::size_t rounded_up(std::size_t n, std::size_t to) { return (n + to - 1) / to * to; }

/// Handles access to device memory by the program, or by a library that it gave the address to.
void on_fault(int, siginfo_t* info, void*) {
  Memory& memory = device().memory;
  if (!memory.is_device(info->si_addr)) {
    std::signal(SIGSEGV, SIG_DFL);
    return;
  }
  const Allocation* allocation = memory.find(info->si_addr);
  end_with_report(text_of("host code touched device memory at ", info->si_addr, ", ",
                          allocation == nullptr ? "which was never allocated" : allocation->name()));
}

void catch_faults() {
  struct sigaction action {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  sigaction(SIGSEGV, &action, nullptr);
}

/// Whether two regions overlap. Exact where both have the same pitch; otherwise gaps count as used.
bool meet(const Access& a, const Access& b) {
  const auto end = [](const Access& x) { return x.offset + (x.count - 1) * x.pitch + x.width; };
  if (end(a) <= b.offset || end(b) <= a.offset) return false;
  if (a.pitch != b.pitch || (a.count == 1 && b.count == 1)) return true;
  const std::size_t from_a = (b.offset + a.pitch - a.offset % a.pitch) % a.pitch;
  return from_a < a.width || from_a + b.width > a.pitch;
}

bool covers(const Access& a, const Access& b) {
  if (a.offset == b.offset && a.width >= b.width && a.pitch == b.pitch && a.count >= b.count) return true;
  return a.count == 1 && a.offset <= b.offset &&
         a.offset + a.width >= b.offset + (b.count - 1) * b.pitch + b.width;
}

}  // namespace

std::string Allocation::name() const {
  return text_of("allocation ", number, " of ", size, " bytes",
                 on_device ? " on the device" : " of pinned memory", freed ? ", freed" : "");
}

Memory::Memory() : file_(memfd_create("gridlops-device", 0)) {
  if (file_ < 0 || ftruncate(file_, static_cast<off_t>(size_)) != 0) end_with_report("no memory file");
  const auto map = [this](int protection) {
    void* address = mmap(nullptr, size_, protection, MAP_SHARED | MAP_NORESERVE, file_, 0);
    if (address == MAP_FAILED) end_with_report("the device memory cannot be mapped");
    return static_cast<char*>(address);
  };
  alias_ = map(PROT_READ | PROT_WRITE);
  public_ = map(is_on(Detector::host_access) ? PROT_NONE : PROT_READ | PROT_WRITE);
  if (is_on(Detector::host_access)) catch_faults();
}

// Each allocation ends at the end of a page, as far as its alignment allows, and the next page is unmapped.
void* Memory::allocate(std::size_t bytes, bool on_device) {
  Allocation made{nullptr, bytes, 0, on_device, current_device(), false, {}};
  const double most =
      setting(on_device ? "GRIDLOPS_EMULATION_DEVICE_BYTES" : "GRIDLOPS_EMULATION_PINNED_BYTES",
              std::numeric_limits<double>::infinity());
  if (static_cast<double>(bytes_in_use(made)) + static_cast<double>(bytes) > most) return nullptr;
  const std::size_t body = rounded_up(bytes, page);
  char* region = nullptr;
  if (on_device) {
    if (bytes > size_ || used_ + body + page > size_) return nullptr;
    region = public_ + used_;
    used_ += body + page;
  } else {
    void* address = mmap(nullptr, body + page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (address == MAP_FAILED || mprotect(address, body, PROT_READ | PROT_WRITE) != 0) return nullptr;
    region = static_cast<char*>(address);
  }
  char* begin = region + (body - rounded_up(bytes, alignment));
  if (is_on(Detector::uninitialised)) poison(alias(begin), bytes);
  made.begin = begin;
  made.number = ++numbers_;
  bytes_in_use(made) += bytes;
  allocations_[begin] = made;
  return begin;
}

void Memory::free(Allocation& allocation) {
  allocation.freed = true;
  allocation.accesses.clear();
  char* region = reinterpret_cast<char*>(reinterpret_cast<std::uintptr_t>(allocation.begin) / page * page);
  const std::size_t body = rounded_up(allocation.size, page);
  if (allocation.on_device) {
    fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset_of(region)),
              static_cast<off_t>(body));
  } else {
    mprotect(region, body, PROT_NONE);
    madvise(region, body, MADV_DONTNEED);
  }
}

Allocation* Memory::find(const void* address) {
  auto after = allocations_.upper_bound(const_cast<char*>(static_cast<const char*>(address)));
  if (after == allocations_.begin()) return nullptr;
  Allocation& candidate = std::prev(after)->second;
  const auto offset = static_cast<std::size_t>(static_cast<const char*>(address) - candidate.begin);
  return offset < std::max(candidate.size, std::size_t{1}) + page ? &candidate : nullptr;
}

void Memory::poison(void* memory, std::size_t bytes) {
  constexpr std::uint64_t pattern = 0x7ff4dead7fb4deadU;  // a NaN, and two of single precision
  auto* at = static_cast<char*>(memory);
  for (; bytes >= sizeof(pattern); bytes -= sizeof(pattern), at += sizeof(pattern))
    std::memcpy(at, &pattern, sizeof(pattern));
  std::memcpy(at, &pattern, bytes);
}

void Memory::touch(const Region& region, const Moment& known, int stream, long tick, const Moment& settled,
                   const Label& label) {
  if (region.extent() == 0) return;
  Allocation* allocation = find(region.begin);
  if (allocation == nullptr) {
    violation(Detector::pageable, *label, ": ", region.begin,
              " is neither device memory nor pinned: an asynchronous copy would not be one");
    return;
  }
  if (allocation->freed) {
    violation(Detector::ranges, *label, " uses ", allocation->name());
    return;
  }
  const Access now{static_cast<std::size_t>(static_cast<const char*>(region.begin) - allocation->begin),
                   region.width,
                   std::max(region.pitch, region.width),
                   region.count,
                   region.written,
                   stream,
                   tick,
                   label};
  if (now.offset + region.extent() > allocation->size) {
    violation(Detector::ranges, *label, " ", now.written ? "writes" : "reads", " bytes ", now.offset, " to ",
              now.offset + region.extent(), " of ", allocation->name());
  }
  if (const auto address = reinterpret_cast<std::uintptr_t>(region.begin); address % region.alignment != 0)
    violation(Detector::alignment, *label, now.written ? " writes" : " reads", " elements aligned to ",
              region.alignment, " bytes at offset ", now.offset, " of ", allocation->name());
  std::vector<Access>& accesses = allocation->accesses;
  std::erase_if(accesses, [&](const Access& old) { return settled.includes(old.stream, old.tick); });
  for (const Access& old : accesses) {
    if ((!now.written && !old.written) || known.includes(old.stream, old.tick) || !meet(now, old)) continue;
    violation(Detector::races, "race on ", allocation->name(), ": '", *label, "' on stream ", stream,
              now.written ? " writes" : " reads", " what '", *old.label, "' on stream ", old.stream,
              old.written ? " writes" : " reads", ", and nothing orders the two");
  }
  std::erase_if(accesses, [&](const Access& old) {
    return known.includes(old.stream, old.tick) && (now.written || !old.written) && covers(now, old);
  });
  accesses.push_back(now);
}

void Memory::check_host_use(const Region& region, const Moment& host, const char* user) {
  const Allocation* allocation = find(region.begin);
  if (allocation == nullptr || allocation->freed) {
    violation(Detector::ranges, user, " uses ",
              allocation == nullptr ? "what was never allocated" : allocation->name());
    return;
  }
  const Access now{static_cast<std::size_t>(static_cast<const char*>(region.begin) - allocation->begin),
                   region.width,
                   region.pitch,
                   region.count,
                   region.written,
                   0,
                   0,
                   {}};
  const char* verb = region.written ? " writes " : " reads ";
  if (now.offset + region.extent() > allocation->size)
    violation(Detector::ranges, user, verb, "bytes ", now.offset, " to ", now.offset + region.extent(),
              " of ", allocation->name());
  for (const Access& old : allocation->accesses)
    if ((now.written || old.written) && !host.includes(old.stream, old.tick) && meet(now, old))
      violation(Detector::races, user, verb, allocation->name(), ", which '", *old.label, "' on stream ",
                old.stream, old.written ? " writes" : " reads", ", and the host has not waited for that");
}

const char* peer_memory(int process, int file, std::size_t size_to_map) {
  static std::map<std::pair<int, int>, const char*> known;
  const char*& memory = known[{process, file}];
  if (memory != nullptr) return memory;
  const std::string path = text_of("/proc/", process, "/fd/", file);
  const int opened = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (opened < 0) end_with_report(text_of("cannot open ", path, ": the peer is gone"));
  void* address = mmap(nullptr, size_to_map, PROT_READ, MAP_SHARED | MAP_NORESERVE, opened, 0);
  if (address == MAP_FAILED) end_with_report(text_of("cannot map ", path));
  close(opened);
  memory = static_cast<const char*>(address);
  return memory;
}

}  // namespace emulation
