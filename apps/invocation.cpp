// SPDX-License-Identifier: BSD-3-Clause
#include "invocation.hpp"

#include <unistd.h>

#include <cstdlib>
#include <string_view>

namespace gridlops::program {

namespace {

constexpr const char* prefix = "GRIDLOPS_";

// Texts travel one after the other, each ended by a null character, which none of them can contain.
void append(std::string& message, std::string_view text) {
  message += text;
  message += '\0';
}

std::vector<std::string> texts_in(const std::string& message) {
  std::vector<std::string> texts;
  for (std::size_t begin = 0; begin < message.size();) {
    const std::size_t end = message.find('\0', begin);
    texts.push_back(message.substr(begin, end - begin));
    begin = end + 1;
  }
  return texts;
}

}  // namespace

bool launched_as_first() {
  for (const char* variable : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"}) {
    if (const char* rank = std::getenv(variable); rank != nullptr) return std::string_view(rank) == "0";
  }
  return true;
}

std::vector<std::string> environment_names(const std::string& begin_with) {
  std::vector<std::string> names;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    if (text.substr(0, begin_with.size()) == begin_with) names.emplace_back(text.substr(0, text.find('=')));
  }
  return names;
}

std::vector<std::string> share_invocation(Communicator& world, const std::vector<std::string>& arguments) {
  std::string message;
  append(message, std::to_string(arguments.size()));
  for (const std::string& argument : arguments) append(message, argument);
  for (const std::string& name : environment_names(prefix)) {
    append(message, name);
    append(message, std::getenv(name.c_str()));
  }
  const std::vector<std::string> texts = texts_in(broadcast_text(world, message, 0));

  const auto environment_begin = static_cast<std::size_t>(std::stoll(texts[0])) + 1;
  for (const std::string& name : environment_names(prefix)) unsetenv(name.c_str());
  for (std::size_t k = environment_begin; k + 1 < texts.size(); k += 2)
    setenv(texts[k].c_str(), texts[k + 1].c_str(), 1);
  return {texts.begin() + 1, texts.begin() + static_cast<std::ptrdiff_t>(environment_begin)};
}

}  // namespace gridlops::program
