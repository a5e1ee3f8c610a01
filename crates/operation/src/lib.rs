//! The limits of one operation: its time, its memory, and the thread that it runs on.
//!
//! Code that can run long counts its work here: a stage its documents, an expression the elements of its arrays, an
//! index build its keys. After a few hundred steps the operation checks whether it must stop.
//!
//! **Invariant:** a failure of [`OperationContext::work`] is final: every caller passes it on.
//! **Invariant:** [`bunko_errors::Failure::too_long`] is returned only if nothing has been changed yet.
#![forbid(unsafe_code)]

mod context;
mod helper_permits;
mod memory;
mod patience;
mod scratch;
mod server_memory;
mod sort;
mod stages;
mod sync;
mod work_done;

pub use context::{Interruption, OperationContext, OperationDraw, OperationSource, UnitOfWork};
pub use helper_permits::{HelperPermit, Helpers};
pub use memory::MemoryLimits;
pub use patience::Place;
pub use scratch::{DiskUse, ScratchFile, ScratchSpace};
pub use server_memory::{Draw, Drawing, Purpose, ServerMemory};
pub use stages::{Gatherer, STAGE_BYTES_MAX, ScriptHost, Scripting, StageLimits, WORKERS_MAX};
pub use work_done::{WorkCounters, WorkDone};
