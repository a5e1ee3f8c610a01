//! Cuts the file short under the map.

use crate::*;
use std::os::unix::process::ExitStatusExt;

const CHILD: &str = "BUNKO_MMAP_TEST_DIRECTORY";

fn run_child(name: &str, directory: &Path) -> std::process::Output {
    std::process::Command::new(std::env::current_exe().expect("known"))
        .args(["--exact", name, "--ignored", "--nocapture"])
        .env(CHILD, directory)
        .output()
        .expect("runs")
}

#[test]
fn a_bus_error_is_a_clean_death_with_a_message() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let child = run_child("bus_error::child", directory.path());
    let message = String::from_utf8_lossy(&child.stderr);
    assert_eq!((child.status.code(), child.status.core_dumped()), (Some(14), false), "{message}");
    let expected = format!("storage engine 'mmap': {}", data_file(directory.path()).display());
    assert!(message.contains(&expected) && message.contains("SIGBUS"), "{message}");
}

#[test]
#[ignore = "the child process of the test above"]
fn child() {
    let Some(directory) = std::env::var_os(CHILD) else { return };
    let directory = PathBuf::from(directory);
    let store = open(&directory).expect("opens");
    insert(&store, 1..1001);
    store.checkpoint().expect("checkpoint");
    std::fs::OpenOptions::new()
        .write(true)
        .open(data_file(&directory))
        .and_then(|file| file.set_len(3 * 4096))
        .expect("cut short");
    let outcome = records(store.latest(), RecordRange::ALL, Direction::Forward);
    panic!("{:?} was read from where no file is", outcome.map(|records| records.len()));
}

#[test]
fn a_process_without_the_engine_has_no_handler() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let child = run_child("bus_error::child_without_the_engine", directory.path());
    assert_eq!(child.status.signal(), Some(libc::SIGBUS), "{:?}", child.status);
}

#[test]
#[ignore = "the child process of the test above"]
fn child_without_the_engine() {
    let Some(directory) = std::env::var_os(CHILD) else { return };
    let path = PathBuf::from(directory).join("cut");
    std::fs::write(&path, [1; 8192]).expect("written");
    let file = std::fs::OpenOptions::new().read(true).write(true).open(&path).expect("opens");
    let (access, flags) = (rustix::mm::ProtFlags::READ, rustix::mm::MapFlags::SHARED);
    // SAFETY: a new map at an address that the kernel chooses; the test is that reading it ends the process.
    let byte = unsafe {
        let start = rustix::mm::mmap(std::ptr::null_mut(), 8192, access, flags, &file, 0).expect("mapped");
        file.set_len(0).expect("cut short");
        start.cast::<u8>().read_volatile()
    };
    panic!("{byte} was read from where no file is");
}
