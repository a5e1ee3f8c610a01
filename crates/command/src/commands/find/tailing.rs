//! A tailable find: its cursor stays open at the end of a capped collection.

use super::Find;
use bunko_bson::DocumentRef;
use bunko_catalog::Collection;
use bunko_errors::Failure;
use bunko_operation::Examined;
use bunko_query::{FindQuery, Hint, Tail};
use bunko_session::cursors::CursorSource;
use bunko_store::{Bell, Direction};
use std::sync::Arc;

/// The source of a tailable cursor.
pub(super) struct Tailing {
    tail: Tail,
    /// Whether a `getMore` waits for new documents.
    awaits_data: bool,
}

impl CursorSource for Tailing {
    fn next(&mut self) -> Result<Option<DocumentRef<'_>>, Failure> {
        self.tail.next()
    }

    fn examined(&self) -> Option<Examined> {
        Some(Examined { keys: 0, documents: self.tail.examined() })
    }

    fn resume(&mut self) -> Result<(), Failure> {
        self.tail.resume()
    }

    fn stays_open(&self) -> bool {
        self.tail.has_place()
    }

    fn bell(&self) -> Option<&Arc<Bell>> {
        self.awaits_data.then(|| self.tail.collection().bell())
    }
}

impl Find<'_> {
    /// Refuses a tailable cursor on a collection that is not capped, and options that it does not support.
    /// # Errors
    /// `BadValue`.
    pub(super) fn check_following(&self, collection: &Collection, query: &FindQuery) -> Result<(), Failure> {
        if !collection.is_capped() {
            return Err(not_capped());
        }
        if self.is_single_batch {
            return Err(Failure::bad_value("Cannot use tailable option with the 'singleBatch' option"));
        }
        if self.sort.is_some() && matches!(query.hint, Some(Hint::Natural(Direction::Backward))) {
            return Err(Failure::bad_value("cannot use tailable option with a sort other than {$natural: 1}"));
        }
        Ok(())
    }

    /// A tailable cursor, which also returns documents that are inserted later.
    pub(super) fn follow(&self, collection: &Arc<Collection>, query: FindQuery) -> Result<Tailing, Failure> {
        Ok(Tailing { tail: Tail::new(collection, Arc::new(query))?, awaits_data: self.awaits_data })
    }
}

pub(super) fn not_capped() -> Failure {
    Failure::bad_value("error processing query: tailable cursor requested on non capped collection")
}
