// SPDX-License-Identifier: BSD-3-Clause
// Transforms by the interface of FFTW 3, which FFTW, AMD's AOCL-FFTW and Intel's MKL have.
#include <fftw3.h>

#include <limits>
#include <mutex>
#include <new>

#include "base/message.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/local/backend.hpp"
#include "local/arrays/fast_fourier.hpp"
#include "local/arrays/library_lines.hpp"

namespace gridlops {

namespace {

/// FFTW's names for a precision.
template <class R>
struct Fftw;
template <>
struct Fftw<float> {
  using Plan = fftwf_plan;
  using Complex = fftwf_complex;
  static constexpr auto allocate = fftwf_malloc;
  static constexpr auto release = fftwf_free;
  static constexpr auto plan_complex = fftwf_plan_dft_1d;
  static constexpr auto plan_forward = fftwf_plan_dft_r2c_1d;
  static constexpr auto plan_backward = fftwf_plan_dft_c2r_1d;
  static constexpr auto execute_complex = fftwf_execute_dft;
  static constexpr auto execute_forward = fftwf_execute_dft_r2c;
  static constexpr auto execute_backward = fftwf_execute_dft_c2r;
  static constexpr auto destroy = fftwf_destroy_plan;
};
template <>
struct Fftw<double> {
  using Plan = fftw_plan;
  using Complex = fftw_complex;
  static constexpr auto allocate = fftw_malloc;
  static constexpr auto release = fftw_free;
  static constexpr auto plan_complex = fftw_plan_dft_1d;
  static constexpr auto plan_forward = fftw_plan_dft_r2c_1d;
  static constexpr auto plan_backward = fftw_plan_dft_c2r_1d;
  static constexpr auto execute_complex = fftw_execute_dft;
  static constexpr auto execute_forward = fftw_execute_dft_r2c;
  static constexpr auto execute_backward = fftw_execute_dft_c2r;
  static constexpr auto destroy = fftw_destroy_plan;
};

/// FFTW executes plans in any thread, but makes and destroys one at a time.
std::mutex& planner() {
  static std::mutex mutex;
  return mutex;
}

template <class R>
auto* fftw_complex_of(std::complex<R>* line) {
  return reinterpret_cast<typename Fftw<R>::Complex*>(line);
}

/// Owns a plan.
template <class R>
class Plan {
 public:
  /// make(length, in, out) asks FFTW for a plan of lines that begin like those of its own allocator, at
  /// multiples of what its vector instructions need.
  template <class Make>
  Plan(Index n, Make&& make) {
    constexpr Index most = std::numeric_limits<int>::max();
    require<UsageError>(n <= most, "a Fourier transform of ", n,
                        " samples is impossible: FFTW takes at most ", most,
                        "; cut the lines into shorter ones");
    const std::lock_guard lock(planner());
    const std::size_t bytes = static_cast<std::size_t>(n) * sizeof(std::complex<R>);
    const Line in(Fftw<R>::allocate(bytes)), out(Fftw<R>::allocate(bytes));
    if (in == nullptr || out == nullptr) throw std::bad_alloc();
    plan_ = make(static_cast<int>(n), in.get(), out.get());
    if (plan_ == nullptr)
      throw Error(ExitStatus::internal,
                  message("FFTW makes no plan for a Fourier transform of ", n, " samples"),
                  KnownTo::one_rank);
  }
  ~Plan() {
    const std::lock_guard lock(planner());
    Fftw<R>::destroy(plan_);
  }
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  typename Fftw<R>::Plan get() const { return plan_; }

 private:
  struct Release {
    void operator()(void* line) const { Fftw<R>::release(line); }
  };
  using Line = std::unique_ptr<void, Release>;

  typename Fftw<R>::Plan plan_ = nullptr;
};

/// A guess rather than a measurement, which would not give the same plan, and so the same bits, each time.
constexpr unsigned effort = FFTW_ESTIMATE;

/// FFTW has fast steps for the prime factors up to 13. Its guesses at others take longer than steps and
/// convolutions of ours.
bool is_fast(Index n) {
  n = rough_part(n);
  for (const Index prime : {7, 11, 13})
    while (n % prime == 0) n /= prime;
  return n == 1;
}

template <class R>
class FftwLine final : public ComplexLine<R> {
 public:
  explicit FftwLine(Index n)
      : forward_(n, planner_of(FFTW_FORWARD)), backward_(n, planner_of(FFTW_BACKWARD)) {}
  void forward(const std::complex<R>* in, std::complex<R>* out) const override { run(forward_, in, out); }
  void backward(const std::complex<R>* in, std::complex<R>* out) const override { run(backward_, in, out); }

 private:
  static auto planner_of(int sign) {
    return [sign](int n, void* in, void* out) {
      using C = typename Fftw<R>::Complex;
      return Fftw<R>::plan_complex(n, static_cast<C*>(in), static_cast<C*>(out), sign, effort);
    };
  }
  /// Such a plan leaves its input as it is.
  static void run(const Plan<R>& plan, const std::complex<R>* in, std::complex<R>* out) {
    Fftw<R>::execute_complex(plan.get(), fftw_complex_of(const_cast<std::complex<R>*>(in)),
                             fftw_complex_of(out));
  }
  Plan<R> forward_, backward_;
};

template <class R>
class FftwRealLine final : public RealLine<R> {
 public:
  explicit FftwRealLine(Index n)
      : n_(n),
        forward_(n,
                 [](int length, void* in, void* out) {
                   return Fftw<R>::plan_forward(length, static_cast<R*>(in),
                                                static_cast<typename Fftw<R>::Complex*>(out), effort);
                 }),
        backward_(n, [](int length, void* in, void* out) {
          return Fftw<R>::plan_backward(length, static_cast<typename Fftw<R>::Complex*>(in),
                                        static_cast<R*>(out), effort);
        }) {}
  void forward(const R* in, std::complex<R>* out) const override {
    Fftw<R>::execute_forward(forward_.get(), const_cast<R*>(in), fftw_complex_of(out));
  }
  void backward(std::complex<R>* in, R* out) const override {
    in[0].imag(0);
    if (n_ % 2 == 0) in[n_ / 2].imag(0);
    Fftw<R>::execute_backward(backward_.get(), fftw_complex_of(in), out);
  }

 private:
  Index n_;
  Plan<R> forward_, backward_;
};

}  // namespace

std::string fft_library() { return message(fftw_version, ", ", GRIDLOPS_FFT_LICENCE); }

template <class R>
std::unique_ptr<const ComplexLine<R>> library_line(Index n) {
  if (!is_fast(n)) return nullptr;
  return std::make_unique<FftwLine<R>>(n);
}

template <class R>
std::unique_ptr<const RealLine<R>> library_real_line(Index n) {
  if (!is_fast(n)) return nullptr;
  return std::make_unique<FftwRealLine<R>>(n);
}

Index largest_step() { return 41; }

/// Among lengths of about the same size, FFTW's guesses are the best at those that powers of two divide.
Index convolution_length(Index n) { return 16 * fast_length((n + 15) / 16); }

template std::unique_ptr<const ComplexLine<float>> library_line(Index);
template std::unique_ptr<const ComplexLine<double>> library_line(Index);
template std::unique_ptr<const RealLine<float>> library_real_line(Index);
template std::unique_ptr<const RealLine<double>> library_real_line(Index);

}  // namespace gridlops
