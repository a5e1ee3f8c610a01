//! What mongod can be told and this server cannot: refused by name, with what is missing.

/// What is missing.
const OLD_TLS: &str = "it is called net.tls since MongoDB 4.2 (--tls...)";
const TLS_FILES: &str = "certificates come from files";
const TLS_LOG: &str = "serverStatus counts the versions of TLS";
const MEMBERS: &str = "a server is alone, and needs no keys for other members";
const EXTERNAL: &str = "users log in by SCRAM or by a certificate";
const REPLICATION: &str = "a replica set has one member";
const SHARDS: &str = "there are no shards";
const AUDIT: &str = "the audit log takes destination, path, format and filter";
const ENCRYPTION: &str = "data are not encrypted at rest";
const PARAMETERS: &str = "at the start only those that docs/running.md names can be set";
const PROFILER: &str = "at the start the profiler is off: the command profile turns it on";

/// Keys and sections of a configuration file. Any other that there is no setting for is called unknown.
pub const KEYS: &[(&str, &str)] = &[
    ("auditLog", AUDIT),
    ("net.tls.certificateSelector", TLS_FILES),
    ("net.tls.clusterCAFile", MEMBERS),
    ("net.tls.clusterCertificateSelector", MEMBERS),
    ("net.tls.clusterFile", MEMBERS),
    ("net.tls.clusterPassword", MEMBERS),
    ("net.tls.clusterAuthX509", MEMBERS),
    ("net.tls.logVersions", TLS_LOG),
    ("net.ssl", OLD_TLS),
    ("operationProfiling", PROFILER),
    ("processManagement.timeZoneInfo", "time zones are those that the server was built with"),
    ("replication", REPLICATION),
    ("security.clusterAuthMode", MEMBERS),
    ("security.clusterIpSourceAllowlist", MEMBERS),
    ("security.enableEncryption", ENCRYPTION),
    ("security.keyFile", MEMBERS),
    ("security.kmip", ENCRYPTION),
    ("security.ldap", EXTERNAL),
    ("security.sasl", EXTERNAL),
    ("security.transitionToAuth", MEMBERS),
    ("security", "there is no such thing"),
    ("setParameter", PARAMETERS),
    ("sharding", SHARDS),
    ("storage.mmapv1", "the engine mmap leaves nothing to choose"),
];

/// Flags, or their beginnings where a star ends them.
/// Source: MongoDB manual 8.2, "mongod".
pub const FLAGS: &[(&str, &str)] = &[
    ("auditCompressionMode", AUDIT),
    ("auditEncryptionKeyUID", AUDIT),
    ("auditLocalKeyFile", AUDIT),
    ("clusterAuthMode", MEMBERS),
    ("clusterIpSourceAllowlist", MEMBERS),
    ("configsvr", SHARDS),
    ("enableEncryption", ENCRYPTION),
    ("encryption*", ENCRYPTION),
    ("keyFile", MEMBERS),
    ("kmip*", ENCRYPTION),
    ("ldap*", EXTERNAL),
    ("profile", PROFILER),
    ("repair", "a start that finds damage says which file to restore"),
    ("shardsvr", SHARDS),
    ("slowOpSampleRate", "every slow operation is logged"),
    ("ssl*", OLD_TLS),
    ("syslog", "the log goes to standard error or a file"),
    ("timeZoneInfo", "time zones are those that the server was built with"),
    ("tlsCertificateSelector", TLS_FILES),
    ("tlsCluster*", MEMBERS),
    ("tlsLogVersions", TLS_LOG),
    ("tlsX509*", MEMBERS),
    ("transitionToAuth", MEMBERS),
];

/// Why there is no such key.
pub fn refusal_of_key(path: &str) -> Option<String> {
    let is_in = |section: &str| path.strip_prefix(section).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
    let (_, because) = KEYS.iter().find(|(section, _)| is_in(section))?;
    Some(format!("{path} is not supported yet: {because}"))
}

/// Why there is no such flag. `argument` is a word of a command line, with dashes and maybe a value.
pub fn refusal_of_flag(argument: &str) -> Option<String> {
    let name = argument.strip_prefix("--")?.split('=').next()?;
    let is_it = |flag: &str| flag.strip_suffix('*').map_or(flag == name, |beginning| name.starts_with(beginning));
    let (_, because) = FLAGS.iter().find(|(flag, _)| is_it(flag))?;
    Some(format!("--{name} is not supported yet: {because}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::configuration::table::SETTINGS;

    #[test]
    fn flags_are_refused_by_name() {
        for (argument, expected) in [
            ("--keyFile=k", "--keyFile is not supported yet: a server is alone, and needs no keys for other members"),
            ("--shardsvr", "--shardsvr is not supported yet: there are no shards"),
            (
                "--sslMode=requireSSL",
                "--sslMode is not supported yet: it is called net.tls since MongoDB 4.2 (--tls...)",
            ),
            (
                "--tlsClusterFile",
                "--tlsClusterFile is not supported yet: a server is alone, and needs no keys for other members",
            ),
        ] {
            assert_eq!(refusal_of_flag(argument).as_deref(), Some(expected));
        }
        assert!(refusal_of_flag("--port").is_none() && refusal_of_flag("auth").is_none());
    }

    #[test]
    fn no_setting_is_called_missing() {
        for setting in SETTINGS {
            for flag in [setting.flag].into_iter().chain(setting.mongod_flag) {
                assert_eq!(refusal_of_flag(&format!("--{flag}")), None);
            }
        }
    }
}
