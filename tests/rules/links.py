#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Every link of a Markdown file to something in the repository leads there: to a file, a folder, a heading. Sources name records
of decisions that exist, and each record is named by the source that it explains."""
import posixpath
import re

import rule

CODE = re.compile(r"^(```|~~~).*?^\1|`[^`\n]*`", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\)|^\[[^\]]+\]:\s+(\S+)", re.MULTILINE)
ELSEWHERE = re.compile(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE)
RECORD = re.compile(r"docs/decisions/\d{4}-[\w-]+\.md")
HEADING = re.compile(r"^#+\s+(.*?)\s*#*$", re.MULTILINE)


def without_code(text):
    """The same lines, with code blanked out."""
    return CODE.sub(lambda match: "\n" * match[0].count("\n"), text)


def anchors(text):
    """What GitHub makes of the headings: small letters, spaces as hyphens, no punctuation; repeated ones are numbered."""
    found, times = set(), {}
    # Code in a heading counts; only blocks hide lines that look like one.
    for heading in HEADING.findall(re.sub(r"^(```|~~~).*?^\1", "", text, flags=re.MULTILINE | re.DOTALL)):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        name = re.sub(r"[^\w\- ]", "", words.lower()).replace(" ", "-")
        times[name] = times.get(name, -1) + 1
        found.add(f"{name}-{times[name]}" if times[name] else name)
    return found


def check(root):
    files = {path.as_posix() for path in rule.project_files(root)}
    folders = {posixpath.dirname(name) for name in files}
    folders |= {parent for folder in folders for parent in _parents(folder)}
    failures = []
    for name in sorted(name for name in files if name.endswith(".md")):
        text = without_code(rule.read(root, name))
        for match in LINK.finditer(text):
            link = match[1] or match[2]
            if ELSEWHERE.match(link):
                continue
            where = f"{name}:{text.count(chr(10), 0, match.start()) + 1}"
            path, _, anchor = link.partition("#")
            target = posixpath.normpath(posixpath.join(posixpath.dirname(name), path)) if path else name
            if target not in files and target not in folders:
                failures.append(f"{where}: {link} leads nowhere: there is no {target}")
            elif anchor and target.endswith(".md") and anchor not in anchors(rule.read(root, target)):
                failures.append(f"{where}: {link} leads nowhere: {target} has no heading #{anchor}")
    return failures + check_records(root, files)


def check_records(root, files):
    records, named = set(filter(RECORD.fullmatch, files)), set()
    failures = []
    for name in sorted(name for name in files if not name.endswith(".md")):
        for record in RECORD.findall(rule.read(root, name)):
            named.add(record)
            if record not in records:
                failures.append(f"{name}: there is no {record}")
    return failures + [f"{record}: no source names it" for record in sorted(records - named)]


def _parents(folder):
    while folder:
        folder = posixpath.dirname(folder)
        yield folder or "."


# Put together here, so that this file names no record.
A_RECORD, NO_RECORD = "docs/decisions/" + "0001-a.md", "docs/decisions/" + "0002-b.md"
GOOD = {
    A_RECORD: "# 1\n",
    "lib/a.hpp": f"/// Reasons: {A_RECORD}.\n",
    "README.md": "# Words\n\nSee [A](docs/a.md#the-four-products), [docs](docs), [b][1], [web](https://example.org/x.md), [Words](#words).\n\n"
                 "`[no](link.md)`\n\n```\n[none](either.md)\n# no heading\n```\n\n[1]: docs/decisions/b.md\n",
    "docs/a.md": "# A\n\n## The four products!\n\n## `Code` again\n\n## `Code` again\n\n[up](../README.md) [b](decisions/b.md) [twice](#code-again-1)\n",
    "docs/decisions/b.md": "[a](<../a.md> \"A\") ![picture](../c.svg)\n",
    "docs/c.svg": "<svg/>\n",
}
PLANTS = [
    ("a link to no file", {"docs/bad.md": "\n[a](decisions/a.md)\n"}, "docs/bad.md:2: decisions/a.md leads nowhere"),
    ("a link from the wrong folder", {"docs/bad.md": "[a](docs/a.md)\n"}, "there is no docs/docs/a.md"),
    ("a link out of the repository", {"bad.md": "[a](../README.md)\n"}, "leads nowhere"),
    ("a picture that is not there", {"bad.md": "![a](docs/d.svg)\n"}, "there is no docs/d.svg"),
    ("a reference to no file", {"bad.md": "[a][1]\n\n[1]: docs/d.md\n"}, "bad.md:3: docs/d.md"),
    ("a heading that is not there", {"bad.md": "[a](docs/a.md#products)\n"}, "docs/a.md has no heading #products"),
    ("a heading that only code has", {"bad.md": "[a](README.md#no-heading)\n"}, "has no heading #no-heading"),
    ("a record that is not there", {"lib/b.hpp": f"// {NO_RECORD}\n"}, f"lib/b.hpp: there is no {NO_RECORD}"),
    ("a record that no source names", {NO_RECORD: "# 2\n"}, f"{NO_RECORD}: no source names it"),
    ("a heading of the same file", {"bad.md": "# Bad\n\n[a](#good)\n"}, "bad.md has no heading #good"),
]

if __name__ == "__main__":
    rule.run(check, GOOD, PLANTS)
