//! The binary without its debug information, and the libraries that it is linked to.

use std::path::Path;
use std::process::Command;

/// A program for Linux.
pub struct Binary {
    pub bytes: Vec<u8>,
    pub machine: Machine,
    pub linkage: Linkage,
}

/// The processor that a program is for, by its names.
pub struct Machine {
    /// Debian's and OCI's name.
    pub debian: &'static str,
    /// The kernel's name, which RPM uses.
    pub kernel: &'static str,
}

/// Whether a program needs libraries.
pub enum Linkage {
    Static,
    Dynamic {
        /// The newest version of glibc whose symbols it uses, such as `2.35`.
        glibc: String,
        /// Paths of the libraries on this machine.
        libraries: Vec<String>,
    },
}

impl Binary {
    /// Reads a program.
    /// # Errors
    /// A sentence that names the file, if it is not a program for Linux on x86-64 or ARM64.
    pub fn read(path: &Path) -> Result<Self, String> {
        let bytes = stripped(path)?;
        let machine =
            machine(&bytes).ok_or_else(|| format!("{} is not a program for Linux on x86-64 or ARM64", path.display()))?;
        let linkage = match glibc(&bytes) {
            Some(glibc) => Linkage::Dynamic { glibc, libraries: libraries(path)? },
            None => Linkage::Static,
        };
        Ok(Self { bytes, machine, linkage })
    }

    /// The end of a target's name.
    pub fn platform(&self) -> &'static str {
        match self.linkage {
            Linkage::Static => "linux-static",
            Linkage::Dynamic { .. } => "linux-glibc",
        }
    }
}

/// Names of functions stay, for the backtraces that a panic logs.
fn stripped(path: &Path) -> Result<Vec<u8>, String> {
    let directory = tempfile::tempdir().map_err(|error| format!("a temporary directory: {error}"))?;
    let copy = directory.path().join("bunko");
    let strip = Command::new("strip").args(["--strip-debug", "-o"]).arg(&copy).arg(path).output();
    let strip = strip.map_err(|error| format!("cannot run strip (package binutils): {error}"))?;
    if !strip.status.success() {
        return Err(format!("strip {}: {}", path.display(), String::from_utf8_lossy(&strip.stderr).trim()));
    }
    crate::payload::read(&copy)
}

/// Source: ELF specification, `e_ident` and `e_machine`.
fn machine(bytes: &[u8]) -> Option<Machine> {
    match (bytes.get(..5)?, bytes.get(18..20)?) {
        (b"\x7fELF\x02", [62, 0]) => Some(Machine { debian: "amd64", kernel: "x86_64" }),
        (b"\x7fELF\x02", [183, 0]) => Some(Machine { debian: "arm64", kernel: "aarch64" }),
        _ => None,
    }
}

/// The newest of the versions `GLIBC_2.N` that the program names; a static program names none.
fn glibc(bytes: &[u8]) -> Option<String> {
    const PREFIX: &[u8] = b"\0GLIBC_2.";
    let minor = |place: usize| {
        let digits: Vec<u8> = bytes[place..].iter().copied().take_while(u8::is_ascii_digit).collect();
        String::from_utf8(digits).ok()?.parse::<u32>().ok()
    };
    let places = bytes.windows(PREFIX.len()).enumerate().filter(|(_, window)| *window == PREFIX);
    let newest = places.filter_map(|(place, _)| minor(place + PREFIX.len())).max()?;
    Some(format!("2.{newest}"))
}

/// The libraries, as the loader of this machine finds them. The kernel's own (`linux-vdso.so.1`) has no path.
fn libraries(path: &Path) -> Result<Vec<String>, String> {
    let output = Command::new("ldd").arg(path).output().map_err(|error| format!("cannot run ldd: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if let Some(missing) = text.lines().find(|line| line.contains("not found")) {
        return Err(format!("{}: {}", path.display(), missing.trim()));
    }
    Ok(parse_ldd(&text))
}

fn parse_ldd(text: &str) -> Vec<String> {
    let mut paths: Vec<String> =
        text.split_whitespace().filter(|word| word.starts_with('/')).map(str::to_owned).collect();
    paths.sort();
    paths.dedup();
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_version_of_glibc_counts() {
        assert_eq!(glibc(b"x\0GLIBC_2.4\0GLIBC_2.35\0GLIBC_2.9\0").as_deref(), Some("2.35"));
        assert_eq!(glibc(b"a static program"), None);
    }

    #[test]
    fn programs_for_other_systems_are_refused() {
        let mut header = b"\x7fELF\x02".to_vec();
        header.resize(20, 0);
        assert!(machine(&header).is_none() && machine(b"#!/bin/sh").is_none());
        header[18] = 183;
        assert_eq!(machine(&header).map(|machine| machine.debian), Some("arm64"));
    }

    #[test]
    fn libraries_have_paths() {
        let text = "\tlinux-vdso.so.1 (0x00007ffc)\n\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f)\n\
                    \t/lib64/ld-linux-x86-64.so.2 (0x00007f)\n";
        assert_eq!(parse_ldd(text), ["/lib/x86_64-linux-gnu/libc.so.6", "/lib64/ld-linux-x86-64.so.2"]);
    }
}
