// SPDX-License-Identifier: BSD-3-Clause
// Build with: clang++ -std=c++20 -fsanitize=fuzzer,address,undefined -Iinclude -Ilib
// tests/io/fuzz_npy_header.cpp lib/io/npy_header.cpp
#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "gridlops/error.hpp"
#include "io/npy_header.hpp"

/// Whatever a file holds, its header is refused by an InputError or has the meaning that its text says.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gridlops;
  // The first three bytes are the length of the data that follow the header.
  if (size < 3) return 0;
  const std::span<const char> start(reinterpret_cast<const char*>(data) + 3, size - 3);
  const Index claimed = static_cast<Index>(size) - 3 + data[0] + 256 * data[1] + 65536 * data[2];
  try {
    const NpyHeader header = parse_npy_header(start, claimed, "fuzz.npy");
    const Index bytes = header.rows * header.cols * size_of(header.type);
    if (header.rows < 0 || header.cols < 0 || header.data_offset + bytes != claimed) std::abort();
    const std::string again = npy_header_text(header);
    const NpyHeader copy = parse_npy_header(again, static_cast<Index>(again.size()) + bytes, "again.npy");
    if (copy.rows != header.rows || copy.cols != header.cols || copy.type != header.type) std::abort();
  } catch (const InputError&) {
  }
  return 0;
}
