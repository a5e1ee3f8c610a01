//! Credentials, of variables or of a profile in a file.
//! Source: AWS SDKs and Tools Reference Guide, "Shared config and credentials files".

use crate::{Result, S3Error};
use std::path::{Path, PathBuf};
use std::{fmt, fs};

/// The keys that requests are signed with.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Credentials {
    pub access_key: String,
    pub secret_key: String,
    /// The token that temporary credentials have.
    pub session_token: Option<String>,
}

/// Where credentials are read from, again when they have expired.
#[derive(Clone, Debug)]
pub(crate) enum CredentialSource {
    Variables(Credentials),
    Profile { file: PathBuf, name: String },
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Credentials({})", self.access_key)
    }
}

impl CredentialSource {
    /// Finds the credentials of this user: `AWS_ACCESS_KEY_ID`, or the profile `AWS_PROFILE` of the credentials file.
    /// # Errors
    /// `Usage` if there is neither, or half of one.
    pub fn find(variable: &dyn Fn(&str) -> Option<String>) -> Result<Self> {
        match (variable("AWS_ACCESS_KEY_ID"), variable("AWS_SECRET_ACCESS_KEY")) {
            (Some(access_key), Some(secret_key)) => {
                let session_token = variable("AWS_SESSION_TOKEN");
                return Ok(Self::Variables(Credentials { access_key, secret_key, session_token }));
            }
            (None, None) => {}
            _ => {
                let both = "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are needed together";
                return Err(S3Error::usage(both));
            }
        }
        let name = variable("AWS_PROFILE").unwrap_or_else(|| "default".to_owned());
        let file = variable("AWS_SHARED_CREDENTIALS_FILE").map(PathBuf::from);
        let file = file.or_else(|| Some(Path::new(&variable("HOME")?).join(".aws/credentials")));
        match file {
            Some(file) if file.exists() => Ok(Self::Profile { file, name }),
            file => {
                let file = file.map_or_else(String::new, |file| format!(", and {} is missing", file.display()));
                Err(S3Error::usage(format!("no credentials for S3: AWS_ACCESS_KEY_ID is not set{file}")))
            }
        }
    }

    /// Reads the credentials.
    /// # Errors
    /// `Usage` with the file and the profile.
    pub fn read(&self) -> Result<Credentials> {
        let (file, name) = match self {
            Self::Variables(credentials) => return Ok(credentials.clone()),
            Self::Profile { file, name } => (file, name),
        };
        let text = fs::read_to_string(file).map_err(|error| S3Error::usage(format!("{}: {error}", file.display())))?;
        let value = |key: &str| profile_value(&text, name, key);
        match (value("aws_access_key_id"), value("aws_secret_access_key")) {
            (Some(access_key), Some(secret_key)) => {
                Ok(Credentials { access_key, secret_key, session_token: value("aws_session_token") })
            }
            _ => Err(S3Error::usage(format!(
                "{}: the profile [{name}] has no aws_access_key_id with an aws_secret_access_key",
                file.display()
            ))),
        }
    }
}

/// The value of a key in a section of a configuration file. A section is `[name]` or `[profile name]`.
pub(crate) fn profile_value(text: &str, profile: &str, key: &str) -> Option<String> {
    let mut is_in_profile = false;
    let mut found = None;
    for line in text.lines() {
        if let Some(section) = line.trim().strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            let section = section.0.trim();
            is_in_profile = section.strip_prefix("profile ").unwrap_or(section).trim() == profile;
        } else if is_in_profile
            && !line.starts_with([' ', '\t', '#', ';'])
            && let Some((name, value)) = line.split_once('=')
            && name.trim() == key
        {
            found = Some(value.trim().to_owned());
        }
    }
    found.filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_come_before_the_file_and_profiles_are_told_apart() {
        let file = tempfile::NamedTempFile::new().expect("temporary file");
        let text = "# keys\n[default]\naws_access_key_id = A\naws_secret_access_key=b=c\n\n[other]\naws_access_key_id=O\n\
             aws_secret_access_key = S\naws_session_token = T\n[half]\naws_access_key_id=H\n";
        fs::write(file.path(), text).expect("written");
        let path = file.path().to_string_lossy().into_owned();
        let find = |set: &[(&str, &str)]| {
            let set: Vec<_> = set.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            let variable = move |name: &str| {
                let value = set.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
                value.or_else(|| (name == "AWS_SHARED_CREDENTIALS_FILE").then(|| path.clone()))
            };
            CredentialSource::find(&variable).and_then(|source| source.read())
        };
        let keys = |access: &str, secret: &str, token: Option<&str>| Credentials {
            access_key: access.into(),
            secret_key: secret.into(),
            session_token: token.map(str::to_owned),
        };
        assert_eq!(find.clone()(&[]), Ok(keys("A", "b=c", None)));
        assert_eq!(find.clone()(&[("AWS_PROFILE", "other")]), Ok(keys("O", "S", Some("T"))));
        let variables = [("AWS_ACCESS_KEY_ID", "V"), ("AWS_SECRET_ACCESS_KEY", "W")];
        assert_eq!(find.clone()(&variables), Ok(keys("V", "W", None)));
        assert!(find.clone()(&variables[..1]).is_err());
        for profile in ["half", "absent"] {
            let refused = find.clone()(&[("AWS_PROFILE", profile)]).expect_err("refused").to_string();
            assert!(refused.contains(profile), "{refused}");
        }
    }
}
