//! The tables of settings in the handbook are those of the code.

use super::setting::{Effect, Kind, Setting};
use super::table::SETTINGS;
use bunko_testkit::handbook::{Table, check_table, check_table_with_prose, list};

const PAGE: &str = "reference/settings.md";

#[test]
fn the_page_has_every_setting() {
    let mut table = Table::new(&["Key", "Flag", "mongod's flag", "Values", "Default"]);
    for setting in SETTINGS.iter().filter(|setting| !is_idle(setting) && only(setting).is_none()) {
        let [keys, flag, mongod_flag] = names(setting);
        table.push([keys, flag, mongod_flag, values(&setting.kind), default(setting)]);
    }
    check_table_with_prose(PAGE, "settings", table, "Meaning");
}

#[test]
fn the_page_has_the_settings_that_decide_nothing() {
    let mut idle = Table::new(&["Key", "Flag", "mongod's flag", "What is done instead"]);
    let mut single = Table::new(&["Key", "Flag", "mongod's flag", "Value", "Reason"]);
    for setting in SETTINGS {
        let [keys, flag, mongod_flag] = names(setting);
        if let Effect::Nowhere { instead } = setting.effect {
            idle.push([keys, flag, mongod_flag, instead.to_owned()]);
        } else if let Some((value, because)) = only(setting) {
            single.push([keys, flag, mongod_flag, list([value]), because.to_owned()]);
        }
    }
    check_table(PAGE, "settings without effect", &idle);
    check_table(PAGE, "settings with one value", &single);
}

fn is_idle(setting: &Setting) -> bool {
    matches!(setting.effect, Effect::Nowhere { .. })
}

/// The only accepted value, and the reason for it.
fn only(setting: &Setting) -> Option<(&'static str, &'static str)> {
    match setting.kind {
        Kind::Only { value, because } => Some((value, because)),
        _ => None,
    }
}

/// Keys, our flags, and mongod's flags with the same meaning.
fn names(setting: &Setting) -> [String; 3] {
    let (ours, mongods): (Vec<&str>, Vec<&str>) =
        setting.negations.iter().copied().partition(|name| name.contains('-'));
    let flags = |names: Vec<&str>| names.iter().map(|name| format!("`--{name}`")).collect::<Vec<_>>().join(", ");
    let ours = [setting.flag].into_iter().chain(ours).collect();
    [list(setting.keys.iter().copied()), flags(ours), flags(setting.mongod_flag.into_iter().chain(mongods).collect())]
}

fn values(kind: &Kind) -> String {
    match kind {
        Kind::Switch | Kind::Truth => "`true`, `false`".to_owned(),
        Kind::Enabled => "`enabled`, `disabled`".to_owned(),
        Kind::OneOf(values) => list(values.iter().copied()),
        Kind::Whole(range) => format!("{} to {}", range.start(), range.end()),
        Kind::Number(range) if *range.end() == f64::MAX => "above 0".to_owned(),
        Kind::Number(range) => format!("{} to {}", range.start(), range.end()),
        Kind::List(_) => "a list, in a flag comma-separated".to_owned(),
        Kind::Text(_) | Kind::Secret | Kind::Parameter | Kind::Only { .. } => String::new(),
    }
}

/// The default that `--help` shows.
fn default(setting: &Setting) -> String {
    let shown = setting.help.rsplit_once("[default: ").and_then(|(_, rest)| rest.strip_suffix(']'));
    shown.unwrap_or_default().to_owned()
}

/// A default that does not depend on the machine, the terminal or another setting is the one that `--help` shows.
#[test]
fn help_shows_the_defaults() {
    let configuration = super::Configuration::default();
    for setting in SETTINGS.iter().filter(|setting| !setting.help.is_empty()) {
        let Some(value) = (setting.default)(&configuration) else { continue };
        let shown = default(setting);
        let depends = shown.contains(' ') || shown.starts_with("./");
        assert!(depends || shown == value.to_string(), "{}: {shown} is not {value}", setting.key());
    }
}
