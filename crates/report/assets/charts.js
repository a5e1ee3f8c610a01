// Code that the scripts of all pages share; one of these scripts follows in the same element. A page is complete without
// its charts, which read their figures from the page's JSON. The scripts need no framework and no build step, so that
// people can read them in ten years.
"use strict";

const read = (id) => JSON.parse(document.getElementById(id).textContent);

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
  // uPlot's legend is a table without a caption.
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

// Until a script runs there is only a note.
const showCharts = () => document.querySelectorAll("[data-needs-script]").forEach((part) => (part.hidden = false));
// Draws again when the colours or the paper change.
const keepDrawn = (drawAll) => {
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

