//! Names of operators, accumulators and stages, read from the source folders that are their tables.

use std::collections::BTreeSet;
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
        let names: BTreeSet<String> = texts.flat_map(|text| names_in(&text)).collect();
        assert!(names.len() > 8, "{self:?}: only {names:?} in {}", folder.display());
        names
    }
}

/// Names with a dollar sign: after `name: `, or in a line that defines an entry.
fn names_in(text: &str) -> Vec<String> {
    let lines =
        text.lines().filter(|line| line.contains("name: \"$") || line.trim_start().starts_with("pub(super) const "));
    let quoted = lines.filter_map(|line| line.split('"').nth(1));
    quoted.filter(|name| name.starts_with('$')).map(str::to_owned).collect()
}
