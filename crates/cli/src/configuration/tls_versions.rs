//! Names of TLS versions.

use bunko_observe::TlsVersion;

/// Protocol versions by their names in mongod's configuration; `None` for versions that are never used.
const PROTOCOLS: [(&str, Option<TlsVersion>); 4] =
    [("TLS1_0", None), ("TLS1_1", None), ("TLS1_2", Some(TlsVersion::V1_2)), ("TLS1_3", Some(TlsVersion::V1_3))];

/// Reads the names of disabled versions and returns those that would be used otherwise.
/// # Errors
/// A sentence that names an unknown version, or says that no version would be left.
pub fn parse_disabled_protocols(text: &str) -> Result<Vec<TlsVersion>, String> {
    let mut disabled = Vec::new();
    for name in text.split(',').map(str::trim).filter(|name| *name != "none") {
        let known = PROTOCOLS.iter().find(|(known, _)| *known == name);
        let (_, version) = known.ok_or_else(|| format!("there is no protocol '{name}'; there are TLS1_0 to TLS1_3"))?;
        disabled.extend(*version);
    }
    if disabled.contains(&TlsVersion::V1_2) && disabled.contains(&TlsVersion::V1_3) {
        return Err(format!("'{text}' leaves no version of TLS"));
    }
    Ok(disabled)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_disabled_by_name() {
        assert_eq!(parse_disabled_protocols("TLS1_0,TLS1_1"), Ok(vec![]));
        assert_eq!(parse_disabled_protocols("none"), Ok(vec![]));
        assert_eq!(parse_disabled_protocols("TLS1_0, TLS1_2"), Ok(vec![TlsVersion::V1_2]));
        assert!(parse_disabled_protocols("TLS1_2,TLS1_3").is_err_and(|error| error.contains("no version")));
        assert!(parse_disabled_protocols("SSLv3").is_err_and(|error| error.contains("'SSLv3'")));
    }
}
