//! What one operation may still do: its time, its memory, and where it runs.
//!
//! Whatever can run long counts its work here: a stage its documents, an expression the elements of its arrays, an index
//! build its keys. After a few hundred steps the operation is asked whether it has to stop.
//!
//! **Invariant:** [`OperationContext::work`] fails for good: who gets a failure from it passes it on.
//! **Invariant:** [`bunko_errors::Failure::too_long`] is answered only where nothing has been changed yet.
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

pub use context::{Interruption, OperationContext, OperationDraw, OperationSource, Place, UnitOfWork};
pub use helper_permits::{HelperPermit, Helpers};
pub use memory::MemoryLimits;
pub use scratch::{DiskUse, ScratchFile, ScratchSpace};
pub use server_memory::{Draw, Drawing, Purpose, ServerMemory};
pub use stages::{Gatherer, STAGE_BYTES_MAX, ScriptHost, Scripting, StageLimits, WORKERS_MAX};
pub use work_done::{WorkCounters, WorkDone};
