// SPDX-License-Identifier: BSD-3-Clause
#include "streamed/tile_record.hpp"

#include <utility>

#include "gridlops/base/error.hpp"
#include "gridlops/io/text_file.hpp"
#include "io/file.hpp"
#include "io/json_text.hpp"

namespace gridlops {

namespace {

constexpr const char* schema = "gridlops.tiles/2";
constexpr Index longest = Index{1} << 30;

}  // namespace

std::optional<TileRecord> read_record(const std::string& path, const std::string& of) {
  try {
    const nlohmann::json json = parse_json(InputFile(path).text(longest));
    TileRecord record{json.at("of"), json.at("strips_each"), json.at("norm"), json.at("hashes")};
    if (json.at("schema") != schema || record.of != of) return std::nullopt;
    return record;
  } catch (const InputError&) {
    return std::nullopt;
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
}

void write_record(const std::string& path, const TileRecord& record) {
  const nlohmann::json json{{"schema", schema},
                            {"of", record.of},
                            {"strips_each", record.strips_each},
                            {"norm", record.norm},
                            {"hashes", record.hashes}};
  write_text_file(path, [text = json_text(json, 1) + "\n"]() mutable { return std::exchange(text, {}); });
}

}  // namespace gridlops
