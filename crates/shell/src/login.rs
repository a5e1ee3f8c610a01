//! The passwords that a connection string needs: of its user, and of the key of its certificate.

use bunko_client::{Uri, percent_encoded};

/// The user and the certificate of a connection string. Its `Debug` form would show passwords, so there is none.
pub struct Login<'a> {
    text: &'a str,
    /// The user and, after a colon, the password, as they are written; without the `@`.
    user_info: Option<&'a str>,
    options: &'a str,
}

impl<'a> Login<'a> {
    /// Reads a connection string; of a malformed one, parts may be missing.
    pub fn of(text: &'a str) -> Self {
        let rest = text.split_once("://").map_or("", |(_, rest)| rest);
        let (front, options) = rest.split_once('?').unwrap_or((rest, ""));
        let server = front.split_once('/').map_or(front, |(server, _)| server);
        Self { text, user_info: server.rsplit_once('@').map(|(user_info, _)| user_info), options }
    }

    /// The user whose password is missing. A user who logs in by a certificate has none.
    pub fn user_without_password(&self) -> Option<String> {
        let user = self.user_info.filter(|info| !info.is_empty() && !info.contains(':'))?;
        let is_by_certificate = self.option("authMechanism").is_some_and(|name| name == "MONGODB-X509");
        (!is_by_certificate).then(|| decoded(user)).flatten()
    }

    /// Whether the connection string has a password, and it is this one.
    pub fn has_password(&self, password: &str) -> Option<bool> {
        let (_, given) = self.user_info?.split_once(':')?;
        Some(decoded(given).is_some_and(|given| given == password))
    }

    /// The file with the client's certificate and its key.
    pub fn key_file(&self) -> Option<String> {
        decoded(self.option("tlsCertificateKeyFile")?)
    }

    /// Whether the connection string has the password of that key.
    pub fn has_key_password(&self) -> bool {
        self.option("tlsCertificateKeyFilePassword").is_some()
    }

    /// The connection string with the password of its user, who has none in it.
    pub fn with_password(&self, password: &str) -> String {
        let Some(user) = self.user_info else { return self.text.to_owned() };
        let (scheme, rest) = self.text.split_once("://").unwrap_or_default();
        format!("{scheme}://{user}:{}{}", percent_encoded(password), &rest[user.len()..])
    }

    /// The connection string with the password of its key, which it does not have.
    pub fn with_key_password(&self, password: &str) -> String {
        let before = if self.options.is_empty() { "" } else { "&" };
        format!("{}{before}tlsCertificateKeyFilePassword={}", self.text, percent_encoded(password))
    }

    fn option(&self, name: &str) -> Option<&'a str> {
        let mut options = self.options.split('&').filter_map(|option| option.split_once('='));
        options.find(|(given, _)| given.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }
}

/// A part of a connection string as the client reads it: this option takes any text.
fn decoded(part: &str) -> Option<String> {
    format!("mongodb://h/?replicaSet={part}").parse::<Uri>().ok()?.replica_set
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_without_a_password_is_found() {
        let found = |text: &str| Login::of(text).user_without_password();
        assert_eq!(found("mongodb://a%40b@h:5/x?w=1").as_deref(), Some("a@b"));
        for text in [
            "mongodb://h",
            "mongodb://a:p@h",
            "mongodb://a:@h",
            "mongodb://a@h/?tls=true&authMechanism=MONGODB-X509",
            "a@h",
            "mongodb://@h",
        ] {
            assert_eq!(found(text), None, "{text}");
        }
        let given = Login::of("mongodb://a:p%2F@h");
        assert_eq!((given.has_password("p/"), given.has_password("p")), (Some(true), Some(false)));
        assert_eq!(Login::of("mongodb://h").has_password("p"), None);
    }

    #[test]
    fn passwords_are_added_where_they_belong() {
        let added = |text: &str| Login::of(text).with_password("p:/@");
        assert_eq!(added("mongodb://a@h,i/x?w=1"), "mongodb://a:p%3A%2F%40@h,i/x?w=1");
        let text = "mongodb://h/?tls=true&tlsCertificateKeyFile=%2Fme.pem";
        let login = Login::of(text);
        assert_eq!((login.key_file().as_deref(), login.has_key_password()), (Some("/me.pem"), false));
        let with = login.with_key_password("p&");
        assert_eq!(with, format!("{text}&tlsCertificateKeyFilePassword=p%26"));
        assert!(Login::of(&with).has_key_password());
    }
}
