#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""No file has marks of unfinished work, paths of one machine, or untidy ends; every source has its licence; no text of
the library names an option of a program, of which those who link it know nothing; no text counts things without a number,
by words that docs/contributing.md forbids; no comment in C++ begins with "What", where a noun or a verb says more; no
page and no example has a using directive for gridlops, whose short names (Index, Real) its readers have, too."""
import re

import rule

# Put together here, so that this file obeys its own rule.
UNFINISHED = re.compile(r"\b(" + "|".join(["TO" + "DO", "FIX" + "ME", "XX" + "X"]) + r")\b")
MACHINE_PATH = re.compile(r"(?<![\w.}*~-])/(?:home|root|Users|work)/\w")
OPTION = re.compile(r'"[^"\n]*(?<![\w-])--(?!mca\b)[a-z][^"\n]*"')  # mpirun's --mca may be advised
VAGUE = re.compile(r"\bso" + r"(?:\s|\n\s*(?://+|#|\*)\s*)+" + r"many\b", re.IGNORECASE)
RIDDLE = re.compile(r"^\s*///?<? What ", re.MULTILINE)
DIRECTIVE = re.compile(r"^\s*using namespace gridlops;", re.MULTILINE)
HAS_VAGUE = "docs/contributing.md"  # as examples
LICENCE = "SPDX-License-Identifier: BSD-3-Clause"


def needs_licence(root, path):
    return rule.is_cpp(path) or path.suffix == ".py" or rule.is_shell_script(root, path)


def check_lines(path, text):
    for number, line in enumerate(text.splitlines(), 1):
        where = f"{path}:{number}"
        if UNFINISHED.search(line):
            yield f"{where}: a mark of unfinished work; finish it, or open an issue"
        if MACHINE_PATH.search(line):
            yield f"{where}: the path of one machine"
        if line != line.rstrip():
            yield f"{where}: white space at the end of the line"


def check(root):
    failures = []
    for path in rule.project_files(root):
        if path.is_relative_to("tests/fuzz/corpus"):  # every byte counts there
            continue
        text = rule.read(root, path)
        failures += check_lines(path, text)
        if path.as_posix() != HAS_VAGUE:
            failures += [f'{path}:{text.count(chr(10), 0, found.start()) + 1}: "so" many; say how many, or "this many"'
                         for found in VAGUE.finditer(text)]
        if path.is_relative_to("lib") and rule.is_cpp(path):
            failures += [f"{path}: names an option of a program: {found[0]}" for found in OPTION.finditer(text)]
        if rule.is_cpp(path):
            failures += [f'{path}:{text.count(chr(10), 0, found.end()) + 1}: a comment begins with "What"; name the thing, or what it does'
                         for found in RIDDLE.finditer(text)]
        if path.suffix == ".md" or path.is_relative_to("docs"):
            failures += [f"{path}:{text.count(chr(10), 0, found.end()) + 1}: a using directive; write namespace gl = gridlops;"
                         for found in DIRECTIVE.finditer(text)]
        if text and not text.endswith("\n"):
            failures.append(f"{path}: the last line has no end")
        if "\r" in text:
            failures.append(f"{path}: lines end with a carriage return")
        if needs_licence(root, path) and LICENCE not in "\n".join(text.splitlines()[:2]):
            failures.append(f"{path}: the first line (after #!) must say {LICENCE}")
    return failures


GOOD = {
    "lib/a.cpp": f'// {LICENCE}\nint a = b --c; auto d = "mpirun --mca osc pt2pt";\n',
    "scripts/a.py": f"#!/usr/bin/env python3\n# {LICENCE}\n",
    "scripts/b": f"#!/bin/sh\n# {LICENCE}\nls build/work/x /usr/bin/python3 https://example.org/home/x\n",
    "README.md": "# Words\n",
    "tests/fuzz/corpus/grid/spaces": " 2x3 ",
}
PLANTS = [
    ("an option of a program", {"lib/a.cpp": f'// {LICENCE}\nauto a = "try --device cpu";\n'}, "lib/a.cpp: names an option"),
    ("unfinished work", {"docs/a.md": "a TO" + "DO\n"}, "docs/a.md:1: a mark"),
    ("the path of one machine", {"meson.build": "x\ny = '/ho" + "me/me/x'\n"}, "meson.build:2: the path"),
    ("a number that is none", {"docs/a.md": "takes so " + "many bytes\n"}, 'docs/a.md:1: "so" many'),
    ("the same over two lines of a comment", {"scripts/a.py": f"# {LICENCE}\n# takes so\n# " + "many bytes\n"}, "scripts/a.py:2:"),
    ("a comment that is a riddle", {"lib/a.cpp": f"// {LICENCE}\n\n/// What it is.\nint a;\n"}, "lib/a.cpp:3: a comment begins"),
    ("a using directive in an example", {"docs/a.cpp": f"// {LICENCE}\nusing namespace gridlops;\n"}, "docs/a.cpp:2: a using directive"),
    ("trailing white space", {"README.md": "text \n"}, "white space"),
    ("an open last line", {"README.md": "text"}, "has no end"),
    ("a carriage return", {"README.md": "text\r\nmore\n"}, "carriage return"),
    ("a source without a licence", {"lib/a.cpp": "int a;\n"}, "lib/a.cpp: the first line"),
    ("a script without a licence", {"scripts/b": "#!/bin/sh\nls\n"}, "scripts/b: the first line"),
]

if __name__ == "__main__":
    rule.run(check, GOOD, PLANTS)
