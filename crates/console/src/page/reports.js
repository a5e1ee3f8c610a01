// The lab's reports in the server's directory. Each opens in a page of its own, which can do nothing to this one.

import { send } from "./door.js";
import { element, replace, table } from "./elements.js";
import { bytes } from "./figures.js";
import { languageNow, text } from "./texts.js";

/// Opens a report by an address that holds once.
const open = async (name, tell) => {
  try {
    const { path } = JSON.parse(await send("/api/report", JSON.stringify({ name })));
    element("a", { href: path, target: "_blank", rel: "noopener noreferrer" }).click();
  } catch (error) {
    tell(error.message);
  }
};

export const view = (place, tell) => {
  const content = element("div", { id: "reports" });
  const show = async () => {
    replace(content, element("p", { class: "quiet" }, text("loading")));
    try {
      const { reports, isCut } = JSON.parse(await send("/api/reports", "{}"));
      replace(
        content,
        reports.length === 0
          ? element("p", { class: "quiet" }, text("noReports"))
          : table(
              text("reports"),
              [
                { title: text("report"), kind: "name", cell: ({ name }) => element("button", { type: "button", class: "link", click: () => open(name, tell) }, name) },
                { title: text("written"), cell: ({ written }) => new Date(written.$date).toLocaleString(languageNow()) },
                { title: text("size"), isNumber: true, cell: (report) => bytes(Number(report.bytes)) },
              ],
              reports,
            ),
        isCut ? element("p", { class: "hint" }, text("newestOnly", reports.length)) : null,
      );
    } catch (error) {
      replace(content, element("p", { class: "trouble" }, error.message));
    }
  };
  replace(
    place,
    element("h2", {}, text("reports")),
    element("div", { class: "bar" }, element("button", { type: "button", click: show }, text("refresh"))),
    content,
    element("p", { class: "hint" }, text("reportsHint")),
  );
  show();
};
