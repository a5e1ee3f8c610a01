//! The image of another store while it arrives: its files lie in the directory `sync`, beside the data.
//!
//! ```text
//! sync/list      the image's list of files
//! sync/receipts  one entry for each range that has arrived: file, range, checksum of its bytes, checksum of the entry
//! sync/files/    the files
//! ```
//! A receipt is written after its bytes, and nothing is synced before the end: after a crash, bytes may be missing whose
//! receipt is there. So a start reads all ranges that have receipts, and asks again for those that differ.
//!
//! **Invariant:** an image is installed only if the bytes of all files were read back and had their checksums.

use super::list::{IMAGE_RANGE_BYTES, ImageList};
use crate::{Position, Result, StorageError, checked_documents, files, make_directory};
use bunko_bson::DocumentBuf;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// The directory of an image that arrives, below the data directory.
pub(super) const DIRECTORY: &str = "sync";
/// The image's files, below [`DIRECTORY`].
pub(super) const FILES: &str = "files";
/// The file that orders a start to install the image.
pub(super) const ORDER: &str = "installing";
const LIST: &str = "list";
const RECEIPTS: &str = "receipts";
const RECEIPT_BYTES: usize = 16;

/// An image that arrives.
pub struct ReceivedImage {
    /// The data directory.
    data: PathBuf,
    list: ImageList,
    receipts: File,
    /// The checksums of the ranges that have arrived, by the numbers of file and range.
    arrived: BTreeMap<(u32, u32), u32>,
    arrived_bytes: u64,
    /// The range to be asked for next, unless it has arrived.
    next: (u32, u32),
}

/// A range of a file that has not arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    file: u32,
    range: u32,
    /// The file's name.
    pub name: String,
    /// Where the range begins.
    pub offset: u64,
    /// Length of the range in bytes.
    pub bytes: u64,
}

impl ReceivedImage {
    /// Begins to receive an image in a data directory, in place of another one that has not arrived.
    ///
    /// # Errors
    /// Errors of the files.
    pub fn begin(data: &Path, list: ImageList) -> Result<Self> {
        Self::forget(data)?;
        let directory = data.join(DIRECTORY);
        make_directory(&directory.join(FILES))?;
        for file in &list.files {
            let path = directory.join(FILES).join(&file.name);
            make_directory(path.parent().unwrap_or(&directory))?;
            let io = |error| StorageError::io(&path, error);
            files::create(&path)?.set_len(file.bytes).map_err(io)?;
        }
        let receipts = files::create(&directory.join(RECEIPTS))?;
        checked_documents::replace(&directory.join(LIST), &[list.document()])?;
        Ok(Self::new(data, list, receipts))
    }

    fn new(data: &Path, list: ImageList, receipts: File) -> Self {
        Self { data: data.to_owned(), list, receipts, arrived: BTreeMap::new(), arrived_bytes: 0, next: (0, 0) }
    }

    /// Goes on with the image that an earlier process has begun to receive, if there is one. It must be verified first.
    ///
    /// # Errors
    /// Errors of the files.
    pub fn resume(data: &Path) -> Result<Option<Self>> {
        let directory = data.join(DIRECTORY);
        let list = match checked_documents::read_one(&directory.join(LIST)) {
            Ok(list) => list.as_ref().and_then(|list| ImageList::parse(list.as_ref())),
            Err(StorageError::Corrupt { .. }) => None,
            Err(error) => return Err(error),
        };
        let (Some(list), Some(bytes)) = (list, files::read(&directory.join(RECEIPTS))?) else { return Ok(None) };
        let receipts = files::open_to_write(&directory.join(RECEIPTS))?;
        let mut image = Self::new(data, list, receipts);
        let mut whole = 0;
        for receipt in bytes.chunks_exact(RECEIPT_BYTES).map_while(parse_receipt) {
            whole += RECEIPT_BYTES as u64;
            image.note(receipt);
        }
        // A receipt that was cut would make all later ones unreadable, so it is removed.
        let io = |error| StorageError::io(&directory.join(RECEIPTS), error);
        image.receipts.set_len(whole).map_err(io)?;
        std::io::Seek::seek(&mut image.receipts, std::io::SeekFrom::End(0)).map_err(io)?;
        Ok(Some(image))
    }

    /// Removes what an earlier process has received in part.
    ///
    /// # Errors
    /// Errors of the files.
    pub fn forget(data: &Path) -> Result<()> {
        let directory = data.join(DIRECTORY);
        // Without the list, files that a crash leaves are not taken for an image.
        files::remove_if_present(&directory.join(LIST))?;
        files::remove_directory(&directory)
    }

    /// Takes back the order to install an image, if it is there.
    ///
    /// # Errors
    /// Errors of the files; the order may be there then.
    pub fn take_back_order(data: &Path) -> Result<()> {
        files::remove_if_present(&data.join(ORDER))?;
        files::sync_directory(data)
    }

    fn note(&mut self, (file, range, checksum): (u32, u32, u32)) {
        if let Some(bytes) = self.range_bytes(file, range)
            && self.arrived.insert((file, range), checksum).is_none()
        {
            self.arrived_bytes += bytes;
        }
    }

    /// Length of a range; `None` if the image has no such range.
    fn range_bytes(&self, file: u32, range: u32) -> Option<u64> {
        let bytes = self.list.files.get(file as usize)?.bytes;
        let begin = u64::from(range) * IMAGE_RANGE_BYTES;
        (begin < bytes).then(|| (bytes - begin).min(IMAGE_RANGE_BYTES))
    }

    /// The image's id.
    pub fn id(&self) -> &str {
        &self.list.id
    }

    /// The position at which its log ends.
    pub fn end(&self) -> Position {
        self.list.end
    }

    /// Number of bytes of all files.
    pub fn bytes(&self) -> u64 {
        self.list.bytes()
    }

    /// Number of bytes that have arrived.
    pub fn arrived_bytes(&self) -> u64 {
        self.arrived_bytes
    }

    /// The next range to ask for; `None` if all have arrived.
    pub fn wanted(&mut self) -> Option<Wanted> {
        loop {
            let (file, range) = self.next;
            let listed = self.list.files.get(file as usize)?;
            match self.range_bytes(file, range) {
                None => self.next = (file + 1, 0),
                Some(_) if self.arrived.contains_key(&(file, range)) => self.next.1 += 1,
                Some(bytes) => {
                    let offset = u64::from(range) * IMAGE_RANGE_BYTES;
                    return Some(Wanted { file, range, name: listed.name.clone(), offset, bytes });
                }
            }
        }
    }

    /// Keeps the bytes of a range; `checksum` is that of their sender.
    ///
    /// # Errors
    /// [`StorageError::ImageDamaged`] if the bytes are not those of the sender; errors of the files.
    pub fn put(&mut self, wanted: &Wanted, bytes: &[u8], checksum: u32) -> Result<()> {
        if bytes.len() as u64 != wanted.bytes || bunko_checksum::crc32c(bytes) != checksum {
            return Err(StorageError::ImageDamaged { name: wanted.name.clone(), offset_bytes: wanted.offset });
        }
        let path = self.path(wanted.file);
        let file = files::open_to_write(&path)?;
        // Preallocation made the file as long as it becomes, so zeros are there already.
        if bytes.iter().any(|byte| *byte != 0) {
            file.write_all_at(bytes, wanted.offset).map_err(|error| StorageError::io(&path, error))?;
        }
        let receipt = receipt(wanted.file, wanted.range, checksum);
        let path = self.directory().join(RECEIPTS);
        self.receipts.write_all(&receipt).map_err(|error| StorageError::io(&path, error))?;
        self.note((wanted.file, wanted.range, checksum));
        Ok(())
    }

    fn directory(&self) -> PathBuf {
        self.data.join(DIRECTORY)
    }

    fn path(&self, file: u32) -> PathBuf {
        self.directory().join(FILES).join(&self.list.files[file as usize].name)
    }

    /// Reads back all ranges that have arrived, and forgets those that differ. Returns their number. `tell` is called
    /// before each range.
    ///
    /// # Errors
    /// Errors of the files.
    pub fn verify(&mut self, tell: &mut dyn FnMut()) -> Result<usize> {
        let (mut damaged, mut bytes) = (Vec::new(), Vec::new());
        for (&(file, range), &checksum) in &self.arrived {
            tell();
            bytes.resize(self.range_bytes(file, range).unwrap_or_default() as usize, 0);
            let opened = files::find(&self.path(file))?;
            let read = opened.map(|opened| opened.read_exact_at(&mut bytes, u64::from(range) * IMAGE_RANGE_BYTES));
            if !matches!(read, Some(Ok(()))) || bunko_checksum::crc32c(&bytes) != checksum {
                damaged.push((file, range));
            }
        }
        for (file, range) in &damaged {
            self.arrived.remove(&(*file, *range));
            self.arrived_bytes -= self.range_bytes(*file, *range).unwrap_or_default();
            let path = self.path(*file);
            // The file may have become shorter, or be missing; and a damaged range must not be taken for one with
            // zeros.
            let opened = files::open_or_create(&path)?;
            let end = self.list.files[*file as usize].bytes;
            let zeros = vec![0; self.range_bytes(*file, *range).unwrap_or_default() as usize];
            let cleared =
                opened.set_len(end).and_then(|()| opened.write_all_at(&zeros, u64::from(*range) * IMAGE_RANGE_BYTES));
            cleared.map_err(|error| StorageError::io(&path, error))?;
        }
        self.next = (0, 0);
        Ok(damaged.len())
    }

    /// Makes all files durable. `tell` is called before each.
    ///
    /// # Errors
    /// Errors of the files.
    pub fn sync(&self, tell: &mut dyn FnMut()) -> Result<()> {
        for number in 0..self.list.files.len() as u32 {
            tell();
            let path = self.path(number);
            files::open(&path)?.sync_all().map_err(|error| StorageError::io(&path, error))?;
        }
        sync_below(&self.directory())?;
        files::sync_directory(&self.data)
    }

    /// Makes all files durable, and then the order to the next start to put them in place of the data
    /// ([`super::finish_installing`]). All ranges must have arrived and be verified.
    ///
    /// # Errors
    /// Errors of the files; the order is not there then, or is there whole: see [`Self::take_back_order`].
    pub fn intend_installation(&self) -> Result<()> {
        debug_assert_eq!(self.arrived_bytes, self.bytes());
        self.sync(&mut || ())?;
        checked_documents::replace(&self.data.join(ORDER), &[DocumentBuf::new().with("image", &self.list.document())])
    }
}

/// Makes the names of all files below a directory durable.
fn sync_below(directory: &Path) -> Result<()> {
    for path in files::entries(directory)?.into_iter().filter(|path| path.is_dir()) {
        sync_below(&path)?;
    }
    files::sync_directory(directory)
}

fn receipt(file: u32, range: u32, checksum: u32) -> [u8; RECEIPT_BYTES] {
    let mut receipt = [0; RECEIPT_BYTES];
    receipt[..4].copy_from_slice(&file.to_le_bytes());
    receipt[4..8].copy_from_slice(&range.to_le_bytes());
    receipt[8..12].copy_from_slice(&checksum.to_le_bytes());
    let own = bunko_checksum::crc32c(&receipt[..12]);
    receipt[12..].copy_from_slice(&own.to_le_bytes());
    receipt
}

fn parse_receipt(receipt: &[u8]) -> Option<(u32, u32, u32)> {
    let number = |at: usize| Some(u32::from_le_bytes(*receipt.get(at..)?.first_chunk()?));
    let is_whole = number(12)? == bunko_checksum::crc32c(&receipt[..12]);
    is_whole.then_some((number(0)?, number(4)?, number(8)?))
}
