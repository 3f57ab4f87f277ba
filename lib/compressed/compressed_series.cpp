// SPDX-License-Identifier: BSD-3-Clause
#include "gridlops/compressed/compressed_series.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/instantiate.hpp"
#include "base/message.hpp"
#include "base/numbers.hpp"
#include "compressed/compressed_matrix.hpp"
#include "gridlops/base/error.hpp"
#include "streamed/stored_parts.hpp"

namespace gridlops {

template <Scalar T>
class CompressedSeries<T>::Slices {
 public:
  explicit Slices(StreamOptions on_disk) : on_disk_(std::move(on_disk)) {}
  ~Slices() { stop(); }
  Slices(const Slices&) = delete;
  Slices& operator=(const Slices&) = delete;

  /// Appends the factors of a block to the file.
  std::shared_ptr<CompressedBlock<T>> append(const std::shared_ptr<Backend>& backend, TiledBlock tiles) {
    stop();  // threads that read have these vectors
    backend_ = backend;
    const auto block = std::make_shared<CompressedBlock<T>>(backend, tiles, on_disk_.memory);
    const PartPlan& plan = block->parts();
    std::vector<Index> places;
    std::vector<std::uint64_t> hashes(plan.bytes.size());
    Index end = places_.back();
    for (Index part = 0; part < plan.count(); ++part) {
      places.push_back(end);
      end += plan.file_bytes(part);
    }
    if (!file_) file_ = std::make_shared<TileFile>(TileFile::nameless(on_disk_.scratch, 0));
    file_->take_room(end);
    block->store(std::move(tiles), {}, [&](Index part, Index begin, const std::byte* from, Index bytes) {
      hashes[at(part)] += StoredParts::hash_of(begin, from, bytes);
      file_->write(from, bytes, places[at(part)] + begin);
    });
    file_->finish();
    bytes_.insert(bytes_.end(), plan.bytes.begin(), plan.bytes.end());
    hashes_.insert(hashes_.end(), hashes.begin(), hashes.end());
    pieces_.insert(pieces_.end(), block->pieces().begin(), block->pieces().end());
    first_parts_.push_back(std::ssize(bytes_));
    places_.push_back(end);
    slices_.push_back(block);
    return block;
  }

  /// Forgets all matrices from this number on, which another rank has not.
  void drop_from(Index number) {
    slices_.resize(std::min(slices_.size(), at(number)));
    first_parts_.resize(slices_.size() + 1);
    places_.resize(slices_.size() + 1);
    bytes_.resize(at(first_parts_.back()));
    hashes_.resize(bytes_.size());
    pieces_.resize(bytes_.size());
  }

  PartPlan plan(Index memory, Range slices) const {
    require<UsageError>(0 <= slices.begin && 0 <= slices.size && slices.end() <= count() && memory >= 0,
                        "a series of ", count(), " matrices has no ", slices.size, " from ", slices.begin,
                        " on, or no ", memory, " bytes");
    const auto begin = bytes_.begin();
    return {
        std::vector<Index>(begin + first_parts_[at(slices.begin)], begin + first_parts_[at(slices.end())]),
        PartPlan::least_slots, memory};
  }

  void start(Index memory, Range slices) {
    stop();
    PartPlan plan_of_parts = plan(memory, slices);
    if (slices.size == 0) return;
    const Index first = first_parts_[at(slices.begin)];
    std::vector<StoredParts::Order> orders(at(2 * slices.size));
    for (Index k = 0; k < slices.size; ++k) {
      const CompressedBlock<T>& block = *slices_[at(slices.begin + k)];
      const Index first_part = first_parts_[at(slices.begin + k)] - first, adjoint = slices.size + k;
      orders[at(k)] = {block.order(Op::none, first_part), k + 1};
      orders[at(adjoint)] = {block.order(Op::adjoint, first_part), (adjoint + 1) % (2 * slices.size)};
    }
    parts_ = std::make_shared<StoredParts>(backend_, std::move(plan_of_parts), std::move(orders),
                                           [this, first](Index part, const StoredParts::UsePiece& use) {
                                             for (const Range piece : pieces_[at(first + part)])
                                               use(piece.begin, piece.size);
                                           });
    const auto begin = hashes_.begin();
    parts_->set_hashes({begin + first, begin + first_parts_[at(slices.end())]});
    parts_->put_in(file_, true, places_[at(slices.begin)]);
    parts_->read_residents();
    parts_->start_reading();
    for (Index k = 0; k < slices.size; ++k) slices_[at(slices.begin + k)]->use(parts_, k, slices.size + k);
  }

  Index count() const { return std::ssize(slices_); }
  Index bytes_on_disk() const { return places_.back(); }
  Index bytes_read() const { return bytes_read_ + (parts_ ? parts_->bytes_read() : 0); }
  double seconds_waited() const { return seconds_waited_ + (parts_ ? parts_->seconds_waited() : 0); }

 private:
  /// Frees the memory of those that work.
  void stop() {
    bytes_read_ = bytes_read();
    seconds_waited_ = seconds_waited();
    for (const auto& block : slices_) block->use(nullptr, 0, 0);
    parts_ = nullptr;
  }

  StreamOptions on_disk_;
  std::shared_ptr<Backend> backend_;
  std::shared_ptr<TileFile> file_;
  std::vector<std::shared_ptr<CompressedBlock<T>>> slices_;
  std::vector<Index> first_parts_{0}, places_{0};  // of each slice, in the file; and the ends
  // Of the parts of all slices.
  std::vector<Index> bytes_;
  std::vector<std::uint64_t> hashes_;
  std::vector<std::vector<Range>> pieces_;
  std::shared_ptr<StoredParts> parts_;  // of the slices that work
  Index bytes_read_ = 0;                // of those that worked before
  double seconds_waited_ = 0;
};

template <Scalar T>
CompressedSeries<T>::CompressedSeries(const StreamOptions& on_disk)
    : slices_(std::make_unique<Slices>(on_disk)) {}
template <Scalar T>
CompressedSeries<T>::~CompressedSeries() = default;

template <Scalar T>
CompressedMatrixPtr<T> CompressedSeries<T>::add(const ConstDistMatrix<T>& A,
                                                const CompressionOptions& options) {
  const Index before = slices_->count();
  try {
    return compress_with<T>(A, options, [this](const std::shared_ptr<Backend>& backend, TiledBlock tiles) {
      return slices_->append(backend, std::move(tiles));
    });
  } catch (...) {
    slices_->drop_from(before);
    throw;
  }
}

template <Scalar T>
void CompressedSeries<T>::start(Index memory, Range matrices) {
  slices_->start(memory, matrices);
}
template <Scalar T>
Index CompressedSeries<T>::memory(Index memory, Range matrices) const {
  return slices_->plan(memory, matrices).bytes_in_memory();
}
template <Scalar T>
Index CompressedSeries<T>::count() const {
  return slices_->count();
}
template <Scalar T>
Index CompressedSeries<T>::bytes_on_disk() const {
  return slices_->bytes_on_disk();
}
template <Scalar T>
Index CompressedSeries<T>::bytes_read() const {
  return slices_->bytes_read();
}
template <Scalar T>
double CompressedSeries<T>::seconds_waited() const {
  return slices_->seconds_waited();
}

#define GRIDLOPS_INSTANTIATE(T) template class CompressedSeries<T>;
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)

}  // namespace gridlops
