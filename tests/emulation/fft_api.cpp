// SPDX-License-Identifier: BSD-3-Clause
// Implements cuFFT's functions with KISS FFT, in double precision.
#include <cufftXt.h>

#include <algorithm>
#include <complex>
#include <kissfft.hh>
#include <limits>
#include <map>
#include <vector>

#include "emulation/device.hpp"
#include "emulation/report.hpp"

namespace {

using emulation::Device;
using emulation::device;
using emulation::Lock;
using emulation::Region;
using Value = std::complex<double>;

bool is_complex(cudaDataType type) { return type == CUDA_C_32F || type == CUDA_C_64F; }
std::size_t complex_bytes(cudaDataType type) {
  return type == CUDA_R_32F || type == CUDA_C_32F ? 2 * sizeof(float) : 2 * sizeof(double);
}

/// Lines on one side of a plan.
struct Lines {
  cudaDataType type;
  long long length, embedded, stride, distance, count;

  bool is_valid() const { return embedded >= length && stride > 0 && distance > 0; }
  std::size_t bytes() const {
    const auto elements = static_cast<std::size_t>((length - 1) * stride + (count - 1) * distance + 1);
    return elements * (is_complex(type) ? complex_bytes(type) : complex_bytes(type) / 2);
  }
  /// cuFFT takes real lines, too, as if they were complex numbers.
  Region region(const void* data, bool written) const {
    return {data, bytes(), bytes(), 1, written, complex_bytes(type)};
  }
  Value load(const void* data, long long line, long long k) const {
    const long long i = line * distance + k * stride;
    switch (type) {
      case CUDA_R_32F:
        return static_cast<const float*>(data)[i];
      case CUDA_R_64F:
        return static_cast<const double*>(data)[i];
      case CUDA_C_32F:
        return static_cast<const std::complex<float>*>(data)[i];
      default:
        return static_cast<const Value*>(data)[i];
    }
  }
  void store(void* data, long long line, long long k, Value value) const {
    const long long i = line * distance + k * stride;
    switch (type) {
      case CUDA_R_32F:
        static_cast<float*>(data)[i] = static_cast<float>(value.real());
        break;
      case CUDA_R_64F:
        static_cast<double*>(data)[i] = value.real();
        break;
      case CUDA_C_32F:
        static_cast<std::complex<float>*>(data)[i] = static_cast<std::complex<float>>(value);
        break;
      default:
        static_cast<Value*>(data)[i] = value;
    }
  }
};

struct Plan {
  int device = emulation::current_device();
  cudaStream_t stream = nullptr;
  bool allocates = true, is_made = false;
  void* work = nullptr;
  std::size_t work_bytes = 0;
  long long n = 0;
  Lines in{}, out{};
  long last_tick = 0;  // of its last transform, in its stream
};

int plans_made = 0;
std::map<cufftHandle, Plan> plans;

/// Null if there is no such plan. Another device's ends the process.
Plan* find(cufftHandle handle, const char* function) {
  const auto found = plans.find(handle);
  if (found == plans.end()) return nullptr;
  emulation::require_current(found->second.device, function, ": the plan");
  return &found->second;
}

/// The other half of the frequencies of a real line. What cuFFT makes of an imaginary part where a frequency
/// is its own opposite is not defined; here it is NaN.
void complete(std::vector<Value>& line) {
  const std::size_t n = line.size();
  for (std::size_t k = 0; 2 * k <= n; ++k) {
    if (k > 0 && 2 * k != n) {
      line[n - k] = std::conj(line[k]);
    } else if (line[k].imag() != 0) {
      line[k] = std::numeric_limits<double>::quiet_NaN();
    }
  }
}

void transform(const Plan& plan, const void* in, void* out, int direction) {
  const kissfft<double> fft(static_cast<std::size_t>(plan.n), direction == CUFFT_INVERSE);
  std::vector<Value> line(static_cast<std::size_t>(plan.n)), result(line.size());
  for (long long j = 0; j < plan.in.count; ++j) {
    for (long long k = 0; k < plan.in.length; ++k) line[static_cast<std::size_t>(k)] = plan.in.load(in, j, k);
    if (!is_complex(plan.out.type)) complete(line);
    fft.transform(line.data(), result.data());
    for (long long k = 0; k < plan.out.length; ++k)
      plan.out.store(out, j, k, result[static_cast<std::size_t>(k)]);
  }
}

}  // namespace

extern "C" {

cufftResult cufftCreate(cufftHandle* plan) {
  if (emulation::enter("cufftCreate")) return CUFFT_SETUP_FAILED;
  const Lock lock(device().mutex);
  plans[*plan = ++plans_made] = Plan();
  ++device().fourier_plans;
  return CUFFT_SUCCESS;
}
cufftResult cufftDestroy(cufftHandle handle) {
  if (emulation::enter("cufftDestroy")) return CUFFT_INVALID_PLAN;
  const Lock lock(device().mutex);
  const Plan* plan = find(handle, "cufftDestroy");
  if (plan == nullptr) return CUFFT_INVALID_PLAN;
  if (plan->last_tick > 0 && !device().host.includes(plan->stream->number, plan->last_tick))
    emulation::violation(emulation::Detector::races, "cufftDestroy of plan ", handle,
                         ", whose last transform the host has not waited for");
  plans.erase(handle);
  --device().fourier_plans;
  return CUFFT_SUCCESS;
}
cufftResult cufftSetStream(cufftHandle handle, cudaStream_t stream) {
  if (emulation::enter("cufftSetStream")) return CUFFT_INVALID_PLAN;
  const Lock lock(device().mutex);
  Plan* plan = find(handle, "cufftSetStream");
  if (plan == nullptr) return CUFFT_INVALID_PLAN;
  emulation::require_current(stream->device, "cufftSetStream: the stream");
  plan->stream = stream;
  return CUFFT_SUCCESS;
}
cufftResult cufftSetAutoAllocation(cufftHandle handle, int allocates) {
  if (emulation::enter("cufftSetAutoAllocation")) return CUFFT_INVALID_PLAN;
  const Lock lock(device().mutex);
  Plan* plan = find(handle, "cufftSetAutoAllocation");
  if (plan == nullptr || plan->is_made) return CUFFT_INVALID_PLAN;
  plan->allocates = allocates != 0;
  return CUFFT_SUCCESS;
}
cufftResult cufftSetWorkArea(cufftHandle handle, void* memory) {
  if (emulation::enter("cufftSetWorkArea")) return CUFFT_INVALID_PLAN;
  const Lock lock(device().mutex);
  Plan* plan = find(handle, "cufftSetWorkArea");
  if (plan == nullptr || !plan->is_made) return CUFFT_INVALID_PLAN;
  plan->work = memory;
  return CUFFT_SUCCESS;
}

// Plans that allocate their memory themselves are not emulated.
cufftResult cufftXtMakePlanMany(cufftHandle handle, int rank, long long* n, long long* in_embed,
                                long long in_stride, long long in_distance, cudaDataType in_type,
                                long long* out_embed, long long out_stride, long long out_distance,
                                cudaDataType out_type, long long batch, std::size_t* work_bytes,
                                cudaDataType computes_in) {
  if (emulation::enter("cufftXtMakePlanMany")) {
    emulation::failed(cudaErrorMemoryAllocation);
    return CUFFT_ALLOC_FAILED;
  }
  const Lock lock(device().mutex);
  Plan* plan = find(handle, "cufftXtMakePlanMany");
  if (plan == nullptr || plan->is_made) return CUFFT_INVALID_PLAN;
  if (plan->allocates) return CUFFT_NO_WORKSPACE;
  const bool is_one_precision = complex_bytes(in_type) == complex_bytes(computes_in) &&
                                complex_bytes(out_type) == complex_bytes(computes_in);
  if (!is_complex(computes_in) || !is_one_precision || (!is_complex(in_type) && !is_complex(out_type)))
    return CUFFT_INVALID_TYPE;
  if (rank != 1 || *n < 1 || batch < 1) return CUFFT_INVALID_SIZE;
  const long long half = *n / 2 + 1;
  plan->n = *n;
  plan->in = {in_type, is_complex(out_type) ? *n : half, *in_embed, in_stride, in_distance, batch};
  plan->out = {out_type, is_complex(in_type) ? *n : half, *out_embed, out_stride, out_distance, batch};
  if (!plan->in.is_valid() || !plan->out.is_valid()) return CUFFT_INVALID_SIZE;
  plan->is_made = true;
  plan->work_bytes = static_cast<std::size_t>(*n * batch) * complex_bytes(in_type);
  *work_bytes = plan->work_bytes;
  return CUFFT_SUCCESS;
}

// As with cuFFT, the input of a transform to real lines may be anything afterwards.
cufftResult cufftXtExec(cufftHandle handle, void* in, void* out, int direction) {
  if (emulation::enter("cufftXtExec")) return CUFFT_EXEC_FAILED;
  Device& gpu = device();
  const Lock lock(gpu.mutex);
  Plan* plan = find(handle, "cufftXtExec");
  if (plan == nullptr || !plan->is_made) return CUFFT_INVALID_PLAN;
  if (plan->work == nullptr) return CUFFT_NO_WORKSPACE;
  if (direction != CUFFT_FORWARD && direction != CUFFT_INVERSE) return CUFFT_INVALID_VALUE;
  const bool uses_input_up = !is_complex(plan->out.type);
  const bool has_one_type = plan->in.type == plan->out.type;
  if (in == out && !has_one_type) return CUFFT_INVALID_VALUE;
  const int sign = has_one_type ? direction : uses_input_up ? CUFFT_INVERSE : CUFFT_FORWARD;
  const std::vector<Region> regions{plan->in.region(in, uses_input_up), plan->out.region(out, true),
                                    emulation::writes(plan->work, plan->work_bytes)};
  gpu.enqueue({plan->stream}, "cufftXtExec", regions, [=, copy = *plan, &gpu] {
    emulation::Memory::poison(gpu.memory.alias(copy.work), copy.work_bytes);
    transform(copy, gpu.memory.alias(in), gpu.memory.alias(out), sign);
    if (uses_input_up) emulation::Memory::poison(gpu.memory.alias(in), copy.in.bytes());
    return true;
  });
  plan->last_tick = plan->stream->tick;
  return CUFFT_SUCCESS;
}

}  // extern "C"
