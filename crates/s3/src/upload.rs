//! An object that is stored in parts: one is in memory at a time.

use crate::{Bucket, Condition, Result};

/// Length of a part in bytes; S3 demands 5 MiB at least.
const PART_BYTES: u64 = 8 << 20;
/// Maximum number of parts. Source: Amazon S3 User Guide, "Amazon S3 multipart upload limits".
const PARTS_MAX: u64 = 10_000;
/// Lengths of parts are multiples of this.
const STEP_BYTES: u64 = 1 << 20;

/// An object that has no name before [`Self::finish`]. It is given up if it is dropped before.
pub struct Upload<'b> {
    bucket: &'b Bucket,
    name: String,
    bytes: u64,
    part_bytes: usize,
    /// The bytes of the next part.
    part: Vec<u8>,
    /// The server's name of an upload in several parts, once the first part is full.
    id: Option<String>,
    tags: Vec<String>,
}

/// Length of the parts of an object of that length: 8 MiB up to 78 GiB, and then a 10,000th of it.
fn part_bytes(bytes: u64) -> u64 {
    bytes.div_ceil(PARTS_MAX).next_multiple_of(STEP_BYTES).max(PART_BYTES)
}

impl<'b> Upload<'b> {
    /// Begins an object of that length.
    pub fn new(bucket: &'b Bucket, name: &str, bytes: u64) -> Self {
        let part_bytes = part_bytes(bytes) as usize;
        Self { bucket, name: name.to_owned(), bytes, part_bytes, part: Vec::new(), id: None, tags: Vec::new() }
    }

    fn key(&self) -> String {
        self.bucket.address().key(&self.name)
    }

    /// Adds the next bytes.
    /// # Errors
    /// Errors of the server.
    pub fn add(&mut self, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            // A full part is sent once a further byte is known: an object of one part is stored in one request.
            if self.part.len() == self.part_bytes {
                self.send()?;
            }
            let (next, rest) = bytes.split_at(bytes.len().min(self.part_bytes - self.part.len()));
            self.part.extend_from_slice(next);
            bytes = rest;
        }
        Ok(())
    }

    fn send(&mut self) -> Result<()> {
        let key = self.key();
        let id = match &self.id {
            Some(id) => id.clone(),
            None => self.id.insert(self.bucket.begin_upload(&key)?).clone(),
        };
        self.tags.push(self.bucket.put_part((&key, &id), self.tags.len() + 1, &self.part)?);
        self.part.clear();
        Ok(())
    }

    /// Gives the object its name.
    /// # Errors
    /// Errors of the server.
    pub fn finish(mut self) -> Result<()> {
        if self.id.is_none() {
            return self.bucket.put(&self.name, &self.part, Condition::None).map(|_| ());
        }
        self.send()?;
        let Some(id) = &self.id else { return Ok(()) };
        self.bucket.complete_upload((&self.key(), id), &self.tags, self.bytes)?;
        self.id = None;
        Ok(())
    }
}

impl Drop for Upload<'_> {
    fn drop(&mut self) {
        if let Some(id) = &self.id {
            self.bucket.try_to_abort(&self.key(), id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_of_any_length_has_few_enough_parts() {
        let (mib, tib) = (1 << 20, 1_u64 << 40);
        assert_eq!((part_bytes(0), part_bytes(80_000 * mib)), (8 * mib, 8 * mib));
        for bytes in [80_000 * mib + 1, tib, 5 * tib] {
            assert!(bytes.div_ceil(part_bytes(bytes)) <= PARTS_MAX);
        }
        assert_eq!(part_bytes(tib), 105 * mib);
    }
}
