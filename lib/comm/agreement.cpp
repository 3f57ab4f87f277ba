// SPDX-License-Identifier: BSD-3-Clause
#include "comm/agreement.hpp"

#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <exception>
#include <numeric>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/numbers.hpp"
#include "comm/agreement_account.hpp"
#include "comm/failure_scope.hpp"

namespace gridlops {

std::string check_level_text() {
  const char* const text = std::getenv("GRIDLOPS_CHECK");
  return text == nullptr || *text == '\0' ? "entry" : text;
}

namespace {

std::optional<Check> level_read;

Check read_check_level() {
  const std::string text = check_level_text();
  if (text == "off") return Check::off;
  if (text == "all") return Check::all;
  require<UsageError>(text == "entry", "GRIDLOPS_CHECK is \"", text, "\"; it must be off, entry or all");
  return Check::entry;
}

}  // namespace

Check check_level() {
  if (!level_read) level_read = read_check_level();
  return *level_read;
}

void forget_check_level() { level_read.reset(); }

namespace {

constexpr char end_of_name = '\x1f', end_of_value = '\x1e';

}  // namespace

Agreement& Agreement::append(const char* name, const std::string& value) {
  text_ += end_of_value;
  text_ += name;
  text_ += end_of_name;
  text_ += value;
  return *this;
}

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

/// "1e-08 on ranks 0, 2, 1e-06 on rank 1"; empty if all ranks have one value.
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

/// What differs between the ranks, from what each of them is about to do.
std::string disagreement(const std::vector<std::string>& texts) {
  std::vector<std::vector<Argument>> calls(texts.size());
  std::transform(texts.begin(), texts.end(), calls.begin(), arguments_of);
  std::vector<std::string_view> values(texts.size());
  for (std::size_t rank = 0; rank < calls.size(); ++rank) values[rank] = calls[rank].front().value;
  if (const std::string operations = differences(values); !operations.empty())
    return message("the ranks are not in the same operation: ", operations);

  // A rank where an exception came early has named fewer arguments.
  const auto& most = *std::max_element(calls.begin(), calls.end(),
                                       [](const auto& a, const auto& b) { return a.size() < b.size(); });
  std::string text;
  for (std::size_t k = 1; k < most.size(); ++k) {
    const std::string_view name = most[k].name;
    for (std::size_t rank = 0; rank < calls.size(); ++rank) {
      const auto has_name = [&](const Argument& argument) { return argument.name == name; };
      // Names may repeat, and then do so at the same places.
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

/// Throws what differs between the ranks, unless it is only that some failed before they had named all
/// (collective over comm). All ranks come to the same end.
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

std::string describe(const std::vector<std::size_t>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t first = 0, next = 0; first < ranks.size(); first = next) {
    for (next = first + 1; next < ranks.size() && ranks[next] == ranks[next - 1] + 1;) ++next;
    text += message(first == 0 ? "" : ", ", ranks[first]);
    if (next - first > 1) text += message(next - first > 2 ? " to " : ", ", ranks[next - 1]);
  }
  return text;
}

void agree(Communicator& comm, const char* operation, const std::function<void(Agreement&)>& local_part) {
  Agreement mine(operation);
  std::exception_ptr failure;
  try {
    local_part(mine);
  } catch (...) {
    failure = std::current_exception();
  }
  const std::string to_tell = text_of(failure != nullptr ? failure : failure_to_tell());
  const Telling telling(failure);
  const AgreementAccount account(comm);
  const auto hash = static_cast<Index>(XXH3_64bits(mine.text().data(), mine.text().size()));
  // The lowest rank that failed, and the smallest and the largest hash.
  std::array<Index, 3> ends{failure == nullptr ? comm.size() : comm.rank(), hash, ~hash};
  reduce_telling(comm, ends, ReduceOp::min, ReductionOrder::any, failure);
  if (failure != nullptr && ends[0] > comm.rank())
    tell_out_of_step(failure, "an agreement does not say what this rank put into it");
  if (ends[1] != ~ends[2]) require_agreement(comm, mine.text(), to_tell);
  if (ends[0] < comm.size()) throw_together(comm, failure);
}

void agree_at_entry(Communicator& comm, const char* operation,
                    const std::function<void(Agreement&)>& local_part) {
  const Check level = check_level();
  if (level == Check::all || (level == Check::entry && !FailureScope::is_open()))
    return agree(comm, operation, local_part);
  Agreement unused(operation);
  local_part(unused);
}

}  // namespace gridlops
