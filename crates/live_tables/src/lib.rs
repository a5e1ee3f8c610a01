//! Tables that show, second by second, what servers do: `bunko stat` reads `serverStatus`, `bunko top` reads `top`.
//!
//! Both read a server at intervals, and show what changed between two readings. The columns are those of mongostat and
//! mongotop, so that scripts that read them go on.
//!
//! **Invariant:** servers are reached by `client` only, so any server of the protocol will do; a fact that a server
//! does not tell is a dash, never a zero.
//! **Invariant:** a server that goes away does not end a table; the table goes on when the server answers again.
#![forbid(unsafe_code)]

mod column;
mod columns;
mod error;
mod field;
mod grid;
#[cfg(test)]
mod handbook;
mod observer;
mod pace;
mod reading;
mod screen;
mod stat;
mod top;
mod units;

pub use columns::columns;
pub use error::TableError;
pub use field::{Choice, Field};
pub use screen::{Reader, Screen};
pub use stat::{Headers, Members, StatOptions, stat};
pub use top::{TopOptions, top};
pub use units::Units;

/// How a table is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Columns for reading.
    Text,
    /// One JSON object a line.
    Json,
}
