// SPDX-License-Identifier: BSD-3-Clause
#include "streamed/streamed_block.hpp"

#include <xxhash.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

#include "base/at_work.hpp"
#include "base/instantiate.hpp"
#include "base/message.hpp"
#include "base/numbers.hpp"
#include "comm/failure/failure.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/base/trace.hpp"
#include "gridlops/comm/mpi.hpp"
#include "streamed/tile_record.hpp"

namespace gridlops {

namespace {

/// ‖x‖ of a block, also where squares leave the range of doubles.
template <Scalar T>
double norm_of(MatrixView<const T> block) {
  const MatrixView<const Real<T>> reals = real_view(block);
  const auto with_factor = [&](double factor) {
    double sum = 0;
    for (Index j = 0; j < reals.cols; ++j)
      for (Index i = 0; i < reals.rows; ++i) {
        const double x = factor * static_cast<double>(reals(i, j));
        sum += x * x;
      }
    return sum;
  };
  const double sum = with_factor(1);
  if (1e-200 < sum && sum < 1e300) return std::sqrt(sum);
  double largest = 0;
  for (Index j = 0; j < reals.cols; ++j)
    for (Index i = 0; i < reals.rows; ++i)
      largest = std::max(largest, std::abs(static_cast<double>(reals(i, j))));
  if (largest == 0 || !std::isfinite(sum / sum)) return std::isfinite(largest) ? std::sqrt(sum) : largest;
  return largest * std::sqrt(with_factor(1 / largest));
}

}  // namespace

/// The tiles of a block during a product.
template <Scalar T>
class StreamedBlock<T>::Tiles {
 public:
  explicit Tiles(const StreamedBlock& A) : A_(A), held_(at(A.slabs_.count)) {
    for (Index slab = 0; slab < A.slabs_.count; ++slab)
      if (A.slabs_.is_resident(slab)) held_[at(slab)] = A.resident(slab);
    if (A.reader_) A.reader_->begin_pass();
  }

  Index cols() const { return A_.order_.cols(); }
  Index strips() const { return A_.order_.strips(); }
  static constexpr Index strips_at_once() { return 16; }
  static constexpr Index depth() { return TileOrder<T>::depth(); }
  static constexpr Index end(Index col) { return col + depth(); }
  Index run() const { return A_.order_.run(); }
  struct NoRoom {};
  NoRoom room() const { return {}; }
  Tile<R> tile(Index strip, Index col, NoRoom) const {
    const std::byte* const slab = held_[at(strip / A_.slabs_.strips_each)];
    return {reinterpret_cast<const R*>(slab + A_.place(strip, col)), A_.order_.height(),
            A_.order_.tile_cols(col)};
  }
  gridlops::Ahead<R> ahead(Index strip, Index col) const {
    return {tile(strip, col, {}), 0, A_.order_.tile_cols(col)};
  }

  /// Calls work(strips) for one slab after the other, which stays in memory until it is released.
  template <class Work>
  void in_parts(Work&& work) const {
    for (Index slab = 0; slab < A_.slabs_.count; ++slab) {
      keep_alive();
      if (held_[at(slab)] == nullptr) held_[at(slab)] = A_.reader_->get(on_disk_before(slab));
      work(A_.slabs_.strips_of(slab));
    }
  }
  /// The strips before this one are no longer used.
  void release_before(Index strip) const {
    const Index slab = strip == A_.slabs_.strips ? A_.slabs_.count : strip / A_.slabs_.strips_each;
    if (slab == released_before_) return;
    for (; released_before_ < slab; ++released_before_)
      if (!A_.slabs_.is_resident(released_before_)) held_[at(released_before_)] = nullptr;
    if (A_.reader_) A_.reader_->release_before(on_disk_before(slab));
  }

 private:
  Index on_disk_before(Index slab) const { return slab - A_.slabs_.residents_before(slab); }

  const StreamedBlock& A_;
  mutable std::vector<const std::byte*> held_;  // null: not in memory
  mutable Index released_before_ = 0;
};

template <Scalar T>
StreamedBlock<T>::StreamedBlock(std::shared_ptr<Backend> backend, Layout layout, Index rows, Index cols,
                                const StreamOptions& options, const std::string& of)
    : backend_(std::move(backend)),
      layout_(std::move(layout)),
      order_(rows, cols, *kernel_choice().set),
      kept_(of.empty() ? "" : options.tiles),
      of_(message(of, "; ", name_of(scalar_type_of<T>), ", tiles of ", order_.height(), " rows in runs of ",
                  order_.run(), " columns")),
      slabs_(order_, options.memory),
      column_stable_(options.column_stable) {
  if (slabs_.count == 0) return;
  if (stays()) {
    const Slabs chosen = slabs_;
    try {
      if (take_kept(options.memory)) return;
    } catch (const InputError&) {  // a disk has changed them
    }
    slabs_ = chosen;
    hashes_.clear();
    is_checked_.clear();
    norm_ = 0;
    file_ = nullptr;
    // The disk may have no room for two.
    for (const char* const kind : {".json", ".tiles"}) std::remove((kept_ + kind).c_str());
  }
  take_memory();
  if (bytes_in_file() == 0) return;
  file_ = std::make_unique<TileFile>(stays() ? TileFile::for_good(kept_ + ".tiles", bytes_in_file())
                                             : TileFile::nameless(options.scratch, bytes_in_file()));
}

/// Takes the tiles that have stayed, if there are any, and reads those that are to be in memory.
template <Scalar T>
bool StreamedBlock<T>::take_kept(Index memory) {
  const std::optional<TileRecord> record = read_record(kept_ + ".json", of_);
  if (!record || record->strips_each < 1) return false;
  const Slabs as_kept(order_, memory, record->strips_each);
  if (as_kept.strips_each != record->strips_each || std::ssize(record->hashes) != as_kept.count) return false;
  if (as_kept.bytes_in_memory() > std::max(memory, slabs_.bytes_in_memory())) return false;
  std::optional<TileFile> file = TileFile::of_name(kept_ + ".tiles", as_kept.count * as_kept.bytes_each);
  if (!file) return false;
  slabs_ = as_kept;
  hashes_ = record->hashes;
  norm_ = record->norm;
  file_ = std::make_unique<TileFile>(std::move(*file));
  take_memory();
  for (Index slab = 0; slab < slabs_.count; ++slab) {
    if (!slabs_.is_resident(slab)) continue;
    const AtWork at_work;
    file_->read(resident(slab), slabs_.bytes_each, place_in_file(slab));
    check(slab, resident(slab));
  }
  start_reading();
  is_stored_ = true;
  return true;
}

template <Scalar T>
void StreamedBlock<T>::take_memory() {
  memory_ = {};  // first, so that there are never two
  memory_ = Buffer<std::byte>(backend_, slabs_.bytes_in_memory());
  const auto address = reinterpret_cast<std::uintptr_t>(memory_.data());
  constexpr auto block = static_cast<std::uintptr_t>(TileFile::block);
  aligned_memory_ = memory_.data() + (block - address % block) % block;
  hashes_.resize(at(slabs_.count));
  is_checked_.resize(at(slabs_.count));
}

template <Scalar T>
void StreamedBlock<T>::start_reading() {
  std::vector<Index> on_disk, offsets;
  for (Index slab = 0; slab < slabs_.count; ++slab) {
    if (slabs_.is_resident(slab)) continue;
    on_disk.push_back(slab);
    offsets.push_back(place_in_file(slab));
  }
  if (on_disk.empty()) return;
  reader_ = std::make_unique<ReadAhead>(
      *file_,
      ReadAhead::Ring{aligned_memory_ + slabs_.resident * slabs_.bytes_each, slabs_.slots, slabs_.bytes_each,
                      std::move(offsets)},
      [this, on_disk](Index k, const std::byte* memory) { check(on_disk[at(k)], memory); });
}

template <Scalar T>
void StreamedBlock<T>::store(Source& source) {
  const TraceRegion region("store tiles");
  const auto store_part = [&](Range strips, Range cols) {
    const Index first = order_.strip_rows(strips.begin).begin;
    const Range rows{first, order_.strip_rows(strips.end() - 1).end() - first};
    const MatrixView<const T> part = source.read(rows, cols);
    {
      const AtWork at_work;
      norm_ = std::hypot(norm_, norm_of(part));
      store_tiles(part, strips, cols);
    }
    keep_alive();
  };
  const Index all = order_.cols();
  if (slabs_.count > 0 && !source.by_columns()) {
    for (Index slab = 0; slab < slabs_.count; ++slab) store_part(slabs_.strips_of(slab), {0, all});
  } else if (slabs_.count > 0) {
    // As many columns as make a slab, or of long columns some strips.
    const Index depth = order_.depth(), of_strip = order_.strip_rows(0).size * Index{sizeof(T)};
    const Index strips = std::clamp(slabs_.bytes_each / (of_strip * depth), Index{1}, slabs_.strips);
    const Index width = std::max(slabs_.bytes_each / (of_strip * strips) / depth, Index{1}) * depth;
    for (Index col = 0; col < all; col += width)
      for (Index strip = 0; strip < slabs_.strips; strip += strips)
        store_part({strip, std::min(strips, slabs_.strips - strip)}, {col, std::min(width, all - col)});
  }
  if (!file_) return;
  file_->finish();
  if (stays()) {
    file_->keep();
    write_record(kept_ + ".json", {of_, slabs_.strips_each, norm_, hashes_});
  }
  start_reading();
}

/// Stores the tiles of these strips and columns, which `part` has.
template <Scalar T>
void StreamedBlock<T>::store_tiles(MatrixView<const T> part, Range strips, Range cols) {
  const Workspace<R> room(order_.height() * order_.depth());
  auto* const tile = reinterpret_cast<std::byte*>(room.data());
  const Index first = order_.strip_rows(strips.begin).begin;
  for (Index strip = strips.begin; strip < strips.end(); ++strip) {
    const Range rows = order_.strip_rows(strip);
    const Index slab = strip / slabs_.strips_each;
    for (Index col = cols.begin; col < cols.end(); col += order_.depth()) {
      const Range columns{col - cols.begin, std::min(order_.depth(), cols.end() - col)};
      order_.pack(part.block({rows.begin - first, rows.size}, columns), col, room.data());
      const Index bytes = bytes_of_tile(col), to = place(strip, col);
      if (slabs_.is_resident(slab)) std::copy_n(tile, bytes, resident(slab) + to);
      if (slabs_.is_resident(slab) && !stays()) continue;
      hashes_[at(slab)] += hash_of_tile(strip, col, tile);
      file_->write(tile, bytes, place_in_file(slab) + to);
    }
  }
}

template <Scalar T>
std::uint64_t StreamedBlock<T>::hash_of_tile(Index strip, Index col, const std::byte* tile) const {
  const auto seed = static_cast<std::uint64_t>(strip * order_.padded_cols() + col);
  return XXH3_64bits_withSeed(tile, static_cast<std::size_t>(bytes_of_tile(col)), seed);
}

template <Scalar T>
void StreamedBlock<T>::check(Index slab, const std::byte* memory) {
  if (is_checked_[at(slab)] != 0 && !checks_all_) return;
  std::uint64_t hash = 0;
  const Range strips = slabs_.strips_of(slab);
  for (Index strip = strips.begin; strip < strips.end(); ++strip)
    for (Index col = 0; col < order_.cols(); col += order_.depth())
      hash += hash_of_tile(strip, col, memory + place(strip, col));
  if (hash != hashes_[at(slab)])
    throw InputError(message(file_->place(), ": ", slabs_.bytes_each, " bytes of A, rows ",
                             order_.strip_rows(strips.begin).begin, " to ",
                             order_.strip_rows(strips.end() - 1).end() - 1,
                             " of this rank's block, are not those that were written there"));
  is_checked_[at(slab)] = 1;
}

template <Scalar T>
void StreamedBlock<T>::multiply(Op op, T alpha, MatrixView<const T> X, T beta, MatrixView<T> Y) {
  const TraceRegion region("local product");
  trace_flops(product_flops<T>(X.rows, Y.rows, X.cols));
  checks_all_ = check_level() == Check::all;
  FailureScope failures;
  failures.run(
      [&] { multiply_tiles(Tiles(*this), order_.kernels(), op, alpha, X, beta, Y, column_stable_); });
}

template <Scalar T>
void StreamedBlock<T>::multiply_once(MatrixView<const T> P, MatrixView<const T> data, MatrixView<T> Q,
                                     MatrixView<T> W, const Completion& completed) {
  const TraceRegion region("local product");
  trace_flops(3 * product_flops<T>(Q.rows, W.rows, P.cols));
  checks_all_ = check_level() == Check::all;
  FailureScope failures;
  Index complete = 0;
  const auto note = [&](Index computed) { return complete = completed ? completed(computed) : computed; };
  if (slabs_.count == 0) {
    const Kernels<T>& kernels = backend_->template kernels<T>();
    kernels.fill(T(0), Q);
    kernels.fill(T(0), W);
  } else {
    failures.run([&] {
      one_pass_in_parts(Tiles(*this), order_, column_stable_, P, data, Q, W.col_block({0, P.cols}),
                        W.col_block({P.cols, P.cols}), Completion(note));
    });
  }
  // The other ranks wait for this one in the sum for Q, also after a failure, and where A is empty.
  while (complete < Q.rows) note(Q.rows);
}

#define GRIDLOPS_INSTANTIATE(T) template class StreamedBlock<T>;
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)

}  // namespace gridlops
