//! Options of mongod that this server does not support. They are refused by name, with the reason.

use super::setting::PARAMETERS;
use bunko_settings::is_known_parameter;

/// Reasons for a refusal.
const OLD_TLS: &str = "it is called net.tls since MongoDB 4.2 (--tls...)";
const TLS_FILES: &str = "certificates come from files";
const TLS_LOG: &str = "serverStatus counts the versions of TLS";
const MEMBERS: &str = "members of a set talk to each other with the server's own certificate and authorities";
const ALLOWLIST: &str = "members log in from any address; let a firewall choose";
const TRANSITION: &str =
    "members with and without authorization do not talk to each other: start all of them again with the key";
const EXTERNAL: &str = "users log in by SCRAM or by a certificate";
const REPLICATION: &str = "a replica set has no such option";
const SHARDS: &str = "there are no shards";
const AUDIT: &str = "the audit log takes destination, path, format and filter";
const ENCRYPTION: &str = "data are not encrypted at rest: encrypt the disk below";
const PROFILE_FILTER: &str = "set it by the command profile, or start with operationProfiling.mode";
const SYNC_DELAY: &str = "use --sync-delay";
const CACHE: &str = "the cache has one size: storage.wiredTiger.engineConfig.cacheSizeGB";
const OPLOG_HOURS: &str = "the oplog is kept by its size: replication.oplogSizeMB";
const SYSLOG: &str = "the log goes to standard error, which systemd hands to its journal, or to a file";
const BACKLOG: &str = "the queue of connections is as long as the system allows";
const REMOVED: &str = "MongoDB has removed it; leave it out";
const DAMAGE: &str = "a start that finds damage says which file to restore";
const COMPONENTS: &str = "set it by setParameter: logComponentVerbosity";
const EXPANSION: &str = "write the values into the file";
const WINDOWS: &str = "it is for Windows";

/// Keys and sections of a configuration file. Any other key without a setting is called unknown.
pub const KEYS: &[(&str, &str)] = &[
    ("auditLog", AUDIT),
    ("cloud", REMOVED),
    ("net.http", REMOVED),
    ("net.listenBacklog", BACKLOG),
    ("net.proxyPort", SHARDS),
    ("net.serviceExecutor", REMOVED),
    ("net.tls.certificateSelector", TLS_FILES),
    ("net.tls.clusterCAFile", MEMBERS),
    ("net.tls.clusterCertificateSelector", MEMBERS),
    ("net.tls.clusterFile", MEMBERS),
    ("net.tls.clusterPassword", MEMBERS),
    ("net.tls.clusterAuthX509", MEMBERS),
    ("net.tls.logVersions", TLS_LOG),
    ("net.ssl", OLD_TLS),
    ("operationProfiling.filter", PROFILE_FILTER),
    ("processManagement.windowsService", WINDOWS),
    ("replication", REPLICATION),
    ("security.clusterIpSourceAllowlist", ALLOWLIST),
    ("security.enableEncryption", ENCRYPTION),
    ("security.encryptionCipherMode", ENCRYPTION),
    ("security.encryptionKeyFile", ENCRYPTION),
    ("security.kmip", ENCRYPTION),
    ("security.ldap", EXTERNAL),
    ("security.sasl", EXTERNAL),
    ("security.transitionToAuth", TRANSITION),
    ("security", "there is no such thing"),
    ("setParameter.syncdelay", SYNC_DELAY),
    ("sharding", SHARDS),
    ("snmp", REMOVED),
    ("storage.indexBuildRetry", "an interrupted build always goes on"),
    ("storage.mmapv1", "the engine mmap leaves nothing to choose"),
    ("storage.oplogMinRetentionHours", OPLOG_HOURS),
    ("storage.preallocDataFiles", REMOVED),
    ("storage.repairPath", DAMAGE),
    ("storage.wiredTiger.engineConfig.cacheSizePct", CACHE),
    ("storage.wiredTiger.engineConfig.configString", "settings have names of their own"),
    ("storage.wiredTiger.engineConfig.maxCacheOverflowFileSizeGB", CACHE),
    ("storage.wiredTiger.engineConfig.statisticsLogDelaySecs", "ask serverStatus for statistics"),
    ("systemLog.component", COMPONENTS),
    ("systemLog.syslogFacility", SYSLOG),
    ("systemLog.traceAllExceptions", "errors of clients are in their replies and in slow lines"),
];

/// Flags. A star at the end stands for any rest of the name.
/// Source: MongoDB manual 8.2, "mongod".
pub const FLAGS: &[(&str, &str)] = &[
    ("auditCompressionMode", AUDIT),
    ("auditEncryptionKeyUID", AUDIT),
    ("auditLocalKeyFile", AUDIT),
    ("basisTech*", REMOVED),
    ("clusterIpSourceAllowlist", ALLOWLIST),
    ("configExpand", EXPANSION),
    ("configsvr*", SHARDS),
    ("cpu", REMOVED),
    ("enableEncryption", ENCRYPTION),
    ("enableFreeMonitoring", REMOVED),
    ("encryption*", ENCRYPTION),
    ("freeMonitoringTag*", REMOVED),
    ("httpinterface", REMOVED),
    ("jsonp", REMOVED),
    ("kmip*", ENCRYPTION),
    ("ldap*", EXTERNAL),
    ("listenBacklog", BACKLOG),
    ("maintenanceMode", REPLICATION),
    ("master", REMOVED),
    ("nohttpinterface", REMOVED),
    ("noIndexBuildRetry", "an interrupted build always goes on"),
    ("noprealloc", REMOVED),
    ("oplogMinRetentionHours", OPLOG_HOURS),
    ("outputConfig", "use --print-config"),
    ("profileFilter", PROFILE_FILTER),
    ("proxyPort", SHARDS),
    ("repair*", DAMAGE),
    ("rest", REMOVED),
    ("restore", "start from the restored directory as from any other"),
    ("serverless", REPLICATION),
    ("shardsvr", SHARDS),
    ("shutdown", "send SIGTERM, or run db.shutdownServer() on admin"),
    ("slave", REMOVED),
    ("smallfiles", REMOVED),
    ("ssl*", OLD_TLS),
    ("sysinfo", "hostInfo describes the machine"),
    ("syslog*", SYSLOG),
    ("tlsCertificateSelector", TLS_FILES),
    ("tlsCluster*", MEMBERS),
    ("tlsLogVersions", TLS_LOG),
    ("tlsX509*", MEMBERS),
    ("traceExceptions", "errors of clients are in their replies and in slow lines"),
    ("transitionToAuth", TRANSITION),
    ("upgrade", "a start reads the data of earlier versions, or says which version it needs"),
    ("wiredTigerCacheSizePct", CACHE),
    ("wiredTigerCollectionConfigString", "settings have names of their own"),
    ("wiredTigerEngineConfigString", "settings have names of their own"),
    ("wiredTigerIndexConfigString", "settings have names of their own"),
    ("wiredTigerMaxCacheOverflowFileSizeGB", CACHE),
    ("wiredTigerStatisticsLogDelaySecs", "ask serverStatus for statistics"),
];

/// The reason why a key is not supported; `None` for an unknown key.
pub fn refusal_of_key(path: &str) -> Option<String> {
    if let Some(name) = path.strip_prefix(PARAMETERS).filter(|name| *name != "syncdelay") {
        return is_known_parameter(name).then(|| format!("{path} is not supported yet"));
    }
    let is_in = |section: &str| path.strip_prefix(section).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
    let (_, because) = KEYS.iter().find(|(section, _)| is_in(section))?;
    Some(format!("{path} is not supported yet: {because}"))
}

/// The reason why a flag is not supported; `None` for an unknown flag. `argument` is a word of a command line, with
/// dashes and maybe a value.
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
            ("--shardsvr", "--shardsvr is not supported yet: there are no shards"),
            (
                "--sslMode=requireSSL",
                "--sslMode is not supported yet: it is called net.tls since MongoDB 4.2 (--tls...)",
            ),
            (
                "--tlsClusterFile",
                "--tlsClusterFile is not supported yet: members of a set talk to each other with the server's own \
                 certificate and authorities",
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
