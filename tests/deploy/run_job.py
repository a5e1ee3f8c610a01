"""Does with processes what Kubernetes does with pods: run_job.py MANIFEST BINARY FOLDER

Reads the command of an Indexed Job, runs it for every index with the environment that Kubernetes would give it, collects
the reports from the logs, has them merged, and compares the sums.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import yaml

# A small run of two variants. The manifest does not change the scenario.
SMALL = ["--repetitions=1", "--set=load.connections=1,5", "--set=load.in-flight=1,2", "--set=load.warm-up=100ms",
         "--set=load.duration=1s"]
STEPS = 2
SECONDS_MAX = 60
DATA_FINDINGS = ("errors", "counts-differ", "contents-differ")


def expand(argument, environment):
    """$(NAME), as Kubernetes expands it: a name that is not known stays as it is."""
    return re.sub(r"\$\((\w+)\)", lambda found: environment.get(found[1], found[0]), argument)


def pods(job, binary, folder):
    """One process for each index, its log, and where its image's /reports is."""
    container = job["spec"]["template"]["spec"]["containers"][0]
    assert job["spec"]["completionMode"] == "Indexed" and job["spec"]["parallelism"] == job["spec"]["completions"]
    assert container["command"] == ["bunko"]
    names = {variable["name"] for variable in container["env"]}
    assert names == {"BUNKO_URI"}, f"the test knows no value for {names}"
    for index in range(job["spec"]["completions"]):
        environment = {"BUNKO_URI": BUNKO_URI, "JOB_COMPLETION_INDEX": str(index)}
        arguments = [expand(argument, environment) for argument in container["args"]]
        arguments = [argument.replace("/reports/", f"{folder}/reports/") for argument in arguments]
        log = folder / f"pod-{index}.log"
        with log.open("wb") as file:
            # The lab needs no environment variables, so it gets none.
            process = subprocess.Popen([binary, *arguments, *SMALL], stdout=file, stderr=file, env=environment)
        yield process, log


def collect(log):
    """As deploy/README.md does it: the line of the log that is JSON."""
    lines = [line for line in log.read_text(encoding="utf-8").splitlines() if line.startswith("{")]
    assert len(lines) == 1, f"{len(lines)} lines of JSON in the log:\n{log.read_text(encoding='utf-8')[-2000:]}"
    path = log.with_name(log.name.replace("pod", "worker").replace(".log", ".json"))
    path.write_text(lines[0], encoding="utf-8")
    return path


def measurements(report):
    """The measurements by step: all workers have the same steps in the same order."""
    for place, step in enumerate(report["steps"]):
        for run in step["runs"]:
            yield f"step {place} {step['phase']}", run["outcome"]


def check(reports, merged):
    assert merged["worker"] == {"kind": "merged", "count": len(reports)}, merged["worker"]
    assert merged["completion"]["state"] == "complete", merged["completion"]
    assert len(merged["steps"]) == STEPS, f"{len(merged['steps'])} steps"
    for name, outcome in measurements(merged):
        assert outcome["outcome"] == "measured", outcome
        shares = [dict(measurements(report))[name] for report in reports]
        for figure in ["requests", "documents", "errors"]:
            total = sum(share[figure] for share in shares)
            assert outcome[figure] == total, f"{name}: {figure}: {outcome[figure]} merged, {total} summed"
        assert min(share["requests"] for share in shares) > 0, f"{name}: a worker did nothing"
        # An exact histogram counts every request once.
        assert outcome["latency"]["samples"] == outcome["requests"], name
        wrong = [found for found in outcome["findings"] if found["finding"] in DATA_FINDINGS]
        assert not wrong, f"{name}: {wrong}"
        print(f"{name}: {' + '.join(str(share['requests']) for share in shares)} = {outcome['requests']} requests")


def main(manifest, binary, folder):
    folder = Path(folder)
    job = yaml.safe_load(Path(manifest).read_text(encoding="utf-8"))
    running = list(pods(job, binary, folder))
    try:
        for process, log in running:
            status = process.wait(timeout=SECONDS_MAX)
            assert status in (0, 2), f"exit status {status}: {log.read_text(encoding='utf-8')[-2000:]}"
    except subprocess.TimeoutExpired:
        sys.exit(f"FAILED deploy: the workers have not ended after {SECONDS_MAX} s: do they wait for one another?")
    finally:
        for process, _ in running:
            process.kill()
    paths = [collect(log) for _, log in running]
    merge = subprocess.run([binary, "bench", "merge", *paths, "--output", folder / "merged"], check=False)
    assert merge.returncode in (0, 2), merge.returncode
    reports = [json.loads(path.read_text(encoding="utf-8")) for path in paths]
    for index, path in enumerate(sorted((folder / "reports").iterdir())):
        assert json.loads((path / "report.json").read_text(encoding="utf-8")) == reports[index], path
        seconds = (reports[index]["ended_at_ms"] - reports[index]["started_at_ms"]) / 1000
        print(f"{path.name}: report.json of {(path / 'report.json').stat().st_size} bytes after {seconds:.1f} s")
    check(reports, json.loads((folder / "merged/report.json").read_text(encoding="utf-8")))


if __name__ == "__main__":
    BUNKO_URI = os.environ["BUNKO_URI"]
    main(*sys.argv[1:])
