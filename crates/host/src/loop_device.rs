//! The loop device that holds the files below a path, and the time that kernel threads spend on it.
//!
//! The kernel serves a loop device by work items of a queue with the device's name. A kernel worker runs items of many
//! queues, one after the other, and its name shows the queue of the latest item. A worker's processor time between two
//! looks is the device's if its name shows the device at both. If only one look shows it, or if the worker wrote pages
//! back to the device below the image, the time is shared in unknown parts.

use crate::filesystem::filesystem_of;
use crate::ticks::duration_of_ticks;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Maximum number of layers of devices that are followed: a partition on a volume on an image needs three.
const LAYERS_MAX: usize = 8;
/// Name of the parent of all kernel threads, where this process can see them.
const KERNEL_THREADS: &str = "kthreadd";

/// A loop device that holds files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoopDevice {
    /// `loop0`
    pub name: String,
    /// The queue that writes pages of the image back to the device below it: `flush-254:0`.
    write_back: Option<String>,
}

impl LoopDevice {
    /// The loop device below a path, through any layers; `None` if there is none.
    pub fn below(path: &Path) -> Option<Self> {
        let device = fs::canonicalize(filesystem_of(path)?.device).ok()?;
        let devices = Path::new("/sys/class/block");
        let name = loop_below(devices, device.file_name()?.to_str()?, LAYERS_MAX)?;
        let image = fs::read_to_string(devices.join(&name).join("loop/backing_file"));
        let number = image.ok().and_then(|image| fs::metadata(image.trim_end()).ok()).map(|image| image.dev());
        let write_back =
            number.map(|number| format!("flush-{}:{}", rustix::fs::major(number), rustix::fs::minor(number)));
        Some(Self { name, write_back })
    }

    /// The device's share in a queue's work.
    fn share_of(&self, queue: &str) -> Share {
        if queue == self.name {
            Share::Own
        } else if self.write_back.as_deref() == Some(queue) {
            Share::Unknown
        } else {
            Share::None
        }
    }
}

/// The loop device that a block device is or lies on: `loop0` for `loop0p1`, or for a volume on it.
fn loop_below(devices: &Path, name: &str, layers: usize) -> Option<String> {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    if let Some(rest) = name.strip_prefix("loop").filter(|rest| digits(rest) > 0) {
        return Some(format!("loop{}", &rest[..digits(rest)]));
    }
    let below = fs::read_dir(devices.join(name).join("slaves")).ok().filter(|_| layers > 0)?;
    let mut names = below.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    names.find_map(|name| loop_below(devices, &name, layers - 1))
}

/// Whether a kernel thread's work is the device's: all of it, an unknown part, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Share {
    Own,
    Unknown,
    None,
}

/// A kernel thread, as the last look found it.
struct Worker {
    share: Share,
    ran: Duration,
}

/// Processor time of kernel threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LoopWork {
    /// Time in which the threads worked only for the device.
    pub own: Duration,
    /// Time in which the threads worked for the device and for others, in unknown parts.
    pub shared: Duration,
}

/// Adds up the time of kernel threads that work for a loop device. Work that begins and ends between two looks and
/// leaves another queue's name is missed, so look several times a second.
pub struct LoopWatch {
    device: LoopDevice,
    processes: PathBuf,
    workers: BTreeMap<u32, Worker>,
    work: LoopWork,
}

impl LoopWatch {
    /// Begins to watch; `None` if this process sees no kernel threads, as in a container.
    pub fn begin(device: LoopDevice) -> Option<Self> {
        Self::of_processes(device, Path::new("/proc"))
    }

    fn of_processes(device: LoopDevice, processes: &Path) -> Option<Self> {
        let name = fs::read_to_string(processes.join("2/comm")).ok()?;
        let mut watch =
            Self { device, processes: processes.to_owned(), workers: BTreeMap::new(), work: LoopWork::default() };
        (name.trim_end() == KERNEL_THREADS).then(|| {
            watch.workers = watch.read();
            watch
        })
    }

    /// Adds the work since the last look.
    pub fn look(&mut self) {
        let now = self.read();
        for (process, worker) in &now {
            let (before, ran) = match self.workers.get(process) {
                Some(before) => (before.share, worker.ran.saturating_sub(before.ran)),
                // The thread began between two looks, with an unknown queue.
                None => (Share::None, worker.ran),
            };
            match (before, worker.share) {
                (Share::None, Share::None) => {}
                (Share::Own, Share::Own) => self.work.own += ran,
                _ => self.work.shared += ran,
            }
        }
        self.workers = now;
    }

    /// The work up to the last look.
    pub fn work(&self) -> LoopWork {
        self.work
    }

    fn read(&self) -> BTreeMap<u32, Worker> {
        let Ok(entries) = fs::read_dir(&self.processes) else { return BTreeMap::new() };
        let numbers = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
        let worker = |process: u32| {
            let directory = self.processes.join(process.to_string());
            let queue = queue_of(fs::read_to_string(directory.join("comm")).ok()?.trim_end())?.to_owned();
            Some((process, Worker { share: self.device.share_of(&queue), ran: time_run(&directory)? }))
        };
        numbers.filter_map(worker).collect()
    }
}

/// The queue that a kernel thread works for or last worked for: `loop0` of `kworker/u8:3+loop0`. Up to Linux 5.13 a
/// loop device has a thread of its own, with its name. `None` for any other thread.
/// Source: the kernel's `wq_worker_comm`, which joins the names by `+` while an item runs and by `-` afterwards.
fn queue_of(name: &str) -> Option<&str> {
    match name.strip_prefix("kworker/") {
        Some(rest) => rest.split_once(['+', '-']).map(|(_, queue)| queue),
        None => name.starts_with("loop").then_some(name),
    }
}

/// Processor time of a thread, in nanoseconds if the kernel counts them, otherwise in ticks.
/// Source: the kernel's `scheduler/sched-stats.rst`, and proc_pid_stat(5) for fields 14 and 15.
fn time_run(directory: &Path) -> Option<Duration> {
    let nanoseconds = fs::read_to_string(directory.join("schedstat")).ok();
    if let Some(ran) = nanoseconds.and_then(|text| text.split_whitespace().next()?.parse().ok()) {
        return Some(Duration::from_nanos(ran));
    }
    let stat = fs::read_to_string(directory.join("stat")).ok()?;
    // The name, in parentheses, may contain any character; the third field follows the last parenthesis.
    let (_, fields) = stat.rsplit_once(") ")?;
    let mut times = fields.split(' ').skip(11).map(str::parse::<u64>);
    Some(duration_of_ticks(times.next()?.ok()? + times.next()?.ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn names_of_kernel_threads_say_whose_work_they_do() {
        assert_eq!(queue_of("kworker/u8:3+loop0"), Some("loop0"));
        assert_eq!(queue_of("kworker/u8:3-flush-254:0"), Some("flush-254:0"));
        assert_eq!(queue_of("kworker/0:1H-kblockd"), Some("kblockd"));
        assert_eq!(queue_of("loop7"), Some("loop7"));
        assert_eq!(
            (queue_of("kworker/R-loop0"), queue_of("kworker/0:1"), queue_of("bunko")),
            (Some("loop0"), None, None)
        );
    }

    #[test]
    fn a_loop_device_is_found_below_partitions_and_volumes() {
        let devices = tempfile::tempdir().expect("a directory");
        let below = |name: &str| loop_below(devices.path(), name, LAYERS_MAX);
        fs::create_dir_all(devices.path().join("dm-1/slaves/dm-0")).expect("made");
        fs::create_dir_all(devices.path().join("dm-0/slaves")).expect("made");
        symlink("/nowhere", devices.path().join("dm-0/slaves/loop12p3")).expect("made");
        fs::create_dir_all(devices.path().join("vda/slaves")).expect("made");
        assert_eq!(below("loop0").as_deref(), Some("loop0"));
        assert_eq!(below("loop0p1").as_deref(), Some("loop0"));
        assert_eq!(below("dm-1").as_deref(), Some("loop12"));
        assert_eq!((below("vda"), below("loop-control"), below("tmpfs")), (None, None, None));
        // A device that lies on itself.
        fs::create_dir_all(devices.path().join("dm-2/slaves/dm-2")).expect("made");
        assert_eq!(below("dm-2"), None);
    }

    #[test]
    fn time_is_own_shared_or_nobodys_by_the_names_before_and_after() {
        let processes = tempfile::tempdir().expect("a directory");
        let set = |process: u32, name: &str, milliseconds: u64| {
            let directory = processes.path().join(process.to_string());
            fs::create_dir_all(&directory).expect("made");
            fs::write(directory.join("comm"), format!("{name}\n")).expect("written");
            fs::write(directory.join("schedstat"), format!("{} 7 3\n", milliseconds * 1_000_000)).expect("written");
        };
        let device = || LoopDevice { name: "loop0".into(), write_back: Some("flush-254:0".into()) };
        assert!(LoopWatch::of_processes(device(), processes.path()).is_none(), "no kernel threads to be seen");
        set(2, "kthreadd", 5);
        set(10, "kworker/u8:0-loop0", 100);
        set(11, "kworker/u8:1-events_unbound", 100);
        set(12, "kworker/u8:2-flush-254:0", 100);
        set(13, "kworker/u8:3-loop1", 100);
        let mut watch = LoopWatch::of_processes(device(), processes.path()).expect("there are");
        set(10, "kworker/u8:0+loop0", 130);
        set(11, "kworker/u8:1-loop0", 105);
        set(12, "kworker/u8:2-flush-254:0", 107);
        set(13, "kworker/u8:3-loop1", 900);
        set(14, "kworker/u8:4-loop0", 2);
        watch.look();
        let milliseconds =
            |own, shared| LoopWork { own: Duration::from_millis(own), shared: Duration::from_millis(shared) };
        assert_eq!(watch.work(), milliseconds(30, 5 + 7 + 2));
        // The thread that began in between is known at this look.
        set(14, "kworker/u8:4-loop0", 12);
        watch.look();
        assert_eq!(watch.work(), milliseconds(40, 14));
    }

    #[test]
    fn a_thread_without_scheduler_statistics_is_read_in_ticks() {
        let directory = tempfile::tempdir().expect("a directory");
        let stat = "9 (kworker/u8:0-a) b) I 2 0 0 0 -1 69238880 0 0 0 0 3 4 0 0 20 0 1 0 5 0 0";
        fs::write(directory.path().join("stat"), stat).expect("written");
        assert_eq!(time_run(directory.path()), Some(duration_of_ticks(7)));
    }
}
