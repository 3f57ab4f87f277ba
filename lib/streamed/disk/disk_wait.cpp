// SPDX-License-Identifier: BSD-3-Clause
#include "streamed/disk/disk_wait.hpp"

#include <condition_variable>
#include <mutex>
#include <utility>

#include "base/message.hpp"
#include "comm/failure/job_end.hpp"
#include "gridlops/base/types.hpp"
#include "local/threads.hpp"

namespace gridlops {

void DiskPatience::tell(const std::string& for_what) {
  const auto waited = std::chrono::steady_clock::now() - begin_;
  report(message("has waited ",
                 static_cast<Index>(std::chrono::duration_cast<std::chrono::seconds>(waited).count()),
                 " s for ", for_what, "; is that disk slow, or gone?"));
  next_ *= 2;
}

DiskWait::DiskWait(std::string for_what) {
  if (for_what.empty()) return;
  thread_ = start_thread([what = std::move(for_what)](const std::stop_token& stop) {
    DiskPatience patience;
    std::mutex mutex;
    std::unique_lock lock(mutex);
    std::condition_variable_any over;
    // Where it stops, wait_for() may still say that it has not.
    for (;; patience.tell(what)) {
      over.wait_for(lock, stop, patience.next(), [&] { return stop.stop_requested(); });
      if (stop.stop_requested()) return;
    }
  });
}

}  // namespace gridlops
