// The charts of a report. Everything that matters is in the page without them; what they show is read from the JSON
// that the page carries. No framework and no build step, so that it can be read in ten years.
"use strict";

const read = (id) => JSON.parse(document.getElementById(id).textContent);
const report = read("report-json");
const curves = read("report-curves");

// ---- numbers -------------------------------------------------------------------------------------------------------

const significant = (value) => {
  if (value === 0) return "0";
  const size = Math.abs(value);
  const decimals = size >= 99.95 ? 0 : Math.min(6, Math.max(0, 2 - Math.floor(Math.log10(size))));
  return value.toLocaleString("en", { minimumFractionDigits: 0, maximumFractionDigits: decimals });
};
const scaled = (value, units, step) => {
  let unit = 0;
  while (Math.abs(value) >= step && unit + 1 < units.length) {
    value /= step;
    unit += 1;
  }
  return `${significant(value)} ${units[unit]}`;
};
const plain = (value) => significant(value);
const micros = (value) => scaled(value, ["µs", "ms", "s"], 1000);
const bytes = (value) => scaled(value, ["B", "kB", "MB", "GB", "TB"], 1000);
const percent = (value) => `${significant(value)} %`;
const short = (value) => scaled(value, ["", "k", "M", "G"], 1000).trim();

// ---- what all charts share ------------------------------------------------------------------------------------------

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const LINE_COLOURS = 6;
const DASHES = [[], [7, 4], [2, 3], [9, 3, 2, 3], [14, 4]];
const lineStyle = (index) => ({
  stroke: colour(`--line-${(index % LINE_COLOURS) + 1}`),
  dash: DASHES[Math.floor(index / LINE_COLOURS) % DASHES.length],
});

// The width of the paper is not known before it is too late to draw; the style sheet stretches the chart to it.
const PAPER_WIDTH = { panel: 460, page: 940 };
let printing = false;
const widthOf = (element) => {
  if (printing) return element.closest(".panels") ? PAPER_WIDTH.panel : PAPER_WIDTH.page;
  return Math.max(240, element.clientWidth);
};

const axis = (more) => ({
  stroke: colour("--muted"),
  font: "11px system-ui, sans-serif",
  grid: { stroke: colour("--grid"), width: 1 },
  ticks: { stroke: colour("--grid"), width: 1, size: 4 },
  ...more,
});

const charts = [];
const draw = (element, options, data) => {
  const chart = new uPlot({ width: widthOf(element), ...options }, data, element);
  // uPlot's legend is a table whose headings do not say of what.
  element.querySelectorAll(".u-legend th").forEach((heading) => (heading.scope = "row"));
  charts.push({ chart, element });
  return chart;
};
const clear = (below) => {
  for (let index = charts.length - 1; index >= 0; index -= 1) {
    if (!below.contains(charts[index].element)) continue;
    charts[index].chart.destroy();
    charts.splice(index, 1);
  }
};
const element = (tag, properties, ...children) => {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
};

// The cursor by keyboard: arrows move it, Escape takes it away.
const cursorByKeys = (holder, chart) => {
  holder.tabIndex = 0;
  holder.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (step === undefined && event.key !== "Escape") return;
    event.preventDefault();
    const times = chart.data[0];
    const last = chart.cursor.idx ?? (step > 0 ? -1 : times.length);
    const index = Math.min(times.length - 1, Math.max(0, last + step));
    const left = event.key === "Escape" ? -10 : chart.valToPos(times[index], "x");
    chart.setCursor({ left, top: left < 0 ? -10 : 10 }, true, true);
  });
};

// ---- latency by percentile ------------------------------------------------------------------------------------------

// The axis counts nines: 0 %, 90 %, 99 %, ... are equally far apart. `x` is one request in how many is slower.
const nines = (x) => {
  const share = 100 - 100 / x;
  return `${share.toFixed(Math.max(0, Math.round(Math.log10(x)) - 2))} %`;
};
const CURVES_AT_FIRST = 6;
const shownCurves = new Set(curves.map((_, index) => index).slice(0, CURVES_AT_FIRST));

const curveData = (curve) => {
  const xs = [];
  const ys = [];
  for (const [quantile, latency] of curve.points) {
    // Beyond one request in as many as there were, nothing is known.
    const x = Math.min(curve.samples, quantile < 1 ? 1 / (1 - quantile) : curve.samples);
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
  const lines = shown.map((index) => ({ label: curves[index].label, width: 2, points: { show: false }, ...lineStyle(index) }));
  const data = shown.length > 0 ? uPlot.join(shown.map((index) => tables[index])) : [[1, 100], []];
  const end = Math.max(100, ...shown.map((index) => tables[index][0].at(-1)));
  const outputs = [...document.querySelectorAll("#curves-lines output")];
  const showValues = (chart) => {
    const x = chart.cursor.left >= 0 ? chart.posToVal(chart.cursor.left, "x") : undefined;
    outputs.forEach((output, index) => {
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
    ...curves.map((curve, index) => {
      const box = element("input", { type: "checkbox", checked: shownCurves.has(index) });
      const swatch = element("span", { className: "swatch" });
      const { stroke, dash } = lineStyle(index);
      swatch.style.borderTopColor = stroke;
      swatch.style.borderTopStyle = ["solid", "dashed", "dotted"][Math.min(2, DASHES.indexOf(dash))];
      box.addEventListener("change", () => {
        if (box.checked) shownCurves.add(index);
        else shownCurves.delete(index);
        drawCurves();
      });
      const name = element("span", { className: "name" }, curve.label);
      return element("li", {}, element("label", {}, box, swatch, name, element("output", {})));
    }),
  );
};

// ---- one run, second by second --------------------------------------------------------------------------------------

// A figure over less of a second than this says nothing.
const INTERVAL_MIN_SECONDS = 0.2;
// So short a line needs dots to be seen.
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

const worthShowing = ([name, points]) =>
  points.some(([, value]) => value !== null && value !== undefined && (value !== 0 || !QUIET.has(name)));

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

const chooseStep = () => {
  const measured = report.steps[stepChoice.value].runs.map((run, index) => [run, index]).filter(([run]) => run.outcome.outcome === "measured");
  runChoice.replaceChildren(...measured.map(([run, index]) => option(index, run.repetition)));
  runChoice.parentElement.hidden = measured.length < 2;
  chooseRun();
};
const chooseRun = () => {
  const names = new Set(chosenRun().server.flatMap((entry) => Object.keys(entry.status)));
  // Operations tell most; connections, which come first in the alphabet, least.
  const before = counterChoice.value || [...names].sort().find((name) => name.startsWith("opcounters."));
  counterChoice.replaceChildren(...[...names].sort().map((name) => option(name, name)));
  if (names.has(before)) counterChoice.value = before;
  counterChoice.parentElement.hidden = names.size === 0;
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
  document.querySelectorAll("[data-needs-script]").forEach((part) => (part.hidden = false));
  if (stepChoice !== null && stepChoice.options.length > 0) {
    stepChoice.addEventListener("change", chooseStep);
    runChoice.addEventListener("change", chooseRun);
    counterChoice.addEventListener("change", drawRun);
    document.querySelectorAll("a[data-step]").forEach((link) =>
      link.addEventListener("click", () => {
        stepChoice.value = link.dataset.step;
        chooseStep();
      }),
    );
    chooseStep();
  }
  if (curves.length > 0) {
    listCurves();
    drawCurves();
  }
  const copy = document.getElementById("copy-command");
  copy?.addEventListener("click", async () => {
    await navigator.clipboard.writeText(document.getElementById("command").textContent);
    copy.textContent = "Copied";
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
  const forPaper = (paper) => () => {
    printing = paper;
    document.documentElement.classList.toggle("printing", paper);
    drawAll();
  };
  addEventListener("beforeprint", forPaper(true));
  addEventListener("afterprint", forPaper(false));
  let resized = 0;
  addEventListener("resize", () => {
    cancelAnimationFrame(resized);
    resized = requestAnimationFrame(() => {
      charts.forEach(({ chart, element: holder }) => chart.setSize({ width: widthOf(holder), height: chart.height }));
    });
  });
};
begin();
