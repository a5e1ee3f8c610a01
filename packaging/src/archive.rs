//! Tar, gzip and SHA-256, the same bytes each time; and the tarball.

use crate::payload::{Entry, Kind, Payload, programs, with_directories, write};
use flate2::{Compression, GzBuilder};
use sha2::{Digest, Sha256};
use std::io::Write;
use std::path::Path;

/// Writes entries with the parents that they lack.
/// # Errors
/// A sentence, if a path is too long.
pub fn tar(entries: Vec<Entry>, epoch: u32) -> Result<Vec<u8>, String> {
    let mut builder = tar::Builder::new(Vec::new());
    for entry in with_directories(entries) {
        let mut header = tar::Header::new_gnu();
        header.set_mtime(epoch.into());
        header.set_uid(entry.owner);
        header.set_gid(entry.owner);
        header.set_mode(entry.mode.into());
        let bytes = entry.bytes().unwrap_or_default();
        header.set_size(bytes.len() as u64);
        let path = match entry.kind {
            Kind::Directory => format!("{}/", entry.path),
            Kind::File(_) | Kind::Configuration(_) | Kind::Link(_) => entry.path.clone(),
        };
        header.set_entry_type(match entry.kind {
            Kind::Directory => tar::EntryType::Directory,
            Kind::Link(_) => tar::EntryType::Symlink,
            Kind::File(_) | Kind::Configuration(_) => tar::EntryType::Regular,
        });
        if let Kind::Link(target) = entry.kind {
            builder.append_link(&mut header, &path, target).map_err(|error| format!("{path}: {error}"))?;
            continue;
        }
        builder.append_data(&mut header, &path, bytes).map_err(|error| format!("{path}: {error}"))?;
    }
    builder.into_inner().map_err(|error| error.to_string())
}

/// Compresses, without a name and a time.
/// # Errors
/// A sentence, if zlib fails.
pub fn gzip(bytes: &[u8]) -> Result<Vec<u8>, String> {
    let mut encoder = GzBuilder::new().mtime(0).write(Vec::new(), Compression::default());
    encoder.write_all(bytes).and_then(|()| encoder.finish()).map_err(|error| error.to_string())
}

/// The sum in hexadecimal.
pub fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// Bytes in hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().concat()
}

/// The tarball: one directory with the binary, its pages, and examples of units and configurations.
/// # Errors
/// A sentence that names the file.
pub fn make_tarball(payload: &Payload, out: &Path) -> Result<String, String> {
    let Payload { version, epoch, binary, .. } = payload;
    let directory = format!("bunko-{version}-{}-{}", binary.machine.kernel, binary.platform());
    let mut entries = payload.documents("share/doc/bunko", "LICENSE")?;
    entries.push(Entry::file("bin/bunko", 0o755, binary.bytes.clone()));
    entries.extend(programs("lib/bunko/bin", "../../../bin/bunko"));
    entries.extend(payload.monitoring("share/bunko/monitoring")?);
    for file in ["bunko.conf", "systemd/bunko.service", "systemd/bunko.socket", "logrotate/bunko"] {
        let bytes = payload.repository_file(&format!("deploy/{file}"))?;
        entries.push(Entry::file(format!("share/bunko/{file}"), 0o644, bytes));
    }
    for (name, page) in &payload.manual {
        entries.push(Entry::file(format!("share/man/man1/{name}"), 0o644, page.clone()));
    }
    for (shell, text) in &payload.completions {
        entries.push(Entry::file(format!("share/bunko/completions/bunko.{shell}"), 0o644, text.clone()));
    }
    for entry in &mut entries {
        entry.path = format!("{directory}/{}", entry.path);
    }
    let name = format!("{directory}.tar.gz");
    write(&out.join(&name), &gzip(&tar(entries, *epoch)?)?)?;
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_leads_to_its_target() {
        let made = tar(vec![Entry::link("bin/other", "program")], 7).expect("made");
        let mut archive = tar::Archive::new(&made[..]);
        let entry = archive.entries().expect("an archive").nth(1).expect("the link").expect("read");
        assert_eq!(entry.header().entry_type(), tar::EntryType::Symlink);
        assert_eq!(entry.link_name().expect("a name").as_deref(), Some(Path::new("program")));
    }

    #[test]
    fn an_archive_depends_on_its_entries_and_the_time_alone() {
        let entries = vec![Entry::file("b/file", 0o644, *b"text"), Entry::directory("a", 0o700, 999)];
        let turned: Vec<Entry> = entries.iter().rev().cloned().collect();
        let first = tar(entries, 7).expect("made");
        assert_eq!(first, tar(turned, 7).expect("made"));
        let mut archive = tar::Archive::new(&first[..]);
        let read: Vec<_> = archive
            .entries()
            .expect("an archive")
            .map(|entry| {
                let entry = entry.expect("an entry");
                let header = entry.header();
                let path = entry.path().expect("a path").display().to_string();
                (path, header.mode().expect("a mode"), header.uid().expect("an owner"), header.mtime().expect("a time"))
            })
            .collect();
        let expected = [("a/", 0o700, 999, 7), ("b/", 0o755, 0, 7), ("b/file", 0o644, 0, 7)];
        assert_eq!(read, expected.map(|(path, mode, owner, time)| (path.to_owned(), mode, owner, time)));
        let zipped = gzip(b"text").expect("made");
        assert_eq!(&zipped[3..8], [0; 5], "neither a name nor a time");
    }
}
