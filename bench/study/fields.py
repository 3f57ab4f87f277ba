# SPDX-License-Identifier: BSD-3-Clause
"""Reads tables of a TOML file field by field. Every error names the file, the line and the field."""
import difflib
import re
import tomllib

REQUIRED = object()
# Texts that may go to a shell or to a directive of a batch system. None of these characters has a special meaning
# there.
WORD = re.compile(r"[A-Za-z0-9_./][A-Za-z0-9_./+=,:@-]*|-?[0-9][0-9.e+-]*")
LAUNCHER_WORD = re.compile(rf"(--?)?({WORD.pattern})")
# An option of a batch system, which stands in a comment: no line of its own can follow.
DIRECTIVE = re.compile(r"--?[A-Za-z][A-Za-z0-9-]*([= ][A-Za-z0-9_./+=,:@&|-]+)?")
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
OPTION = re.compile(r"[a-z][a-z0-9-]*")
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
ALLOWED = {WORD: "letters, digits and . _ - / + = , : @", LAUNCHER_WORD: "letters, digits and . _ - / + = , : @",
           DIRECTIVE: "an option, and after = or a space letters, digits and . _ - / + = , : @ & |",
           NAME: "letters, digits and . _ -", OPTION: "small letters, digits and -", VARIABLE: "letters, digits and _"}
KINDS = {str: "a text", int: "a whole number", bool: "true or false", list: "a list", dict: "a table"}


class StudyError(Exception):
    """A study is wrong; the text says where and why."""


class Table:
    """One table of the file. `lines` holds the lines of the file; those of the table begin after line `start`."""

    def __init__(self, path, lines, values, title, start):
        self.path, self.lines, self.values, self.title, self.start = path, lines, dict(values), title, start
        self.known = []

    def error(self, field, text):
        place = f"{self.title}: {field}" if self.title else field
        return StudyError(f"{self.path}:{self.line_of(field)}: {place}: {text}")

    def line_of(self, field):
        """The line of a field, counted from 1; the line of the table's head if the field is missing."""
        for number, line in enumerate(self.lines[self.start:], self.start + 1):
            if re.match(rf"\s*{re.escape(field)}\s*=", line):
                return number
            if line.lstrip().startswith("["):
                break
        return max(self.start, 1)

    def take(self, field, kind, default=REQUIRED):
        self.known.append(field)
        if field not in self.values:
            if default is REQUIRED:
                raise self.error(field, "is missing")
            return default
        value = self.values.pop(field)
        if type(value) is not kind:
            raise self.error(field, f"{value!r} is not {KINDS[kind]}")
        return value

    def checked(self, field, text, pattern=WORD):
        """Returns the text if all its characters are safe in a shell; otherwise raises an error."""
        if not isinstance(text, str):
            raise self.error(field, f"{text!r} is not a text")
        if not pattern.fullmatch(text):
            raise self.error(field, f"{text!r} is refused, because it goes into commands; allowed are {ALLOWED[pattern]}")
        return text

    def word(self, field, default=REQUIRED, pattern=WORD):
        value = self.take(field, str, default)
        return value if value is default else self.checked(field, value, pattern)

    def words(self, field, default=REQUIRED, pattern=WORD):
        value = self.take(field, list, default)
        if value is default:
            return value
        if not value:
            raise self.error(field, "is empty")
        return [self.checked(field, item, pattern) for item in value]

    def choice(self, field, choices, default=REQUIRED):
        value = self.take(field, str, default)
        if value not in choices:
            raise self.error(field, f"{value!r} is none of {', '.join(choices)}{meant(value, choices)}")
        return value

    def whole(self, field, default=REQUIRED, least=1):
        value = self.take(field, int, default)
        if value is not default and value < least:
            raise self.error(field, f"{value} is less than {least}")
        return value

    def wholes(self, field, default=REQUIRED, least=1):
        values = self.take(field, list, default)
        if values is not default and not values:
            raise self.error(field, "is empty")
        for value in values:
            if type(value) is not int or value < least:
                raise self.error(field, f"{value!r} is not a whole number of at least {least}")
        return values

    def pairs(self, field, names=OPTION):
        """A table of numbers and words. An option without a value has `true`."""
        found = {}
        for name, value in self.take(field, dict, {}).items():
            self.checked(field, name, names)
            if type(value) not in (str, int, float, bool):
                raise self.error(field, f"{name} is {value!r}, not a number, a word, or true")
            found[name] = value if type(value) is bool else self.checked(field, str(value))
        return found

    def finish(self):
        for field in self.values:
            raise self.error(field, f"there is no such field{meant(field, self.known)}")


def meant(text, known):
    close = difflib.get_close_matches(text, known, 1)
    return f"; did you mean {close[0]!r}?" if close else ""


class Document:
    """A TOML file: its own fields, and its tables by name."""

    def __init__(self, path):
        self.path = path
        try:
            text = path.read_text(encoding="utf-8")
            values = tomllib.loads(text)
        except OSError as error:
            raise StudyError(f"{path}: {error.strerror}") from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise StudyError(f"{path}: this is no TOML: {error}") from None
        self.lines = text.splitlines()
        self.text = text
        self.tables = {name: value for name, value in values.items() if isinstance(value, (dict, list)) and is_tables(value)}
        own = {name: value for name, value in values.items() if name not in self.tables}
        self.root = Table(path, self.lines, own, "", 0)

    def table(self, name):
        """The table [name], empty if there is none."""
        value = self.tables.pop(name, {})
        if isinstance(value, list):
            raise StudyError(f"{self.path}: write [{name}] once, not [[{name}]]")
        return Table(self.path, self.lines, value, name, self.head(rf"\[{name}\]", 0))

    def list_of(self, name):
        """The tables [[name]], in their order."""
        values = self.tables.pop(name, [])
        if isinstance(values, dict):
            raise StudyError(f"{self.path}: write [[{name}]] instead of [{name}], since there may be several")
        return [Table(self.path, self.lines, value, f"{name} {k + 1}", self.head(rf"\[\[{name}\]\]", k))
                for k, value in enumerate(values)]

    def head(self, pattern, k):
        heads = [number for number, line in enumerate(self.lines, 1) if re.match(rf"\s*{pattern}", line)]
        return heads[k] if k < len(heads) else 0

    def finish(self, known):
        for name in self.tables:
            raise StudyError(f"{self.path}:{self.head(rf'.*{re.escape(name)}', 0)}: there is no table {name!r} in a "
                             f"study{meant(name, known)}")


def is_tables(value):
    return isinstance(value, dict) or (bool(value) and all(isinstance(item, dict) for item in value))
