//! Properties of all values, checked on generated ones.

mod decimals;
mod key_strings;
mod numbers;
mod order;
mod values;
