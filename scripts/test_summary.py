#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Counts the results in logs of `meson test`: test_summary.py LOG.json…

Each line of a log is one test. The last line printed is "N passed, N failed, N skipped"; the status is 0 only if
none failed and at least one passed.
"""
import json
import sys
from pathlib import Path

PASSED = {"OK", "EXPECTEDFAIL"}
SKIPPED = {"SKIP"}


def main(logs):
    passed, skipped, failed = 0, 0, []
    for log in logs:
        if not log.is_file():
            failed.append((str(log), "the test run left no log"))
            continue
        for line in log.read_text(encoding="utf-8").splitlines():
            test = json.loads(line)
            if test["result"] in PASSED:
                passed += 1
            elif test["result"] in SKIPPED:
                skipped += 1
            else:
                failed.append((test["name"], f"{test['result']} ({log.parents[1].name}, {test['duration']:.1f} s)"))
    if failed:
        print("Failed:")
    for name, result in failed:
        print(f"  {name}: {result}")
    if passed + skipped + len(failed) == 0:
        print("No test was run.")
    print(f"{passed} passed, {len(failed)} failed, {skipped} skipped")
    return 0 if passed > 0 and not failed else 1


if __name__ == "__main__":
    sys.exit(main([Path(name) for name in sys.argv[1:]]))
