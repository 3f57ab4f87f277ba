// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
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

}  // namespace gridlops
