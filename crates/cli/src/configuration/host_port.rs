//! The form `[HOST:]PORT` of a setting.

/// Reads `PORT` or `HOST:PORT`; an address of IPv6 stands in brackets.
/// # Errors
/// A sentence that names the text.
pub fn parse(text: &str) -> Result<(Option<&str>, u16), String> {
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) => (Some(host), port),
        None => (None, text),
    };
    let host = host.map(|host| match host.strip_prefix('[') {
        Some(address) => address.strip_suffix(']').unwrap_or_default(),
        // A colon outside brackets would be one inside an address of IPv6, whose port is not told apart.
        None if host.contains(':') => "",
        None => host,
    });
    match port.parse() {
        Ok(port) if host != Some("") && !host.is_some_and(|host| host.contains(',')) => Ok((host, port)),
        _ => Err(format!("'{text}' is not [HOST:]PORT")),
    }
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn a_host_stands_before_the_port() {
        assert_eq!(parse("8081"), Ok((None, 8081)));
        assert_eq!(parse("db.example:0"), Ok((Some("db.example"), 0)));
        assert_eq!(parse("[::1]:8081"), Ok((Some("::1"), 8081)));
        for wrong in ["", "db.example", ":8081", "::1:8081", "[::1:8081", "[]:1", "a,b:1", "a:65536", "a:-1"] {
            assert_eq!(parse(wrong), Err(format!("'{wrong}' is not [HOST:]PORT")));
        }
    }
}
