#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Keeps what programs that are linked to the libraries rely on, and compares it between releases.

abi.py save FOLDER INCLUDE LIBRARY…   the headers, the names that each library exports, and with abidw, from a library with
                                      debugging information, its types
abi.py compare OLD NEW                of two such folders: ends with 1 if a program built with OLD cannot run with NEW

A program of OLD needs the names that it was linked to, and types of the same layout. Names that NEW lacks are always found,
changed types with abidiff alone. Inline functions and templates of headers are compiled into programs: nothing finds that two
versions of them do not go together, so the public headers that differ are named, for people to look at.
"""
import hashlib
import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

# Names of our own that programs can use: not those of types within functions, such as lambdas, nor the standard library's for them.
OURS = "_Z(T[VIS])?NK?8gridlops"
NOT_OURS = "".join(f"[suppress_{kind}]\n  symbol_name_not_regexp = ^{OURS}\n  drop = yes\n" for kind in ("function", "variable"))
INCOMPATIBLE = 8  # a bit of abidiff's status, and the first two bits are errors


def run(command, wanted=(0,)):
    result = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    if result.returncode not in wanted:
        sys.exit(f"{' '.join(map(str, command))}\nended with status {result.returncode}:\n{result.stdout}{result.stderr}")
    return result.stdout


def exported_names(library):
    return sorted({line.split()[-1] for line in run(["nm", "-D", "--defined-only", library]).splitlines()
                   if re.search(f" [TWVDBR] {OURS}", line)})


def save(output, include, *paths):
    libraries = {path.name.split(".so")[0]: path for path in paths}
    output.mkdir(parents=True, exist_ok=True)
    headers = {path.relative_to(include).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
               for path in sorted(include.glob("gridlops/**/*.hpp"))}
    names = {name: exported_names(path) for name, path in libraries.items()}
    (output / "abi.json").write_text(json.dumps({"names": names, "headers": headers}, indent=1) + "\n", encoding="utf-8")
    for name, path in libraries.items():
        has_types = ".debug_info" in run(["readelf", "-S", path])
        if shutil.which("abidw") and has_types:
            with tempfile.NamedTemporaryFile("w", encoding="utf-8") as suppressions:
                suppressions.write(NOT_OURS)
                suppressions.flush()
                run(["abidw", "--headers-dir", include, "--drop-private-types", "--no-corpus-path", "--no-comp-dir-path",
                     "--suppressions", suppressions.name, "--out-file", output / f"{name}.abi", path])
        else:
            print(f"abi: the types of {name} are not kept, because {'abidw is not installed' if has_types else 'it has no debugging information'}")


def compare(old, new):
    before, after = (json.loads((folder / "abi.json").read_text(encoding="utf-8")) for folder in (old, new))
    failures = []
    for library, names in before["names"].items():
        gone = sorted(set(names) - set(after["names"].get(library, [])))
        if gone:
            failures.append(f"{library} lacks {len(gone)} names of the old one:\n" + run(["c++filt", *gone]))
        types = [folder / f"{library}.abi" for folder in (old, new)]
        if not all(path.exists() for path in types) or not shutil.which("abidiff"):
            print(f"abi: the types of {library} were not compared: {', '.join(path.as_posix() for path in types)} and abidiff are needed")
            continue
        result = subprocess.run(["abidiff", "--no-added-syms", "--no-unreferenced-symbols", *types], capture_output=True, text=True, check=False)
        if result.returncode & 3:
            sys.exit(f"abidiff failed:\n{result.stdout}{result.stderr}")
        if result.returncode & INCOMPATIBLE or "type size changed" in result.stdout:
            failures.append(f"{library} has other types:\n{result.stdout}")
    changed = sorted(name for name, text in before["headers"].items() if after["headers"].get(name) != text)
    for name in changed:
        print(f"abi: look at {name}: {'it has changed' if name in after['headers'] else 'it is gone'}")
    failures += [f"{name} is gone" for name in changed if name not in after["headers"]]
    print("\n".join(failures) or f"abi: programs of {old.name} find all their names in {new.name}")
    return 1 if failures else 0


if __name__ == "__main__":
    what, *where = [*sys.argv[1:], ""][:1] + [Path(name) for name in sys.argv[2:]]
    if what == "save" and len(where) >= 3:
        save(*where)
    elif what == "compare" and len(where) == 2:
        sys.exit(compare(*where))
    else:
        sys.exit(__doc__)
