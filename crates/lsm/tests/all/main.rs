//! All integration tests of the crate, as modules of one program.

mod applying;
mod damage;
mod extents;
mod kept_log;
mod key_walks;
mod long_lists;
mod opened;
mod recovery;
mod scans;
mod seeded;
