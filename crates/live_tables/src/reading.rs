//! The replies of a server at a moment, and the changes between two moments.

use bunko_bson::{ArrayRef, DocumentBuf, DocumentRef, ValueRef, number};
use std::time::Instant;

/// The state of one server at a moment.
pub(crate) struct Reading {
    /// When the reply came.
    pub at: Instant,
    /// The date of that moment, in milliseconds since 1970.
    pub date_ms: u64,
    /// The reply of `serverStatus`.
    pub status: DocumentBuf,
    /// The reply of `replSetGetStatus`; `None` if the server is in no set, or the user may not ask.
    pub set: Option<DocumentBuf>,
}

impl Reading {
    /// The value at a path of names, joined by dots, in `serverStatus`.
    pub fn value(&self, path: &str) -> Option<ValueRef<'_>> {
        at(self.status.as_ref(), path)
    }

    /// As [`Self::value`], for numbers.
    pub fn number(&self, path: &str) -> Option<f64> {
        self.value(path).and_then(number::as_f64)
    }

    /// As [`Self::value`], for texts.
    pub fn text(&self, path: &str) -> Option<&str> {
        self.value(path).and_then(ValueRef::as_str)
    }

    /// As [`Self::value`], for booleans that are true.
    pub fn holds(&self, path: &str) -> bool {
        matches!(self.value(path), Some(ValueRef::Boolean(true)))
    }

    /// The members of the set that clients may use, and its arbiters.
    pub fn members(&self) -> impl Iterator<Item = &str> {
        ["repl.hosts", "repl.passives", "repl.arbiters"]
            .into_iter()
            .filter_map(|path| self.value(path)?.as_array())
            .flat_map(ArrayRef::iter)
            .filter_map(ValueRef::as_str)
    }
}

/// The value at a path of names, joined by dots.
pub(crate) fn at<'a>(document: DocumentRef<'a>, path: &str) -> Option<ValueRef<'a>> {
    let (parents, last) = path.rsplit_once('.').map_or((None, path), |(parents, last)| (Some(parents), last));
    let mut document = document;
    for name in parents.into_iter().flat_map(|parents| parents.split('.')) {
        document = document.get(name)?.as_document()?;
    }
    document.get(last)
}

/// Two readings of one server.
#[derive(Clone, Copy)]
pub(crate) struct Interval<'a> {
    /// The server's `host:port`.
    pub host: &'a str,
    /// The older reading.
    pub before: &'a Reading,
    /// The newer reading.
    pub now: &'a Reading,
}

impl Interval<'_> {
    /// Its length.
    pub fn seconds(&self) -> f64 {
        self.now.at.saturating_duration_since(self.before.at).as_secs_f64().max(1e-3)
    }

    /// How much a number grew. `None` if a reading lacks it.
    pub fn difference(&self, path: &str) -> Option<f64> {
        Some(self.now.number(path)? - self.before.number(path)?)
    }

    /// How much a number grew in each second. `None` if a reading lacks it.
    pub fn rate(&self, path: &str) -> Option<f64> {
        Some(self.difference(path)? / self.seconds())
    }

    /// As [`Self::rate`], for a counter. `None` also if it fell: the server started anew.
    pub fn counter_rate(&self, path: &str) -> Option<f64> {
        self.rate(path).filter(|rate| *rate >= 0.0)
    }
}
