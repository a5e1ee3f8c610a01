//! The limits of one operation: its time, its memory, and the thread that it runs on.
//!
//! Code that can run long counts its work here: a stage its documents, an expression the elements of its arrays, an
//! index build its keys. After a few hundred steps the operation checks whether it must stop.
//!
//! The check also comes once the thread has taken 256 KiB of heap, so code that counts its steps has its memory checked
//! too. [`OperationContext::will_take`] checks before one large allocation. An operation that begins to hold much first
//! draws a grant from the server's budget ([`ServerMemory`]) and waits for it: if hundreds of sorts shared the budget
//! at once, none would have enough to end. Beyond a grant, an operation may hold twice the memory that is left, so that
//! the largest are refused first; stages spill earlier the less is left (`memory.rs`).
//!
//! Every caller of a filter's parser names the operation (`ExprCompiler::operation` of `matcher` has no default), the
//! planner asks for a plan's memory before it makes the plan (`room.rs` of `query`), and
//! `crates/command/tests/memory/request_shapes.rs` runs every shape of request against a small budget: a new operator
//! gets a line there.
//!
//! **Invariant:** a failure of [`OperationContext::work`] is final: every caller passes it on.
//! **Invariant:** [`bunko_errors::Failure::too_long`] is returned only if nothing has been changed yet.
#![forbid(unsafe_code)]

mod batch_work;
mod context;
mod helper_permits;
mod memory;
mod operation_source;
mod patience;
mod scratch;
mod server_memory;
mod sort;
mod stages;
mod work_done;

pub use batch_work::BatchWork;
pub use bunko_host::Clock;
pub use context::{Interruption, OperationContext, OperationDraw, UnitOfWork};
pub use helper_permits::{HelperPermit, Helpers};
pub use memory::MemoryLimits;
pub use operation_source::OperationSource;
pub use patience::RunOn;
pub use scratch::{DiskUse, ScratchFile, ScratchSpace};
pub use server_memory::{Draw, Drawing, Purpose, ServerMemory};
pub use stages::{Gatherer, STAGE_BYTES_MAX, ScriptHost, Scripting, StageLimits, WORKERS_MAX};
pub use work_done::{Examined, WorkCounters, WorkDone};
