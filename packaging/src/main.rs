//! Packages of one binary: a tarball, a `.deb`, an `.rpm` and an OCI image. `cargo xtask package` runs it.
//!
//! **Invariant:** the same binary, sources and time make the same bytes. Times, owners and modes are fixed, and entries
//! are sorted; nothing is read from the machine but the libraries of a binary that is linked to them.

mod archive;
mod binary;
mod debian;
mod image;
mod pages;
mod payload;
mod red_hat;

use payload::Payload;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const USAGE: &str = "usage: bunko-packaging ROOT BINARY SBOM SOURCE_DATE_EPOCH OUT FORMAT...";

/// Makes a file in a directory, and returns its name.
type Make = fn(&Payload, &Path) -> Result<String, String>;

/// The formats, each with the function that makes the file and returns its name.
const FORMATS: &[(&str, Make)] =
    &[("tar", archive::make_tarball), ("deb", debian::make), ("rpm", red_hat::make), ("oci", image::make)];

/// Sources, time, formats and the output directory of a run.
struct Arguments {
    root: PathBuf,
    binary: PathBuf,
    sbom: PathBuf,
    epoch: u32,
    out: PathBuf,
    formats: Vec<String>,
}

fn main() -> ExitCode {
    match arguments().and_then(|arguments| run(&arguments)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("package: {message}");
            ExitCode::FAILURE
        }
    }
}

fn arguments() -> Result<Arguments, String> {
    let given: Vec<String> = std::env::args().skip(1).collect();
    let [root, binary, sbom, epoch, out, formats @ ..] = &given[..] else { return Err(USAGE.to_owned()) };
    let epoch = epoch.parse().map_err(|_| format!("SOURCE_DATE_EPOCH={epoch} is not a number of seconds"))?;
    let known: Vec<&str> = FORMATS.iter().map(|(name, _)| *name).collect();
    if let Some(unknown) = formats.iter().find(|format| !known.contains(&format.as_str())) {
        return Err(format!("'{unknown}' is not a format; there are {}", known.join(", ")));
    }
    let formats = if formats.is_empty() { known.into_iter().map(str::to_owned).collect() } else { formats.to_vec() };
    Ok(Arguments { root: root.into(), binary: binary.into(), sbom: sbom.into(), epoch, out: out.into(), formats })
}

fn run(arguments: &Arguments) -> Result<(), String> {
    let payload = Payload::gather(&arguments.root, &arguments.binary, &arguments.sbom, arguments.epoch)?;
    let mut made = vec![payload.write_sbom(&arguments.out)?];
    for (name, make) in FORMATS {
        if arguments.formats.iter().any(|format| format == name) {
            made.push(make(&payload, &arguments.out).map_err(|error| format!("{name}: {error}"))?);
        }
    }
    made.sort();
    let mut sums = String::new();
    for name in &made {
        let bytes = payload::read(&arguments.out.join(name))?;
        let _ = writeln!(sums, "{}  {name}", archive::sha256(&bytes));
    }
    payload::write(&arguments.out.join("SHA256SUMS"), sums.as_bytes())?;
    print!("{sums}");
    Ok(())
}
