//! The default engine: locations and keys in LSM trees, documents where the log put them.
