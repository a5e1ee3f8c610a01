// The charts of a history: a metric's figure in each report, the levels between its changes, and a mark at each change.

const scenarios = read("history-json").scenarios;

const when = (milliseconds) => `${new Date(milliseconds).toISOString().slice(0, 16).replace("T", " ")} UTC`;
const day = (milliseconds) => new Date(milliseconds).toISOString().slice(0, 10);
const explained = (change) => ["explains", "replaced"].includes(change.machine.change);
const markColour = (change) => {
  if (explained(change) || change.effect === "differs") return colour("--muted");
  return colour(change.effect === "worse" ? "--invalid" : "--good");
};

// A level holds from a change up to the next.
const levels = ({ values, changes }) =>
  values.map(({ report }) => {
    const since = changes.filter((change) => change.report <= report).at(-1);
    return since === undefined ? (changes[0]?.before ?? null) : since.after;
  });

const drawMarks = (metric) => (chart) => {
  const { ctx, bbox } = chart;
  metric.changes.forEach((change) => {
    const x = chart.valToPos(change.report, "x", true);
    ctx.save();
    ctx.strokeStyle = markColour(change);
    ctx.lineWidth = 2 * devicePixelRatio;
    ctx.setLineDash(explained(change) ? [4 * devicePixelRatio, 4 * devicePixelRatio] : []);
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
    ctx.restore();
  });
};

const drawMetric = (holder, metric, { reports }) => {
  const place = element("div", { className: "chart", role: "group", ariaLabel: `${metric.metric}, report by report; arrow keys move the cursor` });
  holder.append(element("div", {}, element("h3", {}, metric.metric.replace("us", "µs")), place));
  const value = (_, raw) => (raw === null || raw === undefined ? "–" : plain(raw));
  // The axis spans at least a tenth up and down, so that noise looks small.
  const range = (_, low, high) => {
    const middle = (low + high) / 2;
    const reach = 1.1 * Math.max((high - low) / 2, 0.1 * middle);
    return [middle - reach, middle + reach];
  };
  const levelLine = { label: "level", value, ...lineStyle(1), dash: [], width: 1.75, points: { show: false }, paths: uPlot.paths.stepped({ align: 1 }) };
  const changed = metric.changes.length > 0;
  const dates = (_, splits) => splits.map((index) => (reports[index] === undefined ? "" : day(reports[index].started_at_ms)));
  const options = {
    height: 190,
    padding: [10, 30, 0, 0],
    scales: { x: { time: false, range: [-0.5, reports.length - 0.5] }, y: { range } },
    cursor: { y: false },
    axes: [
      axis({ size: 32, space: 90, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000], values: dates }),
      axis({ size: 58, values: (_, splits) => splits.map(short) }),
    ],
    series: [
      { label: "report of", value: (_, index) => (reports[index] === undefined ? "–" : when(reports[index].started_at_ms)) },
      { label: metric.metric.replace("us", "µs"), value, ...lineStyle(0), width: 1.25, points: { show: metric.values.length <= 100, size: 5 } },
      ...(changed ? [levelLine] : []),
    ],
    hooks: { draw: [drawMarks(metric)] },
  };
  const data = [metric.values.map(({ report }) => report), metric.values.map(({ median }) => median), ...(changed ? [levels(metric)] : [])];
  cursorByKeys(place, draw(place, options, data));
};

const drawAll = () =>
  document.querySelectorAll("[data-history]").forEach((holder) => {
    clear(holder);
    holder.replaceChildren();
    const scenario = scenarios[holder.dataset.scenario];
    const { metrics } = scenario.steps[holder.dataset.history] ?? { metrics: [scenario.control] };
    metrics.forEach((metric) => drawMetric(holder, metric, scenario));
  });

showCharts();
drawAll();
keepDrawn(drawAll);
