//! Encrypted objects in another store. The names are not encrypted.
//!
//! **Invariant:** the data key of a backup is in the store before any object that it encrypts.

use super::{Objects, Take, Upload};
use crate::Result;
use crate::keys::{DataKey, KeyRing, Unwrapped};
use crate::pieces::Pieces;
use crate::seal::{CHUNK_BYTES, HEADER_BYTES, Place, SEALED_CHUNK_BYTES, Seal, plain_bytes, sealed_bytes};
use bunko_tools::ToolError;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

/// Where the wrapped data keys are.
pub(crate) const KEYS: &str = "keys/";

/// A store of encrypted objects.
pub(crate) struct Sealed {
    inner: Box<dyn Objects>,
    ring: Arc<KeyRing>,
    /// The data keys of backups that were needed so far.
    known: RefCell<BTreeMap<String, Rc<DataKey>>>,
}

/// The name of the object with a backup's data key.
pub(crate) fn key_of(id: &str) -> String {
    format!("{KEYS}{id}.json")
}

/// The backup that an encrypted object belongs to; `None` for objects that are not encrypted.
fn id_of(name: &str) -> Option<&str> {
    let (kind, rest) = name.split_once('/')?;
    match kind {
        "backups" => rest.strip_suffix(".json"),
        "files" | "archive" => rest.split('/').next(),
        _ => None,
    }
}

impl Sealed {
    /// Encrypts the objects of `inner` with the keys of `ring`.
    pub fn new(inner: Box<dyn Objects>, ring: Arc<KeyRing>) -> Self {
        Self { inner, ring, known: RefCell::default() }
    }

    /// Wraps the data keys anew that the first key does not wrap. Returns their number.
    /// # Errors
    /// As [`Self::found_key`]; keys that were wrapped before are wrapped then.
    pub fn rekey(inner: &dyn Objects, ring: &KeyRing) -> Result<u64> {
        let mut wrapped = 0;
        for name in inner.list(KEYS)?.into_keys() {
            let id = name.strip_prefix(KEYS).and_then(|name| name.strip_suffix(".json")).unwrap_or_default();
            if let Some((key, false)) = unwrapped(inner, ring, id)? {
                inner.put(&name, ring.wrap(id, &key)?.as_bytes())?;
                wrapped += 1;
            }
        }
        Ok(wrapped)
    }

    /// The data key of a backup; `None` if the store does not have it.
    /// # Errors
    /// `Failed` with the fingerprint of a key that is missing; `Damaged`; errors of the store.
    fn found_key(&self, id: &str) -> Result<Option<Rc<DataKey>>> {
        if let Some(key) = self.known.borrow().get(id) {
            return Ok(Some(Rc::clone(key)));
        }
        let Some((key, _)) = unwrapped(&*self.inner, &self.ring, id)? else { return Ok(None) };
        let key = Rc::new(key);
        self.known.borrow_mut().insert(id.to_owned(), Rc::clone(&key));
        Ok(Some(key))
    }

    /// As [`Self::found_key`], and makes one for a new backup.
    fn key_to_write(&self, id: &str) -> Result<Rc<DataKey>> {
        if let Some(key) = self.found_key(id)? {
            return Ok(key);
        }
        let key = Rc::new(DataKey::new()?);
        self.inner.put(&key_of(id), self.ring.wrap(id, &key)?.as_bytes())?;
        self.known.borrow_mut().insert(id.to_owned(), Rc::clone(&key));
        Ok(key)
    }

    /// Shows an encrypted object.
    fn show_sealed(&self, name: &str, key: &DataKey, take: Take<'_>) -> Result<bool> {
        let refused = |offset: u64| {
            let found = "cannot be decrypted: it is damaged, or in the place of another object";
            self.inner.damaged(name, offset, found)
        };
        let (mut header, mut pieces, mut seal, mut is_over) =
            (Vec::new(), Pieces::new(SEALED_CHUNK_BYTES), None, false);
        let exists = self.inner.show(name, &mut |bytes| {
            let (begin, rest) = bytes.split_at(bytes.len().min(HEADER_BYTES - header.len()));
            header.extend_from_slice(begin);
            if header.len() < HEADER_BYTES {
                return Ok(ControlFlow::Continue(()));
            }
            if seal.is_none() {
                seal = Some(Seal::resume(key, name, &header).ok_or_else(|| refused(0))?);
            }
            let Some(seal) = &mut seal else { return Err(refused(0)) };
            let flow = pieces.add(rest, &mut |chunk| {
                let offset = seal.offset();
                take(seal.open(chunk, Place::Inside).ok_or_else(|| refused(offset))?)
            })?;
            is_over = flow.is_break();
            Ok(flow)
        })?;
        if exists && !is_over {
            let mut seal = seal.ok_or_else(|| refused(0))?;
            let offset = seal.offset();
            let found = "cannot be decrypted: it is cut or damaged, or in the place of another object";
            let mut last = pieces.last();
            let last = seal.open(&mut last, Place::Last).ok_or_else(|| self.inner.damaged(name, offset, found))?;
            if !last.is_empty() {
                // The last piece: whether more is wanted makes no difference.
                let _ = take(last)?;
            }
        }
        Ok(exists)
    }
}

/// The data key of a backup, and whether the first key of the file wraps it; `None` if the store does not have it.
fn unwrapped(inner: &dyn Objects, ring: &KeyRing, id: &str) -> Result<Option<(DataKey, bool)>> {
    let name = key_of(id);
    let Some(text) = inner.read(&name)? else { return Ok(None) };
    match ring.unwrap(id, &text) {
        Unwrapped::Key(key, is_first) => Ok(Some((key, is_first))),
        Unwrapped::Damaged => Err(inner.damaged(&name, 0, "is not the encrypted key of this backup")),
        Unwrapped::Unknown(fingerprint) => Err(ToolError::Failed(format!(
            "{}: backup {id} was encrypted with the key {fingerprint}, which the file of keys does not have: it has {}",
            inner.shown(&name).display(),
            ring.fingerprints()
        ))),
    }
}

impl Objects for Sealed {
    fn shown(&self, name: &str) -> PathBuf {
        self.inner.shown(name)
    }

    fn path(&self, _: &str) -> Option<PathBuf> {
        None
    }

    fn lock(&mut self) -> Result<()> {
        self.inner.lock()
    }

    fn stranger(&self) -> Result<Option<String>> {
        self.inner.stranger()
    }

    fn list(&self, below: &str) -> Result<BTreeMap<String, u64>> {
        let listed = self.inner.list(below)?.into_iter();
        let plain = |name: &str, bytes| if id_of(name).is_some() { plain_bytes(bytes) } else { bytes };
        Ok(listed.map(|(name, bytes)| (name.clone(), plain(&name, bytes))).collect())
    }

    fn children(&self, below: &str) -> Result<BTreeSet<String>> {
        self.inner.children(below)
    }

    fn show(&self, name: &str, take: Take<'_>) -> Result<bool> {
        let Some(id) = id_of(name) else { return self.inner.show(name, take) };
        match self.found_key(id)? {
            Some(key) => self.show_sealed(name, &key, take),
            // An object that does not exist needs no key.
            None if !self.inner.show(name, &mut |_| Ok(ControlFlow::Break(())))? => Ok(false),
            None => {
                let found = format!("is missing, and without it backup {id} cannot be decrypted");
                Err(self.inner.damaged(&key_of(id), 0, &found))
            }
        }
    }

    fn put(&self, name: &str, contents: &[u8]) -> Result<()> {
        let Some(id) = id_of(name) else { return self.inner.put(name, contents) };
        let (mut seal, mut sealed) = Seal::begin(&*self.key_to_write(id)?, name)?;
        let mut chunks = contents.chunks(CHUNK_BYTES).peekable();
        loop {
            let mut chunk = chunks.next().unwrap_or_default().to_vec();
            let place = if chunks.peek().is_some() { Place::Inside } else { Place::Last };
            seal.seal(&mut chunk, place)?;
            sealed.extend(chunk);
            if place == Place::Last {
                return self.inner.put(name, &sealed);
            }
        }
    }

    fn create<'o>(&'o self, name: &str, bytes: u64) -> Result<Box<dyn Upload + 'o>> {
        let Some(id) = id_of(name) else { return self.inner.create(name, bytes) };
        let (seal, header) = Seal::begin(&*self.key_to_write(id)?, name)?;
        let mut inner = self.inner.create(name, sealed_bytes(bytes))?;
        inner.add(&header)?;
        Ok(Box::new(SealedUpload { inner, seal, pieces: Pieces::new(CHUNK_BYTES) }))
    }

    fn settle(&self, names: &BTreeSet<String>) -> Result<()> {
        self.inner.settle(names)
    }

    fn remove(&self, name: &str) -> Result<()> {
        self.inner.remove(name)
    }

    fn prune(&self) -> Result<()> {
        self.inner.prune()
    }
}

/// An encrypted object that is being made.
struct SealedUpload<'o> {
    inner: Box<dyn Upload + 'o>,
    seal: Seal,
    pieces: Pieces,
}

impl Upload for SealedUpload<'_> {
    fn add(&mut self, bytes: &[u8]) -> Result<()> {
        let Self { inner, seal, pieces } = self;
        let added = pieces.add(bytes, &mut |chunk| {
            seal.seal(chunk, Place::Inside)?;
            inner.add(chunk).map(ControlFlow::Continue)
        });
        added.map(|_| ())
    }

    fn finish(self: Box<Self>) -> Result<()> {
        let Self { mut inner, mut seal, pieces } = *self;
        let mut last = pieces.last();
        seal.seal(&mut last, Place::Last)?;
        inner.add(&last)?;
        inner.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::tests::{ONE, ring};
    use crate::objects::Directory;
    use tempfile::TempDir;

    fn store(directory: &TempDir) -> Sealed {
        let ring = Arc::new(ring(ONE).expect("keys"));
        Sealed::new(Box::new(Directory::new(directory.path())), ring)
    }

    fn read(sealed: &dyn Objects, name: &str) -> Result<Option<Vec<u8>>> {
        sealed.read(name)
    }

    #[test]
    fn objects_of_all_lengths_are_read_as_they_were_written() {
        let directory = tempfile::tempdir().expect("temporary directory");
        let sealed = store(&directory);
        for bytes in [0, 1, CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1, 2 * CHUNK_BYTES] {
            let content: Vec<u8> = (0..bytes).map(|at| (at / 7) as u8).collect();
            sealed.put("files/a/put", &content).expect("put");
            let mut upload = sealed.create("files/a/created", bytes as u64).expect("begun");
            content.chunks(300_000).for_each(|step| upload.add(step).expect("added"));
            upload.finish().expect("finished");
            let listed = sealed.list("files/").expect("listed");
            for name in ["files/a/put", "files/a/created"] {
                assert_eq!(read(&sealed, name).expect("readable").as_ref(), Some(&content), "{bytes}");
                assert_eq!(listed.get(name), Some(&(bytes as u64)));
            }
        }
        assert!(read(&sealed, "files/a/absent").expect("no error").is_none());
        // Objects that belong to no backup are not encrypted.
        sealed.put("owner", b"owner").expect("put");
        assert_eq!(std::fs::read(directory.path().join("owner")).expect("readable"), b"owner");
    }

    #[test]
    fn changed_objects_are_refused() {
        let directory = tempfile::tempdir().expect("temporary directory");
        let sealed = store(&directory);
        let content: Vec<u8> = (0..3 * CHUNK_BYTES + 5).map(|at| (at % 251) as u8).collect();
        sealed.put("files/a/x", &content).expect("put");
        sealed.put("files/a/y", &content).expect("put");
        sealed.put("files/b/x", &content).expect("put");
        let path = |name: &str| directory.path().join(name);
        let whole = std::fs::read(path("files/a/x")).expect("readable");
        let (header, chunks) = whole.split_at(HEADER_BYTES);
        let chunks: Vec<&[u8]> = chunks.chunks(SEALED_CHUNK_BYTES).collect();
        let join =
            |order: &[usize]| [header, &order.iter().map(|at| chunks[*at]).collect::<Vec<_>>().concat()].concat();
        assert_eq!(join(&[0, 1, 2, 3]), whole);
        let mut changed = vec![
            // Chunks that are cut off, left out, repeated, or in another order.
            join(&[0, 1, 2]),
            join(&[0]),
            join(&[]),
            join(&[0, 2, 3]),
            join(&[1, 0, 2, 3]),
            join(&[0, 1, 2, 2, 3]),
            join(&[0, 1, 2, 3, 3]),
            Vec::new(),
            [&whole[..], b"x"].concat(),
            // Other objects, of this backup and of another one.
            std::fs::read(path("files/a/y")).expect("readable"),
            std::fs::read(path("files/b/x")).expect("readable"),
        ];
        changed.extend([7, 8, 39, 40, 56, SEALED_CHUNK_BYTES + 40, whole.len() - 1].map(|at| {
            let mut damaged = whole.clone();
            damaged[at] ^= 1;
            damaged
        }));
        changed
            .extend([1, 39, 40, 41, 55, 56, 57, SEALED_CHUNK_BYTES, whole.len() - 1].map(|end| whole[..end].to_vec()));
        for (number, bytes) in changed.iter().enumerate() {
            std::fs::write(path("files/a/x"), bytes).expect("written");
            let refused = read(&sealed, "files/a/x");
            assert!(matches!(refused, Err(ToolError::Damaged { .. })), "{number}: {:?}", refused.map(|_| ()));
        }
        std::fs::write(path("files/a/x"), &whole).expect("written");
        assert_eq!(read(&sealed, "files/a/x").expect("readable"), Some(content));
    }
}
