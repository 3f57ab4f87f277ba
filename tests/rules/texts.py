#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The library makes text of numbers in one place, message(), which no locale changes, and reads them by from_chars; JSON
becomes text in json_text(), which takes any bytes."""
import re

import rule

# What formats or reads by the global locale, or that of C.
BY_LOCALE = re.compile(r"\b(?:[io]?stringstream|v?s?n?printf|sscanf|strto(?:d|f|ld|l|ll|ul|ull)|"
                       r"std::ato[fil]|std::to_string|std::sto(?:i|l|ll|ul|ull|f|d|ld))\b")
# An Agreement, which is public, sets up its stream as message() does.
PLACES = {"lib/base/message.cpp", "include/gridlops/comm/failure.hpp"}
DUMP = re.compile(r"\.dump\(")
DUMPS = {"lib/io/formats/json_text.hpp", "apps/command_line/console.hpp"}


def check(root):
    failures = []
    for path in filter(rule.is_cpp, rule.project_files(root)):
        name = path.as_posix()
        for number, line in enumerate(rule.read(root, path).splitlines(), 1):
            if name.startswith(("lib/", "include/")) and name not in PLACES:
                failures += [f"{path}:{number}: {word} depends on the locale; write numbers by message(), read them by from_chars"
                             for word in BY_LOCALE.findall(line.split("//")[0])]
            if name.startswith(("lib/", "apps/", "bench/")) and name not in DUMPS and DUMP.search(line):
                failures.append(f"{path}:{number}: dump() throws for bytes that are no UTF-8, as names of files may have; use json_text()")
    return failures


GOOD = {
    "lib/base/message.cpp": "std::ostringstream text;\n",
    "lib/io/formats/json_text.hpp": "return json.dump(indent);\n",
    "lib/io/a.cpp": "out << message(3);  // as printf() would\nstd::from_chars(first, last, number);\n",
    "apps/a.cpp": "fmt::format(\"{}\", std::to_string(3));\n",
    "tests/io/a.cpp": "std::ostringstream text; json.dump();\n",
}
PLANTS = [
    ("a stream", {"lib/io/bad.cpp": "std::ostringstream text;\n"}, "lib/io/bad.cpp:1: ostringstream"),
    ("a format of C", {"lib/solve/bad.cpp": "\nstd::snprintf(buffer, size, format, 3.0);\n"}, "lib/solve/bad.cpp:2: snprintf"),
    ("a number that is read", {"lib/comm/bad.cpp": "std::strtod(text, &end);\n"}, "strtod"),
    ("a number that is written", {"include/gridlops/bad.hpp": "std::to_string(3.5);\n"}, "std::to_string"),
    ("JSON of a report", {"apps/bad.cpp": "report.dump(1);\n"}, "apps/bad.cpp:1: dump()"),
]

if __name__ == "__main__":
    rule.run(check, GOOD, PLANTS)
