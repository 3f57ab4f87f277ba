#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Every source, header and Python file is used: a meson.build names it, or a used file includes or calls it."""
import posixpath
import re
from pathlib import PurePosixPath

import rule

FOLDERS = ("lib/", "include/", "apps/", "bench/", "tests/", "scripts/")
SUFFIXES = (".cpp", ".hpp", ".cu", ".py")
INCLUDE_FOLDERS = ("include", "lib", "tests", "apps", "")
ENTRIES = ("README.md", ".ci/run", "scripts/setup", "scripts/demo", "scripts/test")  # what people call

TOKEN = re.compile(r"'''(?P<long>.*?)'''|'(?P<short>(?:\\.|[^'\\\n])*)'|#[^\n]*", re.DOTALL)


def literals(meson_text):
    """The string literals of a meson.build, comments left out."""
    found = (match["short"] if match["long"] is None else match["long"] for match in TOKEN.finditer(meson_text))
    return {literal for literal in found if literal}


def names(strings, relative):
    """Whether these literals name the file: as it is, or put together from a list of names, as
    'unit/@0@.cpp'.format(name) or 'unit/' + name + '.cpp'."""
    if relative in strings:
        return True
    for pattern in (string for string in strings if "@" in string):
        hole = re.escape(pattern).replace("@0@", "(.+)", 1)
        match = re.fullmatch(re.sub(r"@\w+@", ".+", hole), relative)
        if match and match.groups() and match[1] in strings:
            return True
    stem, suffix = posixpath.splitext(relative)
    if suffix not in strings:
        return False
    return any(stem.startswith(prefix) and stem[len(prefix):] in strings
               for prefix in {"", *(string for string in strings if string.endswith("/"))})


def read_meson_files(texts):
    """The literals of every meson.build that the root's reaches by subdir(), by folder."""
    reached, open_folders = {}, [""]
    while open_folders:
        folder = open_folders.pop()
        text = texts.get(posixpath.join(folder, "meson.build"))
        if text is None or folder in reached:
            continue
        reached[folder] = literals(text)
        open_folders += [posixpath.join(folder, name) for name in reached[folder]
                         if posixpath.join(folder, name, "meson.build") in texts]
    return reached


def mentioned(path, text, by_name):
    """The files that a used file includes, imports or calls."""
    folder = posixpath.dirname(path)
    if rule.is_cpp(PurePosixPath(path)):
        for _, name in rule.includes(text):
            for base in (folder, *INCLUDE_FOLDERS):
                yield posixpath.normpath(posixpath.join(base, name))
        return
    for name in re.findall(r"[\w./-]+\.(?:py|cpp|hpp)\b", text):
        yield from by_name.get(posixpath.basename(name), ())
    for module in re.findall(r"^\s*(?:import|from)\s+(\w+)", text, re.MULTILINE):
        for base in (folder, f"{folder}/support"):
            yield posixpath.join(base, module + ".py")
    # Scripts without a suffix are called by their path.
    yield from re.findall(r"\b(?:scripts|tests|bench)/[\w/-]+(?![\w./-])", text)


def check(root):
    texts = {path.as_posix(): rule.read(root, path) for path in rule.project_files(root)}
    meson_files = read_meson_files(texts)
    by_name = {}
    for path in texts:
        by_name.setdefault(posixpath.basename(path), []).append(path)

    def named(path):
        return any(names(strings, posixpath.relpath(path, folder or "."))
                   for folder, strings in meson_files.items() if path.startswith(f"{folder}/" if folder else ""))

    wanted = {path for path in texts if path.startswith(FOLDERS) and path.endswith(SUFFIXES)}
    used, fresh = set(), [path for path in texts if path in ENTRIES or named(path)]
    while fresh:
        path = fresh.pop()
        if path in used or path not in texts:
            continue
        used.add(path)
        fresh += mentioned(path, texts[path], by_name)

    failures = [f"{path}: no subdir() leads here" for path in texts
                if posixpath.basename(path) == "meson.build" and posixpath.dirname(path) not in meson_files]
    return failures + [f"{path}: no meson.build names it, and no used file includes or calls it"
                       for path in sorted(wanted - used)]


GOOD = {
    "meson.build": "subdir('lib')\nsubdir('tests')\n",
    "lib/meson.build": "sources = files('comm/a.cpp',)  # 'comm/old.cpp' is not built\n",
    "lib/comm/a.cpp": '#include "comm/a.hpp"\n#include "gridlops/a.hpp"\n',
    "lib/comm/a.hpp": '#include "b.hpp"\n',
    "lib/comm/b.hpp": "",
    "include/gridlops/a.hpp": "",
    "tests/meson.build": "foreach name : ['one', 'two']\n  executable(name, 'unit/@0@.cpp'.format(name))\nendforeach\n"
                         "foreach name : ['three']\n  executable(name, 'ranks/' + name + '.cpp')\nendforeach\n"
                         "test('rule', find_program('rules/a_rule.py'))\n",
    "tests/unit/one.cpp": '#include "support/help.hpp"\n',
    "tests/unit/two.cpp": "",
    "tests/ranks/three.cpp": "",
    "tests/support/help.hpp": "",
    "tests/rules/a_rule.py": "import helper\n",
    "tests/rules/helper.py": "",
    "scripts/demo": "#!/bin/sh\nscripts/picture.py\n",
    "scripts/picture.py": "",
}
PLANTS = [
    ("a source that is not named", {"lib/comm/lonely.cpp": ""}, "lib/comm/lonely.cpp"),
    ("a source that only a comment names", {"lib/comm/old.cpp": ""}, "lib/comm/old.cpp"),
    ("a header that nobody includes", {"lib/ops/lonely.hpp": ""}, "lib/ops/lonely.hpp"),
    ("a header that only an orphan includes", {"lib/x.cpp": '#include "y.hpp"\n', "lib/y.hpp": ""}, "lib/y.hpp"),
    ("a test outside its list", {"tests/unit/four.cpp": ""}, "tests/unit/four.cpp"),
    ("a test of a listed name in another folder", {"tests/faults/three.cpp": ""}, "tests/faults/three.cpp"),
    ("a script that nobody calls", {"scripts/forgotten.py": ""}, "scripts/forgotten.py"),
    ("a meson.build that is not reached", {"bench/meson.build": "executable('b', 'b.cpp')\n"}, "no subdir() leads here"),
]

if __name__ == "__main__":
    rule.run(check, GOOD, PLANTS)
