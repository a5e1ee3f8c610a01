//! Names of operators, accumulators and stages, read from the source folders that are their tables.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// A table: a folder below `crates`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Table {
    Expressions,
    Accumulators,
    Filters,
    Updates,
    Stages,
}

impl Table {
    pub const ALL: [Self; 5] = [Self::Expressions, Self::Accumulators, Self::Filters, Self::Updates, Self::Stages];

    fn folder(self) -> &'static str {
        match self {
            Self::Expressions => "expression/src/operators",
            Self::Accumulators => "expression/src/accumulators",
            Self::Filters => "matcher/src/operators",
            Self::Updates => "update/src/operators",
            Self::Stages => "aggregate/src/stages",
        }
    }

    /// The names of all entries of the table.
    pub fn names(self) -> BTreeSet<String> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(self.folder());
        let files = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        // The definition of an entry with several files is in `mod.rs`.
        let sources = files.map(|file| file.expect("an entry").path());
        let sources = sources.map(|path| if path.is_dir() { path.join("mod.rs") } else { path });
        let texts = sources.map(|path| fs::read_to_string(path).expect("a source file"));
        let stages = names_of_stages();
        let names: BTreeSet<String> = texts.flat_map(|text| names_in(&text, &stages)).collect();
        assert!(names.len() > 8, "{self:?}: only {names:?} in {}", folder.display());
        names
    }
}

/// The table of all stages, which entries refer to: `pub const LIMIT: Stage =`, and then the name in quotes.
const STAGES: &str = "../stages/src/table.rs";

/// Names of stages by their constants.
fn names_of_stages() -> BTreeMap<String, String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(STAGES);
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let constants = text.split("pub const ").skip(1).filter_map(|part| {
        let (constant, rest) = part.split_once(": Stage =")?;
        Some((constant.to_owned(), rest.split('"').nth(1)?.to_owned()))
    });
    constants.collect()
}

/// Names with a dollar sign: after `name: `, in a line that defines an entry, or of the stage whose facts an entry has.
fn names_in(text: &str, stages: &BTreeMap<String, String>) -> Vec<String> {
    let lines =
        text.lines().filter(|line| line.contains("name: \"$") || line.trim_start().starts_with("pub(super) const "));
    let quoted = lines.filter_map(|line| line.split('"').nth(1)).filter(|name| name.starts_with('$'));
    let constants = text.split("facts: &bunko_stages::").skip(1);
    let constants =
        constants.filter_map(|rest| rest.split(|letter: char| !(letter.is_ascii_uppercase() || letter == '_')).next());
    quoted.chain(constants.map(|constant| stages[constant].as_str())).map(str::to_owned).collect()
}
