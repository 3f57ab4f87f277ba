#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What one rank alone can know, its block, its place in the grid, its memory, it must say is known to it alone. So in lib an
error whose condition or text names such a thing is thrown by require_here, or with KnownTo::one_rank. Errors of
communication and of memory are so by themselves."""
import re

import rule

STATEMENT = re.compile(r"\b(?:require<|throw )(?P<error>Error|UsageError|ShapeError)\b")
LONE = re.compile(r"\blocal(?:_\w*)?\b(?!_)|\bmy_(?:row|col|part)\b|\bthis rank|\.rank\(\)|\bstride\b|\blocal_(?:row|col)_range\b")


def check(root):
    failures = []
    for path in filter(rule.is_cpp, rule.project_files(root)):
        if path.parts[0] != "lib":
            continue
        text = re.sub(r"//[^\n]*", lambda match: " " * len(match[0]), rule.read(root, path))
        for match in STATEMENT.finditer(text):
            statement = text[match.start():text.index(";", match.start())]
            if (found := LONE.search(statement)) and "one_rank" not in statement:
                line = text.count("\n", 0, match.start()) + 1
                failures.append(f"{path}:{line}: an error that all ranks are said to know, of '{found[0].strip()}', which "
                                "only this rank knows: take require_here")
    return failures


GOOD = {"lib/dist/a.cpp": 'require_here<ShapeError>(local.rows == 2, "a local block");\n'
                          'throw UsageError(message("this rank is idle"), KnownTo::one_rank);\n'
                          'require<ShapeError>(X.rows() == 2, "rows"); // of this rank\n',
        "tests/a.cpp": "throw UsageError(local);"}
PLANTS = [
    ("a block", {"lib/dist/bad.cpp": 'require<ShapeError>(local.rows == 2, "a block");\n'}, "lib/dist/bad.cpp:1: "),
    ("a place in the grid", {"lib/dist/bad.cpp": 'throw UsageError(message("row ", grid.my_row()));\n'}, "of 'my_row'"),
    ("a text", {"lib/dist/bad.cpp": 'require<UsageError>(n == 2,\n  "what this rank has");\n'}, "of 'this rank'"),
]

if __name__ == "__main__":
    rule.run(check, GOOD, PLANTS)
