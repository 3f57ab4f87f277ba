// SPDX-License-Identifier: BSD-3-Clause
#include "local/threads.hpp"

#include <dlfcn.h>
#include <sched.h>
#include <sys/resource.h>

#include <atomic>
#include <charconv>
#include <exception>
#include <limits>
#include <mutex>

#include "base/message.hpp"
#include "base/settings.hpp"
#include "gridlops/local/backend.hpp"

#if defined(_OPENMP)
#include <omp.h>
#endif

namespace gridlops {

namespace {

/// The number of threads that the environment asks for; 0 if it does not. OMP_NUM_THREADS may have a number
/// for each level of loops within loops, of which the first counts.
int asked_threads() {
  int number = number_in<int>("GRIDLOPS_THREADS", 0, 1, std::numeric_limits<int>::max(),
                              "the number of threads of each rank, at least 1");
  if (number > 0) return number;
  const std::string of_openmp = variable("OMP_NUM_THREADS");
  std::from_chars(of_openmp.data(), of_openmp.data() + of_openmp.size(), number);
  return std::max(number, 0);
}

std::atomic<int> chosen{0};  // 0 before anybody has asked, -1 if nobody chose
std::atomic<int> share{0};   // of the machine's processors; 0 before anybody has asked
std::atomic<bool> has_less_than_one{false};

/// While it lives, BLAS has one thread in this process, if it can be told.
class OneBlasThread {
 public:
  OneBlasThread() {
    if (get_ != nullptr && set_ != nullptr && (before_ = get_()) != 1) set_(1);
  }
  ~OneBlasThread() {
    if (before_ > 1) set_(before_);
  }
  OneBlasThread(const OneBlasThread&) = delete;
  OneBlasThread& operator=(const OneBlasThread&) = delete;

 private:
  template <class Function>
  static Function* find(const char* openblas, const char* mkl) {
    void* const found = dlsym(RTLD_DEFAULT, openblas);
    return reinterpret_cast<Function*>(found != nullptr ? found : dlsym(RTLD_DEFAULT, mkl));
  }

  inline static int (*const get_)() = find<int()>("openblas_get_num_threads", "mkl_get_max_threads");
  inline static void (*const set_)(int) = find<void(int)>("openblas_set_num_threads", "MKL_Set_Num_Threads");
  int before_ = 1;
};

/// An exception of one of several threads.
class Failure {
 public:
  template <class Work>
  void keep(Work&& work) noexcept {
    try {
      work();
    } catch (...) {
      const std::lock_guard lock(access_);
      if (failure_ == nullptr) failure_ = std::current_exception();
    }
  }
  void rethrow() const {
    if (failure_ != nullptr) std::rethrow_exception(failure_);
  }

 private:
  std::mutex access_;
  std::exception_ptr failure_;
};

bool is_in_threads() {
#if defined(_OPENMP)
  return omp_in_parallel() != 0;
#else
  return true;
#endif
}

}  // namespace

OutOfMemory refused_thread(const std::system_error& reason) {
  const auto limit = [](int resource) -> std::string {
    struct rlimit of {};
    if (getrlimit(static_cast<decltype(RLIMIT_AS)>(resource), &of) != 0 || of.rlim_cur == RLIM_INFINITY)
      return "unlimited";
    return message(of.rlim_cur);
  };
  return OutOfMemory(
      message("a thread cannot be started: ", reason.code().message(),
              "; it needs room for its stack, and the limits of this process are: address space ",
              "(ulimit -v) ", limit(RLIMIT_AS), " bytes, stack (ulimit -s) ", limit(RLIMIT_STACK),
              " bytes, threads of the user (ulimit -u) ", limit(RLIMIT_NPROC),
              "; raise the limit that is too low, or take more ranks"));
}

std::vector<int> usable_processors() {
#if defined(__linux__)
  cpu_set_t usable;
  if (sched_getaffinity(0, sizeof usable, &usable) == 0) {
    std::vector<int> processors(CPU_SETSIZE);
    for (std::size_t cpu = 0; cpu < processors.size(); ++cpu)
      processors[cpu] = CPU_ISSET(cpu, &usable) ? 1 : 0;
    return processors;
  }
#endif
  return {1};
}

void share_processors(const std::vector<int>& usable, const std::vector<int>& ranks) {
  double processors = 1e-6;  // for thirds that do not add up to one
  for (std::size_t cpu = 0; cpu < usable.size(); ++cpu)
    if (usable[cpu] > 0) processors += 1.0 / ranks[cpu];
  share = std::max(static_cast<int>(processors), 1);
  has_less_than_one = processors < 1;
}

bool ranks_outnumber_processors() { return has_less_than_one; }

void choose_threads(int threads) { chosen = threads; }

int threads_per_rank() {
  if (chosen == 0) {
    const int asked = asked_threads();
    chosen = asked > 0 ? asked : -1;
  }
  if (chosen > 0) return chosen;
  if (share == 0) {
    const std::vector<int> usable = usable_processors();
    share_processors(usable, usable);
  }
  return share;
}

int threads_for(double operations) {
  const double worth = operations / operations_worth_a_thread;
  return worth < 2 || is_in_threads() ? 1 : static_cast<int>(std::min<double>(worth, threads_per_rank()));
}

void in_threads(int parts, const std::function<void(int)>& work) {
  if (parts <= 1 || is_in_threads()) {
    for (int part = 0; part < parts; ++part) work(part);
    return;
  }
  const OneBlasThread one_blas_thread;
  Failure failure;
#if defined(_OPENMP)
#pragma omp parallel for num_threads(parts) schedule(static)
#endif
  for (int part = 0; part < parts; ++part) failure.keep([&] { work(part); });
  failure.rethrow();
}

}  // namespace gridlops
