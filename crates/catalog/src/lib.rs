//! Databases, collections and indexes: the only door to the store.
