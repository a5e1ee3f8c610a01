//! An operation's draws on the server's memory, made before it takes the memory.

use super::{OperationContext, WAIT, Waiting};
use crate::patience::Patience;
use crate::{Draw, Purpose, RunOn, ServerMemory};
use bunko_errors::{ErrorCode, Failure, Result};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Longest wait of an operation for a grant.
const GRANT_WAIT_MAX: Duration = Duration::from_mins(1);

/// Bytes drawn for memory that an operation is about to take. Memory that it then takes counts against these bytes
/// first.
#[derive(Debug)]
#[must_use]
pub struct OperationDraw<'o> {
    operation: &'o OperationContext,
    draw: Draw,
}

impl OperationDraw<'_> {
    /// The bytes drawn.
    pub fn bytes(&self) -> u64 {
        self.draw.bytes()
    }
}

impl Drop for OperationDraw<'_> {
    fn drop(&mut self) {
        self.operation.turn.lock().memory.end_draw(&self.draw);
    }
}

impl OperationContext {
    /// The server's budget, for memory that outlives the operation or is held by others.
    pub fn server_memory(&self) -> Arc<ServerMemory> {
        Arc::clone(self.turn.lock().memory.server())
    }

    /// Draws bytes that this thread is about to take for the operation.
    /// # Errors
    /// `ExceededMemoryLimit` if there is no room, or if one operation would hold too much.
    pub fn draw(&self, bytes: u64) -> Result<OperationDraw<'_>> {
        let draw = self.turn.lock().memory.draw(bytes)?;
        Ok(OperationDraw { operation: self, draw })
    }

    /// As [`Self::draw`], but blocks the thread until there is room. Must be called before the operation holds much,
    /// and only once: other operations may wait for the bytes that it already holds.
    /// # Errors
    /// As [`Self::check`] while it waits; `ExceededMemoryLimit` if one operation would hold too much, or if it cannot
    /// leave a shared thread; [`Failure::too_long`] on a thread that is not its own.
    pub fn draw_in_turn(&self, bytes: u64) -> Result<OperationDraw<'_>> {
        let refused = match self.draw(bytes) {
            Ok(draw) => return Ok(draw),
            Err(refused) => refused,
        };
        {
            let mut turn = self.turn.lock();
            turn.memory.check_own(bytes)?;
            if !turn.memory.may_wait() {
                return Err(refused);
            }
            if turn.run_on != RunOn::OwnThread {
                if turn.patience == Patience::Endless {
                    return Err(refused);
                }
                turn.was_too_long = true;
                return Err(Failure::too_long());
            }
        }
        let draw = self.wait_for_draw(bytes, Purpose::Work, || self.may_wait_until())?;
        self.turn.lock().memory.begin_draw(&draw);
        Ok(OperationDraw { operation: self, draw })
    }

    /// Blocks the thread until the draw is granted. `until` is called again and again; it returns how long the thread
    /// may wait next.
    /// # Errors
    /// Errors of `until`.
    fn wait_for_draw(&self, bytes: u64, purpose: Purpose, until: impl Fn() -> Result<Instant>) -> Result<Draw> {
        let mut drawing = self.server_memory().draw_in_turn(bytes, purpose);
        loop {
            if let Some(draw) = drawing.wait_until(until()?, &self.clock) {
                return Ok(draw);
            }
        }
    }

    /// Waits for a grant. Meanwhile the operation holds little memory, and no draw that others wait for.
    /// # Errors
    /// Errors of the interruption; `ExceededMemoryLimit` after a minute without room.
    pub(super) fn wait_for_grant(&self, bytes: u64) -> Result<()> {
        let ends = self.clock.now() + GRANT_WAIT_MAX;
        let until = || {
            if let Some(failure) = self.interruption.reason() {
                return Err(failure);
            }
            let now = self.clock.now();
            if now < ends {
                return Ok(now + WAIT);
            }
            let memory = self.server_memory();
            let message = format!(
                "operation waited {} s for {bytes} bytes of memory, and the server holds {} bytes of {} for all clients",
                GRANT_WAIT_MAX.as_secs(),
                memory.held(),
                memory.bytes_max(),
            );
            Err(Failure::new(ErrorCode::EXCEEDED_MEMORY_LIMIT, message))
        };
        let draw = self.wait_for_draw(bytes, Purpose::Grant, until)?;
        self.turn.lock().memory.grant(draw);
        Ok(())
    }

    /// Notes bytes that have been drawn for the operation.
    pub fn prepay(&self, bytes: u64) {
        self.turn.lock().memory.prepay(bytes);
    }

    /// Counts bytes that another process is about to hold for the operation.
    /// # Errors
    /// As [`Self::check`].
    pub fn hold_elsewhere(&self, bytes: usize) -> Result<()> {
        self.ask_for(bytes, Waiting::Allowed)?;
        self.turn.lock().memory.hold_elsewhere(bytes);
        Ok(())
    }

    /// Notes that the other process has freed the bytes.
    pub fn let_go_elsewhere(&self, bytes: usize) {
        self.turn.lock().memory.let_go_elsewhere(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Interruption, MemoryLimits};
    use std::sync::atomic::{AtomicBool, Ordering};

    #[derive(Default)]
    struct Killed(AtomicBool);

    impl Interruption for Killed {
        fn reason(&self) -> Option<Failure> {
            let is_killed = self.0.load(Ordering::Relaxed);
            is_killed.then(|| Failure::new(ErrorCode::INTERRUPTED, "operation was interrupted"))
        }
    }

    fn operation(server: &Arc<ServerMemory>, bytes_max: u64) -> (Arc<OperationContext>, Arc<Killed>) {
        let limits =
            MemoryLimits { operation_bytes_max: bytes_max, server: Arc::clone(server), ..MemoryLimits::none() };
        let killed = Arc::new(Killed::default());
        (OperationContext::new(Arc::clone(&killed) as _, limits), killed)
    }

    fn code(drawn: Result<OperationDraw<'_>>) -> Option<ErrorCode> {
        drawn.err().map(|failure| failure.code())
    }

    #[test]
    fn drawn_memory_goes_back() {
        let server = ServerMemory::new(1600);
        let (operation, _) = operation(&server, 1000);
        assert_eq!(code(operation.draw(1001)), Some(ErrorCode::EXCEEDED_MEMORY_LIMIT), "too much for one");
        let first = operation.draw(700).expect("there is room");
        assert_eq!((first.bytes(), server.held()), (700, 700));
        let other = server.draw(700, Purpose::Work);
        assert_eq!(code(operation.draw(300)), Some(ErrorCode::EXCEEDED_MEMORY_LIMIT), "too much for all");
        drop((first, other));
        assert_eq!(server.held(), 0);
    }

    #[test]
    fn memory_held_elsewhere_counts_as_its_own() {
        let server = ServerMemory::new(1600 << 20);
        let (operation, _) = operation(&server, 100 << 20);
        operation.hold_elsewhere(60 << 20).expect("there is room");
        let refused = operation.hold_elsewhere(60 << 20).expect_err("too much for one");
        assert_eq!(refused.code(), ErrorCode::EXCEEDED_MEMORY_LIMIT);
        assert_eq!(code(operation.draw(60 << 20)), Some(ErrorCode::EXCEEDED_MEMORY_LIMIT), "too much for one");
        operation.check().expect("nothing ends it");
        assert!((60 << 20..61 << 20).contains(&server.held()), "{}", server.held());
        operation.leave(0);
        operation.rest();
        assert_eq!((server.held(), operation.kept_bytes() >> 20), (0, 60), "a cursor waits with it");
        operation.enter(RunOn::OwnThread, Instant::now());
        operation.check().expect("nothing ends it");
        operation.let_go_elsewhere(60 << 20);
        assert!(server.held() <= 32 << 20, "its grant is left, until its thread leaves: {}", server.held());
        operation.leave(0);
        assert!(server.held() < 1 << 20, "{}", server.held());
        operation.enter(RunOn::OwnThread, Instant::now());
        operation.hold_elsewhere(60 << 20).expect("there is room again");
        drop(operation);
        assert_eq!(server.held(), 0);
    }

    #[test]
    fn a_waiting_operation_can_be_killed_and_leaves_a_shared_thread() {
        let server = ServerMemory::new(1600);
        let all = server.count(1600, Purpose::Reply);
        let (operation, killed) = operation(&server, u64::MAX);
        operation.enter(RunOn::SharedThread, Instant::now());
        assert!(operation.draw_in_turn(100).is_err_and(|failure| failure.is_too_long()));
        assert!(operation.was_too_long());
        operation.enter(RunOn::OwnThread, Instant::now());
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| operation.draw_in_turn(100).map(|draw| draw.bytes()));
            while server.waiting() == 0 {
                std::thread::yield_now();
            }
            drop(all);
            assert_eq!(waits.join().expect("no panic").ok(), Some(100));
        });
        let _all = server.count(1600, Purpose::Reply);
        killed.0.store(true, Ordering::Relaxed);
        assert_eq!(code(operation.draw_in_turn(100)), Some(ErrorCode::INTERRUPTED));
        assert_eq!(server.waiting(), 0);
    }

    #[test]
    fn an_operation_with_changes_does_not_wait_on_a_shared_thread() {
        let server = ServerMemory::new(1600);
        let _all = server.count(1600, Purpose::Reply);
        let (operation, _) = operation(&server, u64::MAX);
        operation.enter(RunOn::SharedThread, Instant::now());
        operation.note_change();
        assert_eq!(code(operation.draw_in_turn(100)), Some(ErrorCode::EXCEEDED_MEMORY_LIMIT));
    }
}
