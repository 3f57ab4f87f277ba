// SPDX-License-Identifier: BSD-3-Clause
#include "compressed/tile_tables.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "base/message.hpp"
#include "base/numbers.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/io/array_file.hpp"

namespace gridlops {

void TileEntry::put(double* to) const {
  *to++ = dense ? static_cast<double>(*dense) : -1;
  for (const Index rank : ranks) *to++ = static_cast<double>(rank);
  for (const Index begin : begins) *to++ = static_cast<double>(begin);
}

namespace {

const std::string& fact(const Manifest& manifest, const std::string& directory, const char* name) {
  const auto found = manifest.facts.find(name);
  require<InputError>(found != manifest.facts.end(), directory, ": its manifest has no '", name, "'");
  return found->second;
}

Index count_in(const Manifest& manifest, const std::string& directory, const char* name) {
  const std::string& text = fact(manifest, directory, name);
  Index count = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  require<InputError>(error == std::errc() && end == text.data() + text.size() && count >= 0, directory,
                      ": its manifest says that there are ", text, " ", name);
  return count;
}

/// A number of the tables that counts something; least: 0, or -1 for nothing.
Index count_of(double number, const std::string& directory, double least = 0) {
  constexpr double most = 0x1p53;
  require<InputError>(least <= number && number <= most && number == std::floor(number), directory,
                      ": the table of its tiles has the number ", number);
  return static_cast<Index>(number);
}

TileEntry entry_from(const double* next, const std::string& directory) {
  TileEntry entry;
  const Index dense = count_of(*next, directory, -1);
  require<InputError>(dense < Index{precisions}, directory, ": a tile has the precision number ", dense);
  if (dense >= 0) entry.dense = static_cast<Precision>(dense);
  for (Index& rank : entry.ranks) rank = count_of(*++next, directory);
  for (Index& begin : entry.begins) begin = count_of(*++next, directory);
  return entry;
}

}  // namespace

MatrixHeader header_in_manifest(const Manifest& manifest, const std::string& directory) {
  const auto found = manifest.facts.find("content");
  require<InputError>(found != manifest.facts.end() && found->second == compressed_content, directory,
                      ": holds no compressed matrix, but ",
                      found == manifest.facts.end() ? "what a solver saved" : found->second);
  MatrixHeader header{.rows = count_in(manifest, directory, "rows"),
                      .cols = count_in(manifest, directory, "columns")};
  const std::string& type = fact(manifest, directory, "element type");
  for (const ScalarType each : {ScalarType::f32, ScalarType::f64, ScalarType::c64, ScalarType::c128}) {
    if (type != name_of(each)) continue;
    header.type = each;
    require<InputError>(fits_file(header.rows, header.cols, header.type), directory,
                        ": its manifest says that the matrix is ", header.rows, " x ", header.cols,
                        ", which no file can hold");
    return header;
  }
  throw InputError(message(directory, ": its manifest names the element type ", type));
}

std::vector<std::string> table_files() {
  return {"figures", "tiles", "row-tiles", "column-tiles", "rows", "columns"};
}

void interpret(TileTables& tables, const std::vector<double>& figures, const std::vector<double>& numbers,
               const std::string& directory) {
  require<InputError>(std::ssize(tables.row_order) == tables.header.rows &&
                          std::ssize(tables.col_order) == tables.header.cols,
                      directory, ": its manifest says that the matrix is ", tables.header.rows, " x ",
                      tables.header.cols, ", but its tiles have ", tables.row_order.size(), " x ",
                      tables.col_order.size());
  require<InputError>(
      figures.size() == 6 &&
          numbers.size() == tables.row_sizes.size() * tables.col_sizes.size() * TileEntry::numbers,
      directory, ": the table of its tiles has ", numbers.size(), " numbers");
  for (std::size_t t = 0; t < numbers.size(); t += TileEntry::numbers)
    tables.tiles.push_back(entry_from(&numbers[t], directory));
  const std::size_t in_a_row = tables.col_sizes.size();
  for (std::size_t t = 0; t < tables.tiles.size(); ++t) {
    const Index rows = count_of(tables.row_sizes[t / in_a_row], directory),
                cols = count_of(tables.col_sizes[t % in_a_row], directory);
    for (const Index rank : tables.tiles[t].ranks)
      require<InputError>(rank <= std::min(rows, cols), directory, ": a tile of ", rows, " x ", cols, " has ",
                          rank, " vectors");
  }
  const MatrixHeader& header = tables.header;
  tables.report = {.norm = figures[0],
                   .error = figures[1],
                   .dense_bytes = header.rows * header.cols * size_of(header.type),
                   .tiles = count_of(figures[2], directory),
                   .dense_tiles = count_of(figures[3], directory),
                   .empty_tiles = count_of(figures[4], directory)};
  constexpr double largest_power = 2000;  // beyond all exponents of doubles
  require<InputError>(std::abs(figures[5]) <= largest_power, directory,
                      ": its tiles are to be multiplied by 2^", figures[5]);
  tables.power = static_cast<int>(figures[5]);
}

KeptLines keep(const std::vector<double>& order, const std::vector<double>& sizes, Range mine, Index count,
               const std::string& directory) {
  require<InputError>(std::ssize(order) == count, directory, ": its tiles have ", order.size(),
                      " rows or columns, not ", count);
  KeptLines lines;
  std::vector<bool> seen(order.size());
  std::size_t next = 0;
  for (std::size_t l = 0; l < sizes.size(); ++l) {
    lines.sizes.push_back(count_of(sizes[l], directory));
    require<InputError>(sizes[l] >= 0 && lines.sizes.back() <= std::ssize(order) - static_cast<Index>(next),
                        directory, ": line ", l, " of its tiles has ", sizes[l], " rows or columns");
    std::vector<Index> inside;
    for (Index k = 0; k < lines.sizes.back(); ++k, ++next) {
      const Index index = count_of(order[next], directory);
      require<InputError>(0 <= index && index < count && !seen[at(index)], directory, ": index number ", next,
                          " of the order of its tiles is ", order[next]);
      seen[at(index)] = true;
      if (mine.begin > index || index >= mine.end()) continue;
      inside.push_back(k);
      lines.kept.order.push_back(index - mine.begin);
    }
    if (inside.empty()) continue;
    lines.lines.push_back(static_cast<Index>(l));
    lines.kept.sizes.push_back(std::ssize(inside));
    lines.inside.push_back(std::move(inside));
  }
  require<InputError>(static_cast<Index>(next) == count, directory, ": its tiles have ", next,
                      " rows or columns, not ", count);
  return lines;
}

TiledBlock shapes_of(const TileTables& tables, const KeptLines& rows, const KeptLines& cols) {
  TiledBlock block{rows.kept, cols.kept, {}};
  block.tiles.reserve(rows.lines.size() * cols.lines.size());
  for (std::size_t i = 0; i < rows.lines.size(); ++i) {
    for (std::size_t j = 0; j < cols.lines.size(); ++j) {
      const TileEntry& entry = tables.tile(rows.lines[i], cols.lines[j]);
      block.tiles.push_back({.rows = rows.kept.sizes[i],
                             .cols = cols.kept.sizes[j],
                             .dense = entry.dense,
                             .ranks = entry.ranks});
    }
  }
  return block;
}

}  // namespace gridlops
