//! Plans, explains and executes finds and writes.
