//! An id in the log means one thing, for operators who watch for it: all lines with an id of Bunko's own have one
//! component. Larger ids are those of mongod's lines, some of which come from several components.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::findings::Findings;
use crate::source_tree;

/// Ids below this one are Bunko's own.
const OWN_IDS: u64 = 1000;

/// Components by id.
type Components = BTreeMap<u64, BTreeSet<String>>;

pub fn check(root: &Path, findings: &mut Findings) -> Result<(), String> {
    let mut components = Components::new();
    for file in source_tree::files(root, "crates")?.iter().filter(|file| file.has_extension("rs")) {
        collect(&file.read()?, &mut components);
    }
    compare(&components, findings);
    Ok(())
}

fn collect(text: &str, components: &mut Components) {
    let lines = text.split("target: \"").skip(1).filter_map(|rest| {
        let (component, rest) = rest.split_once("\", id = ")?;
        let end = rest.find(|character: char| !character.is_ascii_digit() && character != '_')?;
        Some((component, rest[..end].replace('_', "").parse::<u64>().ok()?))
    });
    for (component, id) in lines.filter(|(_, id)| *id < OWN_IDS) {
        components.entry(id).or_default().insert(component.to_owned());
    }
}

fn compare(components: &Components, findings: &mut Findings) {
    for (id, components) in components.iter().filter(|(_, components)| components.len() > 1) {
        let components: Vec<_> = components.iter().map(String::as_str).collect();
        findings.fail(format!("lines of {} have the log's id {id}: an id means one thing", components.join(" and ")));
    }
}

#[cfg(test)]
mod tests {
    use super::{Components, collect, compare};
    use crate::findings::Findings;

    #[test]
    fn an_id_of_two_components_is_found() {
        let mut components = Components::new();
        collect(r#"info!(target: "A", id = 7, "x"); warn!(target: "B", id = 7, "y");"#, &mut components);
        collect(r#"warn!(target: "B", id = 8, "z"); warn!(target: "C", id = 4_757, "z");"#, &mut components);
        collect(r#"warn!(target: "D", id = 4_757, "of mongod");"#, &mut components);
        let mut findings = Findings::default();
        compare(&components, &mut findings);
        assert_eq!(findings.failures, ["lines of A and B have the log's id 7: an id means one thing"]);
    }
}
