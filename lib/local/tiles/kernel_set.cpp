// SPDX-License-Identifier: BSD-3-Clause
#include "local/tiles/kernel_set.hpp"

#include <fstream>
#include <map>

#include "base/message.hpp"
#include "base/settings.hpp"
#include "gridlops/local/backend.hpp"

namespace gridlops {

KernelChoice kernel_choice(const std::string& name) {
  using Use = KernelChoice::Use;
  const std::vector<KernelSet>& sets = kernel_sets();
  Words<KernelChoice> words{{"auto", {Use::where_faster, &sets.back()}},
                            {"blas", {Use::never, &sets.back()}},
                            {"baseline", {Use::wherever_possible, &sets.front()}}};
  for (const KernelSet& set : sets)
    if (std::string("baseline") != set.name) words.push_back({set.name, {Use::wherever_possible, &set}});
  return value_of("GRIDLOPS_KERNELS", name, words);
}

const KernelChoice& kernel_choice() {
  static const KernelChoice choice = kernel_choice(variable("GRIDLOPS_KERNELS"));
  return choice;
}

std::string own_kernels() {
  const KernelChoice& choice = kernel_choice();
  if (choice.use == KernelChoice::Use::never) return "none, as GRIDLOPS_KERNELS asks for BLAS";
  const std::string set = choice.set->text;
  if (choice.use == KernelChoice::Use::wherever_possible)
    return set + ", as GRIDLOPS_KERNELS asks, in all products";
  if (!choice.set->is_usual()) return set + ", where a calibration finds them faster than BLAS";
  return set + ", in products with few columns";
}

std::string cpu_model() {
  std::map<std::string, std::string> values;
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line) && !line.empty();) {
    const std::size_t tab = line.find('\t'), colon = line.find(": ");
    if (tab < colon && colon != std::string::npos) values[line.substr(0, tab)] = line.substr(colon + 2);
  }
  std::string text;
  for (const char* name : {"model name", "cpu family", "model", "stepping", "CPU implementer", "CPU part"})
    if (!values[name].empty()) text += (text.empty() ? "" : message(", ", name, " ")) + values[name];
  return text.empty() ? "unknown" : text;
}

}  // namespace gridlops
