"""Every metric in the alert rules and the dashboard must be served: names_are_served.py METRICS FOLDER

METRICS is a scrape in the text format of Prometheus. Prints the dashboard's expressions as recording rules, so that promtool can
check their syntax.
"""

import json
import pathlib
import re
import sys

scrape, folder = pathlib.Path(sys.argv[1]).read_text(), pathlib.Path(sys.argv[2])
served = {re.match(r"\w+", line).group() for line in scrape.splitlines() if line and not line.startswith("#")}
alerts = (folder / "bunko-alerts.yml").read_text()
dashboard = json.loads((folder / "bunko-dashboard.json").read_text())
expressions = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]

used = set(re.findall(r"\bbunko_\w+", " ".join([alerts, *expressions])))
missing = sorted(used - served)
if missing:
    sys.exit(f"not served: {', '.join(missing)}")

print("groups:\n  - name: dashboard\n    rules:")
for number, expression in enumerate(expressions):
    expression = expression.replace("$__rate_interval", "5m").replace("$instance", ".*")
    print(f"      - record: dashboard:{number}\n        expr: {json.dumps(expression)}")
