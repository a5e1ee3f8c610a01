"""What a driver's suite says, beside the list of what may fail: judge.py go|pymongo LOG EXCEPTIONS

An exception is a line that begins with the beginning of a test's name; a line that begins with '#' says why those below it fail.
"""

import re
import sys


def go(text):
    """The outcome of each test that has none inside, by name."""
    found = re.findall(r"^ *--- (PASS|FAIL|SKIP): (\S+)", text, re.M)
    names = [name for _, name in found]
    inner = {name.rsplit("/", 1)[0] for name in names if "/" in name}
    outcomes = {name: outcome for outcome, name in found if name not in inner}
    # A package that panics says nothing of the tests behind.
    if re.search(r"^panic: ", text, re.M):
        outcomes["panic"] = "FAIL"
    return outcomes


def pymongo(text):
    """The same; what passes is only counted."""
    failed = {name: "FAIL" for name in re.findall(r"^(?:FAILED|ERROR) (\S+)", text, re.M)}
    for kind, outcome in [("passed", "PASS"), ("skipped", "SKIP")]:
        count = sum(int(n) for n in re.findall(rf"(\d+) {kind}", text))
        failed |= {f"{kind} {n}": outcome for n in range(count)}
    return failed


def main():
    kind, log, exceptions = sys.argv[1:]
    with open(log, errors="replace") as lines:
        outcomes = {"go": go, "pymongo": pymongo}[kind](lines.read())
    with open(exceptions) as lines:
        excepted = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
    failed = sorted(name for name, outcome in outcomes.items() if outcome == "FAIL")
    unexpected = [name for name in failed if not any(name.startswith(prefix) for prefix in excepted)]
    count = {wanted: sum(outcome == wanted for outcome in outcomes.values()) for wanted in ("PASS", "FAIL", "SKIP")}
    print(f"{kind}: {count['PASS']} passed, {count['SKIP']} skipped by the suite, {count['FAIL']} failed, "
          f"{len(unexpected)} of them unexpected")
    for name in unexpected:
        print(f"  {name}")
    for prefix in excepted:
        if not any(name.startswith(prefix) for name in failed):
            print(f"  no longer fails: {prefix}")
    # Where nothing passed nothing was tried.
    sys.exit(bool(unexpected) or not count["PASS"])


main()
