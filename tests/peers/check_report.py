"""Whether a report says everything that it must: check_report.py REPORT STATUS STRICTNESS [SKIPPED-PHASE...]

STATUS is bunko bench's exit status. STRICTNESS is `ours` for a server of which every built-in scenario must run to the
end without a finding about its data, `peer` for one that may lack things and may lose some. Phases that are named must
be skipped. Prints one line about the outcome.
"""

import json
import sys

DATA_FINDINGS = {"errors", "counts-differ", "contents-differ"}


def check(report, status, strictness, must_skip):
    """Yields what is wrong."""
    if report["completion"]["state"] != "complete":
        yield f"the run did not reach its end: {report['completion']}"
    if not report["steps"]:
        yield "no step was run"
    if not report["targets"]:
        yield "no server is described"
    for step in report["steps"]:
        for run in step["runs"]:
            yield from check_run(step["phase"], run["outcome"], strictness, must_skip)
    if status not in (0, 2):
        yield f"exit status {status}"


def check_run(phase, outcome, strictness, must_skip):
    skipped = outcome["outcome"] == "skipped"
    if phase in must_skip and not skipped:
        yield f"{phase}: not skipped, though no server can do it"
    if skipped:
        if len(outcome["reason"]) < 10:
            yield f"{phase}: skipped without a reason: '{outcome['reason']}'"
        if strictness == "ours" and phase not in must_skip:
            yield f"{phase}: skipped: {outcome['reason']}"
        return
    if outcome["documents"] > 0 and outcome["requests"] == 0:
        yield f"{phase}: {outcome['documents']} documents, but no request"
    kinds = {finding["finding"] for finding in outcome["findings"]}
    if strictness == "ours" and kinds & DATA_FINDINGS:
        yield f"{phase}: {outcome['findings']}"


def summary(report):
    """Skips and findings about data, each once; short runs and the like are what small runs have."""
    said = []
    for step in report["steps"]:
        for run in step["runs"]:
            outcome = run["outcome"]
            if outcome["outcome"] == "skipped":
                said.append(f"SKIPPED {step['phase']}: {outcome['reason']}")
            else:
                worst = [finding for finding in outcome["findings"] if finding["finding"] in DATA_FINDINGS]
                said.extend(f"{step['phase']}: {json.dumps(finding)}" for finding in worst)
    return list(dict.fromkeys(said))


def main(path, status, strictness, *must_skip):
    with open(path, encoding="utf-8") as file:
        report = json.load(file)
    wrong = list(check(report, int(status), strictness, must_skip))
    for line in summary(report):
        print(f"    {line}")
    for line in wrong:
        print(f"    WRONG {line}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
