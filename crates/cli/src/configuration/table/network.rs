//! How clients reach the server: addresses, limits, TLS and the Unix socket.

use super::{Kind, PLAIN, Setting, Value, any_text};
use crate::configuration::host_port;
use crate::configuration::tls_versions::parse_disabled_protocols;
use bunko_access::AddressRange;
use bunko_wire::Compressor;

pub const PORT: Setting = Setting {
    keys: &["net.port"],
    flag: "port",
    help: "Port to listen on; 0 takes a free one [default: 27017]",
    value_name: "PORT",
    kind: Kind::Whole(0..=65_535),
    default: |_| Some(Value::Whole(27_017)),
    ..PLAIN
};
pub const BIND_IP: Setting = Setting {
    keys: &["net.bindIp"],
    flag: "bind-ip",
    mongod_flag: Some("bind_ip"),
    help: "Addresses and names of hosts to listen on, comma-separated [default: 127.0.0.1]",
    value_name: "ADDRESSES",
    kind: Kind::Text(any_text),
    default: |configuration| (!configuration.is_on(&BIND_IP_ALL)).then(|| Value::Text("127.0.0.1".into())),
    ..PLAIN
};
pub const BIND_IP_ALL: Setting = Setting {
    keys: &["net.bindIpAll"],
    flag: "bind-ip-all",
    mongod_flag: Some("bind_ip_all"),
    help: "Listen on all addresses [default: false]",
    value_name: "true|false",
    kind: Kind::Switch,
    default: |_| Some(Value::Switch(false)),
    ..PLAIN
};
pub const IPV6: Setting = Setting {
    keys: &["net.ipv6"],
    flag: "ipv6",
    help: "Listen on IPv6 as well where --bind-ip names localhost or *, or with --bind-ip-all [default: false]",
    value_name: "true|false",
    kind: Kind::Switch,
    default: |_| Some(Value::Switch(false)),
    ..PLAIN
};
pub const COMPRESSORS: Setting = Setting {
    keys: &["net.compression.compressors"],
    flag: "network-message-compressors",
    mongod_flag: Some("networkMessageCompressors"),
    help: "Compressors that clients may choose, comma-separated, or disabled [default: snappy,zstd,zlib]",
    value_name: "NAMES",
    kind: Kind::Text(|text| parse_compressors(text).map(drop)),
    default: |_| Some(Value::Text("snappy,zstd,zlib".into())),
    ..PLAIN
};
pub const MAX_CONNECTIONS: Setting = Setting {
    keys: &["net.maxIncomingConnections"],
    flag: "max-connections",
    mongod_flag: Some("maxConns"),
    help: "Maximum number of connections at once [default: 65536]",
    value_name: "COUNT",
    kind: Kind::Whole(1..=1_000_000),
    default: |_| Some(Value::Whole(65_536)),
    ..PLAIN
};
pub const CONNECTIONS_OVERRIDE: Setting = Setting {
    keys: &["net.maxIncomingConnectionsOverride"],
    flag: "max-connections-override",
    mongod_flag: Some("maxConnsOverride"),
    help: "Addresses and ranges in CIDR notation, comma-separated, to which no limits on connections apply",
    value_name: "RANGES",
    kind: Kind::List(|text| parse_range(text).map(drop)),
    ..PLAIN
};
pub const CONNECTIONS_BY_ADDRESS: Setting = Setting {
    keys: &["net.maxIncomingConnectionsPerAddress"],
    flag: "max-connections-per-address",
    help: "Maximum number of connections at once from one address, or one network of 64 bits of IPv6 [default: no limit]",
    value_name: "COUNT",
    kind: Kind::Whole(1..=1_000_000),
    ..PLAIN
};
pub const MONITOR_PORT: Setting = Setting {
    keys: &["monitor.port"],
    flag: "monitor-port",
    help: "Port for HTTP with /metrics, /healthz and /readyz; 0 takes a free one [default: none]",
    value_name: "PORT",
    kind: Kind::Whole(0..=65_535),
    ..PLAIN
};
pub const MONITOR_BIND_IP: Setting = Setting {
    keys: &["monitor.bindIp"],
    flag: "monitor-bind-ip",
    help: "Addresses and names of hosts for that port, comma-separated [default: 127.0.0.1]",
    value_name: "ADDRESSES",
    kind: Kind::Text(any_text),
    default: |configuration| configuration.given(&MONITOR_PORT).map(|_| Value::Text("127.0.0.1".into())),
    ..PLAIN
};
pub const CONSOLE: Setting = Setting {
    keys: &["net.console"],
    flag: "console",
    help: "Serve a page for browsers that shows what the server does; on other addresses than 127.0.0.1, [::1] and \
           localhost it needs TLS and --auth; 0 takes a free port [default: none]",
    value_name: "[HOST:]PORT",
    kind: Kind::Text(|text| host_port::parse(text).map(drop)),
    ..PLAIN
};
pub const CONSOLE_REPORTS: Setting = Setting {
    keys: &["net.consoleReports"],
    flag: "console-reports",
    help: "Directory whose reports of the lab (*.html) that page shows to users who have logged in [default: none]",
    value_name: "DIR",
    ..PLAIN
};
pub const LOGIN_TIMEOUT_MS: Setting = Setting {
    keys: &["net.loginTimeoutMS"],
    flag: "login-timeout-ms",
    help: "With --auth, how long a client that has not logged in may take for its first byte, for each message and for \
           the login [default: 30000]",
    value_name: "MS",
    kind: Kind::Whole(1..=3_600_000),
    default: |_| Some(Value::Whole(30_000)),
    ..PLAIN
};
pub const TLS_MODE: Setting = Setting {
    keys: &["net.tls.mode"],
    flag: "tls-mode",
    mongod_flag: Some("tlsMode"),
    help: "Which connections are encrypted: disabled (none), allowTLS and preferTLS (those of clients that ask for it) or \
           requireTLS (all) [default: disabled]",
    value_name: "MODE",
    kind: Kind::OneOf(&["disabled", "allowTLS", "preferTLS", "requireTLS"]),
    default: |_| Some(Value::Text("disabled".into())),
    ..PLAIN
};
pub const TLS_CERTIFICATE_KEY_FILE: Setting = Setting {
    keys: &["net.tls.certificateKeyFile"],
    flag: "tls-certificate-key-file",
    mongod_flag: Some("tlsCertificateKeyFile"),
    help: "PEM file with the server's certificate, its chain and its key",
    value_name: "FILE",
    ..PLAIN
};
pub const TLS_CERTIFICATE_KEY_PASSWORD: Setting = Setting {
    keys: &["net.tls.certificateKeyFilePassword"],
    flag: "tls-certificate-key-file-password",
    mongod_flag: Some("tlsCertificateKeyFilePassword"),
    help: "Password of that key, if it is encrypted; better in a file (--config), because other users see the \
           arguments of a process",
    value_name: "PASSWORD",
    kind: Kind::Secret,
    ..PLAIN
};
pub const TLS_CA_FILE: Setting = Setting {
    keys: &["net.tls.CAFile"],
    flag: "tls-ca-file",
    mongod_flag: Some("tlsCAFile"),
    help: "PEM file with the authorities that issue certificates of clients",
    value_name: "FILE",
    ..PLAIN
};
pub const TLS_CRL_FILE: Setting = Setting {
    keys: &["net.tls.CRLFile"],
    flag: "tls-crl-file",
    mongod_flag: Some("tlsCRLFile"),
    help: "PEM file with lists of revoked certificates",
    value_name: "FILE",
    ..PLAIN
};
pub const TLS_WITHOUT_CERTIFICATES: Setting = Setting {
    keys: &["net.tls.allowConnectionsWithoutCertificates"],
    flag: "tls-allow-connections-without-certificates",
    mongod_flag: Some("tlsAllowConnectionsWithoutCertificates"),
    help: "Accept clients that show no certificate [default: false]",
    value_name: "true|false",
    kind: Kind::Switch,
    default: |configuration| configuration.given(&TLS_CA_FILE).map(|_| Value::Switch(false)),
    ..PLAIN
};
pub const TLS_DISABLED_PROTOCOLS: Setting = Setting {
    keys: &["net.tls.disabledProtocols"],
    flag: "tls-disabled-protocols",
    mongod_flag: Some("tlsDisabledProtocols"),
    help: "Versions of TLS to refuse, comma-separated: TLS1_2 or TLS1_3; TLS1_0 and TLS1_1 are always refused",
    value_name: "VERSIONS",
    kind: Kind::Text(|text| parse_disabled_protocols(text).map(drop)),
    ..PLAIN
};
pub const TLS_INVALID_HOSTNAMES: Setting = Setting {
    keys: &["net.tls.allowInvalidHostnames"],
    flag: "tls-allow-invalid-hostnames",
    mongod_flag: Some("tlsAllowInvalidHostnames"),
    help: "Connect to members of the set whose certificates name another host [default: false]",
    value_name: "true|false",
    kind: Kind::Switch,
    default: |configuration| configuration.given(&TLS_CA_FILE).map(|_| Value::Switch(false)),
    ..PLAIN
};
pub const UNIX_SOCKET: Setting = Setting {
    keys: &["net.unixDomainSocket.enabled"],
    flag: "unix-socket",
    negations: &["no-unix-socket", "nounixsocket"],
    help: "Listen on a Unix domain socket as well, mongodb-PORT.sock [default: true]",
    value_name: "true|false",
    kind: Kind::Switch,
    default: |_| Some(Value::Switch(true)),
    ..PLAIN
};
pub const UNIX_SOCKET_PREFIX: Setting = Setting {
    keys: &["net.unixDomainSocket.pathPrefix"],
    flag: "unix-socket-prefix",
    mongod_flag: Some("unixSocketPrefix"),
    help: "Directory of that socket [default: /tmp]",
    value_name: "DIRECTORY",
    default: |_| Some(Value::Text("/tmp".into())),
    ..PLAIN
};
pub const FILE_PERMISSIONS: Setting = Setting {
    keys: &["net.unixDomainSocket.filePermissions"],
    flag: "file-permissions",
    mongod_flag: Some("filePermissions"),
    help: "Permissions of that socket, as octal mode with a leading zero [default: 0700]",
    value_name: "MODE",
    kind: Kind::Text(|text| parse_permissions(text).map(drop)),
    default: |_| Some(Value::Text("0700".into())),
    ..PLAIN
};
/// # Errors
/// If the text is neither an address nor a range.
pub fn parse_range(text: &str) -> Result<AddressRange, String> {
    AddressRange::parse(text.trim())
        .ok_or_else(|| format!("'{text}' is neither an address nor a range in CIDR notation"))
}

/// # Errors
/// If the text is not an octal mode with a leading zero, as in a shell. mongod reads `700` as a decimal number, which
/// is never meant.
pub fn parse_permissions(text: &str) -> Result<u32, String> {
    let mode = text.strip_prefix('0').and_then(|digits| u32::from_str_radix(digits, 8).ok());
    mode.filter(|mode| *mode <= 0o777)
        .ok_or_else(|| format!("'{text}' is not an octal mode with a leading zero, within 0000 to 0777"))
}

/// Reads a comma-separated list of compressors; `disabled` means none.
/// # Errors
/// A sentence that names the text that is not a compressor.
pub fn parse_compressors(text: &str) -> Result<Vec<Compressor>, String> {
    if text == "disabled" {
        return Ok(Vec::new());
    }
    let parse = |name: &str| {
        Compressor::from_name(name).ok_or_else(|| format!("'{name}' is none of snappy, zstd, zlib and disabled"))
    };
    text.split(',').map(str::trim).map(parse).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compressors_are_a_list() {
        assert_eq!(parse_compressors("zlib, snappy"), Ok(vec![Compressor::Zlib, Compressor::Snappy]));
        assert_eq!(parse_compressors("disabled"), Ok(Vec::new()));
        assert!(parse_compressors("snappy,lz4").is_err_and(|error| error.contains("'lz4'")));
    }

    #[test]
    fn permissions_are_octal() {
        assert_eq!(parse_permissions("0700"), Ok(0o700));
        assert_eq!(parse_permissions("00"), Ok(0));
        for text in ["700", "0", "0o700", "0800", "01777", "rwx", ""] {
            assert!(parse_permissions(text).is_err_and(|error| error.contains(text)), "{text}");
        }
    }
}
