// SPDX-License-Identifier: BSD-3-Clause
#include <dlfcn.h>
#include <strings.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "gridlops/local/backend.hpp"
#include "local/tiles/kernel_set.hpp"

namespace gridlops {
namespace {

/// Calls a function without arguments if some library in this process has one with that name; otherwise
/// returns fallback.
template <class Result>
Result ask(const char* function_name, Result fallback) {
  // POSIX guarantees that the result of dlsym() can be called, although C++ has no such conversion.
  const auto function = reinterpret_cast<Result (*)()>(dlsym(RTLD_DEFAULT, function_name));
  return function != nullptr ? function() : fallback;
}

std::string path_of_blas() {
  Dl_info found{};
  const void* gemm = dlsym(RTLD_DEFAULT, "cblas_dgemm");
  if (gemm == nullptr || dladdr(gemm, &found) == 0 || found.dli_fname == nullptr) return {};
  std::error_code unresolved;
  const auto path = std::filesystem::canonical(found.dli_fname, unresolved);
  return unresolved ? std::string(found.dli_fname) : path.string();
}

/// "OpenBLAS 0.3.21 DYNAMIC_ARCH …" → "OpenBLAS 0.3.21". Other libraries report no name, so theirs is the
/// file's name.
std::string library_name(const std::string& config, const std::string& path) {
  if (config.empty()) return path.empty() ? "unknown BLAS" : std::filesystem::path(path).filename().string();
  return config.substr(0, config.find(' ', config.find(' ') + 1));
}

/// Whether one of OpenBLAS's kernels needs this set's instructions.
bool needs(const std::string& kernel, const KernelSet& set) {
  return std::any_of(set.blas_kernels.begin(), set.blas_kernels.end(),
                     [&](const char* name) { return strcasecmp(name, kernel.c_str()) == 0; });
}

}  // namespace

BlasInfo blas_info() {
  BlasInfo info;
  info.path = path_of_blas();
  info.library = library_name(ask<const char*>("openblas_get_config", ""), info.path);
  info.kernel = ask<const char*>("openblas_get_corename", "");
  info.threads = ask("openblas_get_num_threads", ask("mkl_get_max_threads", 1));
  const KernelSet& best = kernel_sets().back();
  info.best_kernel = best.text;
  const char* pinned = std::getenv("OPENBLAS_CORETYPE");
  if (pinned != nullptr && !info.kernel.empty()) {
    info.pinned_by = std::string("OPENBLAS_CORETYPE=") + pinned;
    info.pinned_below_cpu = &best != &kernel_sets().front() && !needs(info.kernel, best);
  }
  return info;
}

}  // namespace gridlops
