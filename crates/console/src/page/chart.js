// Small charts of lines over time.

import { drawing, element, replace } from "./elements.js";
import { moment } from "./figures.js";

const [WIDTH, HEIGHT] = [320, 96];
/// The greatest number of points, which is the width of a chart: five minutes at two seconds each.
export const POINTS_MAX = 150;

/// The least number of the form 1, 2 or 5 times a power of ten, or of two for bytes, that is not below `value`.
const roundUp = (value, isBinary) => {
  if (!(value > 0)) return 1;
  if (isBinary) return 2 ** Math.ceil(Math.log2(value));
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((factor) => factor * power).find((bound) => bound >= value * (1 - 1e-9));
};

/// Parts of a line, which is broken where there is no figure.
const paths = (points, name, top) => {
  const parts = [];
  let part = null;
  points.forEach((point, index) => {
    const value = point[name];
    if (value === null || value === undefined || Number.isNaN(value)) {
      part = null;
      return;
    }
    const x = WIDTH - ((points.length - 1 - index) * WIDTH) / (POINTS_MAX - 1);
    const y = HEIGHT - (Math.min(value, top) / top) * (HEIGHT - 4) - 1;
    if (part === null) parts.push((part = []));
    part.push([x, y]);
  });
  // A part of one point has no length: it is drawn one pixel wide.
  return parts.map((part) => (part.length === 1 ? [part[0], [part[0][0] - 1, part[0][1]]] : part));
};

/// A chart of `lines` (`{name, label}`), whose values `format` writes. `update` draws it anew.
export const chart = ({ id, title, lines, format, isBinary = false }) => {
  const values = lines.map(() => element("output", {}, "–"));
  const top = element("span", { class: "top" }, "");
  const time = element("span", { class: "time" }, "");
  const svg = drawing("svg", {
    viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
    preserveAspectRatio: "none",
    "aria-hidden": "true",
    focusable: "false",
  });
  const area = element("div", { class: "area", tabindex: 0, role: "group", "aria-label": title }, svg, top, time);
  let points = [];
  let chosen = null;

  const draw = () => {
    const all = lines.flatMap(({ name }) => points.map((point) => point[name])).filter(Number.isFinite);
    const bound = roundUp(Math.max(0, ...all), isBinary);
    const at = chosen === null ? points.length - 1 : Math.max(0, points.length - 1 - chosen);
    const x = WIDTH - ((points.length - 1 - at) * WIDTH) / (POINTS_MAX - 1);
    replace(
      svg,
      drawing("path", { class: "grid", d: `M0 ${HEIGHT - 1}H${WIDTH}M0 ${HEIGHT / 2}H${WIDTH}M0 3H${WIDTH}` }),
      chosen === null ? null : drawing("path", { class: "cursor", d: `M${x} 0V${HEIGHT}` }),
      lines.flatMap(({ name }, number) =>
        paths(points, name, bound).map((part) =>
          drawing("polyline", { class: `line line-${number}`, points: part.map(([x, y]) => `${x.toFixed(1)},${y.toFixed(1)}`).join(" ") }),
        ),
      ),
    );
    replace(top, all.length === 0 ? "" : format(bound));
    replace(time, chosen === null || points.length === 0 ? "" : moment(new Date(points[at].at)));
    lines.forEach(({ name }, number) => replace(values[number], points.length === 0 ? "–" : format(points[at][name])));
  };
  const choose = (behind) => {
    chosen = behind === null ? null : Math.min(Math.max(0, behind), Math.max(0, points.length - 1));
    draw();
  };
  area.addEventListener("pointermove", (event) => {
    const box = area.getBoundingClientRect();
    choose(Math.round(((box.right - event.clientX) / box.width) * (POINTS_MAX - 1)));
  });
  area.addEventListener("pointerleave", () => choose(null));
  area.addEventListener("blur", () => choose(null));
  area.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: 1, ArrowRight: -1 }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    choose((chosen ?? 0) + step);
  });
  const legend = lines.map(({ label }, number) =>
    element("li", {}, element("span", { class: `mark line-${number}` }), element("span", {}, label), values[number]),
  );
  const figure = element("section", { class: "chart", id }, element("h3", {}, title), area, element("ul", { class: "legend" }, legend));
  return {
    figure,
    update: (newer) => {
      points = newer;
      draw();
    },
  };
};
