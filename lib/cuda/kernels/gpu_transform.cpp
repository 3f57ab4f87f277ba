// SPDX-License-Identifier: BSD-3-Clause
// Fourier transforms by cuFFT. The lines of a group of columns are copied into the transform's memory, with
// time 0 and frequency 0 first, transformed there all at once, and copied back with their factors. All groups
// have the same plan: where columns are missing, it transforms what lies there. So a column's bits do not
// depend on the others.
#include <cufftXt.h>

#include <algorithm>
#include <complex>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "base/instantiate.hpp"
#include "base/message.hpp"
#include "base/numbers.hpp"
#include "cuda/device_context.hpp"
#include "cuda/kernels/gpu_kernels.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/local/buffer.hpp"

namespace gridlops::cuda {

namespace {

/// Lines of equal length in memory: their type, the distance between elements, and the distance between
/// lines.
struct LineLayout {
  cudaDataType type;
  long long length, step, distance;
};

/// A cuFFT plan in the compute stream.
class FourierPlan {
 public:
  explicit FourierPlan(const DeviceContext& context) : context_(context) {
    check(cufftCreate(&handle_), "cufftCreate");
  }
  ~FourierPlan() {
    cudaSetDevice(context_.device());
    // cuFFT does not promise to wait for the work that uses the plan.
    if (!context_.has_failed()) cudaStreamSynchronize(context_.compute());
    cufftDestroy(handle_);
  }
  FourierPlan(const FourierPlan&) = delete;
  FourierPlan& operator=(const FourierPlan&) = delete;

  /// Plans transforms of this many lines of n samples, and returns the bytes of work memory that they need.
  Index make(long long n, long long lines, LineLayout in, LineLayout out, cudaDataType precision) {
    check(cufftSetAutoAllocation(handle_, 0), "cufftSetAutoAllocation");
    check(cufftSetStream(handle_, context_.compute()), "cufftSetStream");
    std::size_t bytes = 0;
    const cufftResult result =
        cufftXtMakePlanMany(handle_, 1, &n, &in.length, in.step, in.distance, in.type, &out.length, out.step,
                            out.distance, out.type, lines, &bytes, precision);
    if (result == CUFFT_ALLOC_FAILED) {
      cudaGetLastError();
      throw OutOfMemory(message("the GPU has no memory left for a plan of ", lines, " Fourier transforms of ",
                                n, " samples; use more GPUs"));
    }
    check(result, "cufftXtMakePlanMany");
    return static_cast<Index>(bytes);
  }
  void work_in(void* memory) { check(cufftSetWorkArea(handle_, memory), "cufftSetWorkArea"); }
  void run(void* in, void* out, int direction) {
    check(cufftXtExec(handle_, in, out, direction), "cufftXtExec");
  }

 private:
  const DeviceContext& context_;
  cufftHandle handle_ = 0;
};

template <std::floating_point R>
constexpr cudaDataType real_type = std::same_as<R, float> ? CUDA_R_32F : CUDA_R_64F;
template <std::floating_point R>
constexpr cudaDataType complex_type = std::same_as<R, float> ? CUDA_C_32F : CUDA_C_64F;

/// Elements that are consecutive both in the operator's lines and in the packed lines: their position in
/// each, and their factor in the transform.
struct Piece {
  Index begin, size, place;
  double weight;
};

/// One side of the transform, samples or frequencies: the operator's lines, and the packed ones.
struct Side {
  Index length, width;  // of the operator's lines in elements, of an element in numbers of T
  LineLayout packed;
  std::vector<Piece> pieces;
};

/// The lines of some columns, one column after the other. Neighbouring lines stay neighbours when packed, so
/// that copies go through memory in order.
LineLayout packed_lines(const FourierLines& lines, Index columns, cudaDataType type, Index length) {
  if (lines.inner == 1) return {type, length, 1, length};
  return {type, length, columns * lines.outer * lines.inner, 1};
}

/// The columns of a group: as many as a GPU transforms in about the time of a launch.
Index columns_at_once(const FourierLines& lines) {
  constexpr Index samples_at_once = 65536, most = 16;
  return std::clamp<Index>(samples_at_once / (lines.outer * lines.inner * lines.samples), 1, most);
}

/// n elements, of which number `zero` comes first in the packed lines.
std::vector<Piece> turned_pieces(Index n, Index zero, double weight) {
  std::vector<Piece> pieces{{zero, n - zero, 0, weight}};
  if (zero > 0) pieces.push_back({0, zero, n - zero, weight});
  return pieces;
}

/// Frequency 0, the frequencies that stand for two, and frequency n/2.
std::vector<Piece> one_sided_pieces(const FourierLines& lines) {
  const Index end = std::min(lines.frequencies, (lines.samples + 1) / 2);
  std::vector<Piece> pieces{{0, 1, 0, lines.weight(0)}};
  if (end > 1) pieces.push_back({1, end - 1, 1, lines.weight(1)});
  if (end < lines.frequencies) pieces.push_back({end, 1, end, lines.weight(end)});
  return pieces;
}

template <Scalar T>
class GpuTransform final : public LineTransform<T> {
 public:
  GpuTransform(KernelEnvironment& environment, const std::shared_ptr<Backend>& backend,
               const FourierLines& lines)
      : environment_(environment), backend_(backend), lines_(lines) {
    if (lines.outer * lines.inner == 0) return;
    environment.context.make_current();
    group_ = columns_at_once(lines);
    const Index n = lines.samples, count = group_ * lines.outer * lines.inner;
    time_ = {n, 1, packed_lines(lines, group_, is_complex<T> ? complex_type : real_type, n),
             turned_pieces(n, lines.time_zero, 1)};
    packed_time_ = Buffer<T>(backend, count * n);
    Index bytes = 0;
    if constexpr (is_complex<T>) {
      spectrum_ = {n, 1, time_.packed, turned_pieces(n, lines.frequency_zero, lines.scale)};
      bytes = planned(forward_, time_, spectrum_);
    } else {
      const Index half = n / 2 + 1;
      spectrum_ = {lines.frequencies, 2, packed_lines(lines, group_, complex_type, half),
                   one_sided_pieces(lines)};
      packed_spectrum_ = Buffer<T>(backend, count * half * 2);
      bytes = std::max(planned(forward_, time_, spectrum_), planned(backward_, spectrum_, time_));
    }
    work_ = Buffer<std::byte>(backend, bytes);
    forward_->work_in(work_.data());
    if (backward_) backward_->work_in(work_.data());
    kernels().fill(T(0), packed_time_.matrix(packed_time_.size(), 1));  // a first group may lack columns
  }

  void forward(T alpha, MatrixView<const T> X, T beta, MatrixView<T> Y) override {
    for_groups(X.cols, [&](Range group) {
      for (const Piece& piece : time_.pieces)
        pack(time_, piece, 1, 1, X.col_block(group), packed_time_.data());
      run(*forward_, packed_time_.data(), spectrum(), CUFFT_FORWARD);
      for (const Piece& piece : spectrum_.pieces)
        unpack(spectrum_, piece, alpha * to_scalar<T>(piece.weight), spectrum(), beta, Y.col_block(group));
    });
  }

  void adjoint(T alpha, MatrixView<const T> Y, T beta, MatrixView<T> X) override {
    for_groups(X.cols, [&](Range group) {
      if constexpr (is_complex<T>) {
        for (const Piece& piece : spectrum_.pieces)
          pack(spectrum_, piece, 1, piece.weight, Y.col_block(group), spectrum());
        run(*forward_, spectrum(), packed_time_.data(), CUFFT_INVERSE);
      } else {
        pack_halves(Y.col_block(group));
        run(*backward_, spectrum(), packed_time_.data(), CUFFT_INVERSE);
      }
      for (const Piece& piece : time_.pieces)
        unpack(time_, piece, alpha, packed_time_.data(), beta, X.col_block(group));
    });
  }

 private:
  static constexpr bool is_single = std::same_as<Real<T>, float>;
  static constexpr cudaDataType real_type = is_single ? CUDA_R_32F : CUDA_R_64F;
  static constexpr cudaDataType complex_type = is_single ? CUDA_C_32F : CUDA_C_64F;

  Index planned(std::optional<FourierPlan>& plan, const Side& in, const Side& out) {
    return plan.emplace(environment_.context)
        .make(lines_.samples, group_ * lines_.outer * lines_.inner, in.packed, out.packed, complex_type);
  }
  template <class Action>
  void for_groups(Index columns, const Action& action) const {
    for (Index begin = 0; forward_ && begin < columns; begin += group_)
      action(Range{begin, std::min(group_, columns - begin)});
  }
  void run(FourierPlan& plan, T* in, T* out, int direction) {
    environment_.context.make_current();
    plan.run(in, out, direction);
    ++environment_.launches;
  }

  const Kernels<T>& kernels() const { return backend_->kernels<T>(); }
  /// Complex lines are transformed in place.
  T* spectrum() const { return is_complex<T> ? packed_time_.data() : packed_spectrum_.data(); }

  /// cuFFT adds the conjugate of each frequency to real lines. The frequencies whose sum with their
  /// conjugates is the adjoint are one half of each, or the real part where k = −k modulo n.
  void pack_halves(MatrixView<const T> Y) {
    kernels().fill(T(0), packed_spectrum_.matrix(packed_spectrum_.size(), 1));
    for (const Piece& piece : spectrum_.pieces) {
      const bool is_own_opposite = piece.begin == 0 || 2 * piece.begin == lines_.samples;
      pack(spectrum_, piece, is_own_opposite ? 1 : 2, is_own_opposite ? piece.weight : piece.weight / 2, Y,
           spectrum());
    }
  }
  void pack(const Side& side, const Piece& piece, Index numbers, double factor, MatrixView<const T> array,
            T* packed) {
    kernels().arrays().add_box(to_scalar<T>(factor), array.data + offset(side, piece), T(0),
                               packed + packed_offset(side, piece), loops(side, piece, numbers, array, true));
  }
  void unpack(const Side& side, const Piece& piece, T factor, const T* packed, T beta, MatrixView<T> array) {
    kernels().arrays().add_box(factor, packed + packed_offset(side, piece), beta,
                               array.data + offset(side, piece),
                               loops(side, piece, side.width, array, false));
  }
  Index offset(const Side& side, const Piece& piece) const { return piece.begin * lines_.inner * side.width; }
  static Index packed_offset(const Side& side, const Piece& piece) {
    return piece.place * side.packed.step * side.width;
  }
  /// The first `numbers` of each element of a piece, from the operator's lines to the packed ones or back.
  BoxLoops loops(const Side& side, const Piece& piece, Index numbers, MatrixView<const T> array,
                 bool packs) const {
    BoxLoops box;
    const auto add = [&](Index extent, Index stride, Index packed_stride) {
      box.add(extent, packs ? stride : packed_stride, packs ? packed_stride : stride);
    };
    const Index slice = lines_.inner * side.width, width = side.width;
    add(array.cols, array.stride, lines_.outer * side.packed.distance * slice);
    add(lines_.outer, side.length * slice, side.packed.distance * slice);
    add(piece.size, slice, side.packed.step * width);
    add(lines_.inner, width, side.packed.distance * width);
    add(numbers, 1, 1);
    return box;
  }

  KernelEnvironment& environment_;
  std::shared_ptr<Backend> backend_;
  FourierLines lines_;
  Index group_ = 0;  // columns that are transformed at once
  Side time_, spectrum_;
  Buffer<T> packed_time_, packed_spectrum_;
  Buffer<std::byte> work_;
  std::optional<FourierPlan> forward_, backward_;  // complex lines have one plan for both directions
};

}  // namespace

template <Scalar T>
std::unique_ptr<LineTransform<T>> make_gpu_transform(KernelEnvironment& environment,
                                                     const std::shared_ptr<Backend>& backend,
                                                     const FourierLines& lines) {
  return std::make_unique<GpuTransform<T>>(environment, backend, lines);
}

#define GRIDLOPS_INSTANTIATE(T)                                     \
  template std::unique_ptr<LineTransform<T>> make_gpu_transform<T>( \
      KernelEnvironment&, const std::shared_ptr<Backend>&, const FourierLines&);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops::cuda
