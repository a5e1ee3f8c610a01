//! The frame of a page: head, navigation, sections, scripts.

use super::markup::Markup;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

const UPLOT_STYLE: &str = include_str!("../../assets/uplot/uPlot.min.css");
const UPLOT_SCRIPT: &str = include_str!("../../assets/uplot/uPlot.iife.min.js");
const STYLE: &str = include_str!("../../assets/report.css");
/// The script of a report's page.
pub(super) const REPORT_SCRIPT: &str =
    concat!(include_str!("../../assets/charts.js"), include_str!("../../assets/report.js"));
/// The script of a history's page.
pub(super) const HISTORY_SCRIPT: &str =
    concat!(include_str!("../../assets/charts.js"), include_str!("../../assets/history.js"));

/// A page.
pub(super) struct Page {
    pub(super) title: String,
    pub(super) header: Markup,
    pub(super) sections: Vec<Section>,
    pub(super) footer: String,
    /// The script of its charts: [`REPORT_SCRIPT`], [`HISTORY_SCRIPT`], or none.
    pub(super) script: Option<&'static str>,
    /// JSON documents for the script, with their ids.
    pub(super) data: Vec<(&'static str, String)>,
}

/// A part of a page, with an entry in its navigation.
pub(super) struct Section {
    pub(super) id: String,
    pub(super) title: String,
    pub(super) contents: Markup,
}

impl Page {
    pub(super) fn render(&self) -> String {
        let mut html = Markup::new();
        html.within("html", &[("lang", "en")], |html| {
            html.within("head", &[], |head| self.head(head));
            html.within("body", &[], |body| self.body(body));
        });
        format!("<!DOCTYPE html>\n{}\n", html.finish())
    }

    fn head(&self, head: &mut Markup) {
        let policy = content_security_policy(self.script);
        head.element("meta", &[("charset", "utf-8")], "");
        head.element("meta", &[("http-equiv", "Content-Security-Policy"), ("content", &policy)], "");
        head.element("meta", &[("name", "viewport"), ("content", "width=device-width, initial-scale=1")], "");
        head.element("title", &[], &self.title);
        head.raw_element("style", &[], UPLOT_STYLE).raw_element("style", &[], STYLE);
    }

    fn body(&self, body: &mut Markup) {
        body.within("header", &[], |header| _ = header.append(&self.header));
        body.within("nav", &[("aria-label", "Sections")], |nav| {
            nav.within("ul", &[], |list| {
                for section in &self.sections {
                    let target = format!("#{}", section.id);
                    list.within("li", &[], |item| _ = item.element("a", &[("href", &target)], &section.title));
                }
            });
        });
        body.within("main", &[], |main| {
            for section in &self.sections {
                main.within("section", &[("id", &section.id)], |part| {
                    part.element("h2", &[], &section.title).append(&section.contents);
                });
            }
        });
        body.within("footer", &[], |footer| _ = footer.element("p", &[], &self.footer));
        for (id, json) in &self.data {
            body.raw_element("script", &[("type", "application/json"), ("id", id)], &within_script(json));
        }
        if let Some(script) = self.script {
            body.raw_element("script", &[], UPLOT_SCRIPT).raw_element("script", &[], script);
        }
    }
}

/// JSON that no HTML parser can read as markup: `<` occurs only in strings, where JSON allows an escape.
fn within_script(json: &str) -> String {
    json.replace('<', "\\u003c")
}

/// The scripts of all pages, for policies that others set for them.
pub(super) fn script_sources() -> String {
    [UPLOT_SCRIPT, REPORT_SCRIPT, HISTORY_SCRIPT].map(source_hash).join(" ")
}

/// The page loads nothing, and only this program's scripts and styles take effect.
fn content_security_policy(script: Option<&str>) -> String {
    let scripts = match script {
        Some(script) => format!("{} {}", source_hash(UPLOT_SCRIPT), source_hash(script)),
        None => "'none'".to_owned(),
    };
    let styles = format!("{} {}", source_hash(UPLOT_STYLE), source_hash(STYLE));
    format!("default-src 'none'; script-src {scripts}; style-src {styles}; base-uri 'none'; form-action 'none'")
}

/// The source expression of an element's contents in the policy.
fn source_hash(contents: &str) -> String {
    format!("'sha256-{}'", STANDARD.encode(Sha256::digest(contents.as_bytes())))
}
