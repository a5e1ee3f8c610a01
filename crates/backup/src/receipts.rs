//! Receipts of an archive: how far its copy of the log is durable.
//!
//! Each is a line of text: `END LAST TIME COMPLETE CHECKSUM`, four decimal numbers, and the CRC-32C of the text before the
//! last space in eight hexadecimal digits. A receipt is written after its records are durable, and is durable itself before
//! the next. A line that a crash has cut is left out, and cut off when the archive goes on.

use crate::{Result, of_storage};
use bunko_store::files;
use bunko_tools::ToolError;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

const NAME: &str = "receipts";

/// How far an archive is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Receipt {
    /// All records below this log position are there.
    pub end: u64,
    /// Position of the last record; 0 if there is none.
    pub last: u64,
    /// Time of the last record that has one, or of the image; milliseconds since 1970.
    pub time_ms: u64,
    /// The archive has all records up to this time.
    pub complete_ms: u64,
}

/// The file with an archive's receipts, open to be written.
pub(crate) struct Receipts {
    path: PathBuf,
    file: File,
    length: u64,
}

impl Receipt {
    /// Its line of text.
    pub fn line(&self) -> String {
        let text = format!("{} {} {} {}", self.end, self.last, self.time_ms, self.complete_ms);
        format!("{text} {:08x}\n", bunko_checksum::crc32c(text.as_bytes()))
    }

    /// Reads a line without its end; `None` if it is not a whole receipt.
    pub fn parse(line: &str) -> Option<Self> {
        let (text, checksum) = line.rsplit_once(' ')?;
        let numbers: Vec<u64> = text.split(' ').map(|number| number.parse().ok()).collect::<Option<_>>()?;
        let [end, last, time_ms, complete_ms] = numbers[..] else { return None };
        let is_whole = checksum == format!("{:08x}", bunko_checksum::crc32c(text.as_bytes()));
        is_whole.then_some(Self { end, last, time_ms, complete_ms })
    }
}

/// The last receipt of an archive, and the length of all whole ones; `None` if it has none.
fn read_all(directory: &Path) -> Result<Option<(Receipt, u64)>> {
    let path = directory.join(NAME);
    let Some(bytes) = files::read(&path).map_err(of_storage)? else { return Ok(None) };
    let (mut last, mut length) = (None, 0_usize);
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        let Some(receipt) = line.strip_suffix(b"\n").and_then(|line| Receipt::parse(std::str::from_utf8(line).ok()?))
        else {
            if length + line.len() == bytes.len() {
                break;
            }
            let found = "no receipt, before other receipts".to_owned();
            return Err(ToolError::Damaged { path, offset_bytes: length as u64, found });
        };
        last = Some(receipt);
        length += line.len();
    }
    Ok(last.map(|last| (last, length as u64)))
}

/// The last receipt of an archive; `None` if it has none.
/// # Errors
/// `Damaged` with file and offset; errors of the files.
pub(crate) fn read(directory: &Path) -> Result<Option<Receipt>> {
    Ok(read_all(directory)?.map(|(last, _)| last))
}

impl Receipts {
    /// Begins the receipts of an archive.
    /// # Errors
    /// Errors of the files.
    pub fn begin(directory: &Path, first: Receipt) -> Result<Self> {
        files::make_directory(directory).map_err(of_storage)?;
        let path = directory.join(NAME);
        let file = files::create(&path).map_err(of_storage)?;
        let mut receipts = Self { path, file, length: 0 };
        receipts.add(first)?;
        files::sync_directory(directory).map_err(of_storage)?;
        Ok(receipts)
    }

    /// Goes on with the receipts of an archive; `None` if it has none.
    /// # Errors
    /// As [`read`].
    pub fn resume(directory: &Path) -> Result<Option<(Self, Receipt)>> {
        let Some((last, length)) = read_all(directory)? else { return Ok(None) };
        let path = directory.join(NAME);
        let file = files::open_to_write(&path).map_err(of_storage)?;
        file.set_len(length).map_err(|cause| ToolError::File { path: path.clone(), cause })?;
        Ok(Some((Self { path, file, length }, last)))
    }

    /// Adds a receipt, which is durable on return.
    /// # Errors
    /// Errors of the file.
    pub fn add(&mut self, receipt: Receipt) -> Result<()> {
        let line = receipt.line();
        let written = self.file.write_all_at(line.as_bytes(), self.length).and_then(|()| self.file.sync_all());
        written.map_err(|cause| ToolError::File { path: self.path.clone(), cause })?;
        self.length += line.len() as u64;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn receipt(end: u64) -> Receipt {
        Receipt { end, last: end - 1, time_ms: 5, complete_ms: 6 }
    }

    #[test]
    fn a_cut_receipt_is_left_out_and_a_damaged_one_is_named() {
        let directory = tempfile::tempdir().expect("temporary directory");
        assert_eq!(read(directory.path()).ok(), Some(None));
        let mut receipts = Receipts::begin(directory.path(), receipt(64)).expect("begun");
        receipts.add(receipt(99)).expect("added");
        receipts.add(receipt(150)).expect("added");
        let path = directory.path().join(NAME);
        let whole = std::fs::read(&path).expect("readable");
        assert_eq!(read(directory.path()).ok().flatten(), Some(receipt(150)));
        for cut in 1..receipt(150).line().len() {
            std::fs::write(&path, &whole[..whole.len() - cut]).expect("written");
            assert_eq!(read(directory.path()).ok().flatten(), Some(receipt(99)), "{cut}");
        }
        let (mut receipts, last) = Receipts::resume(directory.path()).expect("readable").expect("there");
        assert_eq!(last, receipt(99));
        receipts.add(receipt(150)).expect("added");
        assert_eq!(std::fs::read(&path).expect("readable"), whole);
        let mut damaged = whole;
        damaged[3] ^= 1;
        std::fs::write(&path, damaged).expect("written");
        assert!(matches!(read(directory.path()), Err(ToolError::Damaged { offset_bytes: 0, .. })));
    }
}
