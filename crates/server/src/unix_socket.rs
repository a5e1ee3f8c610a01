//! The Unix domain socket beside the port, for clients on the same machine.

use crate::backlog::BACKLOG;
use socket2::{Domain, SockAddr, Socket, Type};
use std::fs::{self, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

/// Location of the socket for clients on the same machine.
#[derive(Clone, Debug)]
pub struct UnixSocketOptions {
    /// Directory of the socket file, whose name contains the port (`net.unixDomainSocket.pathPrefix`).
    pub directory: PathBuf,
    /// File mode of the socket: the users that may connect (`net.unixDomainSocket.filePermissions`).
    pub permissions: u32,
}

/// The socket file; dropping it removes the file.
#[derive(Debug)]
pub(crate) struct SocketFile(PathBuf);

impl SocketFile {
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// Listens on `mongodb-PORT.sock`.
/// # Errors
/// `AddrInUse` if another process listens there, `AlreadyExists` if the name belongs to a file that is not a socket;
/// the error names it.
pub(crate) fn bind(options: &UnixSocketOptions, port: u16) -> io::Result<(UnixListener, SocketFile)> {
    let path = options.directory.join(format!("mongodb-{port}.sock"));
    let bound = remove_stale(&path).and_then(|()| listen(&path, options.permissions));
    bound.map_err(|error| io::Error::new(error.kind(), format!("cannot bind {}: {error}", path.display())))
}

fn listen(path: &Path, permissions: u32) -> io::Result<(UnixListener, SocketFile)> {
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.bind(&SockAddr::unix(path)?)?;
    let file = SocketFile(path.to_owned());
    // No client can connect before `listen`, so none connects under the wrong permissions.
    fs::set_permissions(path, Permissions::from_mode(permissions))?;
    socket.listen(BACKLOG)?;
    socket.set_nonblocking(true)?;
    Ok((socket.into(), file))
}

/// Removes the socket file of a process that has ended.
fn remove_stale(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.file_type().is_socket() => {}
        Ok(_) => return Err(io::Error::new(ErrorKind::AlreadyExists, "a file that is not a socket has that name")),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    }
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    // Non-blocking, so that a listener that hangs cannot block this process.
    socket.set_nonblocking(true)?;
    match socket.connect(&SockAddr::unix(path)?) {
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => fs::remove_file(path),
        Err(error) if error.kind() == ErrorKind::PermissionDenied => Err(error),
        _ => Err(io::Error::from(ErrorKind::AddrInUse)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;

    fn options() -> (tempfile::TempDir, UnixSocketOptions) {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let options = UnixSocketOptions { directory: directory.path().to_owned(), permissions: 0o640 };
        (directory, options)
    }

    #[test]
    fn a_socket_is_named_after_the_port_and_removed() {
        let (_directory, options) = options();
        let (listener, file) = bind(&options, 27017).expect("bound");
        assert_eq!(file.path(), options.directory.join("mongodb-27017.sock"));
        assert_eq!(fs::metadata(file.path()).expect("it is there").permissions().mode() & 0o7777, 0o640);
        UnixStream::connect(file.path()).expect("somebody listens");
        let path = file.path().to_owned();
        drop((listener, file));
        assert!(!path.exists());
    }

    #[test]
    fn the_socket_of_a_dead_process_is_replaced_and_of_a_live_one_is_not() {
        let (_directory, options) = options();
        let path = options.directory.join("mongodb-1.sock");
        drop(UnixListener::bind(&path).expect("bound"));
        let (_listener, _file) = bind(&options, 1).expect("nobody listens");
        let error = bind(&options, 1).expect_err("somebody listens");
        assert_eq!(error.kind(), ErrorKind::AddrInUse);
        assert_eq!(error.to_string(), format!("cannot bind {}: address in use", path.display()));
        UnixStream::connect(path).expect("the first still listens");
    }

    #[test]
    fn a_file_that_is_not_a_socket_is_left_alone() {
        let (_directory, options) = options();
        let path = options.directory.join("mongodb-1.sock");
        fs::write(&path, "letter").expect("written");
        assert_eq!(bind(&options, 1).expect_err("refused").kind(), ErrorKind::AlreadyExists);
        assert_eq!(fs::read_to_string(path).expect("readable"), "letter");
    }

    #[test]
    fn a_name_that_is_too_long_is_named() {
        let (_directory, mut options) = options();
        options.directory.push("d".repeat(100));
        fs::create_dir(&options.directory).expect("made");
        assert!(bind(&options, 1).expect_err("refused").to_string().contains("ddd/mongodb-1.sock: "));
    }
}
