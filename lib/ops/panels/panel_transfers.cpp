// SPDX-License-Identifier: BSD-3-Clause
#include "ops/panels/panel_transfers.hpp"

#include <numeric>
#include <utility>

#include "base/instantiate.hpp"
#include "ops/panels/peer_blocks.hpp"

namespace gridlops {

template <Scalar T>
PanelSource<T>::PanelSource(std::size_t slots) : slots_(slots), places_(slots) {
  std::iota(places_.begin(), places_.end(), std::size_t{0});
}

template <Scalar T>
MatrixView<const T> PanelSource<T>::arrived(std::size_t step) {
  slot(step).request.wait();
  return slot(step).panel;
}

template <Scalar T>
void PanelSource<T>::advance() {
  for (ArrivingPanel& slot : slots_) slot.request.test();
}

namespace {

template <Scalar T>
class BroadcastPanels final : public PanelSource<T> {
 public:
  BroadcastPanels(Communicator& comm, std::shared_ptr<Backend> backend, std::shared_ptr<SlotMemory<T>> memory,
                  PanelCopies copies)
      : PanelSource<T>(memory->size()),
        comm_(comm),
        backend_(std::move(backend)),
        memory_(std::move(memory)),
        copies_(copies) {}

  void reserve(std::size_t step, const PanelPart& part) override {
    const bool is_there = this->block().data != nullptr && is_sent_in_place(part);
    if (comm_.size() > 1 && !is_there) memory(step).reserve(backend_, part.size());
  }

  void start(std::size_t step, const PanelPart& part) override {
    auto& slot = this->slot(step);
    if (comm_.size() == 1) {
      slot.panel = this->own(part);
      return;
    }
    if (is_sent_in_place(part)) {
      slot.panel = this->own(part);
    } else {
      const MatrixView<T> panel = memory(step).matrix(part.rows.size, part.cols.size);
      if (comm_.rank() == part.owner) backend_->template kernels<T>().copy(this->own(part), panel);
      slot.panel = panel;
    }
    // A broadcast only reads the owner's memory.
    slot.request = comm_.start_broadcast({const_cast<T*>(slot.panel.data), part.size()}, part.owner);
  }

 private:
  bool is_sent_in_place(const PanelPart& part) const {
    return copies_ == PanelCopies::where_needed && comm_.rank() == part.owner && this->own(part).contiguous();
  }
  Buffer<T>& memory(std::size_t step) { return (*memory_)[step % memory_->size()]; }

  Communicator& comm_;
  std::shared_ptr<Backend> backend_;
  std::shared_ptr<SlotMemory<T>> memory_;
  PanelCopies copies_;
};

template <Scalar T>
class PeerPanels final : public PanelSource<T> {
 public:
  PeerPanels(Communicator& comm, std::shared_ptr<Backend> backend, std::size_t slots, SourceBlock kind)
      : PanelSource<T>(slots),
        me_(comm.rank()),
        kind_(kind),
        peers_(make_peer_blocks<T>(comm, std::move(backend))),
        memory_(slots) {}

  void connect() override { peers_->connect(); }
  void reserve_block(MatrixView<const T> block) override { peers_->reserve_copy(block); }
  void reserve(std::size_t step, const PanelPart& part) override {
    if (takes_new_slot(step, part) && part.owner != me_)
      peers_->reserve_part(memory_[this->place(step)], part.size());
  }

  void begin(MatrixView<const T> block) override {
    kind_ == SourceBlock::of_product ? peers_->publish(block) : peers_->publish_for_good(block);
  }
  void start(std::size_t step, const PanelPart& part) override {
    if (!takes_new_slot(step, part)) return;
    PeerPart<T> read = peers_->start_reading(part.owner, part.rows, part.cols, memory_[this->place(step)]);
    this->slot(step) = {read.block, std::move(read.arrival)};
  }
  void end() override {
    peers_->done_reading();
    kind_ == SourceBlock::of_caller ? peers_->await_every_reader() : peers_->await_readers();
  }
  void renew() override { peers_->renew(); }

 private:
  /// Neighbouring steps that take the same part share a slot. Steps come in order.
  bool takes_new_slot(std::size_t step, const PanelPart& part) {
    const bool is_new = step == 0 || part != last_;
    if (is_new) newest_ = step == 0 ? 0 : (newest_ + 1) % this->slots();
    last_ = part;
    this->place(step) = newest_;
    return is_new;
  }

  int me_;
  SourceBlock kind_;
  std::unique_ptr<PeerBlocks<T>> peers_;
  SlotMemory<T> memory_;
  PanelPart last_;
  std::size_t newest_ = 0;
};

template <Scalar T>
class ReducedSum final : public PanelSum<T> {
 public:
  ReducedSum(Communicator& comm, std::shared_ptr<Backend> backend, std::shared_ptr<SlotMemory<T>> memory,
             ReductionOrder order)
      : comm_(comm),
        backend_(std::move(backend)),
        products_(std::move(memory)),
        sums_(products_->size()),
        order_(order),
        requests_(sums_.size()) {}

  void reserve(const Panel& K, Index cols) override {
    const Index size = K.C.rows.size * cols;
    product(K).reserve(backend_, size);
    sum(K).reserve(backend_, size);
    if (comm_.rank() == K.C.owner) comm_.reserve(CommOperation::reduce, {&size, 1}, sizeof(T), order_);
  }
  MatrixView<T> rows(const Panel& K) override { return product(K).matrix(K.C.rows.size, this->cols()); }
  T beta(const Panel&) const override { return T(0); }
  void start(const Panel& K) override {
    const Index size = K.C.rows.size * this->cols();
    request(K) = comm_.start_reduce({product(K).data(), size}, {sum(K).data(), size}, ReduceOp::sum,
                                    K.C.owner, order_);
  }
  void advance() override {
    for (Request& request : requests_) request.test();
  }
  void finish(const Panel& K) override {
    request(K).wait();
    if (comm_.rank() != K.C.owner) return;
    backend_->template kernels<T>().add(T(1), sum(K).matrix(K.C.rows.size, this->cols()), PanelSum<T>::beta(),
                                        this->own(K));
  }

 private:
  Buffer<T>& product(const Panel& K) { return (*products_)[K.step % products_->size()]; }
  Buffer<T>& sum(const Panel& K) { return sums_[K.step % sums_.size()]; }
  Request& request(const Panel& K) { return requests_[K.step % requests_.size()]; }

  Communicator& comm_;
  std::shared_ptr<Backend> backend_;
  std::shared_ptr<SlotMemory<T>> products_;
  SlotMemory<T> sums_;
  ReductionOrder order_;
  std::vector<Request> requests_;
};

}  // namespace

template <Scalar T>
std::shared_ptr<PanelSource<T>> broadcast_panels(Communicator& comm, std::shared_ptr<Backend> backend,
                                                 std::shared_ptr<SlotMemory<T>> memory, PanelCopies copies) {
  return std::make_shared<BroadcastPanels<T>>(comm, std::move(backend), std::move(memory), copies);
}

template <Scalar T>
std::shared_ptr<PanelSource<T>> peer_panels(Communicator& comm, std::shared_ptr<Backend> backend,
                                            std::size_t slots, SourceBlock kind) {
  return std::make_shared<PeerPanels<T>>(comm, std::move(backend), slots, kind);
}

template <Scalar T>
std::shared_ptr<PanelSum<T>> reduced_sum(Communicator& comm, std::shared_ptr<Backend> backend,
                                         std::shared_ptr<SlotMemory<T>> memory, ReductionOrder order) {
  return std::make_shared<ReducedSum<T>>(comm, std::move(backend), std::move(memory), order);
}

#define GRIDLOPS_INSTANTIATE(T)                                                                              \
  template class PanelSource<T>;                                                                             \
  template class PanelSum<T>;                                                                                \
  template std::shared_ptr<PanelSource<T>> broadcast_panels(Communicator&, std::shared_ptr<Backend>,         \
                                                            std::shared_ptr<SlotMemory<T>>, PanelCopies);    \
  template std::shared_ptr<PanelSource<T>> peer_panels(Communicator&, std::shared_ptr<Backend>, std::size_t, \
                                                       SourceBlock);                                         \
  template std::shared_ptr<PanelSum<T>> reduced_sum(Communicator&, std::shared_ptr<Backend>,                 \
                                                    std::shared_ptr<SlotMemory<T>>, ReductionOrder);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
