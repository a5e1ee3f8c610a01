//! How often a thread sleeps.

/// Number of times that this thread has gone to sleep so far.
/// # Panics
/// If the kernel does not tell.
pub fn sleeps() -> usize {
    let status = std::fs::read_to_string("/proc/thread-self/status").expect("Linux tells");
    let field = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    field.and_then(|count| count.trim().parse().ok()).expect("a number")
}
