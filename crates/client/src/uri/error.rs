//! Why a connection string is refused.

use std::fmt;

/// Why a connection string was refused. Holds no part of a password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UriError {
    /// The string does not start with `mongodb://`. Holds the text before `://`, if any.
    Scheme(Option<String>),
    /// `mongodb+srv://`.
    Srv,
    /// The string names no host, or an empty one among several.
    MissingHost,
    /// A port outside 1..=65535.
    BadPort(String),
    /// A host that is neither a name, an address, nor the percent-encoded path of a socket.
    BadHost(String),
    /// A character in the user name or password that must be percent-encoded.
    ReservedCharacter,
    /// An `@` or an `authMechanism` without a user name.
    MissingUser,
    /// A mechanism that needs a password, but none is given.
    MissingPassword,
    /// A percent sign that is not followed by two hexadecimal digits, or bytes that are not UTF-8. Holds the name of
    /// the part, but not an option's value, which may be secret.
    BadEscape(String),
    /// As `BadEscape`, in the user name or password, which is not shown.
    BadUserInfoEscape,
    /// A database name with a character that cannot occur in one.
    BadDatabase(String),
    /// An option without a value.
    MissingValue(String),
    /// A value that the option does not accept.
    BadValue {
        /// The option as written.
        option: String,
        /// Its value as written.
        value: String,
    },
    /// An option that is given twice with different values, or two options that contradict each other.
    Contradiction(String),
    /// Valid in MongoDB, but not supported here. It is refused, because ignoring it would change what the caller asked
    /// for.
    Unsupported(String),
}

impl UriError {
    /// The error for text that is not a connection string. Text that might contain a password is kept only up to its
    /// `://`.
    pub(super) fn scheme(text: &str) -> Self {
        let shown = text.split_once("://").map(|(scheme, _)| scheme.to_owned());
        Self::Scheme(shown.or_else(|| (!text.contains('@')).then(|| text.to_owned())))
    }
}

impl fmt::Display for UriError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("connection string: ")?;
        match self {
            Self::Scheme(Some(scheme)) => write!(f, "it starts with '{scheme}', not with mongodb://"),
            Self::Scheme(None) => f.write_str("it does not start with mongodb://"),
            Self::Srv => f.write_str(
                "mongodb+srv:// is not supported by this client, which does not look up SRV records; \
                 list the hosts in a mongodb:// string with tls=true",
            ),
            Self::MissingHost => f.write_str("it names no host, or an empty one"),
            Self::BadPort(port) => write!(f, "port '{port}' is not in 1..65535"),
            Self::BadHost(host) => write!(f, "host '{host}' is not a name, an address or a path that ends in .sock"),
            Self::ReservedCharacter => {
                f.write_str("the characters : / ? # [ ] @ in user name and password must be percent-encoded")
            }
            Self::MissingUser => f.write_str("it names no user to authenticate as"),
            Self::MissingPassword => f.write_str("it gives a user but no password"),
            Self::BadEscape(what) => write!(f, "{what} is not percent-encoded UTF-8"),
            Self::BadUserInfoEscape => f.write_str("user name or password is not percent-encoded UTF-8"),
            Self::BadDatabase(name) => {
                write!(f, "database '{name}' holds one of / \\ . \" $ or a space, which no database's name does")
            }
            Self::MissingValue(option) => write!(f, "option '{option}' has no value"),
            Self::BadValue { option, value } => write!(f, "option '{option}' does not take '{value}'"),
            Self::Contradiction(what) => write!(f, "{what} contradict each other"),
            Self::Unsupported(what) => write!(f, "{what} is not supported by this client"),
        }
    }
}

impl std::error::Error for UriError {}
