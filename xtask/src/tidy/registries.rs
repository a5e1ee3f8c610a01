//! One operator, stage or command is one file, one line in a table, at least one script and a word in the handbook.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::findings::Findings;
use crate::source_tree;

/// The folder whose files are the entries of a table, and the crate that has their scripts. The table is in the module
/// above the files.
const REGISTRIES: &[(&str, &str)] = &[
    ("crates/matcher/src/operators", "crates/matcher"),
    ("crates/update/src/operators", "crates/update"),
    ("crates/expression/src/operators", "crates/expression"),
    ("crates/expression/src/accumulators", "crates/expression"),
    ("crates/aggregate/src/stages", "crates/aggregate"),
    ("crates/command/src/commands", "crates/command"),
    ("crates/pipelines/src/source_stages", "crates/command"),
];

/// Document in which users read which commands, operators and stages exist.
const HANDBOOK: &str = "docs/reference/compatibility.md";

/// The facts that entries of stages refer to instead of naming the stage.
const STAGE_FACTS: &str = "crates/stages/src/table.rs";

/// The texts that are compared.
struct Registry<'a> {
    /// The crate that has the scripts.
    crate_folder: &'a str,
    folder: &'a str,
    /// The text of the module that holds the table.
    table: &'a str,
    modules: &'a [Module],
    /// The names and texts of the crate's scripts, all in one.
    scripts: &'a str,
    handbook: &'a str,
}

/// One file of a registry's folder.
struct Module {
    name: String,
    text: String,
}

pub fn check(root: &Path, findings: &mut Findings) -> Result<(), String> {
    let handbook = fs::read_to_string(root.join(HANDBOOK)).map_err(|error| format!("{HANDBOOK}: {error}"))?;
    let facts = fs::read_to_string(root.join(STAGE_FACTS)).map_err(|error| format!("{STAGE_FACTS}: {error}"))?;
    for &(folder, crate_folder) in REGISTRIES {
        let mut modules = modules(root, folder)?;
        for module in &mut modules {
            module.text = with_stage_names(&module.text, &facts);
        }
        if modules.is_empty() {
            continue;
        }
        // The two places where rustc looks for the module above the folder's files.
        let places = [root.join(folder).join("mod.rs"), root.join(format!("{folder}.rs"))];
        let Some(table) = places.iter().find_map(|place| fs::read_to_string(place).ok()) else {
            findings.fail(format!("{folder} has neither {folder}/mod.rs nor {folder}.rs to hold its table"));
            continue;
        };
        let scripts = scripts(root, crate_folder)?;
        let (table, modules, scripts, handbook) = (&*table, &*modules, &*scripts, &*handbook);
        compare(&Registry { crate_folder, folder, table, modules, scripts, handbook }, findings);
    }
    Ok(())
}

/// The folder's modules, `name.rs` or `name/mod.rs`. Deeper files belong to one of them.
fn modules(root: &Path, folder: &str) -> Result<Vec<Module>, String> {
    let mut modules = Vec::new();
    for file in source_tree::files(root, folder)? {
        let below = file.name.strip_prefix(folder).unwrap_or(&file.name).trim_start_matches('/');
        let name = below.strip_suffix("/mod.rs").or_else(|| below.strip_suffix(".rs"));
        if let Some(name) = name.filter(|name| *name != "mod" && !name.contains('/')) {
            modules.push(Module { name: name.to_owned(), text: file.read()? });
        }
    }
    Ok(modules)
}

fn scripts(root: &Path, crate_folder: &str) -> Result<String, String> {
    let mut all = String::new();
    for file in source_tree::files(root, &format!("{crate_folder}/tests"))? {
        if !file.has_extension("rs") {
            all.push_str(&file.name);
            all.push('\n');
            all.push_str(&file.read()?);
            all.push('\n');
        }
    }
    Ok(all)
}

fn compare(registry: &Registry<'_>, findings: &mut Findings) {
    let folder = registry.folder;
    let declared: BTreeSet<&str> = registry.table.lines().filter_map(declared_module).collect();
    for module in registry.modules.iter().filter(|module| !declared.contains(module.name.as_str())) {
        findings.fail(format!("{folder}/{}.rs is not declared in the module above it", module.name));
    }
    let listed = listed_constants(registry.table);
    if listed.is_empty() {
        findings.fail(format!("{folder}: the table lists nothing"));
    }
    let mut types = BTreeSet::new();
    for &(module, constant) in &listed {
        let text = registry.modules.iter().find(|file| file.name == module).map(|file| file.text.as_str());
        let Some(found) = text.and_then(|text| constants(text).into_iter().find(|found| found.name == constant)) else {
            // Something else has that form, say an associated constant. rustc checks it.
            continue;
        };
        types.insert(found.of_type);
        let Some(name) = found.first_string else {
            findings.fail(format!("{folder}/{module}.rs: {constant} has no name"));
            continue;
        };
        if !is_named(registry.scripts, name) {
            findings.fail(format!("no script in {}/tests names {name}", registry.crate_folder));
        }
        if !is_named(registry.handbook, name) {
            findings.fail(format!("{HANDBOOK} does not name {name}"));
        }
    }
    for module in registry.modules {
        let entries = constants(&module.text).into_iter().filter(|constant| types.contains(constant.of_type));
        for constant in entries.filter(|constant| !listed.contains(&(module.name.as_str(), constant.name))) {
            findings.fail(format!("{folder}/{}.rs: the table does not list {}", module.name, constant.name));
        }
    }
}

/// `find` of `mod find;` or `pub(crate) mod find;`.
fn declared_module(line: &str) -> Option<&str> {
    let (before, name) = line.trim().strip_suffix(';')?.split_once("mod ")?;
    (before.is_empty() || before.starts_with("pub")).then_some(name)
}

/// The pairs of `module::CONSTANT` in the table's text.
fn listed_constants(table: &str) -> BTreeSet<(&str, &str)> {
    let words = table.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == ':'));
    let pairs = words.filter_map(|word| word.split_once("::"));
    pairs.filter(|(_, constant)| is_constant(constant)).collect()
}

fn is_constant(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_uppercase())
        && name.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
}

/// A `const NAME: of_type = ...`, and the first string after it: the entry's own name.
struct Constant<'a> {
    name: &'a str,
    of_type: &'a str,
    first_string: Option<&'a str>,
}

fn constants(text: &str) -> Vec<Constant<'_>> {
    let declarations = text.split("const ").skip(1);
    let constants = declarations.filter_map(|declaration| {
        let (head, body) = declaration.split_once('=')?;
        let (name, of_type) = head.split_once(':')?;
        let name = name.trim();
        is_constant(name).then(|| Constant {
            name,
            of_type: of_type.rsplit("::").next().unwrap_or(of_type).trim(),
            first_string: body.split('"').nth(1),
        })
    });
    constants.collect()
}

/// The text with the names of stages in place of references to their facts.
fn with_stage_names(text: &str, facts: &str) -> String {
    constants(facts).into_iter().fold(text.to_owned(), |text, stage| match stage.first_string {
        Some(name) => text.replace(&format!("&bunko_stages::{},", stage.name), &format!("{name:?},")),
        None => text,
    })
}

/// Whether `text` has `word` without a letter or digit right before or after it.
fn is_named(text: &str, word: &str) -> bool {
    let is_part = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    text.match_indices(word).any(|(start, _)| {
        let before = start.checked_sub(1).and_then(|before| text.as_bytes().get(before));
        !is_part(before) && !is_part(text.as_bytes().get(start + word.len()))
    })
}

#[cfg(test)]
mod tests {
    use super::{Module, Registry, compare, is_named, with_stage_names};
    use crate::findings::Findings;

    const TABLE: &str = "
mod abs;
mod round;
pub(crate) mod sines;
const OPERATORS: &[Operator] = &[
    abs::OPERATOR,
    sines::SIN,
    sines::SINH,
];";

    fn findings(table: &str, modules: &[(&str, &str)], scripts: &str) -> Vec<String> {
        findings_with(table, modules, scripts, HANDBOOK_TEXT)
    }

    fn findings_with(table: &str, modules: &[(&str, &str)], scripts: &str, handbook: &str) -> Vec<String> {
        let modules: Vec<Module> =
            modules.iter().map(|&(name, text)| Module { name: name.to_owned(), text: text.to_owned() }).collect();
        let registry =
            Registry { crate_folder: "crates/x", folder: "folder", table, modules: &modules, scripts, handbook };
        let mut findings = Findings::default();
        compare(&registry, &mut findings);
        findings.failures
    }

    const ABS: (&str, &str) = ("abs", "pub const OPERATOR: Operator = Operator { name: \"$abs\" };");
    const ROUND: (&str, &str) = ("round", "/// Shared by several.\npub fn round() {}\nconst LIMIT: usize = 3;");
    const SINES: (&str, &str) = (
        "sines",
        "pub const SIN: super::Operator = operator(\"$sin\");\npub const SINH: Operator =\n    operator(\"$sinh\");",
    );
    const SCRIPTS: &str = "eval\n{$abs: -1}\n----\n1\n\neval\n{$sin: 0}\n----\n0\n\n{$sinh: 0}";

    const HANDBOOK_TEXT: &str = "`$abs`, `$sin`, `$sinh`";

    #[test]
    fn a_complete_registry_passes() {
        assert_eq!(findings(TABLE, &[ABS, ROUND, SINES], SCRIPTS), [""; 0]);
    }

    #[test]
    fn every_kind_of_gap_is_found() {
        let sine_that_is_not_listed = TABLE.replace("    sines::SINH,\n", "");
        assert_eq!(
            findings(&sine_that_is_not_listed, &[ABS, ROUND, SINES], SCRIPTS),
            ["folder/sines.rs: the table does not list SINH"]
        );
        assert_eq!(
            findings(TABLE, &[ABS, ROUND, SINES, ("lost", "")], SCRIPTS),
            ["folder/lost.rs is not declared in the module above it"]
        );
        assert_eq!(
            findings(TABLE, &[ABS, ROUND, SINES], &SCRIPTS.replace("$sin:", "$cos:")),
            ["no script in crates/x/tests names $sin"]
        );
        assert_eq!(findings("mod abs;", &[ABS], SCRIPTS), ["folder: the table lists nothing"]);
        assert_eq!(
            findings_with(TABLE, &[ABS, ROUND, SINES], SCRIPTS, "`$abs`, `$sinh`"),
            ["docs/reference/compatibility.md does not name $sin"]
        );
    }

    #[test]
    fn the_name_of_a_stage_is_found_in_its_facts() {
        let facts = "pub const OUT: Stage =\n    Stage { name: \"$out\", ..Stage::PLAIN };";
        let text = with_stage_names("Definition { facts: &bunko_stages::OUT, parse }", facts);
        assert_eq!(text, "Definition { facts: \"$out\", parse }");
    }

    #[test]
    fn a_name_is_a_whole_word() {
        assert!(is_named("{$in: [1]}", "$in"));
        assert!(is_named("tests/scripts/find.txt", "find"));
        assert!(!is_named("{$inc: 1}", "$in"));
    }
}
