// SPDX-License-Identifier: BSD-3-Clause
#include "grammar.hpp"

#include "gridlops/mpi.hpp"
#include "lists.hpp"
#include "parsing.hpp"
#include "vocabulary.hpp"

namespace gridlops::bench {

namespace {

using program::Names;
using program::OptionList;

CLI::Option* number_list(OptionList& list, const char* name, std::vector<Index>& values,
                         const char* placeholder, const char* about) {
  return list.converted(
      name, [&values](const std::string& text) { values = numbers(text); },
      [](const std::string& text) { return numbers_problem(text, 0); }, placeholder, about);
}

template <class Value>
void choice_list(OptionList& list, const char* name, std::vector<Value>& values, const Names<Value>& names,
                 const char* about) {
  std::vector<std::string> words;
  for (const auto& entry : names) words.push_back(entry.first);
  list.converted(
      name,
      [&values, names](const std::string& text) {
        values.clear();
        for (const std::string& item : items(text))
          for (const auto& entry : names)
            if (entry.first == item) values.push_back(entry.second);
      },
      [words](const std::string& text) {
        return list_problem(
            text, [&words](const std::string& item) { return program::choice_problem(item, words); });
      },
      program::joined(words, "|") + "[,...]", about);
}

constexpr const char* about_limit_mib =
    "Size of the block whose reading, on a GPU copying, measures the memory limit [0: chosen]";

/// Words that stand for themselves.
Names<std::string> named(const std::vector<std::string>& words) {
  Names<std::string> names;
  for (const std::string& word : words) names.emplace_back(word, word);
  return names;
}

}  // namespace

Grammar::Grammar()
    : app_(
          "Times what GridLOps does against the limits of the machine, measured by the same ranks in the "
          "same "
          "run",
          "gridlops-bench") {
  app_.footer(
      "Lists: 16,100; 1..64 doubles from 1 to 64; 100..500+100 adds. Every combination is measured.\n"
      "Measure on an idle machine, with ranks bound to cores and OPENBLAS_NUM_THREADS=1.");
  define_matmul();
  define_solve();
  define_comm();
  define_kernels();
  program::complete(app_);
}

Command Grammar::command() const {
  const std::string given = program::subcommand_given(app_)->get_name();
  if (given == "matmul") return matmul_;
  if (given == "comm") return comm_;
  if (given == "kernels") return kernels_;
  return solve_;
}

void Grammar::define_common(OptionList& list, Cases& cases, Method& method) {
  number_list(list, "--rows", cases.rows, "M[,...]", "Rows of A")->required();
  number_list(list, "--cols", cases.cols, "N[,...]", "Columns of A")->required();
  number_list(list, "--rhs", cases.nrhs, "R[,...]", "Right-hand sides [1]");
  choice_list(list, "--dtype", cases.types, program::types(), "Types of the elements [f64]");
  list.converted(
      "--grid",
      [&cases](const std::string& text) {
        cases.grids.clear();
        for (const std::string& item : items(text)) cases.grids.push_back(parse_grid_shape(item));
      },
      [](const std::string& text) { return list_problem(text, program::grid_problem); }, "PxQ[,...]",
      "Process grids [near-square]");
  choice_list(list, "--algorithm", cases.algorithms, program::algorithms(), "How products are formed [auto]");
  Names<std::string> transports{{"auto", "auto"}, {"nccl", "nccl"}};
  for (const std::string& name : host_transports()) transports.emplace_back(name, name);
  choice_list(list, "--transport", cases.transports, transports, "What carries the data [auto]");
  list.choice("--device", cases.device, {"cpu", "gpu"}, "Where matrices live and products run [cpu]");
  list.whole("--panel", cases.panel, "W", 0, "Width of the panels that travel [0: chosen]");
  list.choice("--summa-form", cases.summa_form, program::summa_forms(),
              "summa: how panels come to ranks [broadcast]");
  choice_list(list, "--storage", cases.storages, program::storages(),
              "block, stationary-a: how A is stored [auto]");
  list.whole("--reps", method.repetitions, "K", 1, "Repetitions; the median counts [5]");
  list.whole("--limit-order", method.limit_order, "N", 1,
             "Order of the GEMM that measures the compute limit [2048]");
  list.whole("--limit-mib", method.limit_mib, "MIB", 0, about_limit_mib);
  list.text("--json", method.json, "F", "Writes the figures as JSON");
}

void Grammar::define_matmul() {
  OptionList list(*app_.add_subcommand("matmul", "Products A X and A^H Y"));
  list.flag("--adjoint", matmul_.adjoint, "Products with the conjugate transpose of A");
  list.flag("--both", matmul_.both, "Both directions");
  define_common(list, matmul_.cases, matmul_.method);
}

void Grammar::define_solve() {
  OptionList list(*app_.add_subcommand("solve", "Iterations of a least-squares solver"));
  list.choice("--solver", solve_.solver, {"cgls", "lsqr", "lsmr", "block-cgls"}, "The method [cgls]");
  list.flag("--one-pass", solve_.one_pass, "cgls: reads A once in an iteration, in stationary-a");
  list.whole("--iterations", solve_.iterations, "K", 1, "Iterations in each repetition [10]");
  define_common(list, solve_.cases, solve_.method);
}

void Grammar::define_comm() {
  OptionList list(*app_.add_subcommand("comm", "Operations of communicators"));
  number_list(list, "--bytes", comm_.bytes, "N[,...]",
              "Size of each rank's operand; all-gather: of what each rank gets, reduce-scatter: of what each "
              "gives. Rounded up to whole elements of 8 bytes; for these two, to as many for every rank")
      ->required();
  choice_list(list, "--operation", comm_.operations,
              named({"broadcast", "reduce", "all-reduce", "all-gather", "reduce-scatter", "send-receive"}),
              "Operations [broadcast]");
  choice_list(list, "--transport", comm_.transports, named(host_transports()), "What carries the data [mpi]");
  list.whole("--reps", comm_.repetitions, "K", 1, "Repetitions; the median counts [5]");
  list.text("--json", comm_.json, "F", "Writes the figures as JSON");
}

void Grammar::define_kernels() {
  OptionList list(*app_.add_subcommand("kernels", "Kernels of the solvers"));
  number_list(list, "--rows", kernels_.rows, "M[,...]", "Rows on each rank")->required();
  number_list(list, "--cols", kernels_.cols, "N[,...]", "Columns [1]");
  choice_list(list, "--dtype", kernels_.types, program::types(), "Types of the elements [f64]");
  choice_list(list, "--kernel", kernels_.kernels, named(kernel_names()), "Kernels [all]");
  list.choice("--device", kernels_.device, {"cpu", "gpu"}, "Where they run [cpu]");
  list.whole("--reps", kernels_.repetitions, "K", 1, "Repetitions; the median counts [5]");
  list.whole("--limit-mib", kernels_.limit_mib, "MIB", 0, about_limit_mib);
  list.text("--json", kernels_.json, "F", "Writes the figures as JSON");
}

}  // namespace gridlops::bench
