// SPDX-License-Identifier: BSD-3-Clause
#include "io/formats/manifest.hpp"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <queue>
#include <utility>

#include "base/hash.hpp"
#include "base/message.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/base/version.hpp"
#include "gridlops/io/array_file.hpp"
#include "io/formats/json_text.hpp"

namespace gridlops {

namespace {

using Json = nlohmann::json;

constexpr const char* checkpoint_schema = "gridlops.checkpoint/9";

std::string hash_text(std::uint64_t hash) {
  constexpr const char* digits = "0123456789abcdef";
  std::string text;
  for (int shift = 60; shift >= 0; shift -= 4) text += digits[(hash >> shift) & 15];
  return text;
}

std::uint64_t hash_in(const std::string& text) {
  std::uint64_t hash = 0;
  const char* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, hash, 16);
  require<InputError>(error == std::errc() && stopped == end, "a hash that is none");
  return hash;
}

/// Writes JSON with sorted keys, so that equal contents have equal texts.
std::string hash_of(const Json& json) { return hash_text(hash_of_text(json_text(json))); }

std::optional<ScalarType> type_named(const std::string& name) {
  for (const ScalarType type : {ScalarType::f32, ScalarType::f64, ScalarType::c64, ScalarType::c128})
    if (name == name_of(type)) return type;
  return std::nullopt;
}

/// Throws unless a name may become a part of a path.
void require_plain(const std::string& name) {
  const bool plain = std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
  });
  require<InputError>(plain || name == ".", "'", name, "' is no name of a checkpoint's file or folder");
}

/// A whole number. Throws InputError for other numbers, which the parser would convert.
Index index_in(const Json& json) {
  require<InputError>(json.is_number_integer(), "a size that is no whole number");
  return json.get<Index>();
}

Json range_json(Range range) { return {range.begin, range.size}; }

Range range_in(const Json& json, Index total) {
  const Range range{index_in(json.at(0)), index_in(json.at(1))};
  require<InputError>(range.begin >= 0 && range.size >= 0 && range.begin <= total - range.size,
                      "a block lies outside its matrix");
  return range;
}

Json matrix_json(const SavedMatrix& matrix) {
  Json blocks = Json::array();
  for (const SavedBlock& block : matrix.blocks)
    blocks.push_back({{"rows", range_json(block.rows)},
                      {"cols", range_json(block.cols)},
                      {"xxh3", hash_text(block.hash)}});
  return {{"dtype", name_of(matrix.type)}, {"rows", matrix.rows}, {"cols", matrix.cols}, {"blocks", blocks}};
}

/// Throws InputError if two of the blocks, none of which is empty, have an element in common.
void require_apart(std::vector<SavedBlock> blocks) {
  std::sort(blocks.begin(), blocks.end(),
            [](const SavedBlock& a, const SavedBlock& b) { return a.cols.begin < b.cols.begin; });
  using Ends = std::pair<Index, Range>;  // the end of the columns, and the rows
  const auto later = [](const Ends& a, const Ends& b) { return a.first > b.first; };
  std::priority_queue<Ends, std::vector<Ends>, decltype(later)> ends(later);
  std::map<Index, Index> rows;  // of the blocks that have a column: the end by the begin
  for (const SavedBlock& block : blocks) {
    for (; !ends.empty() && ends.top().first <= block.cols.begin; ends.pop())
      rows.erase(ends.top().second.begin);
    const auto next = rows.lower_bound(block.rows.begin);
    require<InputError>((next == rows.end() || next->first >= block.rows.end()) &&
                            (next == rows.begin() || std::prev(next)->second <= block.rows.begin),
                        "blocks that overlap");
    rows.emplace_hint(next, block.rows.begin, block.rows.end());
    ends.emplace(block.cols.end(), block.rows);
  }
}

SavedMatrix matrix_in(const Json& json) {
  SavedMatrix matrix;
  const auto type = type_named(json.at("dtype").get<std::string>());
  require<InputError>(type.has_value(), "an unknown dtype");
  matrix.type = *type;
  matrix.rows = index_in(json.at("rows"));
  matrix.cols = index_in(json.at("cols"));
  require<InputError>(
      matrix.rows >= 0 && matrix.cols >= 0 && fits_file(matrix.rows, matrix.cols, matrix.type),
      "a matrix of an impossible size");
  Index elements = 0;
  for (const Json& block : json.at("blocks")) {
    matrix.blocks.push_back({range_in(block.at("rows"), matrix.rows), range_in(block.at("cols"), matrix.cols),
                             hash_in(block.at("xxh3").get<std::string>())});
    const Index mine = matrix.blocks.back().rows.size * matrix.blocks.back().cols.size;
    require<InputError>(mine > 0, "a block without elements");
    elements += mine;
    require<InputError>(elements <= matrix.rows * matrix.cols, "blocks that overlap");
  }
  require<InputError>(elements == matrix.rows * matrix.cols, "blocks that do not make up their matrix");
  require_apart(matrix.blocks);
  return matrix;
}

Manifest manifest_in(Json json) {
  const std::string found = json.at("schema").get<std::string>();
  require<InputError>(found == checkpoint_schema, "its schema is ", found, ", but this version reads ",
                      checkpoint_schema);
  const std::string hash = json.at("xxh3").get<std::string>();
  json.erase("xxh3");
  require<InputError>(hash == hash_of(json), "its hash is not that of its contents");
  Manifest manifest;
  manifest.folder = json.at("folder").get<std::string>();
  manifest.previous = json.at("previous").get<std::string>();
  require_plain(manifest.folder);
  require_plain(manifest.previous);
  for (const auto& [name, value] : json.at("facts").items()) manifest.facts[name] = value.get<std::string>();
  for (const auto& [name, value] : json.at("matrices").items()) {
    require_plain(name);
    manifest.matrices[name] = matrix_in(value);
  }
  return manifest;
}

}  // namespace

std::string manifest_text(const Manifest& manifest) {
  Json json{{"schema", checkpoint_schema},   {"version", version},
            {"folder", manifest.folder},     {"previous", manifest.previous},
            {"facts", Json(manifest.facts)}, {"matrices", Json::object()}};
  for (const auto& [name, matrix] : manifest.matrices) json["matrices"][name] = matrix_json(matrix);
  json["xxh3"] = hash_of(json);
  return json_text(json, 2) + "\n";
}

Manifest parse_manifest(const std::string& text, const std::string& path) {
  std::string found;
  try {
    return manifest_in(parse_json(text));
  } catch (const std::exception& error) {
    found = error.what();
  }
  throw InputError(message(path, ": is no manifest of a checkpoint, or a damaged one: ", found));
}

}  // namespace gridlops
