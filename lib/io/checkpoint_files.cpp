// SPDX-License-Identifier: BSD-3-Clause
#include "io/checkpoint_files.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "base/at_work.hpp"
#include "base/hash.hpp"
#include "base/instantiate.hpp"
#include "base/message.hpp"
#include "comm/failure/failure.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/dist/dist_matrix.hpp"
#include "gridlops/io/array_file.hpp"
#include "gridlops/io/output_folder.hpp"
#include "gridlops/io/text_file.hpp"
#include "io/files/file.hpp"
#include "io/files/shared_file.hpp"
#include "io/files/temporary_file.hpp"
#include "io/tiles.hpp"

namespace gridlops {

namespace {

namespace fs = std::filesystem;

constexpr const char* manifest_name = "manifest.json";
/// The file in a folder whose checkpoint is not complete, and what it says.
constexpr const char *unfinished_name = "unfinished",
                     *unfinished_text = "GridLOps was writing a checkpoint in this folder\n";
constexpr std::string_view generation_prefix = "generation-";

/// The hash of a block, column after column.
template <Scalar T>
std::uint64_t hash_of(MatrixView<const T> block, Backend& backend) {
  const bool on_host = backend.memory_space() == MemorySpace::host;
  std::vector<T> column(on_host ? 0 : static_cast<std::size_t>(block.rows));
  const Index bytes = block.rows * static_cast<Index>(sizeof(T));
  const AtWork at_work;
  Hash hash;
  for (Index j = 0; j < block.cols && bytes > 0; ++j) {
    if (!on_host) backend.download(block.column(j), column.data(), bytes);
    hash.add(on_host ? block.column(j) : column.data(), bytes);
  }
  return hash.value();
}

std::uint64_t hash_in_file(const std::string& path, const MatrixHeader& header, const SavedBlock& block) {
  const Index size = size_of(header.type);
  const InputFile file(path);
  std::vector<char> buffer(std::size_t{1} << 20);
  Hash hash;
  for_each_run(header.rows, block.cols, block.rows, block.rows.size, [&](Index begin, Index, Index count) {
    for (Index done = 0; done < count * size;) {
      const Index bytes = std::min(count * size - done, static_cast<Index>(buffer.size()));
      file.read(buffer.data(), bytes, header.data_offset + begin * size + done);
      hash.add(buffer.data(), bytes);
      done += bytes;
    }
  });
  return hash.value();
}

/// The part of X that this rank saves: its block, or nothing if it is not the canonical owner.
template <Scalar T>
SavedBlock saved_block(const ConstDistMatrix<T>& X) {
  if (!X.owned() || X.local().empty()) return {};
  return {X.local_row_range(), X.local_col_range(), hash_of<T>(X.local(), *X.grid()->backend())};
}

std::vector<SavedBlock> gather_blocks(Communicator& comm, const SavedBlock& mine) {
  constexpr std::size_t fields = 5;
  std::array<Index, fields> own{mine.rows.begin, mine.rows.size, mine.cols.begin, mine.cols.size};
  std::memcpy(&own.back(), &mine.hash, sizeof(mine.hash));
  std::vector<Index> all(fields * static_cast<std::size_t>(comm.size()));
  comm.all_gather(own, all);
  std::vector<SavedBlock> blocks;
  for (std::size_t k = 0; k < all.size(); k += fields) {
    SavedBlock block{{all[k], all[k + 1]}, {all[k + 2], all[k + 3]}};
    std::memcpy(&block.hash, &all[k + 4], sizeof(block.hash));
    if (block.rows.size > 0 && block.cols.size > 0) blocks.push_back(block);
  }
  return blocks;
}

/// The number N of a folder generation-N; nothing for other names.
std::optional<std::uint64_t> generation_number(const fs::path& path) {
  const std::string name = path.filename().string();
  if (name.compare(0, generation_prefix.size(), generation_prefix) != 0) return std::nullopt;
  std::uint64_t number = 0;
  const char* const end = name.data() + name.size();
  const auto [stopped, error] = std::from_chars(name.data() + generation_prefix.size(), end, number);
  if (error != std::errc() || stopped != end) return std::nullopt;
  return number;
}

std::vector<fs::path> generations_in(const std::string& directory) {
  std::vector<fs::path> found;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory))
    if (generation_number(entry.path())) found.push_back(entry.path());
  return found;
}

constexpr Index most_manifest_bytes = Index{64} << 20;  // enough for 250000 blocks

std::string manifest_in(const std::string& path) { return InputFile(path).text(most_manifest_bytes); }

/// The manifest in a directory; nothing if there is no undamaged one.
std::optional<Manifest> undamaged_manifest(const std::string& directory) {
  try {
    const std::string path = message(directory, "/", manifest_name);
    return parse_manifest(manifest_in(path), path);
  } catch (const InputError&) {
    return std::nullopt;
  }
}

/// The folder that the manifest in a directory names; nothing if there is no undamaged manifest.
std::string current_generation(const std::string& directory) {
  const std::optional<Manifest> manifest = undamaged_manifest(directory);
  return manifest ? manifest->folder : std::string();
}

bool is_unfinished(const fs::path& folder) {
  try {
    return InputFile((folder / unfinished_name).string()).text(most_manifest_bytes) == unfinished_text;
  } catch (const InputError&) {
    return false;
  }
}

/// Whether a CheckpointWriter has made a folder, and all that is in it. It is empty then, or about to become
/// unfinished, or it is that, or has the files that its manifest names.
bool is_own_folder(const fs::path& folder) {
  const std::optional<Manifest> manifest = undamaged_manifest(folder);
  bool is_own = is_unfinished(folder) || (manifest && manifest->folder == "."), is_empty = true;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const std::string whole = entry->path().filename(), name = whole.substr(0, whole.find(temporary_mark));
    is_empty = is_empty && name == unfinished_name && name != whole;
    const bool is_matrix = fs::path(name).extension() == ".npy" &&
                           (!manifest || manifest->matrices.count(fs::path(name).stem()) > 0);
    is_own = is_own && (is_matrix || name == manifest_name || name == unfinished_name) &&
             fs::is_regular_file(entry->symlink_status(error));
  }
  return !error && (is_empty || is_own);
}

void remove_folder(const fs::path& folder) {
  std::error_code ignored;
  if (is_own_folder(folder)) fs::remove_all(folder, ignored);
}

void write_private_file(const std::string& path, std::string text) {
  write_text_file(path, Access::owner, [&text] { return std::exchange(text, {}); });
}

[[noreturn]] void refuse(const std::string& path, const char* what, const std::error_code& error) {
  throw OutputError(message(path, ": ", what, ": ", error.message()));
}

void make_directory(const std::string& directory) {
  std::error_code error;
  fs::create_directories(directory, error);
  if (error) refuse(directory, "checkpoints cannot be kept there, as the directory cannot be made", error);
}

/// Makes a folder with a number above all existing ones, so that no complete checkpoint is overwritten.
std::string make_generation(const std::string& directory) {
  make_directory(directory);
  try {
    std::uint64_t number = 1;
    for (const fs::path& path : generations_in(directory))
      number = std::max(number, *generation_number(path) + 1);
    std::string name = message(generation_prefix, number);
    const fs::path folder = fs::path(directory) / name;
    require<OutputError>(fs::create_directory(folder), folder.string(),
                         ": is in the way of a checkpoint; remove it, or name another folder");
    try {
      write_private_file((folder / unfinished_name).string(), unfinished_text);
    } catch (...) {
      remove_folder(folder);
      throw;
    }
    return name;
  } catch (const fs::filesystem_error& error) {
    refuse(directory, "cannot make room for a checkpoint", error.code());
  }
}

void require_manifest_fits(Index bytes, const std::string& path) {
  require<OutputError>(bytes <= most_manifest_bytes, path, ": would have ", bytes,
                       " bytes, but manifests have at most ", most_manifest_bytes,
                       "; take fewer ranks, or shorter facts");
}

/// Whether a path leads to a directory, or to something directly in it.
bool is_within(const std::string& directory, const std::string& path) {
  std::error_code error;
  const fs::path whole = fs::canonical(path, error);
  if (error) return false;
  return fs::equivalent(whole, directory, error) || fs::equivalent(whole.parent_path(), directory, error);
}

void write_manifest(const std::string& directory, const Manifest& manifest) {
  const std::string path = message(directory, "/", manifest_name);
  std::string text = manifest_text(manifest);
  require_manifest_fits(static_cast<Index>(text.size()), path);
  write_private_file(path, std::move(text));
}

void remove_older(const std::string& directory, const std::string& newest, const std::string& previous) {
  for (const fs::path& path : generations_in(directory))
    if (path.filename() != newest && path.filename() != previous) remove_folder(path);
}

}  // namespace

CheckpointDirectory::CheckpointDirectory(Communicator& comm, const std::string& directory,
                                         const std::string& restart)
    : path_(message(directory, "/", manifest_name)) {
  attempt(comm, [&] {
    if (comm.rank() != 0) return;
    make_directory(directory);
    lock_ = lock_folder(directory, "save checkpoints there");
    std::error_code error;
    require<OutputError>(
        !fs::exists(path_, error) || is_within(directory, restart), path_,
        ": names what an earlier run saved, which this one would replace; remove that folder, name another "
        "one, or, if a solver saved there, go on by restart from ",
        directory);
    check_output_file(path_);
  });
}

void CheckpointDirectory::require_room(Communicator& comm, const std::map<std::string, std::string>& facts,
                                       Index matrices, Index largest) const {
  attempt(comm, [&] {
    if (comm.rank() != 0) return;
    Manifest manifest{message(generation_prefix, largest), message(generation_prefix, largest), facts, {}};
    const auto bytes = [&] { return static_cast<Index>(manifest_text(manifest).size()); };
    const Index without = bytes();
    SavedMatrix& matrix = manifest.matrices["a-name-of-matrix"] = {ScalarType::c128, largest, largest, {}};
    const Index of_matrix = bytes() - without;
    matrix.blocks.assign(1, {{largest, largest}, {largest, largest}, 0});
    const Index of_block = bytes() - without - of_matrix;
    require_manifest_fits(without + matrices * (of_matrix + comm.size() * of_block), path_);
  });
}

CheckpointWriter::CheckpointWriter(std::shared_ptr<const ProcessGrid> grid, const std::string& directory)
    : grid_(std::move(grid)), directory_(directory) {
  Communicator& comm = grid_->comm();
  std::string name;
  attempt(comm, [&] {
    if (comm.rank() == 0) name = make_generation(directory);
  });
  name_ = broadcast_text(comm, name, 0);
}

CheckpointWriter::~CheckpointWriter() {
  if (finished_ || name_.empty() || grid_->comm().rank() != 0) return;
  // The manifest may already name it, if only the rename did not reach the disk.
  if (current_generation(directory_) != name_) remove_folder(folder());
}

template <Scalar T>
void CheckpointWriter::write(const std::string& name, const ConstDistMatrix<T>& X) {
  SavedBlock mine;
  attempt(grid_->comm(), [&] { mine = saved_block(X); });
  manifest_.matrices[name] = {scalar_type_of<T>, X.rows(), X.cols(), gather_blocks(grid_->comm(), mine)};
  write_matrix(file_of(name), X, 2, {}, Access::owner);
}

template <Scalar T>
void CheckpointWriter::write(const std::string& name, const ConstDistMatrix<T>& shape, const Pieces& pieces) {
  SavedBlock mine;
  attempt(grid_->comm(), [&] {
    if (!shape.owned() || shape.local().empty()) return;
    Hash hash;
    pieces([&hash](const void* bytes, Index count) { hash.add(bytes, count); });
    mine = {shape.local_row_range(), shape.local_col_range(), hash.value()};
  });
  manifest_.matrices[name] = {scalar_type_of<T>, shape.rows(), 1, gather_blocks(grid_->comm(), mine)};
  const ArrayName place = parse_output_name(file_of(name));
  write_together(place, ArrayHeader{scalar_type_of<T>, {shape.rows(), 1}, true}, {}, Access::owner, shape,
                 [&](const std::string& path, Index data_offset) {
                   OutputFile file = OutputFile::open(path, place.file);
                   Index next = data_offset + mine.rows.begin * Index{sizeof(T)};
                   pieces([&](const void* bytes, Index count) {
                     file.write(bytes, count, next);
                     next += count;
                   });
                   file.finish();
                 });
}

void CheckpointWriter::write_numbers(const std::string& name, const std::vector<double>& numbers) {
  DistMatrix<double> X = allocate_matrix<double>(grid_, replicated(static_cast<Index>(numbers.size()), 1));
  grid_->backend()->upload(numbers.data(), X.local().data,
                           static_cast<Index>(numbers.size() * sizeof(double)));
  write(name, X);
}

void CheckpointWriter::finish(std::map<std::string, std::string> facts) {
  manifest_.facts = std::move(facts);
  attempt(grid_->comm(), [&] {
    if (grid_->comm().rank() != 0) return;
    const std::string previous = current_generation(directory_);
    manifest_.folder = ".";
    write_manifest(folder(), manifest_);
    std::error_code ignored;
    fs::remove(fs::path(folder()) / unfinished_name, ignored);
    synchronise_directory(directory_);
    manifest_.folder = name_;
    manifest_.previous = previous;
    write_manifest(directory_, manifest_);
    remove_older(directory_, name_, previous);
  });
  finished_ = true;
}

Manifest read_manifest(Communicator& comm, const std::string& directory) {
  const std::string path = message(directory, "/", manifest_name);
  std::string text;
  agree(comm, "reading a checkpoint", [&](Agreement& agreement) {
    agreement.on("the directory", directory);
    if (comm.rank() != 0) return;
    std::error_code error;
    require<InputError>(fs::exists(path, error), directory, ": holds no checkpoint: there is no ",
                        manifest_name, ", which is written last");
    text = manifest_in(path);
  });
  return parse_manifest(broadcast_text(comm, text, 0), path);
}

std::string unfinished_generation(Communicator& comm, const std::string& directory) {
  std::string name;
  attempt(comm, [&] {
    if (comm.rank() != 0) return;
    try {
      std::uint64_t newest = generation_number(current_generation(directory)).value_or(0);
      for (const fs::path& path : generations_in(directory)) {
        if (*generation_number(path) <= newest || !is_own_folder(path)) continue;
        newest = *generation_number(path);
        name = path.string();
      }
    } catch (const fs::filesystem_error& error) {
      throw InputError(message(directory, ": cannot list the checkpoints there: ", error.code().message()));
    }
  });
  return broadcast_text(comm, name, 0);
}

CheckpointReader::CheckpointReader(std::shared_ptr<const ProcessGrid> grid, const std::string& directory,
                                   const std::vector<std::string>& only)
    : grid_(std::move(grid)), directory_(directory), manifest_(read_manifest(grid_->comm(), directory)) {
  verify_blocks(only);
}

std::string CheckpointReader::path_of(const std::string& name) const {
  return message(directory_, "/", manifest_.folder, "/", name, ".npy");
}

void CheckpointReader::verify_blocks(const std::vector<std::string>& only) const {
  Communicator& comm = grid_->comm();
  int turn = 0;
  for (const auto& entry : manifest_.matrices) {
    if (!only.empty() && std::find(only.begin(), only.end(), entry.first) == only.end()) continue;
    const std::string path = path_of(entry.first);
    const SavedMatrix& matrix = entry.second;
    const std::string advice = manifest_.previous.empty()
                                   ? std::string("there is no older one")
                                   : message("the one before it is ", directory_, "/", manifest_.previous);
    const MatrixHeader header = read_matrix_header(comm, path);
    require<InputError>(header.type == matrix.type && header.rows == matrix.rows &&
                            header.cols == matrix.cols && (header.fortran_order || header.cols <= 1),
                        path, ": is not the file that belongs to this checkpoint; ", advice);
    attempt(comm, [&] {
      for (const SavedBlock& block : matrix.blocks) {
        if (turn++ % comm.size() != comm.rank()) continue;
        require<InputError>(hash_in_file(path, header, block) == block.hash, path, ": rows ",
                            block.rows.begin, " to ", block.rows.end(), " of columns ", block.cols.begin,
                            " to ", block.cols.end(),
                            " are not what was written; the checkpoint is damaged, ", advice);
      }
    });
  }
}

template <Scalar T>
void CheckpointReader::read(const std::string& name, DistMatrix<T>& X) const {
  const auto found = manifest_.matrices.find(name);
  require<InputError>(found != manifest_.matrices.end() && found->second.type == scalar_type_of<T> &&
                          found->second.rows == X.rows() && found->second.cols == X.cols(),
                      directory_, ": the checkpoint has no ", X.rows(), " x ", X.cols(), " matrix '", name,
                      "' of ", name_of(scalar_type_of<T>), ", which this solver needs");
  const std::string path = path_of(name);
  read_matrix(path, read_matrix_header(grid_->comm(), path), X);
}

std::vector<double> CheckpointReader::read_numbers(const std::string& name) const {
  const auto found = manifest_.matrices.find(name);
  const Index count = found == manifest_.matrices.end() ? 0 : found->second.rows;
  DistMatrix<double> X = allocate_matrix<double>(grid_, replicated(count, 1));
  read(name, X);
  return attempt(grid_->comm(), [&] {
    std::vector<double> numbers(static_cast<std::size_t>(count));
    grid_->backend()->download(X.local().data, numbers.data(), count * static_cast<Index>(sizeof(double)));
    return numbers;
  });
}

#define GRIDLOPS_INSTANTIATE(T)                                                                        \
  template void CheckpointWriter::write(const std::string&, const ConstDistMatrix<T>&);                \
  template void CheckpointWriter::write(const std::string&, const ConstDistMatrix<T>&, const Pieces&); \
  template void CheckpointReader::read(const std::string&, DistMatrix<T>&) const;
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
