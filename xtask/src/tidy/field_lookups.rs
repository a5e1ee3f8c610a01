//! A command's fields are looked up by name in one place, `parse`, and are typed below it: a second lookup elsewhere
//! could read a field in another way than the first.

use std::collections::BTreeMap;
use std::path::Path;

use crate::findings::Findings;
use crate::ratchet::Ratchet;
use crate::rust_source::{self, RustSource};
use crate::source_tree;

const COMMANDS: &str = "crates/command/src/commands";
const LIST: &str = "xtask/field_lookups.txt";

/// Names that variables with the fields of a request have.
const HOLDERS: &[&str] = &["invocation", "fields", "command"];
/// The functions of `Fields` that look a field up.
const LOOKUPS: &[&str] = &[
    "array",
    "boolean",
    "document",
    "documents",
    "field",
    "integer",
    "size",
    "strict_boolean",
    "string",
    "truth",
    "value",
];

pub fn check(root: &Path, findings: &mut Findings) -> Result<(), String> {
    let list = Ratchet::read(root, LIST, "fields looked up outside of parse")?;
    let mut found = BTreeMap::new();
    for file in source_tree::files(root, COMMANDS)?.iter().filter(|file| file.has_extension("rs")) {
        let count = outside_of_parse(&RustSource::parse(&file.read()?).without_tests().code);
        if count > 0 {
            found.insert(file.name.clone(), count);
        }
    }
    list.compare(&found, "look them up in a function `parse` or `parse_...`, and use its result", findings);
    Ok(())
}

/// Number of lookups outside of functions that parse.
fn outside_of_parse(code: &str) -> usize {
    let bodies: Vec<_> = rust_source::functions(code).collect();
    let is_outside = |offset: &usize| {
        let around = bodies.iter().filter(|function| function.body.contains(offset));
        let innermost = around.max_by_key(|function| function.body.start);
        innermost.is_none_or(|function| function.name != "parse" && !function.name.starts_with("parse_"))
    };
    lookups(code).filter(is_outside).count()
}

fn lookups(code: &str) -> impl Iterator<Item = usize> + '_ {
    let of_holder = HOLDERS.iter().flat_map(move |holder| {
        let is_lookup = move |offset: &usize| {
            let behind = code[offset + holder.len()..].trim_start().strip_prefix('.');
            behind.and_then(|call| call.split_once('(')).is_some_and(|(name, _)| LOOKUPS.contains(&name))
        };
        rust_source::words(code, holder).filter(is_lookup)
    });
    let in_body = code.match_indices("request.body.get(").map(|(offset, _)| offset);
    of_holder.chain(in_body)
}

#[cfg(test)]
mod tests {
    use super::outside_of_parse;

    #[test]
    fn lookups_outside_of_parse_are_counted() {
        let code = r#"
            fn parse(fields: &Fields) -> Find { Find { limit: fields.integer("limit"), skip: fields.size("skip") } }
            fn parse_hint(fields: &Fields) -> Hint { fields.field("hint") }
            fn run(invocation: &Invocation) {
                fn parse(fields: &Fields) { fields.truth("inner") }
                let find = Find::parse(invocation);
                invocation
                    .string("name");
                invocation.request.body.get("maxTimeMS");
                let size = |name| invocation.size(name);
                find.size(); other.field("a"); invocation.namespace();
            }
        "#;
        assert_eq!(outside_of_parse(code), 3);
    }
}
