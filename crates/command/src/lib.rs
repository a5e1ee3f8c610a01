//! One file per command, the dispatch table and the cursor store.
