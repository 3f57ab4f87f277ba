// SPDX-License-Identifier: BSD-3-Clause
// Checks each target with the texts of its folder in a corpus, and with all that differ from one of them in a
// bit, or are cut off: replay CORPUS.
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>

#include "targets.hpp"

namespace {

namespace fs = std::filesystem;

std::string contents(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// The number of texts that were checked.
long check(const gridlops::fuzz::Target& target, const std::string& text) {
  constexpr std::size_t longest = 4096;  // of which all neighbours are checked
  target.check(text);
  if (text.size() > longest) return 1;
  std::string changed = text;
  for (std::size_t k = 0; k < text.size(); ++k) {
    for (int bit = 0; bit < 8; ++bit) {
      changed[k] = static_cast<char>(text[k] ^ (1 << bit));
      target.check(changed);
    }
    changed[k] = text[k];
    target.check(text.substr(0, k));
  }
  return 1 + 9 * static_cast<long>(text.size());
}

/// Texts that are too long to be kept.
void check_long(const gridlops::fuzz::Target& target) {
  const std::string deep = std::string(100000, '[');
  target.check(deep + std::string(100000, ']'));
  target.check("{\"schema\": " + deep + std::string(100000, ']') + "}");
  target.check(std::string(100000, '1'));
  target.check("1.." + std::string(100000, '9'));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  for (const gridlops::fuzz::Target& target : gridlops::fuzz::targets) {
    long files = 0, texts = 0;
    for (const auto& entry : fs::directory_iterator(fs::path(argv[1]) / target.name)) {
      ++files;
      try {
        texts += check(target, contents(entry.path()));
      } catch (const std::exception& error) {
        std::cerr << entry.path() << ", or a text like it: " << error.what() << '\n';
        return 1;
      }
    }
    check_long(target);
    std::cout << target.name << ": " << files << " files, " << texts << " texts\n";
    if (files == 0) return 1;
  }
}
