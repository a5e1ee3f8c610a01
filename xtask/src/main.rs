//! Checks that cargo itself does not make.
fn main() {}
