// SPDX-License-Identifier: BSD-3-Clause
#include "streamed/disk/read_ahead.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "gridlops/base/error.hpp"
#include "support/catch.hpp"

using namespace gridlops;
using gridlops::testing::contains;
using gridlops::testing::message_of;

namespace {

constexpr Index block = DiskFile::block;
/// A slab of one piece, so that most threads find none, and one of two.
constexpr Index one_piece = block, two_pieces = (Index{4} << 20) + block;

/// A file of slabs, and a ring for them. All words of all slabs differ.
class Stored {
 public:
  /// The slabs lie in the file one after the other, from the last to the first if `backwards`.
  Stored(Index slabs, Index slab_bytes, Index slots, bool backwards = false)
      : slab_bytes_(slab_bytes), slots_(slots) {
    std::string name = (std::filesystem::temp_directory_path() / "gridlops-XXXXXX").string();
    descriptor_ = ::mkstemp(name.data());
    REQUIRE(descriptor_ >= 0);
    for (Index k = 0; k < slabs; ++k) offsets_.push_back((backwards ? slabs - 1 - k : k) * slab_bytes);
    write();
    std::optional<DiskFile> file = DiskFile::of_name(name, slabs * slab_bytes);
    ::unlink(name.c_str());
    REQUIRE(file.has_value());
    std::vector<FileParts::Extent> parts;
    for (const Index offset : offsets_) parts.push_back({offset, slab_bytes});
    source_ = std::make_unique<FileParts>(std::make_shared<DiskFile>(*std::move(file)), std::move(parts));
    memory_.reset(static_cast<std::byte*>(
        std::aligned_alloc(static_cast<std::size_t>(block), static_cast<std::size_t>(slots * slab_bytes))));
    std::fill_n(memory_.get(), slots * slab_bytes, std::byte{255});
  }
  ~Stored() { ::close(descriptor_); }
  Stored(const Stored&) = delete;
  Stored& operator=(const Stored&) = delete;

  void write() {
    for (Index k = 0; k < slabs(); ++k) {
      const std::vector<std::uint32_t> slab = words(k);
      REQUIRE(::pwrite(descriptor_, slab.data(), static_cast<std::size_t>(slab_bytes_),
                       offsets_[static_cast<std::size_t>(k)]) == slab_bytes_);
    }
  }
  void cut_off(Index bytes) const { REQUIRE(::ftruncate(descriptor_, bytes) == 0); }

  bool is_slab(Index k, const std::byte* found) const {
    const std::vector<std::uint32_t> slab = words(k);
    return std::equal(slab.begin(), slab.end(), reinterpret_cast<const std::uint32_t*>(found));
  }
  using Check = std::function<void(Index, const std::byte*)>;
  std::unique_ptr<ReadAhead> reader(Check check = [](Index, const std::byte*) {}) {
    return reader({{parts(false), 0}}, std::move(check));
  }
  std::unique_ptr<ReadAhead> reader(
      std::vector<ReadAhead::Order> passes, Check check = [](Index, const std::byte*) {}) {
    return std::make_unique<ReadAhead>(*source_, ReadAhead::Ring{memory_.get(), slots_, slab_bytes_},
                                       std::move(passes), std::move(check));
  }
  /// All slabs, from the last to the first if `backwards`.
  std::vector<Index> parts(bool backwards) const {
    std::vector<Index> all;
    for (Index k = 0; k < slabs(); ++k) all.push_back(backwards ? slabs() - 1 - k : k);
    return all;
  }
  /// Takes slabs first to end − 1 in their order, and releases each when `lag` more have been taken.
  void take(ReadAhead& reader, Index first, Index end, Index lag = 0) const {
    for (Index k = first; k < end; ++k) {
      CAPTURE(k);
      CHECK(is_slab(k, reader.get(k)));
      if (k >= lag) reader.release_before(k - lag + 1);
    }
  }
  /// A whole pass.
  void pass(ReadAhead& reader, Index lag = 0) const {
    reader.begin_pass(0);
    take(reader, 0, slabs(), lag);
    reader.release_before(slabs());
  }
  Index slabs() const { return static_cast<Index>(offsets_.size()); }

 private:
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };

  std::vector<std::uint32_t> words(Index slab) const {
    std::vector<std::uint32_t> all(static_cast<std::size_t>(slab_bytes_ / 4));
    std::iota(all.begin(), all.end(), static_cast<std::uint32_t>(slab * slab_bytes_));
    return all;
  }

  const Index slab_bytes_, slots_;
  std::vector<Index> offsets_;
  int descriptor_ = -1;
  std::unique_ptr<FileParts> source_;
  std::unique_ptr<std::byte, Free> memory_;
};

struct Flipped : std::runtime_error {
  Flipped() : std::runtime_error("a bit has flipped") {}
};

template <class Condition>
void wait_until(Condition&& condition) {
  while (!condition()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

}  // namespace

TEST_CASE("Slabs come in their order, pass after pass, through rings of any size") {
  for (const Index slab_bytes : {one_piece, two_pieces}) {
    for (const Index slabs : {1, 2, 5}) {
      for (const Index slots : {2, 3, 7}) {
        for (const bool backwards : {false, true}) {
          CAPTURE(slab_bytes, slabs, slots, backwards);
          Stored stored(slabs, slab_bytes, slots, backwards);
          const auto reader = stored.reader();
          for (Index pass = 0; pass < 4; ++pass) stored.pass(*reader, std::min(pass, slots - 1));
          const Index read = reader->bytes_read();
          CHECK(read >= 4 * slabs * slab_bytes);
          CHECK(read <= (4 * slabs + slots) * slab_bytes);  // nothing was read again
          CHECK(reader->seconds_waited() >= 0);
        }
      }
    }
  }
}

TEST_CASE("A pass may end at any slab, whatever was released, and the next begins with the first") {
  for (const Index slab_bytes : {one_piece, two_pieces}) {
    for (const Index slots : {2, 3, 7}) {
      Stored stored(4, slab_bytes, slots);
      const auto reader = stored.reader();
      for (Index end = 0; end <= 4; ++end) {
        for (Index lag = 0; lag < slots; ++lag) {
          CAPTURE(slab_bytes, slots, end, lag);
          reader->begin_pass(0);
          stored.take(*reader, 0, end, lag);
          if (lag == 1) stored.pass(*reader);
        }
      }
      stored.pass(*reader);
    }
  }
}

TEST_CASE("Passes have orders of their own, and the one that is expected is read ahead") {
  for (const Index slots : {2, 3, 7}) {
    CAPTURE(slots);
    Stored stored(5, two_pieces, slots);
    const auto reader = stored.reader({{stored.parts(false), 1}, {stored.parts(true), 0}});
    const auto pass = [&](Index which) {
      reader->begin_pass(which);
      for (Index k = 0; k < 5; ++k) {
        CAPTURE(which, k);
        CHECK(stored.is_slab(which == 0 ? k : 4 - k, reader->get(k)));
        reader->release_before(k + 1);
      }
    };
    for (const Index which : {0, 1, 0, 1}) pass(which);
    CHECK(reader->bytes_read() <= (4 * 5 + slots) * two_pieces);  // nothing was read again
    for (const Index which : {1, 1, 0, 0, 1}) pass(which);
  }
}

TEST_CASE("A slab stays where it is until it is released") {
  constexpr Index slots = 3;
  Stored stored(5, one_piece, slots);
  const auto reader = stored.reader();
  reader->begin_pass(0);
  const std::byte* held[slots] = {};
  for (Index k = 0; k < slots; ++k) held[k] = reader->get(k);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  CHECK(reader->bytes_read() == slots * one_piece);
  for (Index k = 0; k < slots; ++k) CHECK(stored.is_slab(k, held[k]));
  reader->release_before(2);
  for (const Index k : {3, 4}) CHECK(stored.is_slab(k, reader->get(k)));
  CHECK(stored.is_slab(2, held[2]));
  CHECK(reader->bytes_read() == 5 * one_piece);
}

TEST_CASE("Every slab is checked once it is whole, and before it is used") {
  for (const Index slab_bytes : {one_piece, two_pieces}) {
    Stored stored(3, slab_bytes, 2);
    std::atomic<int> checked = 0, wrong = 0;
    const auto reader = stored.reader([&](Index slab, const std::byte* memory) {
      if (!stored.is_slab(slab, memory)) ++wrong;
      ++checked;
    });
    for (int pass = 0; pass < 3; ++pass) {
      reader->begin_pass(0);
      for (Index k = 0; k < 3; ++k) {
        reader->get(k);
        CHECK(checked > 3 * pass + k);
        reader->release_before(k + 1);
      }
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("What a check finds is told once, and that slab is read again in the next pass") {
  // With more slots than slabs, a slab's next reading could be checked before this one.
  for (const Index slots : {2, 4}) {
    for (Index bad = 0; bad < 4; ++bad) {
      for (const Index bad_time : {1, 2}) {
        CAPTURE(slots, bad, bad_time);
        Stored stored(4, two_pieces, slots);
        std::atomic<Index> times = 0;
        const auto reader = stored.reader([&](Index slab, const std::byte*) {
          if (slab == bad && ++times == bad_time) throw Flipped();
        });
        if (bad_time == 2) stored.pass(*reader);
        reader->begin_pass(0);
        stored.take(*reader, 0, bad);
        CHECK_THROWS_AS(reader->get(bad), Flipped);
        stored.pass(*reader);
        stored.pass(*reader);
      }
    }
  }
}

TEST_CASE("What was found in slabs that a pass did not come to is not told") {
  Stored stored(4, one_piece, 4);
  std::atomic<Index> times = 0;
  const auto reader = stored.reader([&](Index slab, const std::byte*) {
    if (slab == 2 && ++times == 1) throw Flipped();
  });
  reader->begin_pass(0);
  stored.take(*reader, 0, 1);
  wait_until([&] { return times == 1; });
  stored.pass(*reader);
}

TEST_CASE("A file that ends too early fails every pass at that slab, until it is whole") {
  for (const Index slab_bytes : {one_piece, two_pieces}) {
    for (const Index slots : {2, 3, 7}) {
      CAPTURE(slab_bytes, slots);
      Stored stored(5, slab_bytes, slots);
      stored.cut_off(4 * slab_bytes - block);
      const auto reader = stored.reader();
      for (int pass = 0; pass < 3; ++pass) {
        reader->begin_pass(0);
        stored.take(*reader, 0, 3);
        const std::string message = message_of<InputError>([&] { reader->get(3); });
        CHECK(contains(message, "the file ends there"));
      }
      stored.write();
      for (int pass = 0; pass < 2; ++pass) stored.pass(*reader);
    }
  }
}

TEST_CASE("Reading ends with the reader, wherever it is") {
  Stored stored(5, two_pieces, 3);
  for (Index used = 0; used < 5; ++used) {
    const auto reader = stored.reader();
    if (used == 0) continue;
    reader->begin_pass(0);
    stored.take(*reader, 0, used, used % 2);
  }
}
