// SPDX-License-Identifier: BSD-3-Clause
#include "gridlops/local/buffer.hpp"

#include <cstdint>
#include <limits>
#include <vector>

#include "gridlops/base/error.hpp"
#include "support/catch.hpp"
#include "support/metered_backend.hpp"

using namespace gridlops;

namespace {

constexpr Index most = std::numeric_limits<Index>::max();

/// A host that never has more than 1000 bytes.
std::shared_ptr<testing::MeteredBackend> make_small_backend() {
  auto backend = std::make_shared<testing::MeteredBackend>();
  backend->limit_block_bytes(1000);
  return backend;
}

}  // namespace

TEST_CASE("Host memory is aligned, and counted when there is some", "[buffer]") {
  const auto backend = make_host_backend();
  for (const Index bytes : {1, 63, 64, 65, 1000}) {
    void* memory = backend->allocate(bytes);
    CHECK(reinterpret_cast<std::uintptr_t>(memory) % 64 == 0);
    backend->release(memory);
  }
  CHECK(backend->allocations() == 5);
  CHECK(backend->allocate(0) == nullptr);
  backend->release(nullptr);
  CHECK(backend->allocations() == 5);
}

TEST_CASE("Memory that cannot be had is an error with the bytes, never a small block", "[buffer]") {
  const auto backend = make_small_backend();
  const std::string refusal = testing::message_of<OutOfMemory>([&] { backend->allocate(1001); });
  CHECK(testing::contains(refusal, "host backend"));
  CHECK(testing::contains(refusal, "1001 bytes"));
  CHECK_THROWS_AS(backend->allocate(-1), UsageError);
  CHECK_THROWS_AS(make_host_backend()->allocate(most), OutOfMemory);
  // 2⁶¹ + 1 doubles are 8 bytes modulo 2⁶⁴.
  CHECK_THROWS_AS(Buffer<double>(backend, (Index{1} << 61) + 1), OutOfMemory);
  CHECK_THROWS_AS(Buffer<double>(backend, most), OutOfMemory);
  CHECK_THROWS_AS(Buffer<double>(backend, -1), UsageError);
  CHECK_THROWS_AS(Buffer<double>(backend, std::numeric_limits<Index>::min()), UsageError);
  CHECK(backend->blocks_in_use() == 0);
}

TEST_CASE("What is uploaded to a backend comes back", "[buffer]") {
  const auto backend = make_host_backend();
  const std::vector<double> sent{1, 2, 3};
  std::vector<double> received(3);
  const Buffer<double> buffer(backend, 3);
  backend->upload(sent.data(), buffer.data(), 24);
  backend->synchronize();
  backend->download(buffer.data(), received.data(), 24);
  CHECK(received == sent);
  backend->upload(nullptr, nullptr, 0);
}

TEST_CASE("A buffer has one owner", "[buffer]") {
  const auto backend = make_small_backend();
  {
    Buffer<float> first(backend, 10);
    float* const data = first.data();
    Buffer<float> second(std::move(first));
    CHECK((second.data() == data && second.size() == 10));
    CHECK((first.data() == nullptr && first.size() == 0));
    Buffer<float> third(backend, 5);
    third = std::move(second);
    CHECK(third.data() == data);
    CHECK(backend->blocks_in_use() == 1);
    CHECK(third.span().size() == 10);
    CHECK(&third.matrix(2, 5)(1, 4) == &third.span().back());
  }
  CHECK(backend->blocks_in_use() == 0);
}

TEST_CASE("reserve allocates a buffer only to grow it", "[buffer]") {
  const auto backend = make_small_backend();
  Buffer<double> buffer;
  buffer.reserve(backend, 0);
  CHECK(backend->allocations() == 0);
  buffer.reserve(backend, 10);
  buffer.reserve(backend, 4);
  buffer.reserve(backend, 10);
  CHECK(backend->allocations() == 1);
  CHECK(buffer.size() == 10);
  buffer.reserve(backend, 11);
  CHECK(backend->allocations() == 2);
  CHECK(backend->blocks_in_use() == 1);
}
