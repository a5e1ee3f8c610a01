//! The log, and the contract of the engines that are views of it.
