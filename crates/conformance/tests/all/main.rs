//! All integration tests of the crate, as modules of one program.

mod checked_in;
mod concurrency;
mod creations;
mod damage;
mod idle_views;
mod images;
mod limits;
mod properties;
mod recovery;
mod scripts;
