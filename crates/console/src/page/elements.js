// Elements of the page. All text becomes text nodes, whatever it contains: no text is read as HTML.

const SVG = "http://www.w3.org/2000/svg";

const fill = (made, attributes, children) => {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(name, value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(name, String(value));
  }
  made.append(...children.flat(2).filter((child) => child !== null && child !== undefined).map(asNode));
  return made;
};

const asNode = (child) => (child instanceof Node ? child : document.createTextNode(String(child)));

/// An element with attributes, listeners (attributes that are functions) and children, which are elements or text.
export const element = (tag, attributes = {}, ...children) => fill(document.createElement(tag), attributes, children);

/// As `element`, for SVG.
export const drawing = (tag, attributes = {}, ...children) =>
  fill(document.createElementNS(SVG, tag), attributes, children);

/// Puts children into an element, in the place of those that it has.
export const replace = (parent, ...children) =>
  parent.replaceChildren(...children.flat(2).filter((child) => child !== null && child !== undefined).map(asNode));

/// A table whose columns are `{title, cell(row), isNumber}`. Wide tables scroll by themselves.
export const table = (caption, columns, rows) =>
  element(
    "div",
    { class: "scroll", tabindex: 0, role: "region", "aria-label": caption },
    element(
      "table",
      {},
      element("caption", { class: "hidden" }, caption),
      element(
        "thead",
        {},
        element("tr", {}, columns.map(({ title, isNumber }) => element("th", { scope: "col", class: isNumber && "number" }, title))),
      ),
      element(
        "tbody",
        {},
        rows.map((row) =>
          element("tr", {}, columns.map(({ cell, isNumber, kind }) => element("td", { class: isNumber ? "number" : kind }, cell(row)))),
        ),
      ),
    ),
  );

/// A labelled control.
export const labelled = (label, control, attributes = {}) =>
  element("label", { class: "field", ...attributes }, element("span", {}, label), control);
