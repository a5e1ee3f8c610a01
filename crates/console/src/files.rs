//! The files of the page. They are in the binary as they are in `page`: nothing is built, and nothing comes from
//! elsewhere.

use crate::replies::{Reply, reply};
use hyper::StatusCode;

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const SVG: &str = "image/svg+xml";

/// The files by their paths.
const FILES: &[(&str, &str, &str)] = &[
    ("/", HTML, include_str!("page/index.html")),
    ("/console.css", CSS, include_str!("page/console.css")),
    ("/icon.svg", SVG, include_str!("page/icon.svg")),
    ("/main.js", SCRIPT, include_str!("page/main.js")),
    ("/door.js", SCRIPT, include_str!("page/door.js")),
    ("/elements.js", SCRIPT, include_str!("page/elements.js")),
    ("/texts.js", SCRIPT, include_str!("page/texts.js")),
    ("/texts_ja.js", SCRIPT, include_str!("page/texts_ja.js")),
    ("/figures.js", SCRIPT, include_str!("page/figures.js")),
    ("/chart.js", SCRIPT, include_str!("page/chart.js")),
    ("/now.js", SCRIPT, include_str!("page/now.js")),
    ("/status.js", SCRIPT, include_str!("page/status.js")),
    ("/collections.js", SCRIPT, include_str!("page/collections.js")),
    ("/slow.js", SCRIPT, include_str!("page/slow.js")),
    ("/advice.js", SCRIPT, include_str!("page/advice.js")),
    ("/operations.js", SCRIPT, include_str!("page/operations.js")),
    ("/query.js", SCRIPT, include_str!("page/query.js")),
    ("/reports.js", SCRIPT, include_str!("page/reports.js")),
    ("/plan.js", SCRIPT, include_str!("page/plan.js")),
    ("/shell_text.js", SCRIPT, include_str!("page/shell_text.js")),
    ("/values.js", SCRIPT, include_str!("page/values.js")),
];

/// The file at that path. Paths are compared as they are: none names a file of the machine.
pub fn find(path: &str) -> Option<Reply> {
    let (_, content_type, text) = FILES.iter().find(|(own, _, _)| *own == path)?;
    Some(reply(StatusCode::OK, content_type, *text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_file_asks_for_what_the_policy_refuses() {
        for (path, _, text) in FILES {
            for refused in
                ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", " style=", "https://"]
            {
                assert!(!text.contains(refused), "{path} has {refused}");
            }
        }
        let (_, _, page) = FILES[0];
        assert!(
            !page.contains("<style") && !page.contains(" onclick") && page.matches("<script").count() == 1,
            "{page}"
        );
    }

    #[test]
    fn every_import_is_a_file() {
        for (path, _, text) in FILES.iter().filter(|(_, content_type, _)| *content_type == SCRIPT) {
            for import in text.split("from \"./").skip(1).filter_map(|rest| rest.split('"').next()) {
                assert!(find(&format!("/{import}")).is_some(), "{path} imports {import}");
            }
        }
    }
}
