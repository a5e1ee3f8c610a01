//! `cargo xtask package`: builds a static binary, or takes one, and has `packaging` make packages of it.
//!
//! Packages are made of a commit: the binary has no paths of this machine, and every time in them is the commit's.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use crate::{licences, sbom, write};

/// A static binary, so that one binary runs on every distribution and in an empty image.
const TARGET: &str = "x86_64-unknown-linux-musl";

/// The command line.
struct Arguments {
    binary: Option<PathBuf>,
    out: PathBuf,
    formats: Vec<String>,
}

pub fn run(root: &Path, arguments: impl Iterator<Item = String>) -> Result<ExitCode, String> {
    let Arguments { binary, out, formats } = parse(root, arguments)?;
    let epoch = match std::env::var("SOURCE_DATE_EPOCH") {
        Ok(epoch) => epoch,
        Err(_) => git(root, &["log", "-1", "--format=%ct"])?,
    };
    let binary = match binary {
        Some(binary) => binary,
        None => build(root, &epoch)?,
    };
    let manifest = root.join("packaging/Cargo.toml");
    let target = root.join("target/packaging");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--quiet", "--locked", "--manifest-path"]).arg(&manifest).arg("--target-dir").arg(&target);
    succeed(&mut cargo)?;
    // The packages of this tool have been fetched by now.
    let findings = licences::run(&root.join("packaging"))?;
    if let Some(failure) = findings.failures.first() {
        return Err(failure.clone());
    }
    // A file for each run, because several runs may overlap.
    let bill = target.join(format!("sbom-{}.cdx.json", std::process::id()));
    write(&sbom::make(root)?, bill.to_str())?;
    let mut packaging = Command::new(target.join("debug/bunko-packaging"));
    packaging.args([root, &*binary, &*bill]).arg(&epoch).arg(&out).args(formats);
    let made = succeed(&mut packaging);
    // The packages have copies of the bill.
    let _ = std::fs::remove_file(&bill);
    made.map(|()| ExitCode::SUCCESS)
}

fn parse(root: &Path, mut given: impl Iterator<Item = String>) -> Result<Arguments, String> {
    let mut arguments = Arguments { binary: None, out: root.join("target/packages"), formats: Vec::new() };
    while let Some(word) = given.next() {
        let mut value = || given.next().map(PathBuf::from).ok_or_else(|| format!("{word} needs a path"));
        match word.as_str() {
            "--binary" => arguments.binary = Some(value()?),
            "--out" => arguments.out = value()?,
            flag if flag.starts_with('-') => return Err(format!("unknown flag {flag}; there are --binary and --out")),
            _ => arguments.formats.push(word),
        }
    }
    Ok(arguments)
}

/// Builds the release binary without paths of this machine, as `tests/reproducible/run` does.
fn build(root: &Path, epoch: &str) -> Result<PathBuf, String> {
    let home = std::env::var("CARGO_HOME").or_else(|_| std::env::var("HOME").map(|home| format!("{home}/.cargo")));
    let home = home.map_err(|_| "neither CARGO_HOME nor HOME is set".to_owned())?;
    let sysroot = output(Command::new("rustc").args(["--print", "sysroot"]))?;
    if !Path::new(&sysroot).join("lib/rustlib").join(TARGET).exists()
        || output(Command::new("musl-gcc").arg("-v")).is_err()
    {
        return Err(format!(
            "a static binary needs the target and its C compiler: rustup target add {TARGET}; apt-get install \
             musl-tools. Or name a binary that is built already: --binary target/release/bunko"
        ));
    }
    let places = [
        (root.display().to_string(), "/bunko"),
        (home, "/cargo"),
        (format!("{sysroot}/lib/rustlib/src/rust"), "/rust"),
    ];
    let flags = |name: &str| {
        let flags: Vec<_> = places.iter().map(|(place, shown)| format!("{name}={place}={shown}")).collect();
        flags.join(" ")
    };
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--locked", "--release", "--bin", "bunko", "--target", TARGET]).current_dir(root);
    cargo.env("SOURCE_DATE_EPOCH", epoch).env("BUNKO_COMMIT", git(root, &["rev-parse", "HEAD"])?);
    cargo.env("RUSTFLAGS", flags("--remap-path-prefix")).env("CFLAGS", flags("-ffile-prefix-map"));
    succeed(&mut cargo)?;
    Ok(root.join("target").join(TARGET).join("release/bunko"))
}

fn git(root: &Path, arguments: &[&str]) -> Result<String, String> {
    output(Command::new("git").args(arguments).current_dir(root))
}

fn output(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    if !output.status.success() {
        return Err(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr).trim()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn succeed(command: &mut Command) -> Result<(), String> {
    let status = command.status().map_err(|error| format!("{command:?}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{command:?} ends with {status}")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_and_formats_are_told_apart() {
        let parsed = |line: &str| parse(Path::new("/r"), line.split_whitespace().map(str::to_owned));
        let arguments = parsed("deb --binary b oci --out o").expect("valid");
        assert_eq!(arguments.binary.as_deref(), Some(Path::new("b")));
        assert_eq!(
            (arguments.out.as_path(), &arguments.formats[..]),
            (Path::new("o"), &["deb".into(), "oci".into()][..])
        );
        assert_eq!(parsed("").expect("valid").out, Path::new("/r/target/packages"));
        assert_eq!(parsed("--binary").err().as_deref(), Some("--binary needs a path"));
        assert!(parsed("--sign").err().is_some_and(|error| error.contains("--sign")));
    }
}
