//! A server as flags of a command line name it, as a connection string.

use bunko_client::percent_encoded;

/// Default host, as mongod's.
pub const DEFAULT_HOST: &str = "localhost";

/// Flags that name a server. Everything but `address` is as the classic tools take it.
#[derive(Clone, Debug, Default)]
pub struct Target<'a> {
    /// A connection string, or its short form: `shop`, `db.example.org`, `host:27018/shop`.
    pub address: Option<&'a str>,
    /// A host, `host:port`, or `set/host:port,host:port`.
    pub host: Option<&'a str>,
    /// The port of hosts that name none.
    pub port: Option<u16>,
    /// The user who logs in.
    pub user: Option<&'a str>,
    /// The user's password.
    pub password: Option<&'a str>,
    /// Options of connection strings, and their values; an option without a value is left out.
    pub options: Vec<(&'static str, Option<&'a str>)>,
}

impl Target<'_> {
    /// The connection string.
    /// # Errors
    /// A sentence that names the flags that contradict each other.
    pub fn connection_string(&self) -> Result<String, String> {
        match self.address {
            Some(address) if address.contains("://") => self.of_string(address),
            address => {
                let (host, database) = address.map_or((None, None), of_shorthand);
                if let (Some(named), Some(flag)) = (host, self.host) {
                    return Err(format!("--host {flag}: the address {named} names a host too"));
                }
                let (set, hosts) = self.hosts(host.or(self.host).unwrap_or(DEFAULT_HOST))?;
                let options: Vec<_> = self.options().chain(set.map(|set| written("replicaSet", set))).collect();
                Ok(with_options(
                    format!("mongodb://{}{hosts}/{}", self.login(), database.unwrap_or_default()),
                    &options,
                ))
            }
        }
    }

    /// A connection string with what the flags add to it.
    fn of_string(&self, text: &str) -> Result<String, String> {
        if let Some(flag) =
            self.host.map(|host| format!("--host {host}")).or(self.port.map(|port| format!("--port {port}")))
        {
            return Err(format!("{flag}: the connection string names the hosts"));
        }
        let (scheme, rest) = text.split_once("://").unwrap_or(("mongodb", text));
        let (front, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (hosts, database) = front.split_once('/').unwrap_or((front, ""));
        let hosts = match self.user {
            Some(_) => format!("{}{}", self.login(), hosts.rsplit_once('@').map_or(hosts, |(_, hosts)| hosts)),
            None => hosts.to_owned(),
        };
        let given = query.split('&').filter(|option| !option.is_empty()).map(str::to_owned);
        let options: Vec<_> = given.chain(self.options()).collect();
        Ok(with_options(format!("{scheme}://{hosts}/{database}"), &options))
    }

    fn options(&self) -> impl Iterator<Item = String> {
        self.options.iter().filter_map(|(name, value)| Some(written(name, (*value)?)))
    }

    /// The set, if one is named, and the hosts with their ports.
    fn hosts<'h>(&self, text: &'h str) -> Result<(Option<&'h str>, String), String> {
        let (set, hosts) = text.split_once('/').map_or((None, text), |(set, hosts)| (Some(set), hosts));
        let names_its_own = |host: &str, port: u16| host.contains(':') && !host.ends_with(&format!(":{port}"));
        if let Some(port) = self.port.filter(|&port| hosts.split(',').all(|host| names_its_own(host, port))) {
            return Err(format!("--port {port}: --host {hosts} names other ports itself"));
        }
        let with_port = |host: &str| match self.port {
            Some(port) if !host.contains(':') => format!("{host}:{port}"),
            _ => host.to_owned(),
        };
        Ok((set, hosts.split(',').map(with_port).collect::<Vec<_>>().join(",")))
    }

    fn login(&self) -> String {
        match (self.user, self.password) {
            (Some(user), Some(password)) => format!("{}:{}@", percent_encoded(user), percent_encoded(password)),
            (Some(user), None) => format!("{}@", percent_encoded(user)),
            (None, _) => String::new(),
        }
    }
}

fn with_options(address: String, options: &[String]) -> String {
    if options.is_empty() { address } else { format!("{address}?{}", options.join("&")) }
}

fn written(name: &str, value: &str) -> String {
    format!("{name}={}", percent_encoded(value))
}

/// A connection string with another server in the place of the local host, whatever the port. Its login is used if the
/// string has none.
pub fn at_local(text: &str, local: &str) -> String {
    let (Some(given), Some(other)) = (Parts::of(text), Parts::of(local)) else { return text.to_owned() };
    let host = |address: &str| match address.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default().to_owned(),
        None => address.split(':').next().unwrap_or_default().to_owned(),
    };
    let is_local = |address: &str| ["localhost", "127.0.0.1", "::1"].contains(&host(address).as_str());
    if !given.hosts.split(',').all(is_local) {
        return text.to_owned();
    }
    let (login, options) = match given.login {
        "" => (other.login, [given.options, other.options].map(str::to_owned)),
        login => (login, [given.options.to_owned(), String::new()]),
    };
    let options: Vec<_> = options.into_iter().filter(|option| !option.is_empty()).collect();
    with_options(format!("mongodb://{login}{}/{}", other.hosts, given.database), &options)
}

/// The parts of a connection string.
struct Parts<'a> {
    /// With the character that ends it; empty without a login.
    login: &'a str,
    hosts: &'a str,
    database: &'a str,
    options: &'a str,
}

impl<'a> Parts<'a> {
    fn of(text: &'a str) -> Option<Self> {
        let rest = text.strip_prefix("mongodb://")?;
        let (front, options) = rest.split_once('?').unwrap_or((rest, ""));
        let (server, database) = front.split_once('/').unwrap_or((front, ""));
        let (login, hosts) = server.split_at(server.rfind('@').map_or(0, |at| at + 1));
        Some(Self { login, hosts, database, options })
    }
}

/// Whether a positional argument names a script, and no server.
pub fn is_script(argument: &str) -> bool {
    !argument.contains("://") && [".js", ".mongodb"].iter().any(|end| argument.ends_with(end))
}

/// The host and the database that a short form names.
/// Source: mongosh's manual, "Connect to a deployment".
fn of_shorthand(argument: &str) -> (Option<&str>, Option<&str>) {
    let named = |text: &'_ str| !text.is_empty();
    match argument.split_once('/') {
        Some((host, database)) => (Some(host).filter(|host| named(host)), Some(database).filter(|name| named(name))),
        None if argument.contains([':', '.']) => (Some(argument), None),
        None => (None, Some(argument).filter(|name| named(name))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn string(target: &Target<'_>) -> Result<String, String> {
        target.connection_string()
    }

    fn address(address: &str) -> Target<'_> {
        Target { address: Some(address), ..Target::default() }
    }

    #[test]
    fn short_forms_name_a_host_a_database_or_both() {
        for (given, made) in [
            ("shop", "mongodb://localhost/shop"),
            ("db.example.org", "mongodb://db.example.org/"),
            ("localhost:27018/shop", "mongodb://localhost:27018/shop"),
            ("localhost/", "mongodb://localhost/"),
            ("mongodb://a,b/x?w=1", "mongodb://a,b/x?w=1"),
        ] {
            assert_eq!(string(&address(given)).as_deref(), Ok(made));
        }
        assert!(is_script("/docker-entrypoint-initdb.d/init.js") && !is_script("mongodb://h/a.js"));
    }

    #[test]
    fn flags_add_to_an_address() {
        let mut target = address("shop");
        (target.port, target.user, target.password) = (Some(5), Some("me@x"), Some("p:w/"));
        target.options = vec![("authSource", Some("admin")), ("authMechanism", None)];
        assert_eq!(string(&target).as_deref(), Ok("mongodb://me%40x:p%3Aw%2F@localhost:5/shop?authSource=admin"));
        target.port = None;
        target.address = Some("mongodb://old:secret@h/x?w=1");
        assert_eq!(string(&target).as_deref(), Ok("mongodb://me%40x:p%3Aw%2F@h/x?w=1&authSource=admin"));
    }

    #[test]
    fn another_server_takes_the_place_of_the_local_host_only() {
        let local = "mongodb://root:pw@%2Fdata%2Fi.sock/shop?authSource=admin";
        for (given, made) in [
            ("mongodb://localhost/", "mongodb://root:pw@%2Fdata%2Fi.sock/?authSource=admin"),
            ("mongodb://127.0.0.1:27018/x?w=1", "mongodb://root:pw@%2Fdata%2Fi.sock/x?w=1&authSource=admin"),
            ("mongodb://me:a@[::1]:5/x?authSource=y", "mongodb://me:a@%2Fdata%2Fi.sock/x?authSource=y"),
            ("mongodb://db.example.org/x", "mongodb://db.example.org/x"),
            ("mongodb://localhost,other/", "mongodb://localhost,other/"),
        ] {
            assert_eq!(at_local(given, local), made);
        }
        assert_eq!(at_local("mongodb://localhost/a", "mongodb://%2Fi/test"), "mongodb://%2Fi/a");
    }

    #[test]
    fn flags_that_would_be_ignored_are_refused() {
        let mut target = address("h1/shop");
        target.host = Some("h2");
        assert!(string(&target).is_err_and(|error| error.contains("--host h2")));
        let mut target = address("mongodb://h1/");
        target.port = Some(5);
        assert!(string(&target).is_err_and(|error| error.contains("--port 5")));
    }
}
