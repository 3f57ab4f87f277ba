// SPDX-License-Identifier: BSD-3-Clause
#include "streamed/disk/tile_record.hpp"

#include <chrono>
#include <filesystem>
#include <utility>

#include "base/hash.hpp"
#include "base/message.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/io/text_file.hpp"
#include "io/files/file.hpp"
#include "io/files/locks.hpp"
#include "io/formats/json_text.hpp"

namespace gridlops {

namespace {

constexpr const char* schema = "gridlops.tiles/3";
constexpr Index longest = Index{1} << 30;
/// Jobs that end at the same time put their records there one after the other.
constexpr std::chrono::seconds patience{60};

namespace fs = std::filesystem;

nlohmann::json json_of(const TileRecord& record) {
  return {{"schema", schema},
          {"of", record.of},
          {"strips_each", record.strips_each},
          {"norm", record.norm},
          {"hashes", record.hashes}};
}

std::string record_at(const std::string& path) { return path + ".json"; }
std::string beside(const std::string& path, const std::string& name) {
  return (fs::path(path).parent_path() / name).string();
}

/// Removes the files with tiles of this block, but the one of this name.
void remove_tiles(const std::string& path, const std::string& but = {}) {
  const fs::path at = path;
  const std::string prefix = at.filename().string() + ".";
  std::error_code none;
  for (fs::directory_iterator entry(at.parent_path(), none), end; !none && entry != end;
       entry.increment(none)) {
    const std::string name = entry->path().filename();
    std::error_code ignored;
    if (name != but && name.starts_with(prefix) && name.ends_with(".tiles"))
      fs::remove(entry->path(), ignored);
  }
}

}  // namespace

std::optional<TileRecord> read_record(const std::string& path, const std::string& of) {
  try {
    const nlohmann::json json = parse_json(InputFile(record_at(path)).text(longest));
    if (json.at("schema") != schema) return std::nullopt;
    TileRecord record{json.at("of"), json.at("strips_each"), json.at("norm"), json.at("hashes"),
                      json.at("file")};
    if (record.of != of || fs::path(record.file).has_parent_path()) return std::nullopt;
    return record;
  } catch (const InputError&) {
    return std::nullopt;
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
}

std::optional<DiskFile> file_of_record(const std::string& path, const TileRecord& record, Index bytes) {
  return DiskFile::of_name(beside(path, record.file), bytes);
}

DiskFile file_for_tiles(const std::string& path, Index bytes) {
  DiskFile file = DiskFile::for_good(path + ".tiles", 0);
  try {
    file.take_room(bytes);
  } catch (const OutputError&) {
    remove_tiles(path);
    file.take_room(bytes);
  }
  return file;
}

void keep_tiles(const std::string& path, TileRecord record, DiskFile& file) {
  nlohmann::json json = json_of(record);
  const std::string text = json_text(json, 1);
  record.file = message(fs::path(path).filename().string(), ".", hash_of_text(text), ".tiles");
  json["file"] = record.file;
  const LockFile one_at_a_time(path + ".lock", "put tiles there", patience);
  const DiskWait wait(message("tiles to stay in ", path));
  file.keep_as(beside(path, record.file));
  write_text_file(record_at(path),
                  [whole = json_text(json, 1) + "\n"]() mutable { return std::exchange(whole, {}); });
  remove_tiles(path, record.file);
}

}  // namespace gridlops
