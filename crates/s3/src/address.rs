//! Addresses as users write them: `s3://bucket/prefix`.

use crate::{Result, S3Error};
use std::fmt;

const SCHEME: &str = "s3://";

/// A bucket, and a prefix of keys in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// The bucket's name.
    pub bucket: String,
    /// The beginning of all keys, without `/` at its ends; empty for the whole bucket.
    pub prefix: String,
}

impl Address {
    /// Whether the text is meant as the address of a bucket.
    pub fn is_meant(text: &str) -> bool {
        text.starts_with(SCHEME)
    }

    /// Reads an address.
    /// # Errors
    /// `Usage` for another form, and for names that no bucket can have.
    pub fn parse(text: &str) -> Result<Self> {
        let rest = text.strip_prefix(SCHEME).unwrap_or_default();
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        let may_be_in_name = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b".-".contains(&byte);
        if !(3..=63).contains(&bucket.len()) || !bucket.bytes().all(may_be_in_name) {
            return Err(S3Error::usage(format!(
                "{text}: write it as s3://BUCKET/PREFIX; BUCKET is no name of a bucket"
            )));
        }
        let prefix = prefix.trim_matches('/');
        if prefix.len() > 500 || prefix.chars().any(char::is_control) || prefix.contains("//") {
            return Err(S3Error::usage(format!(
                "{text}: the prefix is too long, or has characters that are not supported"
            )));
        }
        Ok(Self { bucket: bucket.to_owned(), prefix: prefix.to_owned() })
    }

    /// The key of an object below the prefix.
    pub fn key(&self, name: &str) -> String {
        if self.prefix.is_empty() { name.to_owned() } else { format!("{}/{name}", self.prefix) }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}{}", self.bucket)?;
        if self.prefix.is_empty() { Ok(()) } else { write!(f, "/{}", self.prefix) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_others_refused() {
        let address = Address::parse("s3://backups/db/one/").expect("an address");
        assert_eq!((address.bucket.as_str(), address.key("a").as_str()), ("backups", "db/one/a"));
        assert_eq!(address.to_string(), "s3://backups/db/one");
        assert_eq!(Address::parse("s3://backups").expect("an address").key("a"), "a");
        for text in ["s3://", "s3://ab/c", "s3://UPPER/c", "s3://a_b/c", "s3:/bucket", "s3://bucket/a//b", "s3://b@d/"]
        {
            assert!(Address::parse(text).is_err(), "{text}");
        }
    }
}
