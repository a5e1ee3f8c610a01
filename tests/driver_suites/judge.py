"""Compares the results of a driver's suite with the list of tests that may fail: judge.py go|pymongo LOG EXCEPTIONS

An exception is a line that begins with the beginning of a test's name; a line that begins with '#' says why those below it fail.
One behind 'not run:' is not run at all, because it ends the whole suite or waits for long: judge.py left_out EXCEPTIONS
prints these as a pattern for `go test -skip`.
"""

import re
import sys

NOT_RUN = "not run: "


def go(text):
    """The outcome of each test without inner tests, by name."""
    found = re.findall(r"^ *--- (PASS|FAIL|SKIP): (\S+)", text, re.M)
    names = [name for _, name in found]
    inner = {name.rsplit("/", 1)[0] for name in names if "/" in name}
    # A test that runs on several servers fails if it fails on one.
    weight = {"SKIP": 0, "PASS": 1, "FAIL": 2}.get
    outcomes = {name: outcome for outcome, name in sorted(found, key=lambda each: weight(each[0])) if name not in inner}
    # A package that panics or does not build says nothing of its other tests.
    for sign in (r"^panic: ", r"\[build failed\]", r"\[setup failed\]"):
        if re.search(sign, text, re.M):
            outcomes[sign] = "FAIL"
    return outcomes


def pymongo(text):
    """The outcomes of PyMongo's tests; its log only counts those that pass."""
    failed = {name: "FAIL" for name in re.findall(r"^(?:FAILED|ERROR) (\S+)", text, re.M)}
    for kind, outcome in [("passed", "PASS"), ("skipped", "SKIP")]:
        count = sum(int(n) for n in re.findall(rf"(\d+) {kind}", text))
        failed |= {f"{kind} {n}": outcome for n in range(count)}
    return failed


def said(text, name, most=12):
    """The first few lines of Go's log behind each beginning of a test."""
    lines, inside = [], False
    for line in text.splitlines():
        if mark := re.match(r"=== (?:RUN|CONT|NAME) +(\S+)$", line):
            inside = mark[1] == name
        elif inside and re.match(r" *(--- |=== )", line):
            inside = False
        elif inside:
            lines.append(line[:300])
    return lines[:most]


def lines_of(exceptions):
    with open(exceptions) as lines:
        return [line.strip() for line in lines if line.strip() and not line.startswith("#")]


def left_out(exceptions):
    names = [line.removeprefix(NOT_RUN) for line in lines_of(exceptions) if line.startswith(NOT_RUN)]
    return "|".join("/".join(f"^{re.escape(part)}$" for part in name.split("/")) for name in names)


def main():
    if sys.argv[1] == "left_out":
        print(left_out(sys.argv[2]))
        return
    kind, log, exceptions = sys.argv[1:]
    with open(log, errors="replace") as lines:
        text = lines.read()
    outcomes = {"go": go, "pymongo": pymongo}[kind](text)
    excepted = [line for line in lines_of(exceptions) if not line.startswith(NOT_RUN)]
    failed = sorted(name for name, outcome in outcomes.items() if outcome == "FAIL")
    unexpected = [name for name in failed if not any(name.startswith(prefix) for prefix in excepted)]
    count = {wanted: sum(outcome == wanted for outcome in outcomes.values()) for wanted in ("PASS", "FAIL", "SKIP")}
    not_run = len(lines_of(exceptions)) - len(excepted)
    print(f"{kind}: {count['PASS']} passed, {count['SKIP']} skipped by the suite, {not_run} not run, {count['FAIL']} failed, "
          f"{len(unexpected)} of them unexpected")
    for name in unexpected:
        print(f"  {name}")
        for line in said(text, name) if kind == "go" else []:
            print(f"      {line}")
    for prefix in excepted:
        if any(name.startswith(prefix) for name in outcomes) and not any(name.startswith(prefix) for name in failed):
            print(f"  no longer fails: {prefix}")
    # If no test passed, none was run.
    sys.exit(bool(unexpected) or not count["PASS"])


main()
