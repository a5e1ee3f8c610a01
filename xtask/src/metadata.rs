//! The part of `cargo metadata` that the checks read.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// Section of a manifest that names a dependency.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Normal,
    Dev,
    Build,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dependency {
    pub name: String,
    pub kind: Kind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Package {
    pub name: String,
    pub version: String,
    /// An SPDX expression; `None` if the manifest names only a file, or nothing.
    pub licence: Option<String>,
    /// True for packages of a registry or a git repository, false for our own.
    pub third_party: bool,
    pub dependencies: Vec<Dependency>,
}

/// The workspace's own packages. Reads manifests only: no network, no lock.
pub fn workspace(root: &Path) -> Result<Vec<Package>, String> {
    load(root, &["--no-deps"])
}

/// Every package that a build for this machine may link. Works from cargo's cache, without network: a build must have
/// fetched the packages before. Other platforms' packages are left out, because such a build does not fetch them.
pub fn everything(root: &Path) -> Result<Vec<Package>, String> {
    let host = host_triple()?;
    load(root, &["--offline", "--filter-platform", &host])
}

/// Everything that cargo knows about a build for this machine, with the dependencies of each package. Needs no network,
/// as [`everything`].
pub fn resolved(root: &Path) -> Result<Value, String> {
    let host = host_triple()?;
    ask(root, &["--offline", "--filter-platform", &host])
}

fn load(root: &Path, arguments: &[&str]) -> Result<Vec<Package>, String> {
    let metadata = ask(root, arguments)?;
    metadata["packages"].as_array().ok_or("cargo metadata lists no packages")?.iter().map(parse_package).collect()
}

fn ask(root: &Path, arguments: &[&str]) -> Result<Value, String> {
    let output =
        run(Command::new(env!("CARGO")).args(["metadata", "--format-version", "1"]).args(arguments).current_dir(root))?;
    serde_json::from_str(&output).map_err(|error| format!("cargo metadata: {error}"))
}

fn host_triple() -> Result<String, String> {
    let output = run(Command::new("rustc").arg("-vV"))?;
    let host = output.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).ok_or_else(|| "rustc -vV names no host".to_owned())
}

fn run(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    if !output.status.success() {
        return Err(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr)));
    }
    String::from_utf8(output.stdout).map_err(|error| format!("{command:?}: {error}"))
}

fn parse_package(package: &Value) -> Result<Package, String> {
    let text = |key: &str| package[key].as_str().map(str::to_owned).ok_or_else(|| format!("a package without {key}"));
    let dependencies = package["dependencies"].as_array().ok_or("a package without dependencies")?;
    Ok(Package {
        name: text("name")?,
        version: text("version")?,
        licence: package["license"].as_str().map(str::to_owned),
        third_party: !package["source"].is_null(),
        dependencies: dependencies.iter().map(parse_dependency).collect::<Result<_, _>>()?,
    })
}

fn parse_dependency(dependency: &Value) -> Result<Dependency, String> {
    let kind = match dependency["kind"].as_str() {
        None => Kind::Normal,
        Some("dev") => Kind::Dev,
        Some("build") => Kind::Build,
        Some(other) => return Err(format!("a dependency of kind {other}")),
    };
    let name = dependency["name"].as_str().ok_or("a dependency without a name")?.to_owned();
    Ok(Dependency { name, kind })
}
