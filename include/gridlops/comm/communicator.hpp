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
  any,  ///< what is fastest on the transport; may depend on the count and on an element's position
  by_rank  ///< ((x₀ ∘ x₁) ∘ x₂) ∘ …, so that an element's bits depend on the ranks' values of it only
};

/// An operation under way, as the transport knows it. Implementations of Communicator return it.
class GRIDLOPS_EXPORT PendingOperation {
 public:
  /// Sees to it that an operation which is not complete uses its operands no more.
  virtual ~PendingOperation();
  /// Returns when the operation is complete on this rank.
  virtual void wait() = 0;
  /// Makes progress; true once the operation is complete.
  virtual bool test() = 0;
};

/// The handle of a non-blocking operation. Its operands must stay alive and untouched until wait() returns or
/// test() says true. Move-only. The destructor waits.
///
/// While an exception unwinds the stack the other ranks may never come. The destructor then waits for a
/// second or two, in which the operation completes if all ranks throw alike. After that it takes a receive
/// back. Another operation cannot be taken back: to keep it from the memory of operands that are gone, this
/// rank communicates no more. A program that catches the exception gets CommunicationError at the next
/// operation; without a session with a time limit the job ends at once.
class GRIDLOPS_EXPORT Request {
 public:
  /// A handle of no operation.
  Request() = default;
  Request(Request&&) noexcept = default;
  Request& operator=(Request&& other) noexcept;
  ~Request();

  /// Returns when the operation is complete on this rank. Does nothing for an empty or completed request.
  /// The time that it takes counts as Traffic::seconds_waiting of the communicator.
  void wait();
  /// Makes progress; true if the operation is complete, or there is none. A rank that is told that it is not
  /// counts as one that waits, until it begins another operation, works in the library, or calls
  /// keep_alive(); so this, too, throws, or ends the job, where the ranks wait in vain.
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

/// How a rank can take what another one has published, without the other taking part.
enum class PeerAccess {
  none,
  get,      ///< into memory of its own: one-sided
  in_place  ///< where it is: shared memory
};

/// A group of ranks that exchange arrays. Unless said otherwise every operation is collective over the
/// communicator: all its ranks call it, in the same order and form, with the same root, operation, types and
/// counts.
///
/// Counts are 64-bit and count elements, a complex number being one; parts of length zero are legal on any
/// rank. Where parts have different lengths (the _v forms) `counts` has one entry per rank, the same on all
/// ranks, and the parts lie one after the other in rank order. Operands must not overlap, except that a
/// rank's own part may be in its place within the whole already.
///
/// Each operation comes in two forms: blocking (complete on return, for this rank) and as start_…, which
/// returns a Request. Ranks may complete what they started in any order, and do other things in between, but
/// they must complete it before the communicator is destroyed.
///
/// Throws UsageError, before anything is sent, if an argument is wrong in itself: a root that is no rank, a
/// negative count, a complex min, max or prod. With GRIDLOPS_CHECK=all the ranks compare the arguments of
/// each blocking collective operation first, and all throw UsageError, with every value that differs, where
/// they call different ones, or the same with different arguments. Throws CommunicationError, on this rank
/// alone, if the transport fails.
class GRIDLOPS_EXPORT Communicator {
 public:
  virtual ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  /// The name in reports: "mpi", "nccl", …
  virtual std::string transport() const = 0;
  /// How its ranks can read each other's memory; the same on all of them.
  virtual PeerAccess peer_access() const { return PeerAccess::none; }
  bool can_read_peers() const { return peer_access() != PeerAccess::none; }

  /// What this rank sent and received through this communicator and all that descend from it by split().
  const Traffic& traffic() const { return *traffic_; }

  /// Makes a new communicator of the ranks of each colour, ordered by key, and by rank in this one where keys
  /// are equal. Keys may be negative. Ranks without a colour take part and get null. Colours are ≥ 0.
  std::unique_ptr<Communicator> split(std::optional<int> color, int key);

  void barrier();
  [[nodiscard]] Request start_barrier();

  void broadcast(Elements data, int root);
  [[nodiscard]] Request start_broadcast(Elements data, int root);

  /// out ← the elementwise reduction of all ranks' in; out is used on the root only and has in's count there.
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

  /// mine ← this rank's part of all, which is used on the root only.
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

  /// Part i of send goes to rank i; part i of receive comes from rank i. Here the counts are this rank's own:
  /// what rank i expects from this one must equal send_counts[i].
  void all_to_all(ConstElements send, Elements receive);
  void all_to_all_v(ConstElements send, std::span<const Index> send_counts, Elements receive,
                    std::span<const Index> receive_counts);
  [[nodiscard]] Request start_all_to_all_v(ConstElements send, std::span<const Index> send_counts,
                                           Elements receive, std::span<const Index> receive_counts);

  // Messages from one rank to another, not collective. Tags are 0 … max_tag. Messages between two ranks with
  // the same tag keep their order. The receiver's count must equal the sender's.
  static constexpr int max_tag = 8191;
  void send(ConstElements data, int destination, int tag = 0);
  void receive(Elements data, int source, int tag = 0);
  void send_receive(ConstElements out, int destination, Elements in, int source, int tag = 0);
  [[nodiscard]] Request start_send(ConstElements data, int destination, int tag = 0);
  [[nodiscard]] Request start_receive(Elements data, int source, int tag = 0);

  /// Ends the whole job with this status, from any rank alone.
  [[noreturn]] virtual void abort(ExitStatus status) = 0;

 protected:
  /// `traffic` is where operations are counted: a communicator that is split off takes its parent's account.
  Communicator(int rank, int size, std::shared_ptr<Traffic> traffic);
  const std::shared_ptr<Traffic>& traffic_account() const { return traffic_; }

  /// Whether an operation must be complete when do_… returns, or may still be under way.
  enum class Completion { blocking, pending };
  using Pending = std::unique_ptr<PendingOperation>;  // null: complete already

 private:
  friend class AgreementAccount;
  friend class CallAccount;
  friend class CommunicationGroup;

  // A transport that can send several operations as one holds back those that are started between these two.
  virtual void do_open_group() {}
  virtual void do_close_group() {}
  virtual void do_abandon_group() noexcept {}

  // The public operations have checked and counted the arguments; counts always have size() entries.
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
  Index collectives_ = 0;     // how many this rank has begun
  bool is_agreeing_ = false;  // its operations are those of an agreement
};

/// Operations of several communicators that go out together where the transport gains by it, as NCCL does by
/// one launch; elsewhere it changes nothing. The group consists of what is started between the constructor
/// and close() on `comm`, on communicators derived from it by split(), and on those that it derives from:
/// start_… only, at most once on each communicator, in one order on all their ranks. Wait for its requests,
/// and read its operands, once the group is closed: before that a wait throws UsageError where operations are
/// held back. Groups do not nest.
class GRIDLOPS_EXPORT CommunicationGroup {
 public:
  explicit CommunicationGroup(Communicator& comm);
  CommunicationGroup(const CommunicationGroup&) = delete;
  CommunicationGroup& operator=(const CommunicationGroup&) = delete;
  /// Closes; while an exception unwinds the stack it abandons what was started.
  ~CommunicationGroup();

  /// Throws CommunicationError if the transport fails.
  void close();

 private:
  Communicator& comm_;
  bool is_open_ = true;
};

/// Returns on all ranks what `text` holds on the root (collective).
GRIDLOPS_EXPORT std::string broadcast_text(Communicator& comm, const std::string& text, int root);

}  // namespace gridlops
