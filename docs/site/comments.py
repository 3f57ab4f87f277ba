# SPDX-License-Identifier: BSD-3-Clause
"""Prints a header for Doxygen, with the comment of a function repeated for those that follow it without a blank line."""
import re
import sys
from pathlib import Path


def grouped(header):
    """The header, with the comment of a function repeated for those that follow it without a blank line."""
    result, comment, depth, statement = [], [], 0, ""
    lines = header.splitlines()
    for number, line in enumerate(lines):
        words = line.strip()
        if words.startswith("///") and not words.startswith("///<"):
            if not (number and lines[number - 1].strip().startswith("///")):
                comment = []
            comment.append(line)
        elif not words or words.startswith(("//", "#", "}", "public:", "private:", "protected:")):
            comment, statement = ([] if not words.startswith("//") else comment), ""
        else:
            code = words.split("//")[0]
            if not statement and comment and not lines[number - 1].strip().startswith("///") and "(" in code + lines[min(number + 1, len(lines) - 1)]:
                result += comment
            statement += code
            depth = statement.count("(") + statement.count("{") - statement.count(")") - statement.count("}")
            if depth == 0 and code.rstrip().endswith((";", "}")):
                statement = ""
            elif depth > 0 and code.rstrip().endswith("{") and re.search(r"\b(class|struct|enum|namespace)\b", statement):
                comment, statement = [], ""
        result.append(line)
    return "\n".join(result) + "\n"


sys.stdout.write(grouped(Path(sys.argv[1]).read_text(encoding="utf-8")))
