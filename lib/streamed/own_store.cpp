// SPDX-License-Identifier: BSD-3-Clause
#include "streamed/own_store.hpp"

#include <algorithm>
#include <utility>

#include "base/instantiate.hpp"
#include "base/message.hpp"
#include "base/numbers.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/base/trace.hpp"
#include "streamed/disk/tile_record.hpp"
#include "streamed/matrix_in_place.hpp"

namespace gridlops {

template <Scalar T>
OwnStore<T>::OwnStore(std::shared_ptr<Backend> backend, Index rows, Index cols, const StreamOptions& options,
                      const std::string& of)
    : backend_(std::move(backend)), kept_(of.empty() ? "" : options.tiles) {
  const auto cut = [&](Index strips_asked) {
    return std::make_shared<SlabBlock<T>>(backend_, rows, cols, options.column_stable, options.memory,
                                          strips_asked, options.in_place);
  };
  const auto chosen = cut(0);
  const TileOrder<T>& tiles = chosen->tiles();
  of_ = message(of, "; ", name_of(scalar_type_of<T>), ", tiles of ", tiles.height(), " rows in runs of ",
                tiles.run(), " columns");
  if (stays() && chosen->parts().count() > 0) {
    try {
      if (take_kept(cut, std::max(options.memory, chosen->parts().bytes_in_memory()))) return;
    } catch (const InputError&) {  // a disk has changed them
    }
    // First, so that there are never two.
    parts_ = nullptr;
    block_ = nullptr;
  }
  block_ = chosen;
  parts_ = take_parts(backend_, block_->parts(), {block_.get()});
  block_->own(parts_);
  const Index bytes = parts_->bytes_in_file(stays());
  if (block_->parts().count() == 0) start();
  if (bytes == 0 || options.in_place) return;
  parts_->put_in(std::make_shared<DiskFile>(stays() ? file_for_tiles(kept_, bytes)
                                                    : DiskFile::nameless(options.scratch, bytes)),
                 stays());
}

/// Takes the tiles that have stayed, if any fit into this memory, and reads those that are to be there. cut:
/// makes a block of slabs of this many strips.
template <Scalar T>
template <class Cut>
bool OwnStore<T>::take_kept(Cut&& cut, Index memory) {
  const std::optional<TileRecord> record = read_record(kept_, of_);
  if (!record || record->strips_each < 1) return false;
  const std::shared_ptr<SlabBlock<T>> as_kept = cut(record->strips_each);
  const Slabs& slabs = as_kept->slabs();
  if (slabs.strips_each != record->strips_each || std::ssize(record->hashes) != slabs.count()) return false;
  if (slabs.parts.bytes_in_memory() > memory) return false;
  std::optional<DiskFile> file = file_of_record(kept_, *record, slabs.count() * slabs.bytes_each());
  if (!file) return false;
  block_ = as_kept;
  block_->set_norm(record->norm);
  parts_ = take_parts(backend_, slabs.parts, {block_.get()});
  block_->own(parts_);
  parts_->put_in(std::make_shared<DiskFile>(*std::move(file)), true);
  parts_->set_hashes(record->hashes);
  parts_->read_residents();
  start();
  is_stored_ = true;
  return true;
}

template <Scalar T>
void OwnStore<T>::store(ElementSource<T>& source) {
  block_->store(
      source,
      [this](Index part, Index begin, const std::byte* from, Index bytes) {
        parts_->write(part, begin, from, bytes);
      },
      [this](Index bytes) { return parts_->writing(bytes); });
  parts_->finish();
  if (stays())
    keep_tiles(kept_, {of_, block_->slabs().strips_each, block_->norm(), parts_->hashes()}, parts_->file());
  start();
}

template <Scalar T>
void OwnStore<T>::read_in_place(MatrixBoxes boxes, Range rows, Range cols) {
  const TraceRegion region("read in place");
  parts_->take_from(
      std::make_unique<MatrixInPlace<T>>(std::move(boxes), rows, cols, block_->tiles(), block_->slabs()),
      [this](Index part, const std::byte* memory) {
        const AtWork at_work;
        block_->add_to_norm(part, memory);
      });
  use_parts(parts_, {block_.get()});
}

template <Scalar T>
void OwnStore<T>::start() {
  parts_->start_reading();
  use_parts(parts_, {block_.get()});
}

#define GRIDLOPS_INSTANTIATE(T) template class OwnStore<T>;
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
