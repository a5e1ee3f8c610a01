//! The paths in a file's code: trees of `use`, and paths in expressions and types.

use crate::rust_source::{self, is_word_byte};

/// A `use` of one name: `use path as name`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Import {
    pub path: Vec<String>,
    /// `*` for a glob.
    pub name: String,
    pub is_public: bool,
}

/// Every import of the code; those inside functions too.
pub fn imports(code: &str) -> Vec<Import> {
    statements(code).into_iter().flat_map(|(_, imports)| imports).collect()
}

/// The paths of the code that may lead to another module: of private imports, and wherever a word is followed by `::`.
pub fn paths(code: &str) -> Vec<Vec<String>> {
    let mut without_imports = code.as_bytes().to_vec();
    let mut paths = Vec::new();
    for (range, imports) in statements(code) {
        paths.extend(imports.into_iter().filter(|import| !import.is_public).map(|import| import.path));
        without_imports[range].fill(b' ');
    }
    let code = String::from_utf8_lossy(&without_imports);
    let mut at = 0;
    while let Some(found) = code[at..].find("::") {
        let start = at + found - trailing_word(&code[..at + found]);
        let mut path = vec![code[start..at + found].to_owned()];
        at += found;
        while let Some(rest) = code[at..].strip_prefix("::") {
            let length = rest.bytes().take_while(|byte| is_word_byte(*byte)).count();
            at += 2 + length;
            if length == 0 {
                break;
            }
            path.push(rest[..length].to_owned());
        }
        let is_visibility = code[..start].ends_with("(in ");
        if !path[0].is_empty() && !is_visibility {
            paths.push(path);
        }
    }
    paths
}

fn trailing_word(text: &str) -> usize {
    text.bytes().rev().take_while(|byte| is_word_byte(*byte)).count()
}

/// Where each `use` stands, with what it imports.
fn statements(code: &str) -> Vec<(std::ops::Range<usize>, Vec<Import>)> {
    let mut found = Vec::new();
    for offset in rust_source::words(code, "use") {
        let Some(length) = code[offset..].find(';') else { continue };
        let before = code[..offset].trim_end();
        // `impl Trait + use<'a>` is not an import.
        if code[offset + 3..].trim_start().starts_with('<') {
            continue;
        }
        let is_public = before.ends_with("pub") || before.ends_with("pub(crate)") || before.ends_with("pub(super)");
        let mut imports = Vec::new();
        read_tree(code[offset + 3..offset + length].trim(), &[], is_public, &mut imports);
        found.push((offset..offset + length, imports));
    }
    found
}

fn read_tree(tree: &str, before: &[String], is_public: bool, found: &mut Vec<Import>) {
    let tree = tree.trim().trim_start_matches("::");
    if let Some((head, group)) = tree.split_once('{') {
        let mut path = before.to_vec();
        path.extend(head.split("::").map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned));
        let group = group.trim_end().strip_suffix('}').unwrap_or(group);
        for member in members(group) {
            read_tree(member, &path, is_public, found);
        }
        return;
    }
    let (path, alias) = tree.split_once(" as ").map_or((tree, None), |(path, alias)| (path, Some(alias.trim())));
    let mut full = before.to_vec();
    full.extend(path.split("::").map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()));
    if full.len() > 1 && full.last().is_some_and(|last| last == "self") {
        full.pop();
    }
    if let Some(last) = full.last().cloned() {
        found.push(Import { path: full, name: alias.map_or(last, str::to_owned), is_public });
    }
}

/// The members of a group, split at its own commas.
fn members(group: &str) -> Vec<&str> {
    let (mut depth, mut start) = (0_i32, 0);
    let mut members = Vec::new();
    for (offset, byte) in group.bytes().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' => depth -= 1,
            b',' if depth == 0 => {
                members.push(&group[start..offset]);
                start = offset + 1;
            }
            _ => {}
        }
    }
    members.push(&group[start..]);
    members.retain(|member| !member.trim().is_empty());
    members
}

#[cfg(test)]
mod tests {
    use super::{imports, paths};

    #[test]
    fn trees_are_taken_apart() {
        let code = "use crate::a::{self, b::{C, D as E}, f::*};\npub(crate) use g::H;\nfn x() -> impl T + use<'_> {}";
        let found: Vec<_> = imports(code)
            .into_iter()
            .map(|import| format!("{} {} {}", import.path.join("::"), import.name, import.is_public))
            .collect();
        assert_eq!(
            found,
            [
                "crate::a a false",
                "crate::a::b::C C false",
                "crate::a::b::D E false",
                "crate::a::f::* * false",
                "g::H H true",
            ]
        );
    }

    #[test]
    fn paths_of_private_imports_and_of_expressions_are_found() {
        let code = "use super::a; pub use b::C; pub(in super::super) fn f() { crate::d::e(x::<T>(), self::g::H) }";
        let found: Vec<_> = paths(code).into_iter().map(|path| path.join("::")).collect();
        assert_eq!(found, ["super::a", "crate::d::e", "x", "self::g::H"]);
    }
}
