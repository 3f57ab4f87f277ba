// SPDX-License-Identifier: BSD-3-Clause
// The folder of checkpoints: what is kept, removed, refused or damaged in it.
#include <filesystem>
#include <fstream>
#include <optional>

#include "io/checkpoint_files.hpp"
#include "io/files/locks.hpp"
#include "io/npy_files.hpp"
#include "solve/checkpoint/saved_problem.hpp"

using namespace gridlops;
using namespace gridlops::testing;

TEST_CASE("Only two checkpoints are kept, and what a writer that died left is removed") {
  const GridPtr grid = compact_grids().back();
  const Problem<double> problem(grid, {"cgls", cgls<double>}, 30);
  const ScratchFolder folder;
  const std::filesystem::path saved = folder.file("saved");
  if (world().rank() == 0) {
    for (const char* name : {"generation-3", "generation-4", "generation-5", "generation-6", "generation-7"})
      std::filesystem::create_directories(saved / name);
    std::ofstream(saved / "generation-7" / "unfinished")
        << "GridLOps was writing a checkpoint in this folder\n";
    std::ofstream(saved / "generation-7" / "x.npy") << "half a fi";
    // Whose these are, nobody knows.
    std::ofstream(saved / "generation-4" / "best.txt") << "population";
    std::ofstream(saved / "generation-5" / "x.npy") << "no checkpoint";
    std::filesystem::create_directories(saved / "generation-6" / "x.npy");
  }
  world().barrier();
  SolveOptions options;
  options.max_iterations = 10;
  options.checkpoint.directory = saved.string();
  options.checkpoint.every_iterations = 2;
  problem.solve_with(options);
  world().barrier();
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(saved))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  CHECK(names == std::vector<std::string>{"generation-11", "generation-12", "generation-4", "generation-5",
                                          "generation-6", "manifest.json"});
  CHECK(contents((saved / "generation-4" / "best.txt").string()) == "population");
  const auto facts = checkpoint_facts(world(), saved.string());
  CHECK(facts.at("iteration") == "10");
  CHECK(read_manifest(world(), saved.string()).previous == "generation-11");
  CHECK(checkpoint_facts(world(), (saved / "generation-11").string()).at("iteration") == "8");
}

TEST_CASE("What somebody put into the folder of a checkpoint is not removed with it") {
  const GridPtr grid = compact_grids().back();
  const Problem<double> problem(grid, {"cgls", cgls<double>}, 30);
  const ScratchFolder folder;
  const std::filesystem::path saved = folder.file("saved");
  SolveOptions options;
  options.max_iterations = 10;
  options.checkpoint.directory = saved.string();
  options.checkpoint.every_iterations = 2;
  Index iteration = 0;
  options.checkpoint.requested = [&] {
    if (++iteration == 3 && grid->comm().rank() == 0)
      std::ofstream(saved / "generation-1" / "mine.npy") << "notes";
    return false;
  };
  problem.solve_with(options);
  world().barrier();
  CHECK(contents((saved / "generation-1" / "mine.npy").string()) == "notes");
  CHECK(!std::filesystem::exists(saved / "generation-2"));
  CHECK(std::filesystem::exists(saved / "generation-5"));
  // Nor is a file that is no lock.
  world().barrier();
  if (world().rank() == 0) std::ofstream(saved / "lock") << "of my house";
  world().barrier();
  options.checkpoint.restart = saved.string();
  options.checkpoint.requested = {};
  if (grid->is_member()) CHECK_THROWS_AS(problem.solve_with(options), OutputError);
  world().barrier();
  CHECK(contents((saved / "lock").string()) == "of my house");
}

TEST_CASE("A checkpoint that cannot be written is tried again, and only the end that is asked for fails") {
  const GridPtr grid = compact_grids().back();
  const Problem<double> problem(grid, {"cgls", cgls<double>}, 30);
  for (const Index asked : {0, 6}) {
    CAPTURE(asked);
    const ScratchFolder folder;
    const std::filesystem::path saved = folder.file("saved");
    // Behind the last number there is none.
    const std::filesystem::path last = saved / "generation-18446744073709551615",
                                before = saved / "generation-18446744073709551614";
    SolveOptions options;
    options.max_iterations = 10;
    options.tolerance = 0;
    options.checkpoint.directory = saved.string();
    options.checkpoint.every_iterations = 2;
    Index iteration = 0;
    options.checkpoint.requested = [&] {
      ++iteration;
      if (grid->comm().rank() == 0 && iteration == 3)
        for (const auto& path : {last, before}) std::filesystem::create_directories(path / "mine");
      if (grid->comm().rank() == 0 && iteration == 9)
        for (const auto& path : {last, before}) std::filesystem::remove_all(path);
      return iteration == asked;
    };
    if (asked > 0) {
      if (grid->is_member()) CHECK_THROWS_AS(problem.solve_with(options), OutputError);
    } else {
      const Solution<double> solved = problem.solve_with(options);
      if (grid->is_member()) CHECK(solved.verdict(0).reason == StopReason::iteration_limit);
    }
    world().barrier();
    CHECK(checkpoint_facts(world(), saved.string()).at("iteration") == (asked > 0 ? "2" : "10"));
    world().barrier();
  }
}

TEST_CASE("A damaged checkpoint is refused by a text that names the one before, which goes on") {
  const GridPtr grid = compact_grids().back();
  const Problem<double> problem(grid, {"cgls", cgls<double>}, 30);
  const ScratchFolder folder;
  const std::filesystem::path saved = folder.file("saved");
  SolveOptions options;
  options.max_iterations = 4;
  options.checkpoint.directory = saved.string();
  options.checkpoint.every_iterations = 2;
  problem.solve_with(options);
  world().barrier();
  if (world().rank() == 0) {
    const std::string path = (saved / "generation-2" / "x.npy").string();
    std::string text = contents(path);
    text.back() = static_cast<char>(text.back() ^ 1);
    std::ofstream(path, std::ios::binary) << text;
  }
  world().barrier();
  options.checkpoint.restart = saved.string();
  const std::string text = message_of<InputError>([&] { problem.solve_with(options); });
  const std::string before = (saved / "generation-1").string();
  CAPTURE(text);
  CHECK((!grid->is_member() || text.find("the one before it is " + before) != std::string::npos));
  options.checkpoint.restart = before;
  problem.solve_with(options);
  world().barrier();
  CHECK(checkpoint_facts(world(), saved.string()).at("iteration") == "4");
}

TEST_CASE("A run that is no restart leaves the checkpoint of an earlier one alone, and computes nothing") {
  const GridPtr grid = compact_grids().back();
  const Problem<double> problem(grid, {"cgls", cgls<double>}, 30);
  const ScratchFolder folder;
  const std::filesystem::path saved = folder.file("saved"), other = folder.file("other");
  problem.suspend({}, saved.string(), 4, 0);
  problem.suspend({}, other.string(), 3, 0);
  world().barrier();
  if (world().rank() == 0) std::filesystem::create_symlink("saved", folder.file("link"));
  world().barrier();
  Index iterations = 0;
  SolveOptions options;
  options.checkpoint.directory = saved.string();
  options.checkpoint.requested = [&] { return ++iterations < 0; };
  for (const std::string& restart : {std::string(), other.string()}) {
    options.checkpoint.restart = restart;
    for (const bool asks : {true, false}) {
      const std::string text = message_of<OutputError>([&] {
        if (!asks) return void(problem.solve_with(options));
        if (grid->is_member()) check_checkpoint_directory(grid->comm(), options.checkpoint);
      });
      CAPTURE(text, restart);
      CHECK((!grid->is_member() || text.find("manifest.json: names what an earlier run saved") != text.npos));
    }
  }
  CHECK(iterations == 0);
  world().barrier();
  CHECK(checkpoint_facts(world(), saved.string()).at("iteration") == "4");
  options.checkpoint.restart = folder.file("link");
  CHECK_NOTHROW(problem.solve_with(options));
}

TEST_CASE("Two jobs do not save in one directory, and one that was killed holds nobody up") {
  const GridPtr grid = compact_grids().back();
  const Problem<double> problem(grid, {"cgls", cgls<double>}, 30);
  const ScratchFolder folder;
  const std::string saved = folder.file("saved"), lock = saved + "/lock";
  SolveOptions options;
  options.checkpoint.directory = saved;
  {
    std::optional<LockFile> another;
    if (world().rank() == 0) {
      std::filesystem::create_directory(saved);
      another.emplace(lock, "save checkpoints there");
    }
    world().barrier();
    const std::string text = message_of<OutputError>([&] { problem.solve_with(options); });
    CAPTURE(text);
    CHECK((!grid->is_member() || (text.find(lock + ": is held by process ") != text.npos &&
                                  text.find("name another folder") != text.npos)));
    world().barrier();
  }
  if (world().rank() == 0) std::ofstream(lock) << "process 1 on a host that is gone";
  world().barrier();
  problem.suspend(options, saved, 4, 0);
  world().barrier();
  CHECK_FALSE(std::filesystem::exists(lock));
}

TEST_CASE("A manifest that would be too long is refused before the first iteration") {
  const GridPtr grid = compact_grids().back();
  const Problem<double> problem(grid, {"cgls", cgls<double>}, 30);
  const ScratchFolder folder;
  Index iterations = 0;
  SolveOptions options;
  options.checkpoint.directory = folder.file("saved");
  options.checkpoint.requested = [&] { return ++iterations < 0; };
  options.checkpoint.facts["notes"] = std::string(std::size_t{64} << 20, 'x');
  const std::string text = message_of<OutputError>([&] { problem.solve_with(options); });
  CAPTURE(text);
  CHECK((!grid->is_member() || text.find("but manifests have at most 67108864") != text.npos));
  CHECK(iterations == 0);
}

TEST_CASE("A damaged checkpoint is refused on all ranks, whatever byte it is") {
  const GridPtr grid = compact_grids().back();
  const Problem<double> problem(grid, {"cgls", cgls<double>}, 30);
  const ScratchFolder folder;
  SolveOptions options;
  problem.suspend(options, folder.file("saved"), 4, 0);
  world().barrier();
  options.checkpoint.restart = folder.file("saved");
  const std::filesystem::path saved = folder.file("saved");
  std::vector<std::filesystem::path> files{saved / "manifest.json"};
  for (const char* name : {"x", "r", "p", "best", "numbers"})
    files.push_back(saved / "generation-1" / (std::string(name) + ".npy"));
  for (const std::filesystem::path& file : files) {
    const std::string sound = contents(file.string());
    const std::vector<std::string> damaged{[&] {
                                             std::string text = sound;
                                             text[text.size() - 9] ^= 1;
                                             return text;
                                           }(),
                                           [&] {
                                             std::string text = sound;
                                             text[text.size() / 2] ^= 64;
                                             return text;
                                           }(),
                                           sound.substr(0, sound.size() - 8), ""};
    for (const std::string& text : damaged) {
      CAPTURE(file.string(), text.size());
      world().barrier();
      if (world().rank() == 0) std::ofstream(file, std::ios::binary) << text;
      world().barrier();
      if (grid->is_member()) CHECK_THROWS_AS(problem.solve_with(options), InputError);
    }
    world().barrier();
    if (world().rank() == 0) std::ofstream(file, std::ios::binary) << sound;
    world().barrier();
  }
  CHECK_NOTHROW(problem.solve_with(options));
}
