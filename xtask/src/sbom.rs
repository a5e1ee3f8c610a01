//! `cargo xtask sbom [FILE]`: the parts of the release binary, as a CycloneDX 1.5 document.
//!
//! The document depends only on the lock file, the manifests and the machine's target. It has no time and no random
//! number, so that two documents can be compared.
//! Source: CycloneDX specification 1.5; package URL specification, type `cargo`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde_json::{Map, Value, json};

use crate::findings::Findings;
use crate::lock_file::{self, Locked};
use crate::metadata;

/// The package that the binary is built from.
const ROOT: &str = "bunko-cli";

/// Makes the document.
pub fn make(root: &Path) -> Result<Value, String> {
    let lock = fs::read_to_string(root.join("Cargo.lock")).map_err(|error| format!("Cargo.lock: {error}"))?;
    document(&metadata::resolved(root)?, &lock_file::packages(&lock))
}

/// Checks that every package of a registry in the document has a checksum and a licence.
pub fn run(root: &Path) -> Result<Findings, String> {
    Ok(check(&make(root)?))
}

fn check(document: &Value) -> Findings {
    let mut findings = Findings::default();
    let components = document["components"].as_array().map(Vec::as_slice).unwrap_or_default();
    if components.is_empty() {
        findings.fail("the bill of materials is empty");
    }
    for component in components {
        let name = component["bom-ref"].as_str().unwrap_or_default();
        let is_ours = component["hashes"].is_null() && component["purl"].is_null();
        if !is_ours && component["hashes"].is_null() {
            findings.fail(format!("{name} has no checksum in Cargo.lock"));
        }
        if component["licenses"].is_null() {
            findings.fail(format!("{name} has no licence"));
        }
    }
    findings
}

fn document(metadata: &Value, locked: &[Locked]) -> Result<Value, String> {
    let array = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let packages: BTreeMap<String, Value> =
        array(&metadata["packages"]).into_iter().map(|package| (text(&package["id"]), package)).collect();
    let mut edges: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for node in array(&metadata["resolve"]["nodes"]) {
        let needed = |dependency: &Value| {
            // Packages that only tests need are not part of the binary.
            let kinds = array(&dependency["dep_kinds"]);
            kinds.iter().any(|kind| kind["kind"].as_str() != Some("dev")).then(|| text(&dependency["pkg"]))
        };
        edges.insert(text(&node["id"]), array(&node["deps"]).iter().filter_map(needed).collect());
    }
    let root = packages.iter().find(|(_, package)| package["name"] == ROOT).map(|(id, _)| id.clone());
    let root = root.ok_or_else(|| format!("cargo metadata has no package {ROOT}"))?;
    let mut reached = BTreeSet::from([root.clone()]);
    let mut waiting = vec![root.clone()];
    while let Some(id) = waiting.pop() {
        for next in edges.get(&id).into_iter().flatten() {
            if reached.insert(next.clone()) {
                waiting.push(next.clone());
            }
        }
    }
    let reference = |id: &str| format!("{}@{}", text(&packages[id]["name"]), text(&packages[id]["version"]));
    let mut components: Vec<Value> =
        reached.iter().filter(|id| **id != root).map(|id| component("library", &packages[id], locked)).collect();
    components.sort_by_key(|component| component["bom-ref"].as_str().map(str::to_owned));
    let mut dependencies: Vec<Value> = reached
        .iter()
        .map(|id| {
            let needs: BTreeSet<String> = edges.get(id).into_iter().flatten().map(|next| reference(next)).collect();
            json!({"ref": reference(id), "dependsOn": needs})
        })
        .collect();
    dependencies.sort_by_key(|dependency| dependency["ref"].as_str().map(str::to_owned));
    Ok(json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": component("application", &packages[&root], locked)},
        "components": components,
        "dependencies": dependencies,
    }))
}

fn component(kind: &str, package: &Value, locked: &[Locked]) -> Value {
    let (name, version) =
        (package["name"].as_str().unwrap_or_default(), package["version"].as_str().unwrap_or_default());
    let mut component = Map::new();
    let mut put = |name: &str, value: Value| drop(component.insert(name.to_owned(), value));
    put("type", json!(kind));
    put("bom-ref", json!(format!("{name}@{version}")));
    put("name", json!(name));
    put("version", json!(version));
    if let Some(licence) = package["license"].as_str() {
        // crates.io's older form has a slash for "or".
        put("licenses", json!([{"expression": licence.replace('/', " OR ")}]));
    }
    if !package["source"].is_null() {
        put("purl", json!(format!("pkg:cargo/{name}@{}", version.replace('+', "%2B"))));
    }
    let is_it = |locked: &&Locked| locked.name == name && locked.version == version;
    if let Some(checksum) = locked.iter().find(is_it).and_then(|locked| locked.checksum.as_deref()) {
        put("hashes", json!([{"alg": "SHA-256", "content": checksum}]));
    }
    Value::Object(component)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Value {
        let package = |name: &str, source: Value| json!({"id": format!("id-{name}"), "name": name, "version": "1.0.0", "license": "MIT/Apache-2.0", "source": source});
        let needs = |name: &str, kind: Value| json!({"pkg": format!("id-{name}"), "dep_kinds": [{"kind": kind}]});
        json!({
            "packages": [package(ROOT, Value::Null), package("a", json!("registry")), package("b", json!("registry")),
                         package("test-only", json!("registry"))],
            "resolve": {"nodes": [
                {"id": format!("id-{ROOT}"), "deps": [needs("a", Value::Null), needs("test-only", json!("dev"))]},
                {"id": "id-a", "deps": [needs("b", json!("build"))]},
                {"id": "id-b", "deps": []},
                {"id": "id-test-only", "deps": []},
            ]},
        })
    }

    #[test]
    fn built_packages_are_listed_and_those_for_tests_are_not() {
        let lock = |name: &str| Locked { name: name.into(), version: "1.0.0".into(), checksum: Some("ff".into()) };
        let document = document(&sample(), &[lock("a"), lock("b")]).expect("a document");
        let names: Vec<_> =
            document["components"].as_array().expect("an array").iter().map(|one| &one["name"]).collect();
        assert_eq!(names, ["a", "b"]);
        let first = &document["components"][0];
        assert_eq!(first["purl"], "pkg:cargo/a@1.0.0");
        assert_eq!(first["licenses"][0]["expression"], "MIT OR Apache-2.0");
        assert_eq!(first["hashes"][0]["content"], "ff");
        assert_eq!(document["metadata"]["component"]["name"], ROOT);
        assert_eq!(document["dependencies"][0], json!({"ref": "a@1.0.0", "dependsOn": ["b@1.0.0"]}));
        assert!(check(&document).failures.is_empty());
    }

    #[test]
    fn a_package_without_a_checksum_is_named() {
        let document = document(&sample(), &[]).expect("a document");
        assert_eq!(
            check(&document).failures,
            ["a@1.0.0 has no checksum in Cargo.lock", "b@1.0.0 has no checksum in Cargo.lock"]
        );
    }
}
