// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "gridlops/base/counters.hpp"
#include "gridlops/base/elements.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/base/export.hpp"
#include "gridlops/base/types.hpp"

namespace gridlops {

enum class ReduceOp { sum, prod, min, max };

/// "sum", "prod", "min", "max".
GRIDLOPS_EXPORT const char* name_of(ReduceOp op);

/// The order in which a reduction combines the ranks' contributions.
enum class ReductionOrder {
  any,  ///< whatever is fastest on the transport; may depend on the count and on an element's position
  by_rank  ///< ((x₀ ∘ x₁) ∘ x₂) ∘ …, so that an element's bits depend only on the ranks' values of it
};

/// An operation in progress, as the transport sees it. Implementations of Communicator return it.
class GRIDLOPS_EXPORT PendingOperation {
 public:
  /// Ensures that an incomplete operation no longer uses its operands.
  virtual ~PendingOperation();
  /// Returns when the operation is complete on this rank.
  virtual void wait() = 0;
  /// Makes progress; returns true once the operation is complete.
  virtual bool test() = 0;
};

/// The handle of a non-blocking operation. Its operands must stay alive and untouched until wait() returns or
/// test() returns true. Move-only. The destructor waits.
///
/// While an exception unwinds the stack, the other ranks may never join the operation. The destructor then
/// waits for a second or two, in which the operation completes if all ranks throw alike. After that it
/// cancels a receive. No other operation can be cancelled: to keep it away from the memory of destroyed
/// operands, this rank stops communicating. If the program catches the exception, its next operation throws
/// CommunicationError; without a session with a time limit the job ends at once.
class GRIDLOPS_EXPORT Request {
 public:
  /// An empty handle, without an operation.
  Request() = default;
  Request(Request&&) noexcept = default;
  Request& operator=(Request&& other) noexcept;
  ~Request();

  /// Returns when the operation is complete on this rank. Does nothing for an empty or completed request. The
  /// time spent counts as Traffic::seconds_waiting of the communicator.
  void wait();
  /// Makes progress; returns true if the operation is complete, or there is none. After false, the rank
  /// counts as waiting until it begins another operation, works in the library, or calls keep_alive(). So
  /// test(), like wait(), throws or ends the job if the ranks wait in vain.
  bool test();

 private:
  friend class CallAccount;
  Request(std::unique_ptr<PendingOperation> pending, std::shared_ptr<Traffic> traffic)
      : pending_(std::move(pending)), traffic_(std::move(traffic)) {}
  void complete();
  void drop() noexcept;

  std::unique_ptr<PendingOperation> pending_;
  std::shared_ptr<Traffic> traffic_;
  std::uint64_t flight_ = 0;  // in the timeline of a trace
};

/// How a rank can read what another rank has published, without that rank's help.
enum class PeerAccess {
  none,
  get,      ///< by copying it into its own memory: one-sided
  in_place  ///< where it lies: shared memory
};

/// A group of ranks that exchange arrays. Unless a comment says otherwise, every operation is collective over
/// the communicator: all its ranks call it, in the same order and form, with the same root, operation, types
/// and counts.
///
/// Counts are 64-bit numbers of elements; a complex number is one element. Any rank may pass a part of length
/// zero. Where parts differ in length (the _v forms), `counts` has one entry per rank, the same on all ranks,
/// and the parts lie one after the other in rank order. Operands must not overlap, with one exception: a
/// rank's own part may already be in its place within the whole.
///
/// Each operation has two forms: a blocking one, complete on return for this rank, and start_…, which returns
/// a Request. A rank may complete its requests in any order, and do other work in between, but it must
/// complete them before the communicator is destroyed.
///
/// Throws UsageError, before anything is sent, if an argument is wrong in itself: a root that is not a rank,
/// a negative count, a complex min, max or prod. With GRIDLOPS_CHECK=all the ranks first compare the
/// arguments of each blocking collective operation. If they call different operations, or the same one with
/// different arguments, all throw UsageError, with every value that differs. Throws CommunicationError, on
/// this rank alone, if the transport fails.
/// Reasons: docs/decisions/0002-element-erased-communicator.md.
class GRIDLOPS_EXPORT Communicator {
 public:
  virtual ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  /// The name in reports: "mpi", "nccl", …
  virtual std::string transport() const = 0;
  /// How the ranks can read each other's memory; the same on all of them.
  virtual PeerAccess peer_access() const { return PeerAccess::none; }
  bool can_read_peers() const { return peer_access() != PeerAccess::none; }

  /// Returns the traffic of this rank through this communicator and all that descend from it by split().
  const Traffic& traffic() const { return *traffic_; }

  /// Makes one new communicator for each colour (≥ 0), of the ranks that pass it, ordered by key (which may
  /// be negative); ranks with equal keys keep their order. Ranks without a colour take part and get null.
  std::unique_ptr<Communicator> split(std::optional<int> color, int key);

  void barrier();
  [[nodiscard]] Request start_barrier();

  void broadcast(Elements data, int root);
  [[nodiscard]] Request start_broadcast(Elements data, int root);

  /// out ← the elementwise reduction of all ranks' in. Only the root uses out, which has in's count there.
  void reduce(ConstElements in, Elements out, ReduceOp op, int root,
              ReductionOrder order = ReductionOrder::any);
  [[nodiscard]] Request start_reduce(ConstElements in, Elements out, ReduceOp op, int root,
                                     ReductionOrder order = ReductionOrder::any);

  /// data ← the elementwise reduction of all ranks' data. All ranks end with the same bits.
  void all_reduce(Elements data, ReduceOp op, ReductionOrder order = ReductionOrder::any);
  [[nodiscard]] Request start_all_reduce(Elements data, ReduceOp op,
                                         ReductionOrder order = ReductionOrder::any);

  /// all (on the root only) ← every rank's mine, in rank order.
  void gather(ConstElements mine, Elements all, int root);
  void gather_v(ConstElements mine, Elements all, std::span<const Index> counts, int root);
  [[nodiscard]] Request start_gather_v(ConstElements mine, Elements all, std::span<const Index> counts,
                                       int root);

  /// mine ← this rank's part of all, which only the root uses.
  void scatter(ConstElements all, Elements mine, int root);
  void scatter_v(ConstElements all, std::span<const Index> counts, Elements mine, int root);
  [[nodiscard]] Request start_scatter_v(ConstElements all, std::span<const Index> counts, Elements mine,
                                        int root);

  /// all ← every rank's mine, in rank order.
  void all_gather(ConstElements mine, Elements all);
  void all_gather_v(ConstElements mine, Elements all, std::span<const Index> counts);
  [[nodiscard]] Request start_all_gather_v(ConstElements mine, Elements all, std::span<const Index> counts);

  /// mine ← this rank's part of the elementwise reduction of every rank's all.
  void reduce_scatter(ConstElements all, Elements mine, ReduceOp op,
                      ReductionOrder order = ReductionOrder::any);
  void reduce_scatter_v(ConstElements all, std::span<const Index> counts, Elements mine, ReduceOp op,
                        ReductionOrder order = ReductionOrder::any);
  [[nodiscard]] Request start_reduce_scatter_v(ConstElements all, std::span<const Index> counts,
                                               Elements mine, ReduceOp op,
                                               ReductionOrder order = ReductionOrder::any);

  /// Part i of send goes to rank i; part i of receive comes from rank i. Here each rank passes its own
  /// counts: rank i must expect send_counts[i] elements from this rank.
  void all_to_all(ConstElements send, Elements receive);
  void all_to_all_v(ConstElements send, std::span<const Index> send_counts, Elements receive,
                    std::span<const Index> receive_counts);
  [[nodiscard]] Request start_all_to_all_v(ConstElements send, std::span<const Index> send_counts,
                                           Elements receive, std::span<const Index> receive_counts);

  /// Takes the device memory that this rank needs, besides the operands, for operations of one kind: with
  /// parts of up to these counts or, if all ranks' arrays are alike, of one count, in elements of this many
  /// bytes. Sends nothing. Without this call an operation takes the memory when it begins. Throws OutOfMemory
  /// on this rank alone.
  void reserve(CommOperation operation, std::span<const Index> counts, Index element_size,
               ReductionOrder order = ReductionOrder::any) {
    if (size_ > 1) do_reserve(operation, counts, element_size, order);
  }

  // Messages from one rank to another; not collective. Tags are 0 … max_tag. Messages between two ranks with
  // the same tag keep their order. The receiver's count must equal the sender's.
  static constexpr int max_tag = 8191;
  void send(ConstElements data, int destination, int tag = 0);
  void receive(Elements data, int source, int tag = 0);
  void send_receive(ConstElements out, int destination, Elements in, int source, int tag = 0);
  [[nodiscard]] Request start_send(ConstElements data, int destination, int tag = 0);
  [[nodiscard]] Request start_receive(Elements data, int source, int tag = 0);

  /// Ends the whole job with this status. Any one rank may call it.
  [[noreturn]] virtual void abort(ExitStatus status) = 0;

 protected:
  /// Operations are counted in `traffic`. A communicator made by split() shares its parent's account.
  Communicator(int rank, int size, std::shared_ptr<Traffic> traffic);
  const std::shared_ptr<Traffic>& traffic_account() const { return traffic_; }

  /// Whether an operation must be complete when do_… returns, or may still be in progress.
  enum class Completion { blocking, pending };
  using Pending = std::unique_ptr<PendingOperation>;  // null: already complete

 private:
  friend class AgreementAccount;
  friend class CallAccount;
  friend class CommunicationGroup;

  // A transport that can send several operations as one holds back those that start between open and close.
  virtual void do_open_group() {}
  virtual void do_close_group() {}
  virtual void do_abandon_group() noexcept {}

  virtual void do_reserve(CommOperation, std::span<const Index>, Index, ReductionOrder) {}

  // The public operations have already checked and counted the arguments; counts always have size() entries.
  virtual std::unique_ptr<Communicator> do_split(std::optional<int> color, int key) = 0;
  virtual Pending do_barrier(Completion) = 0;
  virtual Pending do_broadcast(Elements data, int root, Completion) = 0;
  virtual Pending do_reduce(ConstElements in, Elements out, ReduceOp, int root, ReductionOrder,
                            Completion) = 0;
  virtual Pending do_all_reduce(Elements data, ReduceOp, ReductionOrder, Completion) = 0;
  virtual Pending do_gather(ConstElements mine, Elements all, std::span<const Index> counts, int root,
                            Completion) = 0;
  virtual Pending do_scatter(ConstElements all, std::span<const Index> counts, Elements mine, int root,
                             Completion) = 0;
  virtual Pending do_all_gather(ConstElements mine, Elements all, std::span<const Index> counts,
                                Completion) = 0;
  virtual Pending do_reduce_scatter(ConstElements all, std::span<const Index> counts, Elements mine, ReduceOp,
                                    ReductionOrder, Completion) = 0;
  virtual Pending do_all_to_all(ConstElements send, std::span<const Index> send_counts, Elements receive,
                                std::span<const Index> receive_counts, Completion) = 0;
  virtual Pending do_send(ConstElements data, int destination, int tag, Completion) = 0;
  virtual Pending do_receive(Elements data, int source, int tag, Completion) = 0;

  int rank_;
  int size_;
  std::shared_ptr<Traffic> traffic_;
  Index collectives_ = 0;     // number that this rank has begun
  bool is_agreeing_ = false;  // its operations belong to an agreement
};

/// Operations of several communicators that go out together if the transport gains by it, as NCCL does, which
/// takes them in one call and launches a kernel for each communicator; with other transports a group changes
/// nothing. It collects the operations started between the constructor and close() on `comm`, on
/// communicators derived from it by split(), and on those from which it derives. They must be start_…
/// operations, at most one on each communicator, in the same order on all its ranks. Close the group before
/// you wait for its requests or read its operands: until then a wait throws UsageError if operations are held
/// back. Groups do not nest.
class GRIDLOPS_EXPORT CommunicationGroup {
 public:
  explicit CommunicationGroup(Communicator& comm);
  CommunicationGroup(const CommunicationGroup&) = delete;
  CommunicationGroup& operator=(const CommunicationGroup&) = delete;
  /// Closes the group; while an exception unwinds the stack, abandons the operations instead.
  ~CommunicationGroup();

  /// Throws CommunicationError if the transport fails.
  void close();

 private:
  Communicator& comm_;
  bool is_open_ = true;
};

/// Returns the root's `text` on all ranks (collective).
GRIDLOPS_EXPORT std::string broadcast_text(Communicator& comm, const std::string& text, int root);

}  // namespace gridlops
