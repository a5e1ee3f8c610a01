// The charts of a report.

const report = read("report-json");
const curves = read("report-curves");

// ---- latency by percentile ------------------------------------------------------------------------------------------

// The axis counts nines: 0 %, 90 %, 99 %, ... are equally far apart. At `x`, one of `x` requests is slower.
const nines = (x) => {
  const share = 100 - 100 / x;
  return `${share.toFixed(Math.max(0, Math.round(Math.log10(x)) - 2))} %`;
};
// Curves that are shown at a time at most; more are turned like pages, phase by phase.
const CURVES_MAX = 8;
const curvePages = () => {
  const indexes = curves.map((_, index) => index);
  if (curves.length <= CURVES_MAX) return [{ label: "all steps", indexes }];
  return [...new Set(curves.map(({ group }) => group))].flatMap((group) => {
    const ofGroup = indexes.filter((index) => curves[index].group === group);
    const count = ofGroup.length;
    const pages = [];
    for (let from = 0; from < count; from += CURVES_MAX) {
      const place = count > CURVES_MAX ? ` (${from + 1} to ${Math.min(from + CURVES_MAX, count)} of ${count})` : "";
      pages.push({ label: `${group}${place}`, indexes: ofGroup.slice(from, from + CURVES_MAX) });
    }
    return pages;
  });
};
const pages = curvePages();
const pageChoice = document.getElementById("curves-page");
let page = pages[0];
let shownCurves = new Set(page.indexes);

// As everywhere, a percentile needs ten requests beyond it.
const BEYOND_MIN = 10;
const curveData = (curve) => {
  const xs = [];
  const ys = [];
  for (const [quantile, latency] of curve.points) {
    const x = quantile < 1 ? 1 / (1 - quantile) : Infinity;
    if (x > curve.samples / BEYOND_MIN) break;
    if (xs.length > 0 && x <= xs.at(-1)) ys[ys.length - 1] = latency;
    else {
      xs.push(x);
      ys.push(latency);
    }
  }
  return [xs, ys];
};
const tables = curves.map(curveData);

const valueAt = (x, [xs, ys]) => {
  const after = xs.findIndex((known) => known >= x);
  return after < 0 ? undefined : ys[after];
};

const drawCurves = () => {
  const holder = document.getElementById("curves-chart");
  clear(holder);
  const shown = [...shownCurves].sort((a, b) => a - b);
  const lines = shown.map((index) => ({ label: curves[index].label, width: 2, points: { show: false }, ...lineStyle(page.indexes.indexOf(index)) }));
  const data = shown.length > 0 ? uPlot.join(shown.map((index) => tables[index])) : [[1, 100], []];
  const end = Math.max(100, ...shown.map((index) => tables[index][0].at(-1)));
  const outputs = [...document.querySelectorAll("#curves-lines output")];
  const showValues = (chart) => {
    const x = chart.cursor.left >= 0 ? chart.posToVal(chart.cursor.left, "x") : undefined;
    outputs.forEach((output, place) => {
      const index = page.indexes[place];
      const value = x === undefined || !shownCurves.has(index) ? undefined : valueAt(x, tables[index]);
      output.value = value === undefined ? "" : micros(value);
    });
    const at = document.getElementById("curves-at");
    at.textContent = x === undefined ? "" : `at ${(100 - 100 / x).toPrecision(Math.min(7, 3 + Math.floor(Math.log10(x))))} %`;
  };
  const powers = Array.from({ length: Math.ceil(Math.log10(end)) + 1 }, (_, power) => 10 ** power);
  const options = {
    height: 340,
    legend: { show: false },
    padding: [12, 30, 0, 0],
    scales: { x: { time: false, distr: 3, range: [1, end] }, y: { distr: 3 } },
    cursor: { y: false, points: { show: false }, drag: { x: false, y: false } },
    axes: [
      axis({ size: 32, splits: () => powers.filter((power) => power <= end), filter: (_, splits) => splits, values: (_, splits) => splits.map(nines) }),
      axis({ size: 62, values: (_, splits) => splits.map((value) => (value === null ? null : micros(value))) }),
    ],
    series: [{}, ...lines.map((line) => ({ ...line, spanGaps: true }))],
    hooks: { setCursor: [showValues] },
  };
  draw(holder, options, data);
};

const listCurves = () => {
  const list = document.getElementById("curves-lines");
  list.replaceChildren(
    ...page.indexes.map((index, place) => {
      const box = element("input", { type: "checkbox", checked: shownCurves.has(index) });
      const swatch = element("span", { className: "swatch" });
      const { stroke, dash } = lineStyle(place);
      swatch.style.borderTopColor = stroke;
      swatch.style.borderTopStyle = ["solid", "dashed", "dotted"][Math.min(2, DASHES.indexOf(dash))];
      box.addEventListener("change", () => {
        if (box.checked) shownCurves.add(index);
        else shownCurves.delete(index);
        drawCurves();
      });
      const name = element("span", { className: "name" }, curves[index].label);
      // A single curve needs no choice.
      const choice = page.indexes.length > 1 ? [box] : [];
      return element("li", {}, element("label", {}, ...choice, swatch, name, element("output", {})));
    }),
  );
};
const turnPage = () => {
  page = pages[pageChoice.value];
  shownCurves = new Set(page.indexes);
  listCurves();
  drawCurves();
};

// ---- one run, second by second --------------------------------------------------------------------------------------

// A figure over less of a second than this says nothing.
const INTERVAL_MIN_SECONDS = 0.2;
// A line this short needs dots to be visible.
const FEW_SECONDS = 5;
const interval = (figure) => (run) =>
  run.intervals
    .filter(({ seconds }) => seconds >= INTERVAL_MIN_SECONDS || run.intervals.length === 1)
    .map((entry) => [entry.at_seconds + entry.seconds, figure(entry)]);
const sample = (figure) => (run) => run.server.map((entry) => [entry.at_seconds, figure(entry)]);

const PANELS = [
  {
    title: "Throughput",
    shown: plain,
    tick: short,
    lines: [
      ["documents/s", interval((entry) => entry.documents / entry.seconds)],
      ["requests/s", interval((entry) => entry.requests / entry.seconds)],
      ["errors/s", interval((entry) => entry.errors / entry.seconds)],
    ],
  },
  {
    title: "Latency",
    shown: micros,
    tick: micros,
    logarithmic: true,
    lines: [
      ["p50", interval((entry) => entry.latency.p50_us)],
      ["p99", interval((entry) => entry.latency.p99_us)],
      ["p99.9", interval((entry) => entry.latency.p999_us)],
      ["max", interval((entry) => entry.latency.max_us)],
    ],
  },
  {
    title: "Server: processor (100 % = one core)",
    shown: percent,
    tick: percent,
    lines: [["CPU", sample((entry) => entry.cpu_percent)]],
  },
  {
    title: "Server: memory and data directory",
    shown: bytes,
    tick: bytes,
    lines: [
      ["resident", sample((entry) => entry.resident_bytes)],
      ["on disk", sample((entry) => entry.disk_bytes)],
    ],
  },
  {
    title: "Server: device",
    shown: (value) => `${bytes(value)}/s`,
    tick: bytes,
    lines: [
      ["written/s", sample((entry) => entry.device_written_bytes_per_second)],
      ["read/s", sample((entry) => entry.device_read_bytes_per_second)],
    ],
  },
  {
    title: "Server: page faults that read",
    shown: plain,
    tick: short,
    lines: [["faults/s", sample((entry) => entry.major_faults_per_second)]],
  },
];
// Lines that are left out where they are 0 throughout.
const QUIET = new Set(["errors/s", "read/s", "faults/s"]);

// A line needs two points.
const POINTS_MIN = 2;
const worthShowing = ([name, points]) => {
  const known = points.filter(([, value]) => value !== null && value !== undefined);
  return known.length >= POINTS_MIN && (!QUIET.has(name) || known.some(([, value]) => value !== 0));
};

const drawPanel = (holder, panel, run) => {
  let lines = panel.lines.map(([name, points]) => [name, points(run)]).filter(worthShowing);
  // One request per document: the second line would hide the first.
  lines = lines.filter(([, points], index) => index === 0 || JSON.stringify(points) !== JSON.stringify(lines[0][1]));
  if (lines.length === 0) return;
  const place = element("div", { className: "chart", role: "group", ariaLabel: `${panel.title}, second by second; arrow keys move the cursor` });
  holder.append(element("div", {}, element("h3", {}, panel.title), place));
  const zeroBased = (_, low, high) => [Math.min(0, low), high > 0 ? high * 1.08 : 1];
  const value = (_, raw) => (raw === null || raw === undefined ? "–" : panel.shown(raw));
  const options = {
    height: 190,
    padding: [10, 16, 0, 0],
    scales: { x: { time: false, range: [0, run.elapsed_seconds] }, y: panel.logarithmic ? { distr: 3 } : { range: zeroBased } },
    cursor: { y: false, sync: { key: "run" } },
    axes: [
      axis({ size: 32, values: (_, splits) => splits.map((seconds) => `${significant(seconds)} s`) }),
      axis({ size: 58, values: (_, splits) => splits.map((tick) => (tick === null ? null : panel.tick(tick))) }),
    ],
    series: [
      { label: "at", value: (_, seconds) => (seconds === null || seconds === undefined ? "–" : `${significant(seconds)} s`) },
      ...lines.map(([label], index) => ({ label, value, width: 1.75, points: { show: run.elapsed_seconds < FEW_SECONDS }, spanGaps: false, ...lineStyle(index) })),
    ],
  };
  const data = [lines[0][1].map(([at]) => at), ...lines.map(([, points]) => points.map(([, figure]) => figure ?? null))];
  cursorByKeys(place, draw(place, options, data));
};

const stepChoice = document.getElementById("series-step");
const runChoice = document.getElementById("series-run");
const counterChoice = document.getElementById("series-counter");

const chosenRun = () => report.steps[stepChoice.value].runs[runChoice.value].outcome;
const option = (value, text) => element("option", { value, textContent: text });
// Hides a choice that has no alternatives.
const hideIdle = (choice) => (choice.parentElement.hidden = choice.options.length < 2);
// Dozens of names are found by the part of the server that they belong to.
const grouped = (names) => {
  const groups = [...new Set(names.map((name) => name.split(".")[0]))];
  return groups.map((group) => {
    const ofGroup = names.filter((name) => name.split(".")[0] === group);
    return element("optgroup", { label: group }, ...ofGroup.map((name) => option(name, name)));
  });
};

const chooseStep = () => {
  const measured = report.steps[stepChoice.value].runs.map((run, index) => [run, index]).filter(([run]) => run.outcome.outcome === "measured");
  runChoice.replaceChildren(...measured.map(([run, index]) => option(index, run.repetition)));
  hideIdle(runChoice);
  chooseRun();
};
const chooseRun = () => {
  // A counter that stood at 0 throughout has nothing to show.
  const counted = chosenRun().server.flatMap((entry) => Object.entries(entry.status)).filter(([, value]) => value !== 0);
  const names = new Set(counted.map(([name]) => name));
  // Operations tell most; connections, which come first in the alphabet, least.
  const before = counterChoice.value || [...names].sort().find((name) => name.startsWith("opcounters."));
  counterChoice.replaceChildren(...grouped([...names].sort()));
  if (names.has(before)) counterChoice.value = before;
  hideIdle(counterChoice);
  drawRun();
};
const drawRun = () => {
  const holder = document.getElementById("series-panels");
  clear(holder);
  holder.replaceChildren();
  const run = chosenRun();
  PANELS.forEach((panel) => drawPanel(holder, panel, run));
  const counter = counterChoice.value;
  if (counter !== "") {
    const points = sample((entry) => entry.status[counter]);
    drawPanel(holder, { title: `serverStatus: ${counter}`, shown: plain, tick: short, lines: [[counter, points]] }, run);
  }
  // On paper, where the choices are left out, this says what is shown.
  const shown = `${stepChoice.selectedOptions[0].textContent}, repetition ${runChoice.selectedOptions[0].textContent}`;
  const caches = run.cache === "" ? "" : `; caches at the start: ${run.cache}`;
  document.getElementById("series-shown").textContent = `Shown: ${shown}${caches}.`;
};

// ---- the page -------------------------------------------------------------------------------------------------------

const drawAll = () => {
  if (curves.length > 0) {
    listCurves();
    drawCurves();
  }
  if (stepChoice !== null && stepChoice.options.length > 0) drawRun();
};

const begin = () => {
  showCharts();
  if (stepChoice !== null && stepChoice.options.length > 0) {
    stepChoice.addEventListener("change", chooseStep);
    runChoice.addEventListener("change", chooseRun);
    counterChoice.addEventListener("change", drawRun);
    hideIdle(stepChoice);
    document.querySelectorAll("a[data-step]").forEach((link) =>
      link.addEventListener("click", () => {
        stepChoice.value = link.dataset.step;
        chooseStep();
      }),
    );
    chooseStep();
  }
  if (curves.length > 0) {
    pageChoice?.replaceChildren(...pages.map(({ label }, index) => option(index, label)));
    pageChoice?.addEventListener("change", turnPage);
    listCurves();
    drawCurves();
  }
  const copy = document.getElementById("copy-command");
  copy?.addEventListener("click", async () => {
    await navigator.clipboard.writeText(document.getElementById("command").textContent);
    copy.textContent = "Copied";
  });
  keepDrawn(drawAll);
};
begin();
