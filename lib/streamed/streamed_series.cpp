// SPDX-License-Identifier: BSD-3-Clause
#include "gridlops/streamed/streamed_series.hpp"

#include <utility>

#include "base/instantiate.hpp"
#include "base/message.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/comm/failure.hpp"
#include "streamed/shared_store.hpp"
#include "streamed/stationary_streamed.hpp"

namespace gridlops {

template <Scalar T>
struct StreamedSeries<T>::Kept {
  explicit Kept(const StreamOptions& on_disk) : store(on_disk) {}
  SharedStore store;
};

template <Scalar T>
StreamedSeries<T>::StreamedSeries(const StreamOptions& on_disk) : kept_(std::make_unique<Kept>(on_disk)) {
  require<UsageError>(on_disk.tiles.empty(), "the tiles of a series cannot stay: name no directory for them");
  require<UsageError>(!on_disk.in_place, "the matrices of a series are not in files, to be read in place");
}
template <Scalar T>
StreamedSeries<T>::~StreamedSeries() = default;

template <Scalar T>
SharedStore& StreamedSeries<T>::store() const {
  return kept_->store;
}

template <Scalar T>
StreamedMatrixPtr<T> StreamedSeries<T>::add(const ConstDistMatrix<T>& A) {
  const std::shared_ptr<const ProcessGrid>& grid = A.grid();
  const StreamOptions& options = store().options();
  agree(grid, "StreamedSeries::add",
        [&](Agreement& agreement) { check_matrix("StreamedSeries::add", agreement, A, options); });
  const DistMatrix<T> shape = planned_matrix<T>(grid, A.layout());
  if (!grid->is_member()) return make_streamed<T>(shape, nullptr, nullptr);
  const auto put = [&] {
    auto block = std::make_shared<SlabBlock<T>>(grid->backend(), A.local().rows, A.local().cols,
                                                options.column_stable, options.memory);
    store().append(grid->backend(), block,
                   [&](const StoredBlockBase::WritePart& write, const StoredBlockBase::BeginWait& wait) {
                     block->store(*source_in_memory(A), write, wait);
                   });
    return block;
  };
  return store().all_or_none([&] {
    auto block = attempt(grid->comm(), put);
    return make_streamed<T>(shape, std::move(block), shared_products<T>(*grid, reduction_order(options)));
  });
}

template <Scalar T>
void StreamedSeries<T>::start(Index memory, Range matrices) {
  store().start(memory, matrices);
}
template <Scalar T>
Index StreamedSeries<T>::memory(Index memory, Range matrices) const {
  return store().plan(memory, matrices).bytes_in_memory();
}
template <Scalar T>
Index StreamedSeries<T>::count() const {
  return store().count();
}
template <Scalar T>
Index StreamedSeries<T>::bytes_on_disk() const {
  return store().bytes_on_disk();
}
template <Scalar T>
Index StreamedSeries<T>::bytes_read() const {
  return store().bytes_read();
}
template <Scalar T>
double StreamedSeries<T>::seconds_waited() const {
  return store().seconds_waited();
}

#define GRIDLOPS_INSTANTIATE(T) template class StreamedSeries<T>;
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
