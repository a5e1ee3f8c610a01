//! A link to the source and a link to the target.

use super::Copy;
use crate::cursor::collect;
use crate::progress::Progress;
use crate::restore::EmptyTimestamps;
use crate::restore::outcome::Outcome;
use crate::{Link, ToolError};
use bunko_bson::DocumentBuf;
use bunko_client::{ClientError, CommandError};

/// One end of the copy.
pub(super) struct End {
    link: Box<dyn Link>,
    progress: Progress,
    /// Whether writes keep zero timestamps.
    empty_timestamps: EmptyTimestamps,
}

impl End {
    /// Runs a command.
    /// # Errors
    /// The server's error, or the connection's.
    pub(super) fn run(&mut self, database: &str, command: &DocumentBuf) -> Result<DocumentBuf, ToolError> {
        self.link.run(database, command).map_err(|cause| ToolError::server(database, cause))
    }

    /// Runs a command; the inner error is the server's refusal.
    /// # Errors
    /// The connection's.
    pub(super) fn ask(
        &mut self,
        database: &str,
        command: &DocumentBuf,
    ) -> Result<Result<DocumentBuf, CommandError>, ToolError> {
        match self.link.run(database, command) {
            Ok(reply) => Ok(Ok(reply)),
            Err(ClientError::Command(refusal)) => Ok(Err(refusal)),
            Err(cause) => Err(ToolError::server(database, cause)),
        }
    }

    /// Sends a write with its statements or documents, one after another in `encoded`, and waits for a majority: a
    /// failover between a write and the record of the position would lose the write otherwise. Returns the reply, which
    /// may have `writeErrors`.
    /// # Errors
    /// The refusal of the whole command, or the connection's error.
    pub(super) fn write(
        &mut self,
        database: &str,
        command: &DocumentBuf,
        (name, encoded): (&str, &[u8]),
    ) -> Result<DocumentBuf, ToolError> {
        let failed = |cause| ToolError::server(database, cause);
        let command = command.clone().with("writeConcern", &DocumentBuf::new().with("w", "majority"));
        let command = crate::Command { database, body: command.as_ref(), documents: Some((name, encoded)) };
        self.link.send(command).map_err(failed)?;
        let reply = self.link.receive().map_err(failed)?.to_owned();
        match Outcome::read(reply.as_ref()) {
            Err(refusal) | Ok(Outcome { concern_error: Some(refusal), .. }) => {
                Err(ToolError::server(database, refusal))
            }
            Ok(_) => Ok(reply),
        }
    }

    /// A command that writes whole documents, with the fields that let the target store them as they are.
    pub(super) fn storing(&self, command: &str, collection: &str) -> DocumentBuf {
        let mut storing =
            DocumentBuf::new().with(command, collection).with("ordered", false).with("bypassDocumentValidation", true);
        if self.empty_timestamps == EmptyTimestamps::Kept {
            storing.append("bypassEmptyTsReplacement", true);
        }
        storing
    }

    /// All documents of a short list.
    /// # Errors
    /// As [`Self::run`].
    pub(super) fn list(&mut self, database: &str, command: &DocumentBuf) -> Result<Vec<DocumentBuf>, ToolError> {
        self.try_list(database, command).map_err(|cause| ToolError::server(database, cause))
    }

    /// As [`Self::list`], but returns the client's own error.
    /// # Errors
    /// As [`Self::run`].
    pub(super) fn try_list(&mut self, database: &str, command: &DocumentBuf) -> Result<Vec<DocumentBuf>, ClientError> {
        collect(self.link.as_mut(), &self.progress, database, command)
    }

    pub(super) fn link(&mut self) -> (&mut dyn Link, &Progress) {
        (self.link.as_mut(), &self.progress)
    }
}

/// Links to both servers.
pub(super) struct Pair {
    source: End,
    target: End,
}

impl Pair {
    /// Connects to both.
    /// # Errors
    /// The connection's.
    pub(super) fn connect(copy: &Copy<'_>) -> Result<Self, ToolError> {
        let open = |server: &dyn crate::Server| -> Result<End, ToolError> {
            let link = server.connect().map_err(|cause| ToolError::server("", cause))?;
            let progress = Progress::new(copy.progress.clock().clone());
            Ok(End { link, progress, empty_timestamps: copy.empty_timestamps })
        };
        Ok(Self { source: open(copy.source)?, target: open(copy.target)? })
    }

    pub(super) fn source(&mut self) -> &mut End {
        &mut self.source
    }

    pub(super) fn target(&mut self) -> &mut End {
        &mut self.target
    }

    /// Drops a collection or view of the target, if it is there.
    /// # Errors
    /// The server's refusal, or the connection's error.
    pub(super) fn drop_on_target(&mut self, database: &str, collection: &str) -> Result<(), ToolError> {
        match self.target.ask(database, &DocumentBuf::new().with("drop", collection))? {
            Err(refusal) if refusal.code != CommandError::NAMESPACE_NOT_FOUND => {
                Err(ToolError::server(database, refusal))
            }
            _ => Ok(()),
        }
    }
}
