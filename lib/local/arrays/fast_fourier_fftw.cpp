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

}  // namespace

std::string fft_library() { return message(fftw_version, ", ", GRIDLOPS_FFT_LICENCE); }

template <class R>
struct FastFourier<R>::Plans {
  static Plan<R> made(Index n, int sign) {
    return {n, [sign](int length, void* in, void* out) {
              using C = typename Fftw<R>::Complex;
              return Fftw<R>::plan_complex(length, static_cast<C*>(in), static_cast<C*>(out), sign, effort);
            }};
  }
  explicit Plans(Index n) : forward(made(n, FFTW_FORWARD)), backward(made(n, FFTW_BACKWARD)) {}
  Plan<R> forward, backward;
};

template <class R>
FastFourier<R>::FastFourier(Index n) : plans_(std::make_unique<const Plans>(n)) {}
template <class R>
FastFourier<R>::~FastFourier() = default;

template <class R>
Index FastFourier<R>::scratch_size() const {
  return 0;
}
// Not in place, a plan leaves its input as it is.
template <class R>
void FastFourier<R>::forward(const Complex* in, Complex* out, Complex*) const {
  Fftw<R>::execute_complex(plans_->forward.get(), fftw_complex_of(const_cast<Complex*>(in)),
                           fftw_complex_of(out));
}
template <class R>
void FastFourier<R>::backward(const Complex* in, Complex* out, Complex*) const {
  Fftw<R>::execute_complex(plans_->backward.get(), fftw_complex_of(const_cast<Complex*>(in)),
                           fftw_complex_of(out));
}

template <class R>
struct RealFourier<R>::Plans {
  explicit Plans(Index samples)
      : n(samples),
        forward(n,
                [](int length, void* in, void* out) {
                  return Fftw<R>::plan_forward(length, static_cast<R*>(in),
                                               static_cast<typename Fftw<R>::Complex*>(out), effort);
                }),
        backward(n, [](int length, void* in, void* out) {
          return Fftw<R>::plan_backward(length, static_cast<typename Fftw<R>::Complex*>(in),
                                        static_cast<R*>(out), effort);
        }) {}
  Index n;
  Plan<R> forward, backward;
};

template <class R>
RealFourier<R>::RealFourier(Index n) : plans_(std::make_unique<const Plans>(n)) {}
template <class R>
RealFourier<R>::~RealFourier() = default;

template <class R>
Index RealFourier<R>::scratch_size() const {
  return 0;
}
template <class R>
void RealFourier<R>::forward(const R* in, Complex* out, Complex*) const {
  Fftw<R>::execute_forward(plans_->forward.get(), const_cast<R*>(in), fftw_complex_of(out));
}
template <class R>
void RealFourier<R>::backward(Complex* in, R* out, Complex*) const {
  in[0].imag(0);
  if (plans_->n % 2 == 0) in[plans_->n / 2].imag(0);
  Fftw<R>::execute_backward(plans_->backward.get(), fftw_complex_of(in), out);
}

template class FastFourier<float>;
template class FastFourier<double>;
template class RealFourier<float>;
template class RealFourier<double>;

}  // namespace gridlops
