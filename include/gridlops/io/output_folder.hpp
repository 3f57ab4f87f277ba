// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "gridlops/base/export.hpp"

namespace gridlops {

/// Makes a folder for output, and its parents, unless it exists, and marks it as GridLOps's: an output in a
/// folder replaces and removes only what is provably ours. Throws OutputError if an entry of the folder is in
/// the way and the folder has no mark of this kind; a folder that is missing or empty never is refused. Other
/// entries may be anybody's. Nothing is changed if it throws, but for a new folder. Called by one rank alone;
/// jobs and ranks may call it at the same time.
///
/// kind: what the output is, in small letters: the mark is a file .gridlops-KIND, made before anything else.
/// is_in_the_way(name): whether this output could replace or remove an entry of this name; the same for all
/// who write outputs of this kind there together. An entry that proves by itself that it is ours is not in
/// the way. Reasons: docs/decisions/0041-what-is-not-ours.md.
GRIDLOPS_EXPORT void claim_folder(const std::string& directory, const std::string& kind,
                                  const std::function<bool(const std::string& name)>& is_in_the_way);

/// Keeps other jobs out of a folder that exists, as long as a copy of the result lives: a file `lock` there,
/// locked by the kernel, with a line that says who holds it. what_for: what the holder may still do, for the
/// error, such as "save checkpoints there". Throws OutputError if another process, or this one, holds the
/// lock; its text names that process. Called by one rank alone.
GRIDLOPS_EXPORT std::shared_ptr<const void> lock_folder(const std::string& directory,
                                                        const std::string& what_for);

}  // namespace gridlops
