// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <numeric>
#include <random>
#include <set>

#include "solve/run/active_columns.hpp"
#include "support/catch.hpp"

using namespace gridlops;

namespace {

/// The columns of a solver: for every part the numbers that lie at its positions, which only swaps
/// move.
class Model {
 public:
  explicit Model(const Partition& columns) : columns_(columns) {
    for (int part = 0; part < columns.parts(); ++part) {
      std::vector<Index> numbers(static_cast<std::size_t>(columns.size(part)));
      std::iota(numbers.begin(), numbers.end(), columns.begin(part));
      positions_.push_back(numbers);
      active_.insert(numbers.begin(), numbers.end());
    }
  }

  void swap(int part, const ActiveColumns::Swaps& swaps) {
    std::vector<Index>& numbers = positions_[static_cast<std::size_t>(part)];
    for (const auto& [i, j] : swaps)
      std::swap(numbers.at(static_cast<std::size_t>(i)), numbers.at(static_cast<std::size_t>(j)));
  }
  void leave(Index column) { active_.erase(column); }
  void activate(const std::set<Index>& columns) { active_ = columns; }

  /// `columns` names the columns where they lie, the active ones first, and no other.
  void check(const ActiveColumns& columns) const {
    CHECK(columns.count() == static_cast<Index>(active_.size()));
    CHECK(columns.partition().parts() == columns_.parts());
    std::set<Index> named;
    for (int part = 0; part < columns_.parts(); ++part) {
      for (Index position = 0; position < columns.partition().size(part); ++position) {
        const Index column = columns.column(columns.partition().begin(part) + position);
        CHECK(column == positions_[static_cast<std::size_t>(part)].at(static_cast<std::size_t>(position)));
        CHECK(columns_.owner_of(column) == part);
        named.insert(column);
      }
    }
    CHECK(named == active_);
  }
  bool in_place() const {
    Index next = 0;
    for (const std::vector<Index>& numbers : positions_)
      for (const Index number : numbers)
        if (number != next++) return false;
    return true;
  }
  const std::set<Index>& active() const { return active_; }

 private:
  Partition columns_;
  std::vector<std::vector<Index>> positions_;
  std::set<Index> active_;
};

/// That account on the ranks of all parts, each of which asks for its own swaps.
struct Accounts {
  explicit Accounts(const Partition& columns)
      : of_part(static_cast<std::size_t>(columns.parts()), ActiveColumns(columns)), model(columns) {}

  template <class Change>
  void change(const Change& change) {
    for (int part = 0; part < static_cast<int>(of_part.size()); ++part)
      model.swap(part, change(of_part[static_cast<std::size_t>(part)], part));
  }
  void check() const {
    for (const ActiveColumns& columns : of_part) model.check(columns);
  }

  std::vector<ActiveColumns> of_part;
  Model model;
};

std::vector<Partition> partitions() {
  return {Partition::balanced(0, 1),           Partition::balanced(1, 1),       Partition::balanced(9, 1),
          Partition::balanced(10, 3),          Partition::balanced(2, 4),       Partition::with_sizes({0, 5}),
          Partition::with_sizes({3, 0, 7, 1}), Partition::with_sizes({0, 0, 0})};
}

}  // namespace

TEST_CASE("Columns that leave in any order leave the others packed, in every part") {
  std::mt19937 random(7);
  for (const Partition& columns : partitions()) {
    for (int repetition = 0; repetition < 20; ++repetition) {
      Accounts accounts(columns);
      accounts.check();
      for (int step = 0; step < 12; ++step) {
        std::vector<char> leaves;
        const ActiveColumns before = accounts.of_part.front();
        for (Index k = 0; k < before.count(); ++k) {
          leaves.push_back(random() % 4 == 0 ? 1 : 0);
          if (leaves.back() != 0) accounts.model.leave(before.column(k));
        }
        accounts.change([&](ActiveColumns& of, int part) { return of.deflate(leaves, part); });
        accounts.check();
      }
      accounts.change([](ActiveColumns& of, int part) { return of.restore(part); });
      CHECK(accounts.model.in_place());
      CHECK(accounts.of_part.front().count() == columns.total());
    }
  }
}

TEST_CASE("After all are back in place any choice of columns can be made active") {
  std::mt19937 random(11);
  for (const Partition& columns : partitions()) {
    Accounts accounts(columns);
    for (int repetition = 0; repetition < 20; ++repetition) {
      std::vector<char> active;
      std::set<Index> chosen;
      for (Index column = 0; column < columns.total(); ++column) {
        active.push_back(random() % 2 == 0 ? 1 : 0);
        if (active.back() != 0) chosen.insert(column);
      }
      accounts.change([&](ActiveColumns& of, int part) { return of.activate(active, part); });
      accounts.model.activate(chosen);
      accounts.check();

      const std::vector<char> everyone(chosen.size(), 1);
      accounts.change([&](ActiveColumns& of, int part) { return of.deflate(everyone, part); });
      accounts.model.activate({});
      accounts.check();
      accounts.change([](ActiveColumns& of, int part) { return of.restore(part); });
      CHECK(accounts.model.in_place());
      accounts.model.activate([&] {
        std::set<Index> all;
        for (Index column = 0; column < columns.total(); ++column) all.insert(column);
        return all;
      }());
      accounts.check();
    }
  }
}

TEST_CASE("Columns can be arranged as others are, from any order, and saved") {
  for (const Partition& columns : partitions()) {
    std::mt19937 random(7);
    Accounts accounts(columns), others(columns);
    for (Accounts* both : {&accounts, &others}) {
      std::vector<char> leaves;
      for (Index k = 0; k < columns.total(); ++k) leaves.push_back(random() % 3 == 0 ? 1 : 0);
      both->change([&](ActiveColumns& of, int part) { return of.deflate(leaves, part); });
      for (Index k = 0; k < columns.total(); ++k)
        if (leaves[static_cast<std::size_t>(k)] != 0) both->model.leave(k);
    }
    StateArchive saved;
    others.of_part.front().visit(saved);
    StateArchive archive(saved.numbers());
    ActiveColumns loaded{Partition::balanced(columns.total(), 1)};
    loaded.visit(archive);
    CHECK(loaded.same_partition(others.of_part.front()));
    accounts.change([&](ActiveColumns& of, int part) { return of.arrange_as(loaded, part); });
    accounts.model.activate(others.model.active());
    accounts.check();
    for (Index k = 0; k < loaded.count(); ++k)
      CHECK(accounts.of_part.front().column(k) == others.of_part.front().column(k));
  }
}

TEST_CASE("No column is moved that need not be") {
  const Partition columns = Partition::balanced(6, 1);
  ActiveColumns active(columns);
  CHECK(active.deflate({0, 0, 0, 0, 0, 0}, 0).empty());
  CHECK(active.deflate({0, 0, 0, 0, 1, 1}, 0).empty());
  CHECK(active.deflate({1, 0, 0, 1}, 0).size() == 1);
  CHECK(active.restore(0).size() == 1);
  CHECK(active.restore(0).empty());
  CHECK(active.activate({1, 1, 1, 1, 1, 1}, 0).empty());
}
