//! Files that scripts read whole: their bytes are outside of the heap of scripts, so they have a limit of their own.

use std::fs::File;
use std::io::{self, ErrorKind, Read};

/// Maximum number of bytes of a file.
const BYTES_MAX: u64 = 256 << 20;

/// Reads a file.
/// # Errors
/// As the filesystem's, and `FileTooLarge`.
pub(crate) fn read(path: &str) -> io::Result<Vec<u8>> {
    read_up_to(path, BYTES_MAX)
}

fn read_up_to(path: &str, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let count = File::open(path)?.take(bytes_max + 1).read_to_end(&mut bytes)?;
    if count as u64 <= bytes_max {
        return Ok(bytes);
    }
    Err(io::Error::new(ErrorKind::FileTooLarge, format!("more than the {bytes_max} bytes that a script may read")))
}

#[cfg(test)]
mod tests {
    use super::read_up_to;
    use std::io::ErrorKind;

    #[test]
    fn a_file_without_end_is_refused() {
        assert!(read_up_to("/dev/zero", 10).is_err_and(|error| error.kind() == ErrorKind::FileTooLarge));
        assert!(read_up_to("/dev/null", 10).is_ok_and(|bytes| bytes.is_empty()));
    }
}
