//! The server that is backed up, as the command `bunkoBackup` shows it.

use crate::Result;
use bunko_bson::{DocumentBuf, DocumentRef, ValueRef, number};
use bunko_client::{ClientError, CommandError};
use bunko_store::{IMAGE_RANGE_BYTES, ImageList, SEGMENT_BYTES};
use bunko_tools::{Link, Server, ToolError};
use std::thread;
use std::time::Duration;

const COMMAND: &str = "bunkoBackup";
/// How often the server is asked whether an image is ready.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);
/// MongoDB's `CappedPositionLost`: the log does not have the position.
const POSITION_LOST: i32 = 136;
/// MongoDB's code.
const NOT_WRITABLE_PRIMARY: i32 = 10107;
/// Attempts for a range whose bytes fail their checksum on the way.
const ATTEMPTS: usize = 3;

/// A connection to the server.
pub(crate) struct Source {
    link: Box<dyn Link>,
    owner: String,
    /// Whether the server was a primary, or a server without a set, when it last sent its log.
    was_primary: bool,
}

/// An image that the server lends.
pub(crate) struct Lent {
    pub engine: String,
    pub list: ImageList,
}

/// An event that the server's metrics show.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Event {
    /// A backup is whole and durable.
    Made,
    /// The backup or the archive has failed.
    Failed,
    /// The archive is complete up to this time, in milliseconds since 1970.
    Archived(u64),
    /// The user has ended the archive.
    Ended,
}

/// A part of the server's log.
pub(crate) struct Part {
    pub bytes: Vec<u8>,
    /// Position after it.
    pub behind: u64,
    /// Durable records are below this position.
    pub end: u64,
    /// If there were no more records: the time by the server's clock.
    pub complete_ms: Option<u64>,
}

impl Source {
    /// # Errors
    /// The error of the connection.
    pub fn connect(server: &dyn Server, owner: &str) -> Result<Self> {
        let link = server.connect().map_err(of_server)?;
        Ok(Self { link, owner: owner.to_owned(), was_primary: false })
    }

    /// Has the server make an image, in place of one that it made for this target before. `tick` is called before each
    /// question.
    /// # Errors
    /// As [`Self::ask`]; errors of `tick`.
    pub fn begin(&mut self, tick: &mut dyn FnMut(&mut Self) -> Result<()>) -> Result<Lent> {
        let mut known: Option<String> = None;
        loop {
            tick(self)?;
            let mut asked = DocumentBuf::new().with(COMMAND, "begin").with("owner", self.owner.as_str());
            if let Some(known) = &known {
                asked.append("image", known.as_str());
            }
            let answer = self.ask(&asked)?;
            let text = |name: &str| answer.as_ref().get(name).and_then(ValueRef::as_str).map(str::to_owned);
            let (image, engine) = (text("image").ok_or_else(malformed)?, text("engine").ok_or_else(malformed)?);
            if let Some(list) = answer.as_ref().get("list").and_then(ValueRef::as_document) {
                let list = ImageList::parse(list).ok_or_else(malformed)?;
                return Ok(Lent { engine, list });
            }
            known = Some(image);
            thread::sleep(LOOK_INTERVAL);
        }
    }

    /// The checksum of a range of a file.
    /// # Errors
    /// As [`Self::ask`].
    pub fn checksum(&mut self, image: &str, file: &str, offset: u64) -> Result<u32> {
        let answer = self.ask(&range_of("checksum", image, file, offset))?;
        whole(answer.as_ref(), "checksum").and_then(|checksum| u32::try_from(checksum).ok()).ok_or_else(malformed)
    }

    /// Reads a range of a file, of which `length` bytes are expected.
    /// # Errors
    /// As [`Self::ask`]; `Failed` if the bytes fail their checksum several times.
    pub fn read(&mut self, image: &str, file: &str, (offset, length): (u64, u64)) -> Result<(Vec<u8>, u32)> {
        for _ in 0..ATTEMPTS {
            let answer = self.ask(&range_of("read", image, file, offset))?;
            let answer = answer.as_ref();
            let bytes = match (answer.get("bytes"), whole(answer, "zeros")) {
                (Some(ValueRef::Binary { bytes, .. }), _) => bytes.to_vec(),
                (_, Some(zeros)) if zeros <= IMAGE_RANGE_BYTES => vec![0; zeros as usize],
                _ => return Err(malformed()),
            };
            let checksum = bunko_checksum::crc32c(&bytes);
            if bytes.len() as u64 == length && whole(answer, "checksum") == Some(u64::from(checksum)) {
                return Ok((bytes, checksum));
            }
        }
        Err(ToolError::Failed(format!("{file}: bytes from the server fail their checksum at offset {offset}")))
    }

    /// Gives an image back.
    pub fn release(&mut self, image: &str) {
        // Without this, the server ends it after two minutes.
        let _ = self.ask(&DocumentBuf::new().with(COMMAND, "release").with("image", image));
    }

    /// Reads durable records of the log from `from` on; `None` if the log does not have them.
    /// # Errors
    /// As [`Self::ask`]; that of a server that is the primary no more: a new connection finds the next one.
    pub fn log(&mut self, from: u64) -> Result<Option<Part>> {
        let mut bytes = Vec::new();
        loop {
            let asked = DocumentBuf::new()
                .with(COMMAND, "log")
                .with("owner", self.owner.as_str())
                .with("from", from as i64)
                .with("offset", bytes.len() as i64);
            let answer = match self.ask(&asked) {
                Err(ToolError::Server { cause, .. }) if is_lost(&cause) => return Ok(None),
                answer => answer?,
            };
            let answer = answer.as_ref();
            let Some(ValueRef::Binary { bytes: further, .. }) = answer.get("bytes") else { return Err(malformed()) };
            let number = |name| whole(answer, name).ok_or_else(malformed);
            let length = number("length")?;
            bytes.extend_from_slice(further);
            if length > SEGMENT_BYTES
                || bytes.len() as u64 > length
                || further.is_empty() && length > bytes.len() as u64
            {
                return Err(malformed());
            }
            if bytes.len() as u64 == length {
                let complete_ms = whole(answer, "completeMs");
                let is_secondary = matches!(answer.get("isSecondary"), Some(ValueRef::Boolean(true)));
                if self.was_primary && is_secondary {
                    return Err(of_server(ClientError::Command(stepped_down())));
                }
                self.was_primary = !is_secondary;
                return Ok(Some(Part { bytes, behind: number("behind")?, end: number("end")?, complete_ms }));
            }
        }
    }

    /// Tells the server of an event, for its metrics. A server that does not take it, or has gone, changes nothing.
    pub fn note(&mut self, event: Event) {
        let (name, time_ms) = match event {
            Event::Made => ("made", 0),
            Event::Failed => ("failed", 0),
            Event::Archived(complete_ms) => ("archived", complete_ms),
            Event::Ended => ("ended", 0),
        };
        let note = DocumentBuf::new().with(COMMAND, "note").with("owner", self.owner.as_str());
        let _ = self.ask(&note.with("event", name).with("time", time_ms as i64));
    }

    /// As [`Self::note`], on a connection of its own.
    pub fn tell(server: &dyn Server, owner: &str, event: Event) {
        if let Ok(mut source) = Self::connect(server, owner) {
            source.note(event);
        }
    }

    /// Tells the server that a backup or an archive has failed, unless the user interrupted it or the server is gone.
    pub fn tell_failure(server: &dyn Server, error: &ToolError) {
        let is_gone = matches!(error, ToolError::Server { cause, .. } if !matches!(**cause, ClientError::Command(_)));
        if !is_gone && !matches!(error, ToolError::Interrupted) {
            Self::tell(server, "", Event::Failed);
        }
    }

    /// # Errors
    /// `Server` with the error of the server or of the connection.
    fn ask(&mut self, body: &DocumentBuf) -> Result<DocumentBuf> {
        self.link.run("admin", body).map_err(of_server)
    }
}

fn range_of(kind: &str, image: &str, file: &str, offset: u64) -> DocumentBuf {
    let asked = DocumentBuf::new().with(COMMAND, kind).with("image", image);
    asked.with("file", file).with("offset", offset as i64)
}

fn whole(answer: DocumentRef<'_>, name: &str) -> Option<u64> {
    answer.get(name).and_then(number::as_i64_exact).and_then(|number| u64::try_from(number).ok())
}

fn of_server(cause: ClientError) -> ToolError {
    let unknown = matches!(&cause, ClientError::Command(error) if error.code_name == "CommandNotFound");
    if unknown {
        return ToolError::Failed("the server is not a Bunko with backups of its files: take a dump of it".to_owned());
    }
    ToolError::Server { namespace: String::new(), cause: Box::new(cause) }
}

/// The refusal of a member that is not the primary any more.
fn stepped_down() -> CommandError {
    let message = "the member is not the primary any more, and does not know of all writes".to_owned();
    CommandError { code: NOT_WRITABLE_PRIMARY, code_name: "NotWritablePrimary".to_owned(), message }
}

fn is_lost(cause: &ClientError) -> bool {
    matches!(cause, ClientError::Command(error) if error.code == POSITION_LOST)
}

fn malformed() -> ToolError {
    ToolError::Failed("the server's answer about the backup is malformed".to_owned())
}
