// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <complex>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "gridlops/base/export.hpp"
#include "gridlops/base/types.hpp"
#include "gridlops/local/matrix_view.hpp"

namespace gridlops {

class SharedMemory;  // internal to the library
template <Scalar T>
class ArrayKernels;
template <Scalar T>
struct NarrowMatrix;

enum class MemorySpace { host, device };

/// Thresholds, which make vectors sparse element by element: the proximal maps of t times the penalty in the
/// last column, for z = |z|eⁱᶿ.
///
///   soft   max(|z| − t, 0) eⁱᶿ                                       Σ|z|
///   hard   z where |z| > √(2t), else 0                               the number of z ≠ 0
///   half   (2/3) z (1 + cos(2π/3 − (2/3) arccos((t/8)(|z|/3)^−3/2)))  ½Σ√|z|
///          where |z| > (54^⅓/4) t^⅔, else 0 (Xu, Chang, Xu, Zhang: L½ regularization, IEEE Trans. Neural
///          Networks and Learning Systems 23, 2012)
enum class Threshold { soft, hard, half };
/// "soft", "hard" or "half".
GRIDLOPS_EXPORT const char* name_of(Threshold threshold);

/// Blocks of one shape, block k at `step` · k elements behind the first.
template <class T>
struct MatrixBatch {
  MatrixView<T> first;
  Index step = 0;

  MatrixView<T> operator[](Index k) const {
    return {first.data + k * step, first.rows, first.cols, first.stride};
  }
  operator MatrixBatch<const T>() const requires(!std::is_const_v<T>) { return {first, step}; }
};

enum class SumKind {
  dots,           ///< xⱼᴴ yⱼ, an Accumulator<T> for each column
  norms_squared,  ///< ‖xⱼ‖²
  power_sums  ///< Σᵢ |xᵢⱼ|ᵖ for p ≥ 0, with 0⁰ = 0; for infinite p the largest |xᵢⱼ|, NaN if any is NaN
};
/// A sum over the rows of each column of X, in double precision. Only dots have a Y, and only power sums a p.
template <Scalar T>
struct ColumnTerm {
  SumKind kind;
  MatrixView<const T> X, Y;
  double p;
  double* sums;  ///< the host's
};

enum class UpdateKind {
  axpy,  ///< yⱼ ← yⱼ + αⱼ xⱼ
  xpby,  ///< yⱼ ← xⱼ + αⱼ yⱼ
  scale  ///< yⱼ ← αⱼ yⱼ
};
/// An update of the columns of Y. Only scaling has no X. With a zero αⱼ xpby does not read yⱼ.
template <Scalar T>
struct BlockUpdate {
  UpdateKind kind;
  const T* alpha;  ///< one for each column, the host's
  MatrixView<const T> X;
  MatrixView<T> Y;
};

/// The operations of one process on blocks of one element type in the memory of its Backend. Arrays of one
/// scalar for each column are the host's, and other pointers point to the backend's memory. Work is ordered:
/// a call sees the results of the calls before it, and Backend::synchronize() makes results visible to the
/// host. Not collective. Operands must have matching shapes, which is not checked here, and must not overlap
/// unless they are the same. With a zero beta the output is not read, so it may hold anything, including NaN.
template <Scalar T>
class Kernels {
 public:
  virtual ~Kernels() = default;

  /// C ← α op_a(A) op_b(B) + β C.
  virtual void gemm(Op op_a, Op op_b, T alpha, MatrixView<const T> A, MatrixView<const T> B, T beta,
                    MatrixView<T> C) const = 0;
  /// Cₖ ← α op_a(Aₖ) op_b(Bₖ) + β Cₖ for each k < count, each as gemm() has it.
  virtual void gemm_batched(Index count, Op op_a, Op op_b, T alpha, MatrixBatch<const T> A,
                            MatrixBatch<const T> B, T beta, MatrixBatch<T> C) const = 0;
  /// The real rows of the strips by which narrow_gemm() reads matrices of this many rows (NarrowMatrix).
  virtual Index narrow_strip(Index rows) const = 0;
  /// Y ← α op(A) X + β Y for matrices A of the same rows, side by side, whose numbers are stored in fewer
  /// bytes than those of T. Where X or Y has a row for each column of A, those of the next matrix begin at
  /// the next multiple of NarrowMatrix::alignment; rows in between may hold anything. Its memory has been
  /// reserved.
  virtual void narrow_gemm(Op op, T alpha, std::span<const NarrowMatrix<T>> A, MatrixView<const T> X, T beta,
                           MatrixView<T> Y) const = 0;
  /// Takes the memory in which narrow_gemm() works, if it needs any. Throws OutOfMemory on this rank alone.
  virtual void reserve_narrow_gemm() const {}
  /// Y ← X.
  virtual void copy(MatrixView<const T> X, MatrixView<T> Y) const = 0;
  /// Every element of X ← value.
  virtual void fill(T value, MatrixView<T> X) const = 0;
  /// Y ← α X + β Y.
  virtual void add(T alpha, MatrixView<const T> X, T beta, MatrixView<T> Y) const = 0;
  /// yᵢⱼ ← α dᵢ xᵢⱼ + β yᵢⱼ, with conj(dᵢ) for dᵢ if conjugate_d; d has X.rows elements.
  virtual void diagonal_multiply(T alpha, const T* d, bool conjugate_d, MatrixView<const T> X, T beta,
                                 MatrixView<T> Y) const = 0;

  // Column by column: entry j of an array belongs to column j.

  /// Computes sums, which may be of different shapes, and waits for them. A device takes a few of them in one
  /// launch. The order of a sum depends on the number of rows alone.
  virtual void column_sums(std::span<const ColumnTerm<T>> terms) const = 0;
  /// dotsⱼ ← xⱼᴴ yⱼ.
  void column_dots(MatrixView<const T> X, MatrixView<const T> Y, Accumulator<T>* dots) const {
    column_sum({SumKind::dots, X, Y, 0, reinterpret_cast<double*>(dots)});
  }
  /// normsⱼ ← ‖xⱼ‖².
  void column_norms_squared(MatrixView<const T> X, double* norms) const {
    column_sum({SumKind::norms_squared, X, {}, 2, norms});
  }
  /// sumsⱼ ← Σᵢ |xᵢⱼ|ᵖ, or the largest |xᵢⱼ|: see ColumnTerm.
  void column_power_sums(double p, MatrixView<const T> X, double* sums) const {
    column_sum({SumKind::power_sums, X, {}, p, sums});
  }
  /// Carries out updates, which may be of different shapes, as if one after the other. They sweep over the
  /// rows together: a device takes a few of them in one launch.
  virtual void column_updates(std::span<const BlockUpdate<T>> updates) const = 0;
  /// yⱼ ← yⱼ + αⱼ xⱼ.
  void column_axpy(const T* alpha, MatrixView<const T> X, MatrixView<T> Y) const {
    column_update({UpdateKind::axpy, alpha, X, Y});
  }
  /// yⱼ ← xⱼ + βⱼ yⱼ.
  void column_xpby(MatrixView<const T> X, const T* beta, MatrixView<T> Y) const {
    column_update({UpdateKind::xpby, beta, X, Y});
  }
  /// xⱼ ← αⱼ xⱼ.
  void column_scale(const T* alpha, MatrixView<T> X) const {
    column_update({UpdateKind::scale, alpha, {}, X});
  }
  /// Every element of xⱼ ← its threshold with t = tⱼ ≥ 0; NaN stays NaN.
  virtual void column_threshold(Threshold kind, const double* t, MatrixView<T> X) const = 0;

  /// Every element of X ← the nearest in [lower, upper]; of complex numbers, both parts. NaN stays NaN.
  virtual void clip(double lower, double upper, MatrixView<T> X) const = 0;

  /// The kernels of operators on arrays of several dimensions.
  virtual const ArrayKernels<T>& arrays() const = 0;

 private:
  void column_sum(const ColumnTerm<T>& term) const { column_sums({&term, 1}); }
  void column_update(const BlockUpdate<T>& update) const { column_updates({&update, 1}); }
};

/// The memory and the kernels of one device of one process. Everything that uses the memory shares ownership
/// of the backend.
class GRIDLOPS_EXPORT Backend {
 public:
  virtual ~Backend();
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;

  virtual std::string name() const = 0;
  virtual MemorySpace memory_space() const = 0;

  /// Allocates uninitialised memory, aligned to at least 64 bytes; returns null for 0 bytes. Throws
  /// OutOfMemory, on this rank alone, with the bytes asked for.
  void* allocate(Index bytes);
  void release(void* memory) noexcept;

  /// Says that the first bytes of an array are no longer needed. If the backend can, it returns their memory
  /// to the system before the array is released. They may then read as anything.
  virtual void discard(void* memory, Index bytes);

  /// How many times allocate() was called for more than 0 bytes. Constant while a solver iterates.
  Index allocations() const { return allocations_; }

  /// How many kernels and products a device has been given so far, also for empty blocks, but for sums; 0 on
  /// the host.
  virtual Index launches() const { return 0; }

  /// Copies bytes from host memory to this backend's (upload), or back (download). The caller may reuse the
  /// host memory on return.
  virtual void upload(const void* host, void* here, Index bytes) = 0;
  virtual void download(const void* here, void* host, Index bytes) = 0;
  /// Waits until all work given to the backend is done.
  virtual void synchronize() = 0;

  /// Calls work(i) for each i < count. Each calls kernels on blocks of its own, with about `operations`
  /// operations in all. The host may call several at the same time, in threads of this rank.
  virtual void for_each(Index count, double operations, const std::function<void(Index)>& work);

  /// The queue in which the device does this backend's work in order, for the caller's own work: on a GPU a
  /// stream of the vendor's runtime; null on the host.
  virtual void* native_queue() const { return nullptr; }

  /// Lets transports map memory of this backend into other processes; null where they cannot.
  virtual const SharedMemory* shared_memory() const { return nullptr; }

  template <Scalar T>
  const Kernels<T>& kernels() const;

 protected:
  Backend() = default;

 private:
  virtual void* do_allocate(Index bytes) = 0;  // null if there is not enough
  virtual void do_release(void* memory) noexcept = 0;
  virtual const Kernels<float>& kernels_f32() const = 0;
  virtual const Kernels<double>& kernels_f64() const = 0;
  virtual const Kernels<std::complex<float>>& kernels_c64() const = 0;
  virtual const Kernels<std::complex<double>>& kernels_c128() const = 0;

  Index allocations_ = 0;
};

template <Scalar T>
const Kernels<T>& Backend::kernels() const {
  if constexpr (std::same_as<T, float>) {
    return kernels_f32();
  } else if constexpr (std::same_as<T, double>) {
    return kernels_f64();
  } else if constexpr (std::same_as<T, std::complex<float>>) {
    return kernels_c64();
  } else {
    return kernels_c128();
  }
}

/// A backend of host memory and the CBLAS to which this library is linked.
GRIDLOPS_EXPORT std::shared_ptr<Backend> make_host_backend();

/// A backend of host memory that other ranks on the machine can read in place, as the transport "shared"
/// does. Blocks smaller than a page are not shared. Throws UsageError on systems other than Linux.
GRIDLOPS_EXPORT std::shared_ptr<Backend> make_shared_host_backend();

/// A backend of GPU number `device` of this machine. Any thread may use it, one at a time; the backend makes
/// its device that thread's current one. If a call to the vendor's libraries fails, this rank alone throws
/// Error. In a library without GPU support it throws UsageError, which says how to get that support.
GRIDLOPS_EXPORT std::shared_ptr<Backend> make_gpu_backend(int device);

/// The BLAS in use at run time, as that library reports it.
struct BlasInfo {
  std::string library;      ///< e.g. "OpenBLAS 0.3.21"
  std::string kernel;       ///< the kernel that it chose, e.g. "SkylakeX"; empty if unknown
  std::string best_kernel;  ///< the best that this CPU can run, e.g. "AVX-512"
  int threads = 1;          ///< per process
  std::string path;         ///< the shared object that provides cblas_dgemm; empty if unknown
  std::string pinned_by;    ///< "VARIABLE=value" of the environment that pins a kernel; empty if none does
  bool pinned_below_cpu = false;  ///< the pinned kernel uses a smaller instruction set than the CPU has
};
GRIDLOPS_EXPORT BlasInfo blas_info();

/// How many threads of this rank compute on the host, the calling thread among them: the environment variable
/// GRIDLOPS_THREADS, else OMP_NUM_THREADS, else as many as the rank may use processors, divided among the
/// ranks of an MpiSession that may use the same. While they run, each calls a BLAS with one thread. Results
/// of the library's own loops have the same bits with any number. Throws UsageError if GRIDLOPS_THREADS is no
/// such number. A rank takes no threads in a thread of OpenMP, nor in a library built without OpenMP.
GRIDLOPS_EXPORT int threads_per_rank();

/// The library of the host's Fourier transforms, with its version and its licence, such as
/// "fftw-3.3.10-sse2-avx, GPL 2 or later".
GRIDLOPS_EXPORT std::string fft_library();

/// Names this library's kernels that replace BLAS in products of host matrices with few columns. The
/// environment variable GRIDLOPS_KERNELS chooses them for the whole process: auto; blas for none; or
/// baseline, avx2, avx512 or neon for these, wherever they can compute a product. Throws UsageError if the
/// variable has another value, or names more than this processor supports.
GRIDLOPS_EXPORT std::string own_kernels();

/// The name, family, model and stepping of the processor, as Linux reports them; "unknown" elsewhere.
GRIDLOPS_EXPORT std::string cpu_model();

}  // namespace gridlops
