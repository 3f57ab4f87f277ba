// SPDX-License-Identifier: BSD-3-Clause
#include "emulation/nccl/nccl_calls.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <utility>

#include "emulation/report.hpp"

namespace emulation {

namespace {

template <class T>
T combined(int op, T a, T b) {
  switch (op) {
    case ncclSum:
      return static_cast<T>(a + b);
    case ncclProd:
      return static_cast<T>(a * b);
    case ncclMax:
      return std::max(a, b);
    default:
      return std::min(a, b);
  }
}

template <class T>
void combine(int op, const char* from, char* sums, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    T a, b;
    std::memcpy(&a, sums + i * sizeof(T), sizeof(T));
    std::memcpy(&b, from + i * sizeof(T), sizeof(T));
    a = combined(op, a, b);
    std::memcpy(sums + i * sizeof(T), &a, sizeof(T));
  }
}

void combine(int type, int op, const char* from, char* sums, std::size_t count) {
  switch (type) {
    case ncclInt32:
      return combine<std::int32_t>(op, from, sums, count);
    case ncclInt64:
      return combine<std::int64_t>(op, from, sums, count);
    case ncclFloat32:
      return combine<float>(op, from, sums, count);
    case ncclFloat64:
      return combine<double>(op, from, sums, count);
    default:
      end_with_report(text_of("a reduction of type ", type, ", which the emulation does not have"));
  }
}

}  // namespace

std::size_t size_of(ncclDataType_t type) {
  static constexpr std::size_t sizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8};
  return sizes[type];
}

Call::Call(Kind kind, const void* from, void* to, std::size_t count, ncclDataType_t type, ncclRedOp_t op,
           int root, ncclComm_t comm, cudaStream_t stream)
    : signature_{kind, type, op, root, static_cast<std::int64_t>(count)},
      from_(from),
      to_(to),
      comm_(comm),
      stream_(stream) {}

std::size_t Call::bytes() const { return count() * size_of(static_cast<ncclDataType_t>(signature_.type)); }

bool Call::is_connected() const {
  if (signature_.kind == Kind::send) {
    Segment::Line& line = comm_->line(comm_->rank, signature_.root);
    line.sender_connects = 1;
    return line.receiver_connects != 0;
  }
  if (signature_.kind == Kind::receive) {
    Segment::Line& line = comm_->line(signature_.root, comm_->rank);
    line.receiver_connects = 1;
    return line.sender_connects != 0;
  }
  auto& slots = comm_->segment->slots;
  slots[static_cast<std::size_t>(comm_->rank)].connects = 1;
  return std::all_of(slots.begin(), slots.begin() + comm_->size,
                     [](const Segment::Slot& slot) { return slot.connects != 0; });
}

bool are_connected(const std::vector<std::shared_ptr<Call>>& calls) {
  bool are_messages_connected = true;
  std::map<long, const Call*> collectives;  // by communicator
  for (const auto& call : calls) {
    if (!call->is_message()) {
      collectives.emplace(call->comm()->segment->uid, call.get());
    } else if (!call->is_connected()) {
      are_messages_connected = false;
    }
  }
  return are_messages_connected && std::all_of(collectives.begin(), collectives.end(),
                                               [](auto& one) { return one.second->is_connected(); });
}

void Call::issue(long group) {
  switch (signature_.kind) {
    case Kind::send:
      number_ = comm_->sent[static_cast<std::size_t>(signature_.root)]++;
      return;
    case Kind::receive:
      number_ = comm_->received[static_cast<std::size_t>(signature_.root)]++;
      return;
    default:
      number_ = comm_->issued++;
      order_of_issue().push_back({comm_->segment->uid, number_, group});
  }
}

std::vector<Region> Call::regions() const {
  const std::size_t n = bytes(), all = n * static_cast<std::size_t>(comm_->size);
  std::vector<Region> regions;
  const auto add = [&](bool used, const void* address, std::size_t size, bool written) {
    if (!used || size == 0) return;
    require_device(address);
    regions.push_back(written ? writes(address, size) : reads(address, size));
    regions.back().alignment = size_of(static_cast<ncclDataType_t>(signature_.type));
  };
  switch (signature_.kind) {
    case Kind::broadcast:
      add(is_root(), from_, n, false);
      add(!is_root() || from_ != to_, to_, n, true);
      break;
    case Kind::reduce:
      add(true, from_, n, false);
      add(is_root(), to_, n, true);
      break;
    case Kind::all_reduce:
      add(true, from_, n, false);
      add(true, to_, n, true);
      break;
    case Kind::all_gather:
      add(true, from_, n, false);
      add(true, to_, all, true);
      break;
    case Kind::reduce_scatter:
      add(true, from_, all, false);
      add(true, to_, n, true);
      break;
    case Kind::send:
      add(true, from_, n, false);
      break;
    case Kind::receive:
      add(true, to_, n, true);
      break;
  }
  return regions;
}

void Call::require_device(const void* address) const {
  if (!device().memory.is_device(address))
    violation(Detector::pageable, signature_.text(), " with ", address, ", which is not device memory");
}

std::string Call::label() const {
  return text_of(signature_.text(), ", number ", number_, " of communicator ", comm_->segment->uid);
}

std::string Call::state() const { return text_of("; ", label(), " is at stage ", stage_); }

bool Call::step() {
  if (comm_->dead) return true;
  if (comm_->segment->aborted != 0) return false;
  switch (signature_.kind) {
    case Kind::send:
      return step_send();
    case Kind::receive:
      return step_receive();
    default:
      return step_collective();
  }
}

bool Call::step_collective() {
  Segment::Slot& mine = comm_->segment->slots[static_cast<std::size_t>(comm_->rank)];
  const auto all = [&](const std::atomic<long> Segment::Slot::*count) {
    for (int rank = 0; rank < comm_->size; ++rank)
      if (comm_->slot(rank).*count <= number_) return false;
    return true;
  };
  if (stage_ == 0) {
    if (comm_->turn != number_) return false;
    mine.signature = signature_;
    mine.offset = from_ == nullptr ? 0 : device().memory.offset_of(from_);
    mine.posted = number_ + 1;
    stage_ = 1;
  }
  if (stage_ == 1) {
    if (!all(&Segment::Slot::posted)) return false;
    compare_signatures();
    compute();
    mine.taken = number_ + 1;
    stage_ = 2;
  }
  if (!all(&Segment::Slot::taken)) return false;
  if (!result_.empty())
    std::memcpy(device().memory.alias(static_cast<char*>(to_)), result_.data(), result_.size());
  ++comm_->turn;
  return true;
}

bool Call::step_send() {
  Segment::Line& line = comm_->line(comm_->rank, signature_.root);
  if (stage_ == 0) {
    if (line.taken < number_) return false;
    line.signature = signature_;
    line.offset = device().memory.offset_of(from_);
    line.sent = number_ + 1;
    stage_ = 1;
  }
  return line.taken > number_;
}

bool Call::step_receive() {
  Segment::Line& line = comm_->line(signature_.root, comm_->rank);
  if (line.sent <= number_) return false;
  if (line.signature.count != signature_.count || line.signature.type != signature_.type)
    violation(Detector::signatures, "rank ", comm_->rank, " calls ", signature_.text(), ", but rank ",
              signature_.root, " ", line.signature.text());
  std::memcpy(device().memory.alias(static_cast<char*>(to_)), comm_->memory_of(signature_.root, line.offset),
              bytes());
  line.taken = number_ + 1;
  return true;
}

void Call::compare_signatures() const {
  for (int rank = 0; rank < comm_->size; ++rank) {
    const Signature& other = comm_->slot(rank).signature;
    if (other == signature_) continue;
    violation(Detector::signatures, "operation ", number_, " of communicator ", comm_->segment->uid,
              ": rank ", rank, " calls ", other.text(), ", but rank ", comm_->rank, " ", signature_.text());
  }
}

void Call::compute() {
  const std::size_t n = bytes();
  switch (signature_.kind) {
    case Kind::broadcast:
      if (!is_root() || from_ != to_) result_.assign(data_of(signature_.root), data_of(signature_.root) + n);
      break;
    case Kind::all_gather:
      for (int rank = 0; rank < comm_->size; ++rank)
        result_.insert(result_.end(), data_of(rank), data_of(rank) + n);
      break;
    case Kind::reduce:
      if (is_root()) fold(0);
      break;
    case Kind::all_reduce:
      fold(0);
      break;
    default:
      fold(static_cast<std::size_t>(comm_->rank) * count());
  }
}

/// Sums begin at another rank in each operation, so that nobody can rely on one order.
void Call::fold(std::size_t first_element) {
  const std::size_t offset = first_element * size_of(static_cast<ncclDataType_t>(signature_.type));
  const int first = static_cast<int>((number_ + 1) % comm_->size);
  result_.assign(data_of(first) + offset, data_of(first) + offset + bytes());
  for (int k = 1; k < comm_->size; ++k)
    combine(signature_.type, signature_.op, data_of((first + k) % comm_->size) + offset, result_.data(),
            count());
}

void issue_group(std::vector<std::shared_ptr<Call>> calls) {
  if (calls.empty()) return;
  Device& gpu = device();
  const Lock lock(gpu.mutex);
  static long groups = 0;
  ++groups;
  std::vector<cudaStream_t> streams;
  std::set<ncclComm_t> communicators;
  std::vector<Region> regions;
  std::string label;
  for (const auto& call : calls) {
    call->issue(groups);
    ++running_ledger().collectives;
    communicators.insert(call->comm());
    if (std::find(streams.begin(), streams.end(), call->stream()) == streams.end())
      streams.push_back(call->stream());
    const std::vector<Region> own = call->regions();
    regions.insert(regions.end(), own.begin(), own.end());
    label += (label.empty() ? "" : " and ") + call->label();
  }
  // NCCL launches a kernel for each communicator, one after another where they share a stream.
  running_ledger().nccl_launches += static_cast<long>(communicators.size());
  auto over = std::make_shared<std::vector<char>>(calls.size(), 0);
  const OperationPtr operation = gpu.enqueue(streams, label, regions, [calls, over] {
    bool all = true;
    for (std::size_t i = 0; i < calls.size(); ++i) {
      if ((*over)[i] == 0) (*over)[i] = calls[i]->step() ? 1 : 0;
      all = all && (*over)[i] != 0;
    }
    return all;
  });
  operation->exclusive = true;
  operation->state = [calls] {
    std::string text;
    for (const auto& call : calls) text += call->state();
    return text;
  };
  operation->may_hang = [calls] {
    return std::any_of(calls.begin(), calls.end(),
                       [](auto& call) { return call->comm()->segment->aborted == 0; });
  };
  for (const auto& call : calls) call->comm()->last = operation;
}

}  // namespace emulation
