//! Enums that people write as words: in scenario files, on the command line, in reports.

/// Gives a plain enum one word per variant, and derives from that `ALL`, `name`, `Display`, `FromStr` and the string
/// that serde reads and writes.
macro_rules! text_form {
    ($type:ident, $what:literal, [$($variant:ident => $name:literal),+ $(,)?]) => {
        impl $type {
            /// All variants.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The variant's word.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.name())
            }
        }

        impl std::str::FromStr for $type {
            type Err = String;

            fn from_str(text: &str) -> Result<Self, String> {
                let names: &[&str] = &[$($name),+];
                let found = Self::ALL.iter().copied().find(|choice| choice.name() == text);
                found.ok_or_else(|| format!(concat!("'{}' is not a ", $what, "; there are {}"), text, names.join(", ")))
            }
        }

        impl TryFrom<String> for $type {
            type Error = String;
            fn try_from(text: String) -> Result<Self, String> {
                text.parse()
            }
        }

        impl From<$type> for String {
            fn from(choice: $type) -> Self {
                choice.name().to_owned()
            }
        }
    };
}
pub(crate) use text_form;

#[cfg(test)]
mod tests {
    use crate::{Distribution, IdKind, KeyOrder};

    #[test]
    fn words_are_read_back() {
        for choice in Distribution::ALL {
            assert_eq!(choice.to_string().parse(), Ok(*choice));
        }
        for choice in IdKind::ALL {
            assert_eq!(choice.to_string().parse(), Ok(*choice));
        }
        for choice in KeyOrder::ALL {
            assert_eq!(choice.to_string().parse(), Ok(*choice));
        }
        let error = "random".parse::<KeyOrder>().expect_err("not a word for it");
        assert_eq!(error, "'random' is not a key order; there are ascending, shuffled");
    }
}
