// SPDX-License-Identifier: BSD-3-Clause
#include "emulation/nccl/nccl_segment.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>

#include "emulation/report.hpp"

namespace emulation {

std::string Signature::text() const {
  static constexpr const char* names[] = {"ncclBroadcast",     "ncclReduce", "ncclAllReduce", "ncclAllGather",
                                          "ncclReduceScatter", "ncclSend",   "ncclRecv"};
  return text_of(names[static_cast<int>(kind)], " of ", count, " elements of type ", type, ", operator ", op,
                 ", root ", root);
}

SegmentName make_segment() {
  static long made = 0;
  const int file = memfd_create("gridlops-communicator", MFD_CLOEXEC);
  if (file < 0 || ftruncate(file, sizeof(Segment)) != 0) end_with_report("no memory file for a communicator");
  return {getpid(), file, getpid() * 1000000L + ++made};
}

Segment* open_segment(const SegmentName& name) {
  const std::string path = text_of("/proc/", name.process, "/fd/", name.file);
  const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) end_with_report("cannot open " + path);
  void* address = mmap(nullptr, sizeof(Segment), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (address == MAP_FAILED) end_with_report("cannot map " + path);
  close(file);
  auto* segment = static_cast<Segment*>(address);
  segment->uid = name.uid;
  return segment;
}

void close_segment(Segment* segment) { munmap(segment, sizeof(Segment)); }

bool wait_in_host(const char* function, const std::function<bool()>& is_over,
                  const std::function<bool()>& is_given_up) {
  static const double limit = hang_seconds();
  const auto begin = std::chrono::steady_clock::now();
  while (!is_over()) {
    const double waited = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (waited > limit && is_on(Detector::hangs))
      end_with_report(text_of("hang: ", function, " has waited ", limit, " s for its peers"));
    if (is_given_up()) return false;
    usleep(100);
  }
  return true;
}

}  // namespace emulation
