// SPDX-License-Identifier: BSD-3-Clause
#include "streamed/disk/stored_parts.hpp"

#include <algorithm>
#include <array>
#include <exception>
#include <thread>
#include <utility>

#include "base/hash.hpp"
#include "base/message.hpp"
#include "comm/failure/failure.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/comm/mpi.hpp"
#include "local/threads.hpp"

namespace gridlops {

std::uint64_t StoredParts::hash_of(Index begin, const std::byte* piece, Index bytes) {
  return hash_of_bytes(piece, bytes, static_cast<std::uint64_t>(begin));
}

StoredParts::StoredParts(std::shared_ptr<Backend> backend, PartPlan plan, std::vector<Order> passes,
                         Pieces pieces)
    : backend_(std::move(backend)),
      plan_(std::move(plan)),
      passes_(std::move(passes)),
      pieces_(std::move(pieces)),
      memory_(backend_, plan_.bytes_in_memory()),
      hashes_(plan_.bytes.size()),
      is_checked_(plan_.bytes.size()) {
  ring_ = memory_.data();
  if (plan_.slots > 0 || plan_.staging_each > 0) {
    const auto address = reinterpret_cast<std::uintptr_t>(ring_);
    constexpr auto block = static_cast<std::uintptr_t>(DiskFile::block);
    ring_ += (block - address % block) % block;
  }
  staging_ = ring_ + plan_.slots * plan_.slot_bytes;
  residents_ = staging_ + plan_.staging_bytes();
  Index next = 0;
  for (Index part = 0; part < plan_.count(); ++part) {
    places_.push_back(next);
    next += plan_.is_resident(part) ? plan_.bytes[at(part)] : 0;
  }
  for (const Order& pass : passes_) {
    std::vector<Index>& before = read_before_.emplace_back(1, 0);
    for (const Index part : pass.parts) before.push_back(before.back() + (plan_.is_resident(part) ? 0 : 1));
  }
}

void StoredParts::put_in(std::shared_ptr<DiskFile> file, bool has_all, Index begin) {
  file_ = std::move(file);
  has_all_ = has_all;
  Index next = begin;
  for (Index part = 0; part < plan_.count(); ++part) {
    places_in_file_.push_back(next);
    next += is_in_file(part) ? plan_.file_bytes(part) : 0;
  }
}

Index StoredParts::bytes_in_file(bool has_all) const {
  Index sum = plan_.bytes_on_disk();
  for (Index part = 0; has_all && part < plan_.count(); ++part)
    sum += plan_.is_resident(part) ? plan_.file_bytes(part) : 0;
  return sum;
}

void StoredParts::write(Index part, Index begin, const std::byte* from, Index bytes) {
  if (plan_.is_resident(part)) backend_->upload(from, resident(part) + begin, bytes);
  if (!is_in_file(part)) return;
  hashes_[at(part)] += hash_of(begin, from, bytes);
  file_->write(from, bytes, places_in_file_[at(part)] + begin);
}

void StoredParts::read_residents() {
  for (Index part = 0; part < plan_.count(); ++part) {
    if (!plan_.is_resident(part)) continue;
    const DiskWait wait(message(plan_.bytes[at(part)], " bytes of A from ", file_->place()));
    file_->read(resident(part), plan_.bytes[at(part)], places_in_file_[at(part)]);
    residents_read_ += plan_.bytes[at(part)];
    check(part, resident(part));
  }
}

void StoredParts::finish() {
  if (file_) file_->finish();
}

void StoredParts::start_reading() {
  if (plan_.slots == 0) return;
  std::vector<FileParts::Extent> in_file;
  for (Index part = 0; part < plan_.count(); ++part)
    in_file.push_back({places_in_file_[at(part)], plan_.file_bytes(part)});
  source_ = std::make_unique<FileParts>(file_, std::move(in_file));
  read_ahead();
}

void StoredParts::read_ahead() {
  std::vector<ReadAhead::Order> reads;
  for (const Order& pass : passes_) {
    ReadAhead::Order& read = reads.emplace_back();
    read.next = pass.next;
    for (const Index part : pass.parts)
      if (!plan_.is_resident(part)) read.parts.push_back(part);
  }
  reader_ = std::make_unique<ReadAhead>(
      *source_, ReadAhead::Ring{ring_, plan_.slots, plan_.slot_bytes, staging_, plan_.staging_each},
      std::move(reads), [this](Index part, const std::byte* memory) { check(part, memory); });
}

void StoredParts::take_from(std::unique_ptr<const PartSource> source,
                            const std::function<void(Index part, const std::byte* memory)>& visit) {
  source_ = std::move(source);
  is_in_place_ = true;
  const auto take = [&](Index part, const std::byte* memory) {
    hashes_[at(part)] = hash_of(part, memory);
    is_checked_[at(part)] = true;
    visit(part, memory);
  };
  take_residents();
  for (Index part = 0; part < plan_.count(); ++part)
    if (plan_.is_resident(part)) take(part, resident(part));
  if (plan_.slots == 0) return;
  read_ahead();
  const Pass pass(*this, 0);
  for (Index k = 0; k < plan_.count(); ++k) {
    const Index part = passes_[0].parts[at(k)];
    if (!plan_.is_resident(part)) take(part, pass.get(k));
    pass.release_before(k + 1);
  }
}

/// Reads the parts that stay in memory from the source, by as many threads as read ahead, and some pieces at
/// a time, so that a wait for the disk can be told.
void StoredParts::take_residents() {
  std::vector<std::pair<Index, Index>> pieces;
  for (Index part = 0; part < plan_.count(); ++part)
    for (Index piece = 0; plan_.is_resident(part) && piece < source_->pieces(part); ++piece)
      pieces.emplace_back(part, piece);
  constexpr Index together = 4 * ReadAhead::threads;
  for (Index first = 0; first < std::ssize(pieces); first += together) {
    keep_alive();
    const DiskWait wait(message("parts of A from ", source_->place()));
    const Index end = std::min<Index>(first + together, std::ssize(pieces));
    std::atomic<Index> next{first}, bytes{0};
    std::array<std::exception_ptr, ReadAhead::threads> failures{};
    {
      std::vector<std::jthread> threads;
      for (int k = 0; k < ReadAhead::threads; ++k)
        threads.push_back(start_thread([&, k] {
          try {
            for (Index mine = next++; mine < end; mine = next++) {
              const auto [part, piece] = pieces[at(mine)];
              bytes += source_->read(part, piece, resident(part), staging_ + k * plan_.staging_each);
            }
          } catch (...) {
            failures[at(k)] = std::current_exception();
          }
        }));
    }
    residents_read_ += bytes;
    for (const std::exception_ptr& failure : failures)
      if (failure) std::rethrow_exception(failure);
  }
}

std::uint64_t StoredParts::hash_of(Index part, const std::byte* memory) const {
  std::uint64_t hash = 0;
  pieces_(part, [&](Index begin, Index bytes) { hash += hash_of(begin, memory + begin, bytes); });
  return hash;
}

void StoredParts::check(Index part, const std::byte* memory) {
  // take_from() has yet to see the parts of a user's file.
  const bool is_known = is_checked_[at(part)];
  const bool is_to_be_compared = is_in_place_ ? is_known : !is_known || checks_all_;
  if (!is_to_be_compared) return;
  if (hash_of(part, memory) != hashes_[at(part)])
    throw InputError(message(is_in_place_ ? source_->place() : file_->place(), ": ", plan_.bytes[at(part)],
                             " bytes of A are not those that were ",
                             is_in_place_ ? "read there before; has the file changed?" : "written there"));
  is_checked_[at(part)] = true;
}

StoredParts::Pass::Pass(StoredParts& parts, Index number)
    : parts_(parts), order_(parts.passes_[at(number)]), read_before_(parts.read_before_[at(number)]) {
  if (!parts_.reader_) return;
  parts_.checks_all_ = check_level() == Check::all;
  parts_.reader_->begin_pass(number);
}

const std::byte* StoredParts::Pass::get(Index k) const {
  const Index part = order_.parts[at(k)];
  keep_alive();
  return parts_.plan_.is_resident(part) ? parts_.resident(part) : parts_.reader_->get(read_before_[at(k)]);
}

void StoredParts::Pass::release_before(Index k) const {
  if (parts_.reader_) parts_.reader_->release_before(read_before_[at(k)]);
}

}  // namespace gridlops
