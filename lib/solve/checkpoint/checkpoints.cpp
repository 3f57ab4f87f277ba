// SPDX-License-Identifier: BSD-3-Clause
#include "solve/checkpoint/checkpoints.hpp"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <functional>
#include <limits>

#include "base/instantiate.hpp"
#include "base/message.hpp"
#include "base/numbers.hpp"
#include "comm/failure/failure.hpp"
#include "comm/failure/job_end.hpp"
#include "gridlops/base/error.hpp"
#include "solve/checkpoint/fingerprint.hpp"
#include "solve/run/column_method.hpp"

namespace gridlops {

namespace {

constexpr const char* problem_fact = "problem";
constexpr const char* numbers_name = "numbers";
constexpr const char* x_name = "x";

/// The shortest text that identifies this number uniquely.
std::string exact_text(double value) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

/// Whether all values are the same.
bool is_uniform(std::span<const double> values) {
  return std::adjacent_find(values.begin(), values.end(), std::not_equal_to<>()) == values.end();
}

}  // namespace

std::map<std::string, std::string> checkpoint_facts(Communicator& comm, const std::string& directory) {
  return read_manifest(comm, directory).facts;
}

void check_checkpoint_directory(Communicator& comm, const CheckpointOptions& options) {
  if (!options.directory.empty()) CheckpointDirectory(comm, options.directory, options.restart);
}

std::string unfinished_checkpoint(Communicator& comm, const std::string& directory) {
  return unfinished_generation(comm, directory);
}

void PatientSaves::save(Communicator& comm, bool must_end, const std::function<void()>& write) {
  try {
    write();
    failure_.clear();
    failures_ = 0;
  } catch (const OutputError& error) {
    failure_ = error.what();
    if (must_end) throw;
    // Of many failures in a row the first, second, fourth, eighth … are told.
    if (std::has_single_bit(++failures_) && comm.rank() == 0)
      warn(message("a checkpoint was not written: ", failure_, "; the solver goes on without it"));
  }
}

template <Scalar T>
Checkpoints<T>::Checkpoints(const ColumnMethod<T>& method, SolveOptions& options, const ConstDistMatrix<T>& B,
                            DistMatrix<T>& X, Index matrices, const ConstDistMatrix<T>* weights)
    : options_(options.checkpoint), grid_(B.grid()), A_(method.op()), X_(X) {
  check_options(options_);
  if (!saves() && options_.restart.empty()) return;
  const MethodTraits& traits = method.traits();
  fixed_ = fixed_numbers(traits.features, options, B.cols());
  problem_ = message(traits.name, traits.parameters.empty() ? "" : " with ", traits.parameters, " of a ",
                     A_.rows(), " x ", A_.cols(), " operator and ", B.cols(), " right-hand sides of ",
                     name_of(scalar_type_of<T>), weights == nullptr ? "" : ", with weights,", " with ",
                     fixed_words(traits.features, options));
  if (saves()) {
    directory_ = std::make_unique<CheckpointDirectory>(grid_->comm(), options_.directory, options_.restart);
    directory_->require_room(grid_->comm(), facts(std::numeric_limits<Index>::max()), matrices,
                             std::max({A_.rows(), A_.cols(), B.cols()}));
  }
  fingerprint_ = fingerprint(A_, B);
  if (weights != nullptr) {  // behind those of A
    const std::vector<double> of_weights = fingerprint(A_.range(), *weights);
    const auto of_B = static_cast<std::ptrdiff_t>(fingerprint_.size() - of_weights.size());
    fingerprint_.insert(fingerprint_.begin() + of_B, of_weights.begin(), of_weights.end());
  }
  if (options.initial_guess) guess_ = fingerprint(A_.domain(), X);
  if (!options_.restart.empty()) {
    open_saved(options_.restart, options, weights == nullptr ? 0 : weights->cols());
  } else if (!options.initial_guess) {
    X.set_zero();  // including the columns of later batches, since they are saved
  }
}

template <Scalar T>
void Checkpoints<T>::open_saved(const std::string& directory, SolveOptions& options, Index weights) {
  auto reader = std::make_unique<CheckpointReader>(grid_, directory);
  const auto& facts = reader->manifest().facts;
  const auto found = facts.find(problem_fact);
  require<InputError>(found != facts.end() && found->second == problem_, directory, " holds a checkpoint of ",
                      found == facts.end() ? "something else" : found->second, ", but this is ", problem_,
                      "; restart with what it was written with");
  saved_numbers_ = StateArchive(reader->read_numbers(numbers_name));
  std::vector<double> saved;
  saved_numbers_.visit_list(saved);
  const std::string differs = difference(A_, saved, fingerprint_, weights);
  require<InputError>(differs.empty(), directory, " holds a checkpoint of another problem: here is ", differs,
                      "; restart with the files it was written with");
  std::vector<double> begun_from;
  saved_numbers_.visit_list(begun_from);
  require<InputError>(guess_.empty() || difference_of_columns<T>(A_.domain(), begun_from, guess_).empty(),
                      directory, " holds a checkpoint of a run that was begun from ",
                      begun_from.empty() ? "zero" : "another initial guess",
                      ", and a restart goes on from the x that was saved; leave the guess out",
                      begun_from.empty() ? "" : ", or give the one it was begun with");
  guess_ = std::move(begun_from);
  for (FixedNumbers& option : fixed_) take_fixed(option, options);
  reader->read(x_name, X_);
  saved_ = std::move(reader);
}

/// Compares the values of an option with the saved ones, or replaces them by the saved ones.
template <Scalar T>
void Checkpoints<T>::take_fixed(FixedNumbers& option, SolveOptions& options) {
  std::vector<double> saved;
  saved_numbers_.visit_list(saved);
  std::vector<double>& values = option.values;
  require<InputError>(saved.size() == values.size(), options_.restart, " holds ", saved.size(), " values of ",
                      option.name, ", but here are ", values.size(),
                      "; restart with those it was written with");
  const bool is_computed =
      std::find(options_.computed.begin(), options_.computed.end(), option.name) != options_.computed.end();
  const bool one_for_all = is_uniform(saved) && is_uniform(values);
  if (is_computed) {
    values = saved;
    return set_fixed_numbers(option, options);
  }
  for (std::size_t j = 0; j < saved.size(); ++j) {
    require<InputError>(saved[j] == values[j], options_.restart, " holds a checkpoint of a run with ",
                        option.name, " ", exact_text(saved[j]), one_for_all ? "" : message(" in entry ", j),
                        ", but here it is ", exact_text(values[j]),
                        ": the iterations so far rest on the old value; restart with that, or begin anew");
  }
}

template <Scalar T>
void Checkpoints<T>::add_flags(std::vector<double>& numbers) {
  if (!saves()) return;
  const std::chrono::duration<double> since = Clock::now() - last_save_;
  const bool time_is_up =
      grid_->comm().rank() == 0 && options_.every_seconds > 0 && since.count() >= options_.every_seconds;
  bool requested = false;
  FailureScope().run([&] { requested = options_.requested && options_.requested(); });
  numbers.insert(numbers.end(), {time_is_up ? 1.0 : 0.0, requested ? 1.0 : 0.0});
}

template <Scalar T>
void Checkpoints<T>::take_flags(std::vector<double>& numbers) {
  if (!saves()) return;
  suspends_ = numbers.back() > 0;
  numbers.pop_back();
  wanted_ = suspends_ || numbers.back() > 0;
  numbers.pop_back();
}

template <Scalar T>
bool Checkpoints<T>::due(Index iteration) const {
  if (!saves()) return false;
  return wanted_ ||
         (options_.every_iterations > 0 && iteration > 0 && iteration % options_.every_iterations == 0);
}

template <Scalar T>
StateArchive Checkpoints<T>::begin_numbers() {
  StateArchive numbers;
  numbers.visit_list(fingerprint_);
  numbers.visit_list(guess_);
  for (FixedNumbers& option : fixed_) numbers.visit_list(option.values);
  return numbers;
}

template <Scalar T>
void Checkpoints<T>::save(const StateArchive& numbers, const std::vector<NamedMatrix<T>>& matrices,
                          Index iteration) {
  saves_.save(grid_->comm(), suspends_, [&] {
    CheckpointWriter writer(grid_, options_.directory);
    writer.write(x_name, X_);
    for (const NamedMatrix<T>& named : matrices) writer.write(named.name, named.matrix);
    writer.write_numbers(numbers_name, numbers.numbers());
    writer.finish(facts(iteration));
  });
  last_save_ = Clock::now();
  wanted_ = false;
  if (suspends_)
    throw Suspended(message("iteration ", iteration, " was saved in ", options_.directory,
                            " as asked, and the solver ended; a restart goes on from there"));
}

template <Scalar T>
std::map<std::string, std::string> Checkpoints<T>::facts(Index iteration) const {
  std::map<std::string, std::string> facts = options_.facts;
  facts[problem_fact] = problem_;
  facts["iteration"] = message(iteration);
  return facts;
}

template <Scalar T>
void Checkpoints<T>::take_saved(std::vector<NamedMatrix<T>> matrices) {
  for (NamedMatrix<T>& named : matrices) saved_->read(named.name, named.matrix);
  saved_.reset();
}

#define GRIDLOPS_INSTANTIATE(T) template class Checkpoints<T>;
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
