"""Whether a run of larger-than-memory shows what it must: check_report.py REPORT STATUS LIMIT-BYTES

STATUS is bunko bench's exit status. Every phase must have come to its end without an error and with all documents counted
and equal, and the server's resident memory must have stayed below the limit in every second. What the findings say about
pace is of no interest here.
"""

import json
import sys

PHASES = ["load", "random-reads", "scan", "updates", "verify"]
DATA_FINDINGS = {"errors", "counts-differ", "contents-differ"}


def check(report, status, limit):
    """Yields the faults."""
    if status not in (0, 2):
        yield f"exit status {status}"
    if report["completion"]["state"] != "complete":
        yield f"the run did not reach its end: {report['completion']}"
    found = [step["phase"] for step in report["steps"]]
    if found != PHASES:
        yield f"phases {found}, expected {PHASES}"
    for step in report["steps"]:
        for run in step["runs"]:
            yield from check_run(step["phase"], run["outcome"], limit)
    documents = {step["phase"]: step["runs"][0]["outcome"].get("documents") for step in report["steps"]}
    if documents.get("verify") != documents.get("load") or documents.get("scan") != documents.get("load"):
        yield f"not all documents were scanned and verified: {documents}"


def check_run(phase, outcome, limit):
    if outcome["outcome"] == "skipped":
        yield f"{phase}: skipped: {outcome['reason']}"
        return
    wrong = [finding for finding in outcome["findings"] if finding["finding"] in DATA_FINDINGS]
    if wrong:
        yield f"{phase}: {wrong}"
    most = most_resident(outcome)
    if most is None:
        yield f"{phase}: nobody saw the server's memory"
    elif most >= limit:
        yield f"{phase}: {most} bytes resident, the limit is {limit}"


def most_resident(outcome):
    seconds = [sample["resident_bytes"] for sample in outcome["server"]] + [outcome["server_resident_bytes"]]
    return max((resident for resident in seconds if resident is not None), default=None)


def main(path, status, limit):
    with open(path, encoding="utf-8") as file:
        report = json.load(file)
    wrong = list(check(report, int(status), int(limit)))
    for line in wrong:
        print(f"FAILED bounded_memory: {line}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
