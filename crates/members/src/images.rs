//! Lends an image of this member's data to a member that has none, or whose log cannot be continued.
//!
//! | `image.kind` | Fields | Answer |
//! |---|---|---|
//! | `begin` | `known`, the id of an image that this member has begun for the sender | `id`, `engine`; `list` once it is ready |
//! | `read` | `id`, `file`, `offset` | `bytes`, or `zeros` as their number; `checksum` |
//! | `keep` | `id` | |
//! | `release` | `id` | |

use crate::IMAGE;
use crate::members::Members;
use crate::wire::Fields;
use bunko_bson::{BinarySubtype, DocumentBuf, DocumentRef, ValueRef};
use bunko_catalog::from_storage;
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_replica_set::MemberState;
use bunko_store::ImageState;

impl Members {
    /// Answers a request about an image of this member's data. It may wait for the disk.
    /// # Errors
    /// As [`Members::receive`]; `NotPrimaryOrSecondary` from a member without data; `ConflictingOperationInProgress` while
    /// another member has an image; `OperationFailed` for an image that is over.
    pub fn image(&self, body: DocumentRef<'_>) -> Result<DocumentBuf> {
        let bad = |reason: String| Failure::bad_value(format!("{}: {reason}", crate::COMMAND));
        let (core, from) = (self.core(), self.check_sender(body)?);
        self.check_membership(from, body)?;
        if !matches!(core.set.state(), MemberState::Primary | MemberState::Secondary) {
            let message = "this member has no complete data from which another one could be made";
            return Err(Failure::new(ErrorCode::NOT_PRIMARY_OR_SECONDARY, message));
        }
        let asked = Fields(body).document(IMAGE).map_err(bad)?;
        let text = |name: &str| asked.0.get(name).and_then(ValueRef::as_str);
        let id = || text("id").ok_or_else(|| bad("'id' is not a string".to_owned()));
        match text("kind") {
            Some("begin") => {
                let known = text("known");
                let image = core.store.begin_image(&format!("member {}", from.0), known).map_err(from_storage)?;
                let answer = DocumentBuf::new().with("id", image.id()).with("engine", core.store.engine_name());
                match image.state() {
                    ImageState::Preparing => Ok(answer),
                    ImageState::Ready(list) => Ok(answer.with("list", &list.document())),
                    ImageState::Failed(reason) => {
                        core.store.release_image(image.id());
                        Err(Failure::new(ErrorCode::OPERATION_FAILED, format!("the image cannot be made: {reason}")))
                    }
                }
            }
            Some("read") => {
                let file = text("file").ok_or_else(|| bad("'file' is not a string".to_owned()))?;
                let offset = asked.whole("offset").map_err(bad)?;
                let mut bytes = Vec::new();
                let image = core.store.image(id()?).map_err(from_storage)?;
                let checksum = image.read(file, offset, &mut bytes).map_err(from_storage)?;
                let answer = DocumentBuf::new().with("checksum", i64::from(checksum));
                if bytes.iter().all(|byte| *byte == 0) {
                    return Ok(answer.with("zeros", bytes.len() as i64));
                }
                Ok(answer.with("bytes", ValueRef::Binary { subtype: BinarySubtype::GENERIC, bytes: &bytes }))
            }
            Some("keep") => core.store.image(id()?).map(|_| DocumentBuf::new()).map_err(from_storage),
            Some("release") => {
                core.store.release_image(id()?);
                Ok(DocumentBuf::new())
            }
            _ => Err(bad(format!("'{IMAGE}' is of no known kind"))),
        }
    }
}
