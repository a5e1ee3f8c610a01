//! The key file of a replica set, checked as mongod checks it.
//! Source: MongoDB manual 8.2, "Internal/Membership Authentication", "Keyfiles".

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use zeroize::Zeroizing;

/// Allowed number of characters in a key.
const KEY_CHARACTERS: std::ops::RangeInclusive<usize> = 6..=1024;
/// Permission bits of the group and of all other users.
const OF_OTHERS: u32 = 0o077;

/// The most keys in a file: the present one, and the one before or after it.
const KEYS_MAX: usize = 2;

/// The keys of a file, the one with which this server logs in first. They have no printed form.
pub struct Keys(Vec<Zeroizing<String>>);

impl Keys {
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|key| key.as_str())
    }
}

/// Reads a key file, and refuses one that mongod would refuse.
/// # Errors
/// A sentence that names the file and what is wrong with it.
pub fn read(path: &Path) -> Result<Keys, String> {
    let wrong = |what: String| Err(format!("security.keyFile: {}: {what}", path.display()));
    let (mode, text) =
        match fs::metadata(path).and_then(|metadata| Ok((metadata.permissions(), fs::read_to_string(path)?))) {
            Ok((permissions, text)) => (permissions.mode(), Zeroizing::new(text)),
            Err(error) => return wrong(error.to_string()),
        };
    if mode & OF_OTHERS != 0 {
        return wrong("permissions are too open: other users can read the key; run chmod 400 on it".into());
    }
    // One key, or a YAML list of several while the members change their key.
    let lines: Vec<String> =
        text.lines().map(|line| line.trim().trim_start_matches("- ").trim_matches('"').to_owned()).collect();
    let is_list = lines.len() > 1
        && text.lines().filter(|line| !line.trim().is_empty()).all(|line| line.trim().starts_with("- "));
    let lines = if is_list { lines } else { vec![lines.concat()] };
    let mut keys = Vec::new();
    for line in lines.iter().filter(|line| !is_list || !line.is_empty()) {
        let key: String = line.chars().filter(|character| !character.is_whitespace()).collect();
        if !KEY_CHARACTERS.contains(&key.len()) {
            return wrong(format!("a key has 6 to 1024 characters, and this one {}", key.len()));
        }
        let is_base64 = |character: char| character.is_ascii_alphanumeric() || matches!(character, '+' | '/');
        if !key.trim_end_matches('=').chars().all(is_base64) {
            return wrong("a key has characters of base64 alone".into());
        }
        keys.push(Zeroizing::new(key));
    }
    if keys.len() > KEYS_MAX {
        return wrong(format!("a file has at most {KEYS_MAX} keys, and this one {}", keys.len()));
    }
    Ok(Keys(keys))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str, mode: u32) -> String {
        let file = tempfile::NamedTempFile::new().expect("a temporary file");
        fs::write(file.path(), text).expect("written");
        fs::set_permissions(file.path(), fs::Permissions::from_mode(mode)).expect("the mode is set");
        read(file.path()).err().unwrap_or_default()
    }

    #[test]
    fn keys_are_those_that_mongod_takes() {
        for text in ["c2VjcmV0\n", "c2Vj cmV0\ncmV0\n", "abcdef", "- c2VjcmV0\n- YW5vdGhlcg==\n"] {
            assert_eq!(said(text, 0o400), "", "{text}");
        }
        for (text, mode, words) in [
            ("c2VjcmV0\n", 0o644, "too open"),
            ("abc", 0o600, "6 to 1024"),
            ("", 0o600, "6 to 1024"),
            ("not&base64", 0o600, "base64"),
            ("- c2VjcmV0\n- YW5vdGhlcg==\n- dGhpcmQ=\n", 0o600, "at most 2"),
        ] {
            let said = said(text, mode);
            assert!(said.contains(words), "{text}: {said}");
        }
        assert!(read(Path::new("/nowhere/key")).is_err_and(|said| said.contains("/nowhere/key")));
    }

    #[test]
    fn keys_are_in_the_order_of_the_file() {
        let file = tempfile::NamedTempFile::new().expect("a temporary file");
        for (text, expected) in
            [("c2Vj cmV0\ncmV0\n", &["c2VjcmV0cmV0"][..]), ("- bmV3ZXI=\n- b2xkZXI=\n", &["bmV3ZXI=", "b2xkZXI="])]
        {
            fs::write(file.path(), text).expect("written");
            fs::set_permissions(file.path(), fs::Permissions::from_mode(0o600)).expect("the mode is set");
            let keys = read(file.path()).expect("keys");
            assert_eq!(keys.iter().collect::<Vec<_>>(), expected);
        }
    }
}
