//! Comparison of the members' logs, which are equal byte for byte except for the stamp `synced`.

use super::BROKEN;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

/// As in `crates/store/src/log`: the size of a segment and of its header, and of a record's header.
const SEGMENT_BYTES: u64 = 64 << 20;
const SEGMENT_HEADER_BYTES: u64 = 64;
const HEADER_BYTES: usize = 44;
/// Kinds of records of which only the header is written.
const SEAL: u32 = 1;
const GAP: u32 = 5;

/// One member's log in its files.
struct Reader {
    directory: PathBuf,
    segment: Option<(u64, File)>,
}

impl Reader {
    fn read(&mut self, position: u64, bytes: &mut [u8]) -> Option<()> {
        let number = position / SEGMENT_BYTES;
        if self.segment.as_ref().is_none_or(|(open, _)| *open != number) {
            let file = File::open(self.directory.join(format!("{number:012}.segment"))).ok()?;
            self.segment = Some((number, file));
        }
        let (_, file) = self.segment.as_ref()?;
        file.read_exact_at(bytes, position % SEGMENT_BYTES).ok()
    }

    /// The record at a position without the stamps that each member makes itself, and the position behind it; `None` if the
    /// log ends there.
    fn record(&mut self, position: u64) -> Option<(Vec<u8>, u64)> {
        let mut record = vec![0; HEADER_BYTES];
        self.read(position, &mut record)?;
        let u32_at = |at: usize| u32::from_le_bytes(record[at..at + 4].try_into().expect("four bytes"));
        let lsn = u64::from_le_bytes(record[8..16].try_into().expect("eight bytes"));
        let (length, kind) = (u32_at(0), u32_at(40) & 0xff);
        // Other bytes are left of an earlier use of the file.
        let mut checked = record.clone();
        checked.drain(4..8);
        if lsn != position || u32_at(4) != crc32c::crc32c(&checked) || (length as usize) < HEADER_BYTES {
            return None;
        }
        let behind = match kind {
            SEAL => (position / SEGMENT_BYTES + 1) * SEGMENT_BYTES + SEGMENT_HEADER_BYTES,
            _ => position + u64::from(length),
        };
        if kind != SEAL && kind != GAP {
            record.resize(length as usize, 0);
            self.read(position, &mut record)?;
        }
        record[4..8].fill(0);
        record[16..24].fill(0);
        Some((record, behind))
    }
}

/// The log of a member with that data directory, and the position from which on its files have all of it.
fn open(directory: &Path) -> (Reader, u64) {
    let directory = directory.join("log");
    let entries = fs::read_dir(&directory).expect("a log").flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let numbers: BTreeSet<u64> = names.filter_map(|name| name.strip_suffix(".segment")?.parse().ok()).collect();
    let mut first = *numbers.last().expect("a segment");
    while first > 0 && numbers.contains(&(first - 1)) {
        first -= 1;
    }
    (Reader { directory, segment: None }, first * SEGMENT_BYTES + SEGMENT_HEADER_BYTES)
}

/// The end of the log in a member's files.
pub(super) fn end_of(directory: &Path) -> u64 {
    let (mut reader, mut position) = open(directory);
    while let Some((_, behind)) = reader.record(position) {
        position = behind;
    }
    position
}

/// Compares the logs of members that stand still, as far as all of them reach back. Each must reach `end`. Returns the number
/// of bytes that are equal.
pub(super) fn assert_equal(directories: &[impl AsRef<Path>], end: u64) -> u64 {
    let opened = directories.iter().map(|directory| open(directory.as_ref()));
    let (mut readers, starts): (Vec<_>, Vec<_>) = opened.unzip();
    let start = starts.into_iter().max().expect("a member");
    let mut position = start;
    loop {
        let records: Vec<_> = readers.iter_mut().map(|reader| reader.record(position)).collect();
        if let Some(short) = records.iter().position(Option::is_none) {
            assert!(position >= end, "{BROKEN}: the log of member {short} ends at {position}, before {end}");
            return position - start;
        }
        let differs = records.iter().position(|record| *record != records[0]);
        assert!(
            differs.is_none(),
            "{BROKEN}: the log of member {differs:?} differs at {position} from that of member 0"
        );
        position = records[0].as_ref().map_or(position, |(_, behind)| *behind);
    }
}
