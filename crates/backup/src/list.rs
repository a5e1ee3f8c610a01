//! Lists the backups of a target.

use crate::place::Place;
use crate::restore::span_of;
use crate::target::Target;
use crate::{Result, format_ms};
use serde::Serialize;
use std::fmt;

/// A backup, as it is listed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Listed {
    /// Its name.
    pub id: String,
    /// The server that it is of.
    pub server: String,
    /// The storage engine.
    pub engine: String,
    /// Number of bytes of its files.
    pub bytes: u64,
    /// Number of bytes of the files that it shares with earlier backups.
    pub shared_bytes: u64,
    /// The earliest moment that it can be restored to.
    pub from: String,
    /// The latest one.
    pub to: String,
}

/// Lists all backups, the oldest first.
/// # Errors
/// `Usage` for another directory; `Damaged` with the file; errors of the files.
pub fn list(place: &Place) -> Result<Vec<Listed>> {
    let target = Target::read(place)?;
    let mut listed = Vec::new();
    for manifest in target.manifests()? {
        let (span, _) = span_of(&target, &manifest)?;
        let shared = manifest.files.iter().filter(|file| file.from != manifest.id);
        listed.push(Listed {
            bytes: manifest.bytes(),
            shared_bytes: shared.map(|file| file.bytes).sum(),
            from: format_ms(span.from_ms),
            to: format_ms(span.to_ms),
            id: manifest.id,
            server: manifest.server,
            engine: manifest.engine,
        });
    }
    Ok(listed)
}

impl fmt::Display for Listed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, server, engine, bytes, shared_bytes, from, to } = self;
        write!(f, "{id}  {from} to {to}  {bytes} bytes, {shared_bytes} shared  {engine}  {server}")
    }
}
