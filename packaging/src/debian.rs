//! The `.deb`: an `ar` of a version, a tarball of control files and a tarball of the files.
//! Source: deb(5), deb-control(5), Debian Policy 4.6.

use crate::archive::{gzip, hex, tar};
use crate::binary::Linkage;
use crate::payload::{Entry, Kind, Payload, with_directories};
use md5::{Digest, Md5};
use std::fmt::Write as _;
use std::fs::File;
use std::path::Path;

const ZSH: &str = "usr/share/zsh/vendor-completions/_bunko";
/// Scripts that dpkg runs.
const SCRIPTS: [&str; 3] = ["postinst", "postrm", "prerm"];

/// Makes the package; returns its name.
/// # Errors
/// A sentence that names the file.
pub fn make(payload: &Payload, out: &Path) -> Result<String, String> {
    let Payload { version, epoch, binary, .. } = payload;
    let mut entries = payload.distribution(ZSH)?;
    entries.push(Entry::file(
        "usr/share/doc/bunko/changelog.gz",
        0o644,
        gzip(&payload.repository_file("CHANGELOG.md")?)?,
    ));
    let mut files = vec![
        Entry::file("control", 0o644, control(payload, &entries)),
        Entry::file("md5sums", 0o644, md5sums(&entries)),
        Entry::file("conffiles", 0o644, conffiles(&entries)),
    ];
    for script in SCRIPTS {
        files.push(Entry::file(script, 0o755, payload.repository_file(&format!("deploy/debian/{script}"))?));
    }
    let name = format!("bunko_{version}_{}.deb", binary.machine.debian);
    let path = out.join(&name);
    let file = File::create(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let mut archive = ar::Builder::new(file);
    for (member, bytes) in [
        ("debian-binary", b"2.0\n".to_vec()),
        ("control.tar.gz", gzip(&tar(files, *epoch)?)?),
        ("data.tar.gz", gzip(&tar(entries, *epoch)?)?),
    ] {
        let mut header = ar::Header::new(member.as_bytes().to_vec(), bytes.len() as u64);
        header.set_mode(0o100_644);
        header.set_mtime((*epoch).into());
        archive.append(&header, &bytes[..]).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(name)
}

fn control(payload: &Payload, entries: &[Entry]) -> String {
    let bytes: usize = entries.iter().filter_map(Entry::bytes).map(<[u8]>::len).sum();
    let libraries = match &payload.binary.linkage {
        Linkage::Static => String::new(),
        Linkage::Dynamic { glibc, .. } => format!(", libc6 (>= {glibc}), libgcc-s1"),
    };
    format!(
        "Package: bunko\nVersion: {}\nArchitecture: {}\nMaintainer: The Bunko authors <bunko@localhost>\n\
         Installed-Size: {}\nDepends: adduser{libraries}\nRecommends: logrotate\nSection: database\n\
         Priority: optional\nDescription: document database that MongoDB's drivers work with\n \
         One binary: a server that speaks MongoDB's wire protocol, tools that dump and\n \
         restore in mongodump's formats, and a lab that measures servers.\n",
        payload.version,
        payload.binary.machine.debian,
        bytes.div_ceil(1024)
    )
}

fn md5sums(entries: &[Entry]) -> String {
    let mut lines = String::new();
    for entry in with_directories(entries.to_vec()) {
        // dpkg itself keeps the sums of configuration files.
        if let Kind::File(bytes) = &entry.kind {
            let _ = writeln!(lines, "{}  {}", hex(&Md5::digest(bytes)), entry.path);
        }
    }
    lines
}

fn conffiles(entries: &[Entry]) -> String {
    let configurations = entries.iter().filter(|entry| matches!(entry.kind, Kind::Configuration(_)));
    configurations.map(|entry| format!("/{}\n", entry.path)).collect::<Vec<_>>().concat()
}
