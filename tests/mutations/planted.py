# SPDX-License-Identifier: BSD-3-Clause
"""The faults of faults.toml, and the sources with each of them as a switch.

A fault is a table [[fault]]:

    name      of the switch: letters, digits and _
    file      where it is planted
    right     what the source says there, once in the file. A statement ends with ; or }, all else is an expression
    after     text that the place is behind, where `right` alone is there more than once [none]
    before    text that follows the place, likewise
    wrong     what the fault says instead; empty: the statement is left out, or the object of `const TYPE NAME;`
    test      the test that must fail, as Meson calls it
    cases     only these of its cases, in Catch2's words; for a test in Python the names of its functions [all]
    hangs     after this many seconds the fault counts as found: the right program is done long before

The variable PLANTED_FAULT names the switch that is on."""
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

LIST = "tests/mutations/faults.toml"
VARIABLE = "PLANTED_FAULT"
HEADER = """#pragma once
#include <cstdlib>
#include <cstring>
#include <memory>
/// Whether the fault of this name is to show.
inline bool is_planted(const char* name) {
  const char* const planted = std::getenv("%s");
  return planted != nullptr && std::strcmp(planted, name) == 0;
}
""" % VARIABLE


class ListError(Exception):
    """What is wrong with the list of faults, or with a source that it names."""


@dataclass(frozen=True)
class Fault:
    name: str
    file: str
    right: str
    wrong: str
    test: str
    after: str = ""
    before: str = ""
    cases: str = ""
    hangs: float = 0

    @property
    def is_statement(self):
        return self.right.rstrip().endswith((";", "}"))

    @property
    def guard(self):
        """The type and the name of an object that does something while it lives, and is left out."""
        found = re.fullmatch(r"const (\w+) (\w+);", self.right)
        return found.groups() if found and not self.wrong else None

    def switch(self):
        """What takes the place of the source's text: the switch is read once where it stands."""
        on = f'[] {{ static const bool is_on = is_planted("{self.name}"); return is_on; }}()'
        if self.guard:
            type_, name = self.guard
            return f"const std::unique_ptr<const {type_}> {name}({on} ? nullptr : new {type_});"
        if self.is_statement:
            return f"{{ if ({on}) {{ {self.wrong} }} else {{ {self.right} }} }}"
        return f"({on} ? ({self.wrong}) : ({self.right}))"

    def place(self, text):
        """Where the source has it. Throws ListError unless that is one place."""
        whole = self.after + self.right + self.before
        found = [match.start() for match in re.finditer(re.escape(whole), text)]
        if len(found) != 1:
            times = "nowhere" if not found else f"at {len(found)} places"
            raise ListError(f"{LIST}: {self.name}: {self.file} has the text {whole!r} {times}; give the text that is "
                            "there now, with so much around it that it is there once")
        begin = found[0] + len(self.after)
        code_before = re.sub(r"(\s*//[^\n]*\n\s*|\s)*\Z", "", text[:begin])
        if self.is_statement and not code_before.endswith((";", "{", "}", ")", ":", "else")):
            raise ListError(f"{LIST}: {self.name}: {self.right!r} is only the end of a statement")
        return begin


def is_list(expression):
    """Whether there is a comma outside of brackets and strings."""
    rest, before = re.sub(r'"(\\.|[^"\\])*"', "", expression), None
    while rest != before:
        rest, before = re.sub(r"\([^()]*\)|\{[^{}]*\}|\[[^\[\]]*\]|<[^<>]*>", "", rest), rest
    return "," in rest


def read_faults(root):
    """The faults of the list, in its order. Throws ListError."""
    try:
        tables = tomllib.loads(Path(root, LIST).read_text(encoding="utf-8"))["fault"]
    except (tomllib.TOMLDecodeError, KeyError) as error:
        raise ListError(f"{LIST}: {error}") from error
    faults = []
    for table in tables:
        try:
            fault = Fault(**table)
        except TypeError as error:
            raise ListError(f"{LIST}: {table.get('name', table)}: {error}") from error
        if not re.fullmatch(r"\w+", fault.name) or any(fault.name == other.name for other in faults):
            raise ListError(f"{LIST}: {fault.name}: is no name, or the name of another fault")
        if fault.right.strip() == fault.wrong.strip() or not fault.right.strip():
            raise ListError(f"{LIST}: {fault.name}: right and wrong are the same, or nothing")
        if not fault.wrong.strip() and not fault.is_statement:
            raise ListError(f"{LIST}: {fault.name}: only a statement can be left out")
        declares = re.match(r"\s*(inline|constexpr|static|const|auto|using|template)\b", fault.right)
        if fault.is_statement and declares and not fault.guard:
            raise ListError(f"{LIST}: {fault.name}: a declaration ends with the switch around it; give its value alone")
        if any(text.count(opened) != text.count(closed) for text in (fault.right, fault.wrong) for opened, closed in ("()", "{}")):
            raise ListError(f"{LIST}: {fault.name}: right or wrong opens another number of brackets than it closes")
        if not fault.is_statement and re.match(r"\s*(if|else|for|while|return)\b|\s*}", fault.right):
            raise ListError(f"{LIST}: {fault.name}: is neither an expression nor a whole statement")
        if not fault.is_statement and any(is_list(text) for text in (fault.right, fault.wrong)):
            raise ListError(f"{LIST}: {fault.name}: a switch makes one value of several with commas between them")
        faults.append(fault)
    return faults


def planted(text, faults, header):
    """The text of a source with the switches of its faults. Throws ListError."""
    places = sorted((fault.place(text), fault) for fault in faults)
    for (begin, fault), (after, other) in zip(places, places[1:]):
        if begin + len(fault.right) > after:
            raise ListError(f"{LIST}: {fault.name} and {other.name} share text of {fault.file}")
    for begin, fault in reversed(places):
        text = text[:begin] + fault.switch() + text[begin + len(fault.right):]
    return f'#include "{header}"\n' + text


def planted_sources(root, faults, header):
    """The text of every file with faults, by its path. Throws ListError."""
    sources = {}
    for file in dict.fromkeys(fault.file for fault in faults):
        path = Path(root, file)
        if not path.is_file():
            raise ListError(f"{LIST}: there is no {file}")
        sources[file] = planted(path.read_text(encoding="utf-8"), [fault for fault in faults if fault.file == file], header)
    return sources
