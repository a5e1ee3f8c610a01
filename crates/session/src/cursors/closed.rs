//! Cursors that the server closed to make room, kept to tell their clients why.

use bunko_errors::{ErrorCode, Failure};
use std::collections::VecDeque;

/// Maximum number of closed cursors that are kept.
const CLOSED_REMEMBERED_MAX: usize = 1_000;

/// The reason why a cursor was closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Room {
    /// Engines retained too much for the snapshots of idle cursors.
    Snapshots,
    /// Idle cursors held too much memory.
    Memory,
}

/// The cursors closed last, oldest first.
#[derive(Debug, Default)]
pub(super) struct ClosedCursors(VecDeque<(i64, Room)>);

impl ClosedCursors {
    /// Notes that a cursor has been closed.
    pub fn note(&mut self, id: i64, room: Room) {
        if self.0.len() == CLOSED_REMEMBERED_MAX {
            self.0.pop_front();
        }
        self.0.push_back((id, room));
    }

    /// The error for a cursor that does not exist, with the reason if it is known.
    pub fn is_gone(&self, id: i64) -> Failure {
        match self.0.iter().rev().find(|(closed, _)| *closed == id) {
            None => not_found(id),
            Some((_, Room::Memory)) => {
                let message = format!(
                    "cursor id {id} was ended while it waited: of all idle cursors it held most, and they held more memory than \
                     their share. Fetch its documents sooner, or allow disk use"
                );
                Failure::new(ErrorCode::EXCEEDED_MEMORY_LIMIT, message)
            }
            Some((_, Room::Snapshots)) => {
                let message = format!(
                    "cursor id {id} not found: it waited while what it reads was replaced, and what was kept for it and others \
                     took more room than idle cursors may (parameter idleCursorKeepMaxMB)"
                );
                Failure::new(ErrorCode::CURSOR_NOT_FOUND, message)
            }
        }
    }
}

pub(super) fn not_found(id: i64) -> Failure {
    Failure::new(ErrorCode::CURSOR_NOT_FOUND, format!("cursor id {id} not found"))
}
