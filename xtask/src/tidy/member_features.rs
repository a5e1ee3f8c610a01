//! A member of the workspace names no features of a dependency: they stand in `[workspace.dependencies]`. Otherwise
//! `cargo test -p CRATE` and `cargo test --workspace` would each compile the dependency, and all that uses it.

use std::path::Path;

use crate::findings::Findings;
use crate::source_tree;

pub fn check(root: &Path, findings: &mut Findings) -> Result<(), String> {
    for file in source_tree::files(root, "crates")?.iter().filter(|file| file.name.ends_with("/Cargo.toml")) {
        for line in lines_with_features(&file.read()?) {
            findings
                .fail(format!("{}: {line}: features of dependencies stand in the workspace's Cargo.toml", file.name));
        }
    }
    Ok(())
}

fn lines_with_features(manifest: &str) -> Vec<&str> {
    manifest.lines().filter(|line| line.contains("workspace = true") && line.contains("features")).collect()
}

#[cfg(test)]
mod tests {
    use super::lines_with_features;

    #[test]
    fn features_in_a_member_are_found() {
        let manifest = "[features]\nmodels = []\n[dependencies]\na.workspace = true\nb = { workspace = true, features = [\"c\"] }\n\
                        d = { workspace = true, optional = true }\n";
        assert_eq!(lines_with_features(manifest), ["b = { workspace = true, features = [\"c\"] }"]);
    }
}
