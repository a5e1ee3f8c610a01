//! Properties that all values have, checked on generated values.

mod decimals;
mod key_strings;
mod numbers;
mod order;
mod values;
