//! The files of a package, before a format decides where they lie.

use crate::binary::Binary;
use crate::pages;
use std::fs;
use std::path::{Path, PathBuf};

/// Names of MongoDB's programs for which the binary stands if it is called by them.
const PROGRAMS: [&str; 9] = [
    "mongo",
    "mongod",
    "mongodump",
    "mongoexport",
    "mongoimport",
    "mongorestore",
    "mongosh",
    "mongostat",
    "mongotop",
];
/// Files of `deploy` for Prometheus and Grafana.
const MONITORING: [&str; 3] = ["bunko-alerts.yml", "bunko-dashboard.json", "prometheus.yml"];

/// Files and facts that all formats are made of.
pub struct Payload {
    pub version: String,
    /// The time of every file, in seconds since 1970.
    pub epoch: u32,
    pub binary: Binary,
    /// Manual pages, by file name.
    pub manual: Vec<(String, Vec<u8>)>,
    /// Completions for bash, zsh and fish.
    pub completions: Vec<(&'static str, Vec<u8>)>,
    sbom: Vec<u8>,
    root: PathBuf,
}

/// A file, directory or link below the root of a package.
#[derive(Clone)]
pub struct Entry {
    /// Without a leading slash.
    pub path: String,
    pub mode: u16,
    /// Number of the owner and of its group; 0 for root.
    pub owner: u64,
    pub kind: Kind,
}

/// The kind of an entry.
#[derive(Clone)]
pub enum Kind {
    Directory,
    File(Vec<u8>),
    /// A symbolic link, with the name of its target.
    Link(&'static str),
    /// A file that an upgrade leaves as an administrator has changed it.
    Configuration(Vec<u8>),
}

impl Entry {
    pub fn file(path: impl Into<String>, mode: u16, bytes: impl Into<Vec<u8>>) -> Self {
        Self { path: path.into(), mode, owner: 0, kind: Kind::File(bytes.into()) }
    }

    pub fn link(path: impl Into<String>, target: &'static str) -> Self {
        Self { path: path.into(), mode: 0o777, owner: 0, kind: Kind::Link(target) }
    }

    pub fn directory(path: impl Into<String>, mode: u16, owner: u64) -> Self {
        Self { path: path.into(), mode, owner, kind: Kind::Directory }
    }

    /// The content of a file.
    pub fn bytes(&self) -> Option<&[u8]> {
        match &self.kind {
            Kind::Directory | Kind::Link(_) => None,
            Kind::File(bytes) | Kind::Configuration(bytes) => Some(bytes),
        }
    }
}

impl Payload {
    /// Reads the binary and everything that is made from it.
    /// # Errors
    /// A sentence that names the file.
    pub fn gather(root: &Path, binary: &Path, sbom: &Path, epoch: u32) -> Result<Self, String> {
        let program = binary.canonicalize().map_err(|error| format!("{}: {error}", binary.display()))?;
        Ok(Self {
            version: pages::version(&program)?,
            epoch,
            binary: Binary::read(&program)?,
            manual: pages::manual(&program)?,
            completions: pages::completions(&program)?,
            sbom: read(sbom)?,
            root: root.to_owned(),
        })
    }

    /// A file of `deploy/`, or another of the repository.
    /// # Errors
    /// A sentence that names the file.
    pub fn repository_file(&self, path: &str) -> Result<Vec<u8>, String> {
        read(&self.root.join(path))
    }

    /// Writes the bill of materials beside the packages; returns its name.
    /// # Errors
    /// A sentence that names the file.
    pub fn write_sbom(&self, out: &Path) -> Result<String, String> {
        let name = format!("bunko-{}.cdx.json", self.version);
        fs::create_dir_all(out).map_err(|error| format!("{}: {error}", out.display()))?;
        write(&out.join(&name), &self.sbom)?;
        Ok(name)
    }

    /// Licence and bill of materials, below `directory`.
    /// # Errors
    /// As [`Self::repository_file`].
    pub fn documents(&self, directory: &str, licence: &str) -> Result<Vec<Entry>, String> {
        Ok(vec![
            Entry::file(format!("{directory}/{licence}"), 0o644, self.repository_file("LICENSE")?),
            Entry::file(format!("{directory}/sbom.cdx.json"), 0o644, self.sbom.clone()),
        ])
    }

    /// Alert rules, a dashboard, and an example of Prometheus' configuration, below `directory`.
    /// # Errors
    /// As [`Self::repository_file`].
    pub fn monitoring(&self, directory: &str) -> Result<Vec<Entry>, String> {
        let entry = |name: &str| {
            let bytes = self.repository_file(&format!("deploy/monitoring/{name}"))?;
            Ok(Entry::file(format!("{directory}/{name}"), 0o644, bytes))
        };
        MONITORING.into_iter().map(entry).collect()
    }

    /// The entries of a package for a distribution that keeps completions for zsh in the file `zsh`, sorted.
    /// # Errors
    /// As [`Self::repository_file`].
    pub fn distribution(&self, zsh: &str) -> Result<Vec<Entry>, String> {
        let deployed = |path: &str| self.repository_file(&format!("deploy/{path}"));
        let configuration =
            |path: &str, bytes| Entry { kind: Kind::Configuration(bytes), ..Entry::file(path, 0o644, []) };
        let mut entries = self.documents("usr/share/doc/bunko", "copyright")?;
        entries.push(Entry::file("usr/bin/bunko", 0o755, self.binary.bytes.clone()));
        // MongoDB's packages have files of these names in /usr/bin, so the links are in a directory of their own. Debian's
        // alternatives would not help: MongoDB's packages do not take part, and dpkg would write over their links.
        entries.extend(programs("usr/lib/bunko/bin", "../../../bin/bunko"));
        // Not below usr/share/doc, which many containers leave out when they install a package.
        entries.extend(self.monitoring("usr/share/bunko/monitoring")?);
        entries.push(configuration("etc/bunko/bunko.conf", deployed("bunko.conf")?));
        entries.push(configuration("etc/logrotate.d/bunko", deployed("logrotate/bunko")?));
        for unit in ["bunko.service", "bunko.socket"] {
            let path = format!("usr/lib/systemd/system/{unit}");
            entries.push(Entry::file(path, 0o644, deployed(&format!("systemd/{unit}"))?));
        }
        for (name, page) in &self.manual {
            let path = format!("usr/share/man/man1/{name}.gz");
            entries.push(Entry::file(path, 0o644, crate::archive::gzip(page)?));
        }
        for (shell, text) in &self.completions {
            let path = match *shell {
                "bash" => "usr/share/bash-completion/completions/bunko",
                "zsh" => zsh,
                _ => "usr/share/fish/vendor_completions.d/bunko.fish",
            };
            entries.push(Entry::file(path, 0o644, text.clone()));
        }
        entries.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(entries)
    }
}

/// Links with the names of MongoDB's programs, in `directory`; each leads to `binary`.
pub fn programs(directory: &str, binary: &'static str) -> impl Iterator<Item = Entry> {
    PROGRAMS.iter().map(move |name| Entry::link(format!("{directory}/{name}"), binary))
}

/// The directories above the entries that are not among them, with the mode 755, and the entries; sorted.
pub fn with_directories(entries: Vec<Entry>) -> Vec<Entry> {
    let mut all = entries;
    let mut missing: Vec<String> = all
        .iter()
        .flat_map(|entry| ancestors(&entry.path))
        .filter(|path| !all.iter().any(|entry| entry.path == *path))
        .collect();
    missing.sort();
    missing.dedup();
    all.extend(missing.into_iter().map(|path| Entry::directory(path, 0o755, 0)));
    all.sort_by(|one, other| one.path.cmp(&other.path));
    all
}

fn ancestors(path: &str) -> Vec<String> {
    path.match_indices('/').map(|(end, _)| path[..end].to_owned()).collect()
}

/// Reads a file.
/// # Errors
/// A sentence that names it.
pub fn read(path: &Path) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// Writes a file.
/// # Errors
/// A sentence that names it.
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), String> {
    fs::write(path, bytes).map_err(|error| format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_come_once_and_before_their_files() {
        let entries = vec![
            Entry::file("usr/bin/bunko", 0o755, []),
            Entry::directory("data/db", 0o700, 999),
            Entry::file("usr/share/doc", 0o644, []),
        ];
        let all = with_directories(entries);
        let paths: Vec<_> = all.iter().map(|entry| entry.path.as_str()).collect();
        assert_eq!(paths, ["data", "data/db", "usr", "usr/bin", "usr/bin/bunko", "usr/share", "usr/share/doc"]);
        assert_eq!(all[1].owner, 999);
    }
}
