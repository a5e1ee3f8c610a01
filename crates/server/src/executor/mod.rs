//! The threads that serve connections.
//!
//! A connection is a task, and all threads wait on one epoll set. The thread that takes an event queues its task and
//! runs it, unless another thread takes the task over because the first one is in a long task or has no processor. So
//! no connection depends on one thread.
//!
//! The number of serving threads follows the load. While one thread keeps up, it serves alone: a second thread would be
//! woken for a request that the first has reached by then, and a wake-up costs more than most requests. If a request
//! holds a thread, another one serves in its place.
//!
//! **Invariant:** a task is run by one thread at a time, and runs once more after any event that arrives while it runs.
//! **Invariant:** a thread that waits or rests has an empty queue.

mod crowd;
mod poller;
mod queue;
mod seat;
mod substitutes;
mod task;
mod worker;

use crate::execute::Apart;
use crate::socket::Socket;
use bunko_command::Haste;
use bunko_host::Clock;
use bunko_lookout::Lookout;
use parking_lot::{Mutex, RwLock};
use poller::Poller;
use queue::Queue;
use rustc_hash::FxHashMap;
use seat::Seat;
use std::cell::Cell;
use std::future::Future;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use substitutes::SUBSTITUTES_MAX;
use task::Task;
use worker::Worker;

thread_local! {
    /// The executor of this thread, as an address, and the thread's number there.
    static EMPLOYER: Cell<(usize, usize)> = const { Cell::new(NOBODY) };
}

const NOBODY: (usize, usize) = (0, 0);

/// The tasks, and the state that the threads share.
pub(crate) struct Executor {
    poller: Poller,
    tasks: RwLock<FxHashMap<u64, Arc<Task>>>,
    /// Number of threads without substitutes.
    threads: usize,
    /// Seats of the threads, followed by those of substitutes.
    seats: Vec<Seat>,
    /// Number of seats in use: seats after these were not taken since all substitutes left.
    seats_used: AtomicUsize,
    /// Tasks woken by threads outside the executor.
    woken: Mutex<Queue>,
    connections: AtomicUsize,
    lookout: Lookout,
    apart: Apart,
    stopped: AtomicBool,
    clock: Clock,
}

impl Executor {
    /// An executor for `threads` threads, which are watched by this clock.
    pub fn new(threads: usize, clock: Clock) -> io::Result<Arc<Self>> {
        Ok(Arc::new(Self {
            clock,
            poller: Poller::new()?,
            tasks: RwLock::default(),
            threads,
            seats: std::iter::repeat_with(Seat::default).take(threads + SUBSTITUTES_MAX).collect(),
            seats_used: AtomicUsize::new(threads),
            woken: Mutex::default(),
            connections: AtomicUsize::new(0),
            lookout: Lookout::default(),
            apart: Apart::default(),
            stopped: AtomicBool::new(false),
        }))
    }

    /// Open connections.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    /// Turns of long commands on their own threads.
    pub fn apart(&self) -> &Apart {
        &self.apart
    }

    /// Serves a connection with `work`, which runs on each event of its socket, before others while `haste` is on. `id`
    /// is unique. Closes the connection if the threads have been stopped.
    pub fn spawn(
        self: &Arc<Self>,
        id: u64,
        socket: &Arc<Socket>,
        haste: &Arc<Haste>,
        work: impl Future<Output = ()> + Send + 'static,
    ) -> io::Result<()> {
        let task = Task::new(self, id, socket, haste, Box::pin(work));
        let mut tasks = self.tasks.write();
        if self.stopped.load(Ordering::Acquire) {
            return Ok(());
        }
        tasks.insert(id, task);
        drop(tasks);
        self.connections.fetch_add(1, Ordering::Relaxed);
        self.poller.add(socket, id).inspect_err(|_| self.forget(id)).map_err(Into::into)
    }

    /// Works as thread `number` until the executor stops. Thread 0 never rests.
    pub fn work(self: &Arc<Self>, number: usize) {
        EMPLOYER.set((Arc::as_ptr(self).addr(), number));
        self.seats[number].take();
        let mut worker = Worker::new(self, number);
        if number == 0 {
            while !worker.is_stopped() {
                worker.turn(self.lookout.patience());
            }
        } else {
            self.lookout.keep(&mut worker);
        }
        // A ring wakes only one thread, so each thread passes it on.
        self.poller.ring();
        self.seats[number].leave();
        EMPLOYER.set(NOBODY);
    }

    /// Queues a task that was woken.
    fn queue(&self, task: Arc<Task>) {
        let (employer, number) = EMPLOYER.get();
        // No ring is needed: the thread looks at its own queue before it waits.
        if employer == std::ptr::from_ref(self).addr() {
            return self.seats[number].ready.lock().push(task);
        }
        let mut woken = self.woken.lock();
        let was_empty = woken.is_empty();
        woken.push(task);
        drop(woken);
        // A thread that takes one woken task takes all of them, or wakes another thread.
        if was_empty {
            self.poller.ring();
        }
    }

    fn forget(&self, id: u64) {
        if self.tasks.write().remove(&id).is_some() {
            self.connections.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Stops the threads, each after its current task.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
        self.poller.ring();
    }

    /// Closes all connections. No thread may be working any more.
    pub fn close(&self) {
        let tasks: Vec<_> = self.tasks.write().drain().collect();
        for (_, task) in tasks {
            task.cancel();
        }
        for queue in self.seats.iter().map(|seat| &seat.ready).chain([&self.woken]) {
            queue.lock().clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::acknowledge::let_the_ready_run;
    use bunko_testkit::patience::{PATIENCE, wait_until};
    use std::future::poll_fn;
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;
    use std::sync::mpsc;
    use std::thread::JoinHandle;
    use std::time::{Duration, Instant};

    /// An executor with running threads; dropping it stops them.
    struct Running {
        executor: Arc<Executor>,
        threads: Vec<JoinHandle<()>>,
    }

    impl Running {
        fn new(threads: usize) -> Self {
            let executor = Executor::new(threads, Clock::machine()).unwrap();
            let start = |number| {
                let executor = Arc::clone(&executor);
                std::thread::spawn(move || executor.work(number))
            };
            let mut threads: Vec<_> = (0..threads).map(start).collect();
            let watched = Arc::clone(&executor);
            threads.push(std::thread::spawn(move || watched.watch()));
            Self { executor, threads }
        }

        /// Opens a connection served by `work`, and returns the client's end.
        fn connect<F: Future<Output = ()> + Send + 'static>(&self, work: impl FnOnce(Arc<Socket>) -> F) -> UnixStream {
            static LAST_ID: AtomicUsize = AtomicUsize::new(0);
            let (client, server) = UnixStream::pair().unwrap();
            server.set_nonblocking(true).unwrap();
            client.set_read_timeout(Some(PATIENCE)).unwrap();
            let socket = Arc::new(Socket::new(server));
            let id = LAST_ID.fetch_add(1, Ordering::Relaxed) as u64;
            self.executor.spawn(id, &socket, &Arc::default(), work(Arc::clone(&socket))).unwrap();
            client
        }
    }

    impl Drop for Running {
        fn drop(&mut self) {
            self.executor.stop();
            for thread in self.threads.drain(..) {
                thread.join().unwrap();
            }
            self.executor.close();
        }
    }

    async fn read(socket: &Socket) -> usize {
        let mut buffer = [0; 64];
        poll_fn(|_| socket.poll_read(&mut buffer)).await.unwrap()
    }

    /// Answers every read with one byte.
    async fn echo(socket: Arc<Socket>) {
        while read(&socket).await > 0 {
            socket.write_all(b"e").await.unwrap();
        }
    }

    fn ask(client: &mut UnixStream) {
        client.write_all(b"?").unwrap();
        client.read_exact(&mut [0]).unwrap();
    }

    #[test]
    fn a_thread_that_is_long_at_one_task_keeps_no_other_waiting() {
        let running = Running::new(2);
        let (release, held) = mpsc::channel::<()>();
        let mut long = running.connect(|socket| async move {
            read(&socket).await;
            held.recv().unwrap();
            socket.write_all(b"l").await.unwrap();
        });
        let mut clients: Vec<_> = (0..40).map(|_| running.connect(echo)).collect();
        long.write_all(b"?").unwrap();
        for client in &mut clients {
            ask(client);
        }
        release.send(()).unwrap();
        long.read_exact(&mut [0]).unwrap();
    }

    #[test]
    fn threads_that_are_all_held_are_replaced() {
        let running = Running::new(2);
        let (released, held) = (Arc::new(AtomicBool::new(false)), AtomicUsize::new(0));
        let held = Arc::new(held);
        let mut hostile: Vec<_> = (0..8)
            .map(|_| {
                let (released, held) = (Arc::clone(&released), Arc::clone(&held));
                running.connect(|socket| async move {
                    read(&socket).await;
                    held.fetch_add(1, Ordering::Relaxed);
                    while !released.load(Ordering::Relaxed) {
                        std::thread::sleep(Duration::from_millis(1));
                    }
                    socket.write_all(b"h").await.unwrap();
                })
            })
            .collect();
        let mut client = running.connect(echo);
        for holder in &mut hostile {
            holder.write_all(b"?").unwrap();
        }
        let began = Instant::now();
        while held.load(Ordering::Relaxed) < hostile.len() {
            assert!(began.elapsed() < PATIENCE);
            ask(&mut client);
        }
        (0..100).for_each(|_| ask(&mut client));
        released.store(true, Ordering::Relaxed);
        for holder in &mut hostile {
            holder.read_exact(&mut [0]).unwrap();
        }
        // The substitutes leave.
        wait_until("they leave", || !running.executor.seats[2..].iter().any(Seat::is_taken));
        ask(&mut client);
    }

    #[test]
    fn tasks_queued_behind_a_long_task_are_taken_over() {
        let mut running = Running { executor: Executor::new(2, Clock::machine()).unwrap(), threads: Vec::new() };
        let (entered, long) = mpsc::channel::<()>();
        let (release, held) = mpsc::channel::<()>();
        let mut first = running.connect(|socket| async move {
            read(&socket).await;
            entered.send(()).unwrap();
            held.recv().unwrap();
        });
        let mut second = running.connect(echo);
        // Both tasks are in the queue of the only thread.
        first.write_all(b"?").unwrap();
        second.write_all(b"?").unwrap();
        for number in 0..2 {
            let executor = Arc::clone(&running.executor);
            running.threads.push(std::thread::spawn(move || executor.work(number)));
            if number == 0 {
                long.recv().unwrap();
            }
        }
        second.read_exact(&mut [0]).unwrap();
        release.send(()).unwrap();
    }

    #[test]
    fn more_threads_serve_while_one_is_behind() {
        let running = Running::new(2);
        let mut clients: Vec<_> = (0..40)
            .map(|_| {
                running.connect(|socket| async move {
                    while read(&socket).await > 0 {
                        let began = Instant::now();
                        while began.elapsed() < Duration::from_micros(30) {}
                        socket.write_all(b"e").await.unwrap();
                    }
                })
            })
            .collect();
        let began = Instant::now();
        while running.executor.lookout.helpers() == 0 {
            assert!(began.elapsed() < PATIENCE);
            for client in &mut clients {
                client.write_all(b"?").unwrap();
            }
            for client in &mut clients {
                client.read_exact(&mut [0]).unwrap();
            }
        }
        // The second thread rests once one thread keeps up.
        wait_until("it rests", || running.executor.lookout.helpers() == 0);
        clients.iter_mut().for_each(ask);
    }

    #[test]
    fn a_task_without_end_lets_others_run() {
        let running = Running::new(1);
        let began = Instant::now();
        let _endless = running.connect(move |_| async move {
            // Longer than the clients of this test wait.
            while began.elapsed() < 2 * PATIENCE {
                let_the_ready_run().await;
            }
        });
        let mut client = running.connect(echo);
        for _ in 0..100 {
            ask(&mut client);
        }
    }

    #[test]
    fn a_panic_ends_its_own_connection() {
        let running = Running::new(1);
        let mut broken = running.connect(|socket| async move {
            read(&socket).await;
            panic!("planted");
        });
        let mut client = running.connect(echo);
        broken.write_all(b"?").unwrap();
        assert_eq!(broken.read(&mut [0]).unwrap(), 0);
        ask(&mut client);
        assert_eq!(running.executor.connections(), 1);
    }

    #[test]
    fn a_task_woken_by_another_thread_runs() {
        let running = Running::new(2);
        for _ in 0..200 {
            let (sender, receiver) = tokio::sync::oneshot::channel();
            let mut client = running.connect(|socket| async move {
                receiver.await.unwrap();
                socket.write_all(b"w").await.unwrap();
            });
            std::thread::spawn(move || sender.send(()).unwrap());
            client.read_exact(&mut [0]).unwrap();
        }
    }

    #[test]
    fn a_stop_closes_what_is_open() {
        let running = Running::new(4);
        // The sender outlives the threads but keeps no connection open.
        let (_sender, receiver) = tokio::sync::oneshot::channel::<()>();
        let mut waiting = running.connect(|_| async { drop(receiver.await) });
        let mut client = running.connect(echo);
        ask(&mut client);
        let executor = Arc::clone(&running.executor);
        drop(running);
        let late = Running { executor: Arc::clone(&executor), threads: Vec::new() };
        assert_eq!(late.connect(echo).read(&mut [0]).unwrap(), 0);
        drop(late);
        assert_eq!(waiting.read(&mut [0]).unwrap(), 0);
        assert_eq!(client.read(&mut [0]).unwrap(), 0);
        // Only this reference is left: all tasks are gone.
        assert_eq!(Arc::strong_count(&executor), 1);
    }
}
