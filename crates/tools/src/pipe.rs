//! A pipe from a dump to a restore in the same process.

use parking_lot::Mutex;
use std::io::{self, PipeReader, PipeWriter};
use std::sync::Arc;

/// One end of a pipe. Copies of the options share the end; the run that is given the options takes it.
#[derive(Debug)]
pub struct PipeEnd<T>(Arc<Mutex<Option<T>>>);

impl<T> PipeEnd<T> {
    fn new(end: T) -> Self {
        Self(Arc::new(Mutex::new(Some(end))))
    }

    /// Takes the end out.
    /// # Errors
    /// `BrokenPipe` if it was taken before.
    pub(crate) fn take(&self) -> io::Result<T> {
        self.0.lock().take().ok_or_else(|| io::ErrorKind::BrokenPipe.into())
    }
}

impl<T> Clone for PipeEnd<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> PartialEq for PipeEnd<T> {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl<T> Eq for PipeEnd<T> {}

/// Makes a pipe. The kernel limits the bytes in it.
/// # Errors
/// The system's.
pub(crate) fn pipe() -> io::Result<(PipeEnd<PipeReader>, PipeEnd<PipeWriter>)> {
    let (reader, writer) = io::pipe()?;
    Ok((PipeEnd::new(reader), PipeEnd::new(writer)))
}
