// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "command_line/console.hpp"
#include "gridlops/base/error.hpp"
#include "machine/machine_file.hpp"

namespace gridlops::program {

namespace {

using Json = nlohmann::ordered_json;

/// A value in a file, which knows its name there.
class Value {
 public:
  Value(const Json& json, std::string name) : json_(json), name_(std::move(name)) {}

  Value at(const std::string& key) const {
    const std::string name = name_.empty() ? key : name_ + "." + key;
    if (!json_.is_object())
      throw InputError(fmt::format("{} is {}, no object", name_.empty() ? "the file" : name_, text()));
    const auto found = json_.find(key);
    if (found == json_.end()) throw InputError(fmt::format("{} is missing", name));
    return {*found, name};
  }
  std::vector<Value> items() const {
    if (!json_.is_object()) throw InputError(fmt::format("{} is {}, no object", name_, text()));
    std::vector<Value> all;
    for (const auto& entry : json_.items()) all.emplace_back(entry.value(), entry.key());
    return all;
  }
  /// A number whose inverse is finite.
  double positive() const {
    constexpr double least = 1e-300;
    if (json_.is_number()) {
      const double value = json_.get<double>();
      if (least <= value && value <= 1 / least) return value;
    }
    throw InputError(fmt::format("{} is {}, no positive number", name_, text()));
  }
  const std::string& name() const { return name_; }
  std::string text() const {
    const std::string text = json_text(json_);
    return text.size() > 40 ? text.substr(0, 40) + "…" : text;
  }

 private:
  const Json& json_;
  std::string name_;
};

Machine machine_in(const Json& json) {
  const Value file = Value(json, "").at("rates");
  Machine machine;
  MachineModel& rates = machine.rates;
  for (const ScalarType type : all_scalar_types)
    rates.seconds_per_flop[static_cast<std::size_t>(type)] =
        1 / file.at("flops_per_second").at(std::string(name_of(type))).positive();
  rates.seconds_per_read_byte = 1 / file.at("read_bytes_per_second").positive();
  rates.seconds_per_copied_byte = 1 / file.at("copied_bytes_per_second").positive();
  const double ranks = file.at("ranks").positive();
  if (ranks != std::floor(ranks) || ranks > 1e9)
    throw InputError(fmt::format("ranks is {}, no number of ranks", ranks));
  rates.ranks_of_links = static_cast<int>(ranks);
  const Value transports = file.at("transports");
  for (const Value& item : transports.items()) {
    const Value transport = transports.at(item.name());
    Machine::Links& links = machine.links[item.name()];
    for (const CommOperation operation : linked_operations()) {
      const Value link = transport.at(name_of_link(operation));
      links[static_cast<std::size_t>(operation)] = {link.at("seconds_per_call").positive(),
                                                    1 / link.at("bytes_per_second").positive()};
    }
  }
  return machine;
}

/// Throws parser errors, and InputError if values are nested so deeply that nothing should write them.
Json json_in(const std::string& text) {
  constexpr int most_levels = 16;
  return Json::parse(text, [](int level, Json::parse_event_t, Json&) {
    if (level > most_levels) throw InputError("its values are nested too deeply");
    return true;
  });
}

}  // namespace

Machine parse_machine(const std::string& text) {
  try {
    return machine_in(json_in(text));
  } catch (const Json::exception&) {
    throw InputError("it is no JSON with numbers of a usual size");
  }
}

const std::vector<CommOperation>& linked_operations() {
  static const std::vector<CommOperation> operations{
      CommOperation::broadcast, CommOperation::reduce,     CommOperation::all_reduce,
      CommOperation::scatter,   CommOperation::all_gather, CommOperation::reduce_scatter};
  return operations;
}

std::string name_of_link(CommOperation operation) {
  switch (operation) {
    case CommOperation::broadcast:
      return "broadcast";
    case CommOperation::reduce:
      return "reduce";
    case CommOperation::all_reduce:
      return "all-reduce";
    case CommOperation::scatter:
      return "scatter";
    case CommOperation::all_gather:
      return "all-gather";
    default:
      return "reduce-scatter";
  }
}

Json json_of(const Machine& machine) {
  Json json{{"ranks", machine.rates.ranks_of_links}};
  for (const ScalarType type : all_scalar_types)
    json["flops_per_second"][std::string(name_of(type))] =
        1 / machine.rates.seconds_per_flop[static_cast<std::size_t>(type)];
  json["read_bytes_per_second"] = 1 / machine.rates.seconds_per_read_byte;
  json["copied_bytes_per_second"] = 1 / machine.rates.seconds_per_copied_byte;
  json["transports"] = Json::object();
  for (const auto& [transport, links] : machine.links) {
    for (const CommOperation operation : linked_operations()) {
      const LinkModel& link = links[static_cast<std::size_t>(operation)];
      json["transports"][transport][name_of_link(operation)] = {
          {"seconds_per_call", link.seconds_per_call}, {"bytes_per_second", 1 / link.seconds_per_byte}};
    }
  }
  return json;
}

}  // namespace gridlops::program
