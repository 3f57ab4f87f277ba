// SPDX-License-Identifier: BSD-3-Clause
#include "comm/failure/failure.hpp"

#include <algorithm>
#include <array>
#include <locale>
#include <new>
#include <numeric>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/hash.hpp"
#include "base/message.hpp"
#include "base/numbers.hpp"
#include "base/settings.hpp"
#include "comm/failure/call_account.hpp"
#include "comm/failure/watchdog.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/comm/process_grid.hpp"

namespace gridlops {

namespace {

std::optional<Check> level_read;

}  // namespace

Check check_level() {
  if (!level_read)
    level_read =
        word_in<Check>("GRIDLOPS_CHECK", {{"entry", Check::entry}, {"off", Check::off}, {"all", Check::all}});
  return *level_read;
}

const char* name_of(Check level) {
  return level == Check::off ? "off" : level == Check::entry ? "entry" : "all";
}

void set_check_level(std::optional<Check> level) { level_read = level; }

namespace {

thread_local FailureScope* current = nullptr;              // the outermost scope of this thread
thread_local const std::exception_ptr* telling = nullptr;  // the failure that this rank is telling the others
bool out_of_step = false;
std::exception_ptr (*type_of_others)(const std::exception_ptr&) = nullptr;

/// The text of an exception; empty if there is none.
std::string text_of(const std::exception_ptr& failure) {
  if (failure == nullptr) return {};
  try {
    std::rethrow_exception(failure);
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    return "an exception that is no std::exception";
  }
}

/// Returns what an action throws; null if nothing.
template <class Action>
std::exception_ptr failure_of(Action&& action) {
  try {
    action();
  } catch (...) {
    return std::current_exception();
  }
  return nullptr;
}

void rethrow_if_any(const std::exception_ptr& failure) {
  if (failure != nullptr) std::rethrow_exception(failure);
}

/// Lives while this rank tells the others of a failure.
class Telling {
 public:
  explicit Telling(const std::exception_ptr& failure) : before_(std::exchange(telling, &failure)) {}
  ~Telling() { telling = before_; }
  Telling(const Telling&) = delete;
  Telling& operator=(const Telling&) = delete;

 private:
  const std::exception_ptr* const before_;
};

[[noreturn]] void tell_out_of_step(const std::exception_ptr& failure, const char* found) {
  if (Watchdog* const watchdog = Watchdog::current()) watchdog->tell_failure(Watchdog::Clock::now());
  throw CommunicationError(
      message("the ranks are out of step: ", found, ". This rank must tell others of: ", text_of(failure)));
}

}  // namespace

void reduce_and_tell(Communicator& comm, Elements values, ReduceOp op, ReductionOrder order,
                     const std::exception_ptr& failure, const std::function<bool()>& says_so) {
  try {
    comm.all_reduce(values, op, order);
  } catch (const CommunicationError& error) {
    if (failure == nullptr || ranks_are_out_of_step()) throw;
    tell_out_of_step(failure, error.what());
  }
  if (failure != nullptr && !says_so())
    tell_out_of_step(failure, "a reduction does not say what this rank put into it");
}

namespace {

/// Returns the lowest rank that has a failure, or comm.size() if none has (collective over comm). The
/// reduction takes the minimum of each number; the first becomes this rank.
template <class Number, std::size_t count>
int lowest_failed(Communicator& comm, std::array<Number, count>& numbers, const std::exception_ptr& failure) {
  const auto mine = static_cast<Number>(failure != nullptr ? comm.rank() : comm.size());
  numbers[0] = mine;
  reduce_and_tell(comm, numbers, ReduceOp::min, ReductionOrder::any, failure,
                  [&] { return numbers[0] <= mine; });
  return static_cast<int>(numbers[0]);
}

/// Throws that rank's exception on all ranks (collective over comm).
[[noreturn]] void throw_of_rank(Communicator& comm, int rank, const std::exception_ptr& mine) {
  SentFailure sent;
  if (mine != nullptr) sent = SentFailure(mine);
  std::array<std::int32_t, 2> header{sent.type, sent.status};
  comm.broadcast(header, rank);
  sent.text = broadcast_text(comm, sent.text, rank);
  sent.type = header[0];
  sent.status = header[1];
  sent.rethrow(rank);
}

/// Throws an exception that all ranks have. It is known to them now.
[[noreturn]] void rethrow_known(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const CommunicationError&) {
    throw;
  } catch (const Error& error) {
    if (error.known_to() == KnownTo::all_ranks) throw;
    std::rethrow_exception(type_of(error).make(error.status(), error.what(), error.rank()));
  }
}

/// Throws on all ranks, of which at least one has an exception (collective over comm): that exception if it
/// is the same on all, otherwise the one of the lowest rank.
[[noreturn]] void throw_alike(Communicator& comm, const std::exception_ptr& mine) {
  const Telling now(mine);
  const std::string text = text_of(mine);
  const bool is_alike = broadcast_text(comm, text, 0) == text && mine != nullptr;
  std::array<std::int32_t, 2> numbers{0, is_alike};
  const int lowest = lowest_failed(comm, numbers, mine);
  if (numbers[1] != 0) rethrow_known(mine);
  if (lowest == comm.size())
    throw Error(ExitStatus::internal, "ranks were to throw an exception that none of them has");
  throw_of_rank(comm, lowest, mine);
}

}  // namespace

SentFailure::SentFailure(const std::exception_ptr& failure) {
  const auto set = [this](const Error& error) {
    type = static_cast<std::int32_t>(&type_of(error) - error_types().data());
    status = static_cast<std::int32_t>(error.status());
    text = error.what();
  };
  try {
    std::rethrow_exception(failure);
  } catch (const Error& error) {
    set(error);
  } catch (const std::bad_alloc& error) {
    set(OutOfMemory(message("not enough memory (", error.what(), ")")));
  } catch (...) {
    const std::exception_ptr ours = type_of_others == nullptr ? nullptr : type_of_others(failure);
    if (ours != nullptr) {
      *this = SentFailure(ours);
    } else {
      set(Error(ExitStatus::internal, text_of(failure)));
    }
  }
}

void SentFailure::rethrow(int rank) const {
  const ErrorType& its_type = error_types()[at(type)];
  std::rethrow_exception(
      its_type.make(static_cast<ExitStatus>(status), message("rank ", rank, ": ", text), rank));
}

void attempt(Communicator& comm, const std::function<void()>& action) {
  const std::exception_ptr failure = failure_of(action);
  const Telling now(failure);
  std::array<std::int32_t, 1> numbers{};
  const int lowest = lowest_failed(comm, numbers, failure);
  if (lowest < comm.size()) throw_of_rank(comm, lowest, failure);
}

void set_types_of_others(std::exception_ptr (*as_ours)(const std::exception_ptr&)) {
  type_of_others = as_ours;
}

std::string broadcast_text(Communicator& comm, const std::string& text, int root) {
  std::array<Index, 1> length{static_cast<Index>(text.size())};
  comm.broadcast(length, root);
  std::string copy = comm.rank() == root ? text : std::string(static_cast<std::size_t>(length[0]), '\0');
  comm.broadcast(copy, root);
  return copy;
}

FailureScope::FailureScope() : FailureScope(current) {}

FailureScope::FailureScope(FailureScope* around)
    : outermost_(around == nullptr ? this : around), before_(std::exchange(current, outermost_)) {}

FailureScope::~FailureScope() { current = before_; }

bool FailureScope::is_open() { return current != nullptr; }

void FailureScope::keep_current() {
  try {
    throw;
  } catch (const CommunicationError& error) {
    if (error.known_to() == KnownTo::one_rank || out_of_step) throw;
  } catch (const Error& error) {
    const bool is_of_device = error.status() == ExitStatus::internal;
    if ((error.known_to() == KnownTo::one_rank && is_of_device) || out_of_step) throw;
  } catch (...) {
  }
  if (outermost_->failure_ == nullptr) outermost_->failure_ = std::current_exception();
}

void FailureScope::close(Communicator& comm) {
  if (outermost_ != this) return;
  const std::exception_ptr failure = std::exchange(failure_, nullptr);
  if (!may_fail_alone_) return rethrow_if_any(failure);
  agree(comm, "what ranks do alone", [&](Agreement&) { rethrow_if_any(failure); });
}

// The outermost scope keeps the exception until all affected ranks have agreed on it.
void FailureScope::throw_kept(Communicator& comm) {
  const std::exception_ptr failure = outermost_->failure_;
  if (outermost_ == this) failure_ = nullptr;
  throw_alike(comm, failure);
}

std::exception_ptr failure_to_tell() {
  if (telling != nullptr && *telling != nullptr) return *telling;
  return current == nullptr ? nullptr : current->failure_;
}

std::string kept_failure_text() {
  const std::string text = text_of(failure_to_tell());
  return text.empty() ? "" : "; this rank had yet to tell the others of: " + text;
}

bool ranks_are_out_of_step() { return out_of_step; }

void set_ranks_out_of_step(bool they_are) { out_of_step = they_are; }

namespace {

constexpr char end_of_name = '\x1f', end_of_value = '\x1e';

}  // namespace

Agreement::Agreement(const char* operation) {
  text_.imbue(std::locale::classic());
  text_.precision(17);
  text_ << operation;
}

void Agreement::begin_argument(const char* name) { text_ << end_of_value << name << end_of_name; }

namespace {

struct Argument {
  std::string_view name, value;
};

/// The operation, as the value of an argument without a name, and the arguments.
std::vector<Argument> arguments_of(std::string_view text) {
  std::vector<Argument> arguments;
  for (bool more = true; more;) {
    const std::size_t end = text.find(end_of_value);
    const std::string_view argument = text.substr(0, end);
    const std::size_t middle = argument.find(end_of_name);
    if (middle == argument.npos) {
      arguments.push_back({"", argument});
    } else {
      arguments.push_back({argument.substr(0, middle), argument.substr(middle + 1)});
    }
    more = end != text.npos;
    if (more) text.remove_prefix(end + 1);
  }
  return arguments;
}

/// "1e-08 on ranks 0, 2, 1e-06 on rank 1"; empty if all ranks have the same value.
std::string differences(const std::vector<std::string_view>& values) {
  std::vector<std::pair<std::string_view, std::vector<std::size_t>>> groups;
  for (std::size_t rank = 0; rank < values.size(); ++rank) {
    const auto has_value = [&](const auto& group) { return group.first == values[rank]; };
    auto group = std::find_if(groups.begin(), groups.end(), has_value);
    if (group == groups.end()) group = groups.insert(group, {values[rank], {}});
    group->second.push_back(rank);
  }
  if (groups.size() == 1) return {};
  std::string text;
  for (const auto& [value, ranks] : groups)
    text += message(text.empty() ? "" : ", ", value.empty() ? "nothing" : value, " on ", describe(ranks));
  return text;
}

/// Describes how the ranks differ, from the texts of their next operations.
std::string disagreement(const std::vector<std::string>& texts) {
  std::vector<std::vector<Argument>> calls(texts.size());
  std::transform(texts.begin(), texts.end(), calls.begin(), arguments_of);
  std::vector<std::string_view> values(texts.size());
  for (std::size_t rank = 0; rank < calls.size(); ++rank) values[rank] = calls[rank].front().value;
  if (const std::string operations = differences(values); !operations.empty())
    return message("the ranks are not in the same operation: ", operations);

  // A rank that threw early has named fewer arguments.
  const auto& most = *std::max_element(calls.begin(), calls.end(),
                                       [](const auto& a, const auto& b) { return a.size() < b.size(); });
  std::string text;
  for (std::size_t k = 1; k < most.size(); ++k) {
    const std::string_view name = most[k].name;
    for (std::size_t rank = 0; rank < calls.size(); ++rank) {
      const auto has_name = [&](const Argument& argument) { return argument.name == name; };
      // Names may repeat; then they repeat at the same positions.
      const auto from = calls[rank].begin() + static_cast<std::ptrdiff_t>(std::min(k, calls[rank].size()));
      auto found = std::find_if(from, calls[rank].end(), has_name);
      if (found == calls[rank].end()) found = std::find_if(calls[rank].begin(), calls[rank].end(), has_name);
      values[rank] = found == calls[rank].end() ? std::string_view() : found->value;
    }
    if (const std::string differing = differences(values); !differing.empty())
      text += message(text.empty() ? "" : "; ", name, ": ", differing);
  }
  return message(most.front().value, ": the ranks disagree. ", text);
}

/// The texts of all ranks (collective over comm).
std::vector<std::string> gathered_texts(Communicator& comm, const std::string& mine) {
  std::vector<Index> counts(at(comm.size()));
  const std::array<Index, 1> count{static_cast<Index>(mine.size())};
  comm.all_gather(count, counts);
  std::string all(at(std::accumulate(counts.begin(), counts.end(), Index{0})), '\0');
  comm.all_gather_v(mine, all, counts);
  std::vector<std::string> texts;
  std::size_t begin = 0;
  for (const Index each : counts) {
    texts.push_back(all.substr(begin, at(each)));
    begin += at(each);
  }
  return texts;
}

/// Throws an error that names the differences between the ranks (collective over comm), unless they differ
/// only because some failed before naming all arguments. All ranks reach the same result.
void require_agreement(Communicator& comm, const std::string& mine, const std::string& failure) {
  const std::vector<std::string> texts = gathered_texts(comm, mine), failures = gathered_texts(comm, failure);
  const std::string most = *std::max_element(texts.begin(), texts.end(), [](const auto& a, const auto& b) {
    return a.size() < b.size();
  }) + end_of_value;
  bool agrees = true;
  for (std::size_t rank = 0; rank < texts.size(); ++rank)
    agrees = agrees && most.starts_with(texts[rank] + end_of_value) &&
             (texts[rank].size() + 1 == most.size() || !failures[rank].empty());
  if (agrees) return;

  std::string text = disagreement(texts);
  const auto failed =
      std::find_if(failures.begin(), failures.end(), [](const auto& of_rank) { return !of_rank.empty(); });
  if (failed != failures.end()) text += message(". Rank ", failed - failures.begin(), " finds: ", *failed);
  throw UsageError(message(text, ". All ranks must do the same; no data were sent"));
}

}  // namespace

void agree(Communicator& comm, const char* operation, const std::function<void(Agreement&)>& local_part) {
  Agreement agreement(operation);
  const std::exception_ptr failure = failure_of([&] {
    FailureScope steps(nullptr);
    local_part(agreement);
    rethrow_if_any(steps.failure_);
  });
  const std::string mine = agreement.text(),
                    to_tell = text_of(failure != nullptr ? failure : failure_to_tell());
  const Telling now(failure);
  const AgreementAccount account(comm);
  const auto hash = static_cast<Index>(hash_of_text(mine));
  // The lowest rank that failed, and the smallest and the largest hash.
  std::array<Index, 3> ends{0, hash, ~hash};
  const int lowest = lowest_failed(comm, ends, failure);
  if (ends[1] != ~ends[2]) require_agreement(comm, mine, to_tell);
  if (lowest < comm.size()) throw_alike(comm, failure);
}

void agree(const std::shared_ptr<const ProcessGrid>& grid, const char* operation,
           const std::function<void(Agreement&)>& local_part) {
  if (grid != nullptr && grid->is_member()) {
    const Check level = check_level();
    if (level == Check::all || (level == Check::entry && !FailureScope::is_open()))
      return agree(grid->comm(), operation, local_part);
  }
  Agreement alone(operation);
  local_part(alone);
}

std::string describe(const std::vector<std::size_t>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t first = 0, next = 0; first < ranks.size(); first = next) {
    for (next = first + 1; next < ranks.size() && ranks[next] == ranks[next - 1] + 1;) ++next;
    text += message(first == 0 ? "" : ", ", ranks[first]);
    if (next - first > 1) text += message(next - first > 2 ? " to " : ", ", ranks[next - 1]);
  }
  return text;
}

}  // namespace gridlops
