//! The record of an import's progress, by which it is resumed.
//!
//! One JSON text per line: first the import and its id, then the parts of the input whose documents the server has
//! acknowledged. A torn last line does not count. The first line is on disk before anything is sent, because the `_id`s
//! of documents that have none depend on it. Part lines are not synced: without one of them, its documents are sent
//! again, and the server knows them by their `_id`s.

use super::options::{ImportOptions, RunId};
use super::reader::Gap;
use crate::ToolError;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::Xxh3;

/// Bytes at the input's beginning and end by which it is recognised.
const SAMPLE_BYTES: u64 = 1024 * 1024;

/// The beginning of each log.
const FIRST_WORDS: &str = "{\"import\":{";

/// A part of the input, and how many of its records were written and refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Part {
    pub start: u64,
    pub end: u64,
    /// Number of the part's first line, and of the line after the part.
    pub line: u64,
    pub next_line: u64,
    pub documents: u64,
    pub failures: u64,
    /// Whether nothing follows it in the input.
    pub is_last: bool,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    /// The first line.
    Import { what: String, input: String, seconds: u32, number: u64 },
    /// The collection was dropped, if that was asked for.
    Begun,
    /// These records are acknowledged.
    Done(Part),
    /// All records are acknowledged.
    Finished,
}

/// The records of earlier runs.
#[derive(Debug, Default)]
pub(super) struct Earlier {
    /// The id of the first run; `None` if this is the first.
    pub run_id: Option<RunId>,
    pub is_begun: bool,
    pub is_finished: bool,
    /// In the order of the input.
    pub parts: Vec<Part>,
}

/// The file of this run.
pub(super) struct ResumeLog {
    path: PathBuf,
    file: Mutex<File>,
}

impl ResumeLog {
    /// Opens the state file, or makes it, for an import of the file `input`.
    /// # Errors
    /// `Failed` if the state file is of another import, or the input has changed; `File`.
    pub(super) fn open(path: &Path, input: &Path, options: &ImportOptions) -> Result<(Self, Earlier), ToolError> {
        let failed = |cause| ToolError::File { path: path.to_owned(), cause };
        let (what, sample) = (options.fingerprint(), sample(input)?);
        let mut file = OpenOptions::new().read(true).append(true).create(true).open(path).map_err(failed)?;
        let mut text = String::new();
        file.read_to_string(&mut text).map_err(failed)?;
        let earlier =
            read(&text, &what, &sample).map_err(|reason| ToolError::Failed(format!("{}: {reason}", path.display())))?;
        let log = Self { path: path.to_owned(), file: Mutex::new(file) };
        if earlier.run_id.is_some() {
            // Ends a torn last line.
            log.write(b"\n")?;
        } else {
            // Nothing was sent under a first line that is torn.
            log.file.lock().set_len(0).map_err(failed)?;
            let RunId { seconds, number } = options.run_id;
            log.append(&Line::Import { what, input: sample, seconds, number })?;
            log.sync()?;
        }
        Ok((log, earlier))
    }

    /// Records that the collection is ready: it was dropped, if that was asked for.
    pub(super) fn begun(&self) -> Result<(), ToolError> {
        self.append(&Line::Begun)
    }

    /// Records a part as acknowledged.
    pub(super) fn done(&self, part: Part) -> Result<(), ToolError> {
        self.append(&Line::Done(part))
    }

    /// Records that all is acknowledged.
    pub(super) fn finished(&self) -> Result<(), ToolError> {
        self.append(&Line::Finished)
    }

    fn append(&self, line: &Line) -> Result<(), ToolError> {
        let mut text = serde_json::to_vec(line).expect("strings and numbers have a JSON form");
        text.push(b'\n');
        self.write(&text)
    }

    fn write(&self, text: &[u8]) -> Result<(), ToolError> {
        self.file.lock().write_all(text).map_err(|cause| ToolError::File { path: self.path.clone(), cause })
    }

    /// Puts the file and its name on disk.
    fn sync(&self) -> Result<(), ToolError> {
        let failed = |cause| ToolError::File { path: self.path.clone(), cause };
        self.file.lock().sync_all().map_err(failed)?;
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
        File::open(folder.unwrap_or(Path::new("."))).and_then(|folder| folder.sync_all()).map_err(failed)
    }
}

/// Reads the lines of earlier runs.
fn read(text: &str, what: &str, sample: &str) -> Result<Earlier, String> {
    let mut earlier = Earlier::default();
    // A line without its end is torn.
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    for line in whole.lines().filter(|line| !line.is_empty()) {
        match (serde_json::from_str(line), earlier.run_id) {
            (Ok(Line::Import { what: known, input, seconds, number }), None) => {
                if known != what {
                    return Err(
                        "this state file is of an import with another collection, format, mode or other fields".into(),
                    );
                }
                if input != sample {
                    return Err("this state file is of another input, or the input has changed since".into());
                }
                earlier.run_id = Some(RunId { seconds, number });
            }
            (Ok(Line::Begun), Some(_)) => earlier.is_begun = true,
            (Ok(Line::Done(part)), Some(_)) if part.start <= part.end => {
                // A crash may have lost the line that says so. To drop the collection now would lose these documents.
                earlier.is_begun = true;
                earlier.parts.push(part);
            }
            (Ok(Line::Finished), Some(_)) => earlier.is_finished = true,
            // The line was torn when its run was killed, and a later run ended it.
            (Err(_), Some(_)) => {}
            _ => return Err("this is not the state file of an import: name another file after --resume".into()),
        }
    }
    // Bytes, because the file may be any other text.
    let beginning = &text.as_bytes()[..text.len().min(FIRST_WORDS.len())];
    if earlier.run_id.is_none() && !FIRST_WORDS.as_bytes().starts_with(beginning) {
        return Err("this is not the state file of an import: name another file after --resume".into());
    }
    earlier.parts.sort_by_key(|part| part.start);
    Ok(earlier)
}

/// Length and a hash of the input's ends.
fn sample(input: &Path) -> Result<String, ToolError> {
    let read = || -> io::Result<Option<String>> {
        let mut file = File::open(input)?;
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Ok(None);
        }
        let (mut hash, mut bytes) = (Xxh3::new(), Vec::new());
        (&file).take(SAMPLE_BYTES).read_to_end(&mut bytes)?;
        file.seek(SeekFrom::Start(metadata.len().saturating_sub(SAMPLE_BYTES)))?;
        file.take(SAMPLE_BYTES).read_to_end(&mut bytes)?;
        hash.update(&bytes);
        Ok(Some(format!("{} {:016x}", metadata.len(), hash.digest())))
    };
    match read() {
        Ok(Some(sample)) => Ok(sample),
        Ok(None) => Err(ToolError::Usage(format!(
            "--resume: {} is not a regular file and cannot be read again",
            input.display()
        ))),
        Err(cause) => Err(ToolError::File { path: input.to_owned(), cause }),
    }
}

/// The gaps between parts, from `records` to the end of the input.
pub(super) fn gaps(parts: &[Part], records: Gap) -> Vec<Gap> {
    let (mut gaps, mut at) = (Vec::new(), records);
    for part in parts {
        if part.start > at.start {
            gaps.push(Gap { end: Some(part.start), ..at });
        }
        if part.end > at.start {
            at = Gap { start: part.end, end: None, line: part.next_line };
        }
    }
    if !parts.iter().any(|part| part.is_last) {
        gaps.push(at);
    }
    gaps
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(start: u64, end: u64) -> Part {
        Part { start, end, line: start + 1, next_line: end + 1, ..Part::default() }
    }

    #[test]
    fn gaps_lie_between_the_parts() {
        let records = Gap { start: 3, end: None, line: 1 };
        let spans = |parts: &[Part]| -> Vec<_> {
            gaps(parts, records).into_iter().map(|gap| (gap.start, gap.end, gap.line)).collect()
        };
        assert_eq!(spans(&[]), [(3, None, 1)]);
        assert_eq!(spans(&[part(3, 10), part(20, 30)]), [(10, Some(20), 11), (30, None, 31)]);
        assert_eq!(spans(&[part(8, 10)]), [(3, Some(8), 1), (10, None, 11)]);
        assert_eq!(spans(&[part(3, 9), Part { is_last: true, ..part(9, 9) }]), []);
    }

    #[test]
    fn a_torn_line_does_not_count_and_a_foreign_file_is_refused() {
        let line = |line: &Line| serde_json::to_string(line).expect("JSON");
        let first = line(&Line::Import { what: "w".into(), input: "i".into(), seconds: 7, number: 9 });
        let done = line(&Line::Done(part(0, 5)));
        let text = format!("{first}\n{}\n{done}\n{}\n{done}", line(&Line::Begun), &done[..9]);
        let earlier = read(&text, "w", "i").expect("a state file");
        assert_eq!((earlier.run_id, earlier.parts), (Some(RunId { seconds: 7, number: 9 }), vec![part(0, 5)]));
        assert!(earlier.is_begun && !earlier.is_finished);
        assert!(read(&text, "other", "i").is_err_and(|reason| reason.contains("another collection")));
        assert!(read(&text, "w", "other").is_err_and(|reason| reason.contains("has changed")));
        assert!(read("{\"a\": 1}\n", "w", "i").is_err());
        assert!(read("{\"name\":\"\u{3042}\"}", "w", "i").is_err(), "a character across the eleventh byte");
        let without_drop = format!("{first}\n{done}\n");
        assert!(read(&without_drop, "w", "i").is_ok_and(|earlier| earlier.is_begun));
        assert!(read("notes", "w", "i").is_err() && read("{\"import\":{\"wh", "w", "i").is_ok());
        assert!(read("", "w", "i").expect("nothing").run_id.is_none());
    }
}
