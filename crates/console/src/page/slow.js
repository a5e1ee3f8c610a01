// Slow operations, grouped by shape.

import { shapesOf } from "./advice.js";
import { run } from "./door.js";
import { element, replace } from "./elements.js";
import { count, millis, moment } from "./figures.js";
import { text } from "./texts.js";

/// The greatest number of shapes that are drawn.
const SHAPES_MAX = 100;

const fact = (name, value) => element("div", {}, element("dt", {}, name), element("dd", {}, value));

const copyButton = (words) => {
  const button = element("button", {
    type: "button",
    click: async () => {
      // Only pages from https or this machine may copy.
      await navigator.clipboard?.writeText(words);
      replace(button, text("copied"));
    },
  }, text("copy"));
  return navigator.clipboard === undefined ? null : button;
};

const adviceOf = ({ advice, examined, returned, times }) =>
  advice === null
    ? null
    : element(
        "div",
        { class: "advice" },
        element("p", {}, returned === 0 ? text("adviceNone", count(examined / times)) : text("adviceWhy", count(examined / returned))),
        element("p", {}, `${text("advice")}:`),
        element("div", { class: "copied" }, element("code", {}, advice), copyButton(advice)),
      );

const shapeOf = (shape) =>
  element(
    "article",
    { class: "shape" },
    element("h3", {}, `${shape.namespace} · ${shape.name}`, shape.plan === "" ? null : element("code", { class: shape.plan.startsWith("COLLSCAN") ? "warn" : "quiet" }, shape.plan)),
    element(
      "dl",
      { class: "facts" },
      fact(text("times"), count(shape.times)),
      fact(text("mean"), millis(shape.total / shape.times)),
      fact(text("longest"), millis(shape.longest)),
      fact(text("total"), millis(shape.total)),
      fact(text("examined"), count(Math.max(shape.examined, shape.keys))),
      fact(text("returned"), count(shape.returned)),
    ),
    adviceOf(shape),
    element("details", {}, element("summary", {}, `${text("example")}, ${moment(shape.at)}`), element("pre", {}, shape.exampleText)),
  );

export const view = (place) => {
  const content = element("div", { id: "shapes" });
  const load = async () => {
    replace(content, element("p", { class: "quiet" }, text("loading")));
    try {
      const { log } = await run("admin", { getLog: "global" });
      const shapes = shapesOf(log);
      replace(
        content,
        shapes.length === 0 ? element("p", { class: "quiet" }, text("noSlow")) : shapes.slice(0, SHAPES_MAX).map(shapeOf),
        shapes.length > SHAPES_MAX ? element("p", { class: "hint" }, text("firstOnly", SHAPES_MAX)) : null,
      );
    } catch (error) {
      replace(content, element("p", { class: "trouble" }, error.message));
    }
  };
  replace(
    place,
    element("h2", {}, text("slow")),
    element("div", { class: "bar" }, element("button", { type: "button", click: load }, text("refresh"))),
    content,
    element("p", { class: "hint" }, text("slowHint")),
  );
  load();
};
