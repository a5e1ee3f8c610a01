//! Badges.

use super::markup::Markup;
use crate::result::{Badge, Severity};

pub(super) fn class(severity: Severity) -> &'static str {
    match severity {
        Severity::Good => "good",
        Severity::Caution => "caution",
        Severity::Exceeded | Severity::Invalid => "invalid",
    }
}

pub(super) fn list(markup: &mut Markup, badges: &[Badge]) {
    markup.within("ul", &[("class", "badges"), ("aria-label", "Badges")], |list| {
        for badge in badges {
            let class = format!("badge {}", class(badge.severity));
            list.within("li", &[], |item| _ = item.classed("span", &class, &badge.text));
        }
    });
}
