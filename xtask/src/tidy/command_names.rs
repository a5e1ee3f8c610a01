//! A fact about a command or a stage stands in its entry: elsewhere, the server compares no names of commands and
//! stages. A list of names beside the entries is forgotten when a command is added.

use std::collections::BTreeMap;
use std::path::Path;

use crate::findings::Findings;
use crate::source_tree;

/// The folder of the commands' entries.
const COMMANDS: &str = "crates/command/src/commands";
/// The table of stages.
const STAGES: &str = "crates/stages/src/table.rs";
/// The folders that the rule is for.
const SERVER: &[&str] = &[
    "crates/aggregate/src",
    "crates/authority/src",
    "crates/catalog/src",
    "crates/change_stream/src",
    "crates/command/src",
    "crates/fail_points/src",
    "crates/operation/src",
    "crates/pipelines/src",
    "crates/query/src",
    "crates/replica_set/src",
    "crates/request/src",
    "crates/series/src",
    "crates/server/src",
    "crates/session/src",
    "crates/update/src",
    "crates/wire/src",
];

/// Files that may compare names, and why.
const EXCEPTIONS: &[(&str, &str)] = &[
    ("crates/aggregate/src/stages/window/", "reads the functions of windows, one of which is named like a stage"),
    ("crates/catalog/src/", "writes entries of the oplog, whose format has names of commands"),
    ("crates/change_stream/src/event.rs", "reads entries of the oplog, and names the events made of them"),
    ("crates/command/src/commands/apply_ops/", "reads entries of the oplog, whose format has names of commands"),
    ("crates/command/src/known_commands.rs", "lists commands that the server lacks, and that have no entries"),
    ("crates/authority/src/privileges/writes.rs", "reads the operations of bulkWrite, which are named like commands"),
    ("crates/command/src/commands/bulk_write/", "reads the operations of bulkWrite, which are named like commands"),
    ("crates/server/src/legacy.rs", "turns messages of old clients into commands"),
];

/// Names that are also names of fields, parameters or sections in requests and replies, so that a literal of one says
/// little. They are looked for only where code compares them.
const ORDINARY: &[&str] = &["dataSize", "hostInfo", "collStats", "buildinfo"];

/// The names, each with the file or folder of its entry.
type Names = BTreeMap<String, String>;

pub fn check(root: &Path, findings: &mut Findings) -> Result<(), String> {
    let mut names = Names::new();
    for file in source_tree::files(root, COMMANDS)? {
        for name in names_of_commands(&file.read()?) {
            names.insert(name.to_owned(), own_place(&file.name));
        }
    }
    let stages = source_tree::files(root, "crates/stages/src")?;
    let table = stages.iter().find(|file| file.name == STAGES).ok_or_else(|| format!("{STAGES} is missing"))?;
    for name in names_of_stages(&table.read()?) {
        names.insert(name.to_owned(), STAGES.to_owned());
    }
    if names.len() < 150 {
        findings.fail(format!("{COMMANDS} and {STAGES} name only {} commands and stages", names.len()));
    }
    for folder in SERVER {
        for file in source_tree::files(root, folder)?.iter().filter(|file| file.has_extension("rs")) {
            if !is_test(&file.name) && !EXCEPTIONS.iter().any(|(place, _)| file.name.starts_with(place)) {
                search(&names, &file.name, &file.read()?, findings);
            }
        }
    }
    Ok(())
}

fn is_test(file: &str) -> bool {
    file.ends_with("/tests.rs") || file.contains("/tests/")
}

/// The file of an entry, or the folder of its command if it has one.
fn own_place(file: &str) -> String {
    let below = file.strip_prefix(COMMANDS).unwrap_or(file).trim_start_matches('/');
    match below.split_once('/') {
        Some((folder, _)) => format!("{COMMANDS}/{folder}"),
        None => format!("{COMMANDS}/{}", below.strip_suffix(".rs").unwrap_or(below)),
    }
}

/// Names and aliases in the entries of a command's file.
fn names_of_commands(text: &str) -> Vec<&str> {
    let mut names = Vec::new();
    let mut is_entry = false;
    for line in text.lines().map(str::trim) {
        if line.ends_with("Command = Command {") {
            is_entry = true;
        } else if line == "};" {
            is_entry = false;
        } else if is_entry && (line.starts_with("name: ") || line.starts_with("aliases: ")) {
            names.extend(literals(line).map(|literal| literal.text));
        } else if line.contains(": Command = command(") {
            // An entry that a function makes.
            names.extend(literals(line).map(|literal| literal.text));
        }
    }
    names
}

fn names_of_stages(text: &str) -> Vec<&str> {
    let lines = text.lines().filter(|line| line.contains("name: \"$"));
    lines.filter_map(|line| literals(line).next()).map(|literal| literal.text).collect()
}

/// A string literal of one line, and the code around it.
struct Literal<'a> {
    text: &'a str,
    before: &'a str,
    after: &'a str,
}

/// The string literals of a line. Literals with escapes are never names.
fn literals(line: &str) -> impl Iterator<Item = Literal<'_>> {
    let mut start = 0;
    std::iter::from_fn(move || {
        let open = start + line.get(start..)?.find('"')?;
        let close = open + 1 + line.get(open + 1..)?.find('"')?;
        start = close + 1;
        Some(Literal { text: &line[open + 1..close], before: &line[..open], after: &line[close + 1..] })
    })
}

fn search(names: &Names, file: &str, text: &str, findings: &mut Findings) {
    let own = text.lines().take_while(|line| line.trim() != "#[cfg(test)]").enumerate();
    for (number, line) in own.filter(|(_, line)| !line.trim_start().starts_with("//")) {
        let known = literals(line).filter(|literal| names.contains_key(literal.text));
        for literal in known {
            let entry = &names[literal.text];
            let is_own = file.starts_with(entry.as_str());
            if !is_own && (is_unmistakable(literal.text) || is_compared(names, line, &literal)) {
                let name = literal.text;
                findings.fail(format!(
                    "{file}:{}: the name {name:?} stands outside its entry ({entry}): ask the entry for the fact",
                    number + 1
                ));
            }
        }
    }
}

/// Whether a name means nothing but the command or the stage.
fn is_unmistakable(name: &str) -> bool {
    let is_command = !name.starts_with('$');
    is_command && name.contains(|letter: char| letter.is_ascii_uppercase()) && !ORDINARY.contains(&name)
}

/// Whether code compares the literal with a name, or lists it among other names.
fn is_compared(names: &Names, line: &str, literal: &Literal<'_>) -> bool {
    let (before, after) = (literal.before.trim_end(), literal.after.trim_start());
    let is_alternative = before.ends_with('|') || after.starts_with("| \"");
    let is_equal = ["name ==", "name !=", "name() ==", "== Some("].iter().any(|end| before.ends_with(end));
    let is_listed = before.ends_with(['[', ',']) && after.starts_with([',', ']']);
    let others = literals(line).filter(|other| names.contains_key(other.text)).count();
    is_equal || (others > 1 && (is_alternative || is_listed))
}

#[cfg(test)]
mod tests {
    use super::{Names, literals, names_of_commands, names_of_stages, own_place, search};
    use crate::findings::Findings;

    const ENTRIES: &str = "pub(super) const COMMAND: Command = Command {\n    name: \"dropIndexes\",\n    \
                           aliases: &[\"deleteIndexes\"],\n    run,\n};\nconst A: Command = command(\"find\", run);\n";

    fn names() -> Names {
        let commands = names_of_commands(ENTRIES).into_iter().map(|name| (name.to_owned(), own_place("x.rs")));
        let stages = ["$out", "$merge", "$match"].map(|name| (name.to_owned(), "stages".to_owned()));
        commands.chain(stages).collect()
    }

    fn failures(file: &str, line: &str) -> usize {
        let mut findings = Findings::default();
        search(&names(), file, line, &mut findings);
        findings.failures.len()
    }

    #[test]
    fn names_are_read_from_entries() {
        assert_eq!(names_of_commands(ENTRIES), ["dropIndexes", "deleteIndexes", "find"]);
        assert_eq!(names_of_stages("pub const OUT: Stage = Stage {\n    name: \"$out\",\n"), ["$out"]);
        assert_eq!(own_place("crates/command/src/commands/find/resumable.rs"), "crates/command/src/commands/find");
        assert_eq!(literals("a(\"b\", \"c\")").map(|literal| literal.text).collect::<Vec<_>>(), ["b", "c"]);
    }

    #[test]
    fn names_outside_their_entries_are_refused() {
        for line in [
            "    \"dropIndexes\" => {}",
            "    matches!(command, \"find\" | \"deleteIndexes\")",
            "    if command.name == \"find\" {",
            "const WRITING: [&str; 2] = [\"$merge\", \"$out\"];",
            "    matches!(stage.name, \"$out\" | \"$merge\")",
            "    if stage.name != \"$match\" {",
            "    if first_name(stages) == Some(\"$match\") {",
        ] {
            assert!(failures("crates/command/src/read_concern.rs", line) > 0, "{line}");
        }
        for line in [
            "// \"dropIndexes\" in a comment",
            "    body.append(\"find\", collection)",
            "    stages.push(&DocumentBuf::new().with(\"$match\", filter));",
            "#[cfg(test)]\nconst NAMES: [&str; 2] = [\"find\", \"dropIndexes\"];",
        ] {
            assert_eq!(failures("crates/command/src/read_concern.rs", line), 0, "{line}");
        }
        assert_eq!(failures(&format!("{}.rs", own_place("x.rs")), "    \"dropIndexes\" => {}"), 0);
    }
}
