//! The flags of `bunko serve`: one for each setting, and those that say where settings come from.

use super::setting::{Kind, Setting, Value};
use super::table::{DB_PATH, ENGINE, LOG_VERBOSITY, SETTINGS, parse_parameter};
use bunko_certificates::Password;
use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use std::path::{Path, PathBuf};

/// Parsed flags. They take precedence over the configuration file.
#[derive(Default)]
pub struct ServeArguments {
    pub config: Option<PathBuf>,
    pub print_config: bool,
    /// The settings that were given as flags.
    pub given: Vec<(&'static Setting, Value)>,
}

impl ServeArguments {
    /// Arguments with a data directory and defaults for the rest, and with an engine if it is not the default one.
    /// # Errors
    /// A sentence that names the flag.
    pub fn of_directory(dbpath: &Path, engine: Option<&str>) -> Result<Self, String> {
        let text = |setting: &'static Setting, text: &str| {
            let value = setting.kind.check(Value::Text(text.to_owned()));
            value.map(|value| (setting, value)).map_err(|error| format!("--{}: {error}", setting.flag))
        };
        let mut given = vec![text(&DB_PATH, &dbpath.to_string_lossy())?];
        given.extend(engine.map(|engine| text(&ENGINE, engine)).transpose()?);
        Ok(Self { given, ..Self::default() })
    }
}

/// The command line of the process for display, without secrets.
pub fn shown(arguments: impl Iterator<Item = String>) -> Vec<String> {
    let names = SETTINGS.iter().filter(|setting| matches!(setting.kind, Kind::Secret));
    let flags: Vec<String> = names
        .flat_map(|setting| std::iter::once(setting.flag).chain(setting.mongod_flag))
        .map(|name| format!("--{name}"))
        .collect();
    let mut is_secret = false;
    arguments
        .map(|argument| {
            let name = argument.split_once('=').map(|(name, _)| name.to_owned());
            if std::mem::replace(&mut is_secret, flags.contains(&argument)) {
                return Password::SHOWN.to_owned();
            }
            name.filter(|name| flags.contains(name)).map_or(argument, |name| format!("{name}={}", Password::SHOWN))
        })
        .collect()
}

/// The flag that is repeated for a more detailed log: `-vv`.
const VERBOSE: &str = "verbose";

/// The flag that sets parameters.
const PARAMETER: &str = "setParameter";

#[derive(Args)]
struct FileArguments {
    /// A YAML file in mongod's format
    #[arg(long, short = 'f', value_name = "FILE")]
    config: Option<PathBuf>,
    /// Print the settings in force and where each value comes from, as a file for --config; start nothing
    #[arg(long)]
    print_config: bool,
}

impl Args for ServeArguments {
    fn augment_args(command: Command) -> Command {
        let command = FileArguments::augment_args(command);
        let parameter = Arg::new(PARAMETER)
            .long("set-parameter")
            .alias(PARAMETER)
            .value_name("NAME=VALUE")
            .value_parser(parse_parameter)
            .action(ArgAction::Append)
            .help(
                "Set a parameter: enableTestCommands=1 allows configureFailPoint, for tests of clients; \
                 transactionLifetimeLimitSeconds=N aborts transactions that are open for longer [default: 60]; \
                 transactionMemoryLimitBytes=N refuses transactions with more changes than that [default: 268435456]",
            );
        let verbose = Arg::new(VERBOSE).short('v').long(VERBOSE).action(ArgAction::Count).hide(true);
        let command = command.arg(parameter).arg(verbose);
        SETTINGS.iter().fold(command, |command, setting| command.arg(flag(setting)).args(negation(setting)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for ServeArguments {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let FileArguments { config, print_config } = FileArguments::from_arg_matches(matches)?;
        let value = |setting: &Setting| {
            let is_negated = setting.negations.first().is_some_and(|negation| matches.get_flag(negation));
            let off = || setting.kind.check(Value::Switch(false)).ok();
            if is_negated { off() } else { matches.get_one(setting.key()).cloned() }
        };
        let mut given: Vec<_> = SETTINGS.iter().filter_map(|setting| Some((setting, value(setting)?))).collect();
        let parameters = matches.get_many::<(&'static Setting, Value)>(PARAMETER).into_iter().flatten();
        given.extend(parameters.cloned());
        if let times @ 1.. = matches.get_count(VERBOSE) {
            given.push((
                &LOG_VERBOSITY,
                LOG_VERBOSITY.kind.check(Value::Whole(times.into())).map_err(|why| wrong(&why))?,
            ));
        }
        Ok(Self { config, print_config, given })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

fn wrong(why: &str) -> clap::Error {
    clap::Error::raw(ErrorKind::ValueValidation, format!("-v: {why}\n"))
}

fn flag(setting: &'static Setting) -> Arg {
    let parse = |text: &str| setting.kind.check(Value::Text(text.to_owned()));
    let arg = Arg::new(setting.key())
        .long(setting.flag)
        .aliases(setting.mongod_flag)
        .value_name(setting.value_name)
        .value_parser(parse)
        .help(setting.help)
        .hide(setting.help.is_empty());
    if setting.is_switch() {
        // Without a value the flag means `true`, as with mongod.
        return arg.num_args(0..=1).require_equals(true).default_missing_value("true");
    }
    arg
}

fn negation(setting: &'static Setting) -> Option<Arg> {
    let (name, others) = setting.negations.split_first()?;
    let arg = Arg::new(*name).long(*name).aliases(others.iter().copied()).action(ArgAction::SetTrue);
    Some(arg.conflicts_with(setting.key()).help(format!("As --{}=false", setting.flag)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str]) -> Result<Vec<String>, String> {
        let command = ServeArguments::augment_args(Command::new("serve").no_binary_name(true));
        let matches = command.try_get_matches_from(arguments).map_err(|error| error.to_string())?;
        let arguments = ServeArguments::from_arg_matches(&matches).map_err(|error| error.to_string())?;
        Ok(arguments.given.iter().map(|(setting, value)| format!("{} {value}", setting.key())).collect())
    }

    #[test]
    fn both_spellings_are_taken() {
        for arguments in [["--bind-ip", "::1", "--max-connections=5"], ["--bind_ip", "::1", "--maxConns=5"]] {
            assert_eq!(parse(&arguments).expect("valid"), ["net.bindIp ::1", "net.maxIncomingConnections 5"]);
        }
    }

    #[test]
    fn secrets_are_not_shown() {
        let given =
            ["serve", "--tlsCertificateKeyFilePassword", "a", "--tls-certificate-key-file-password=b", "--port=1"];
        let hidden =
            ["--tlsCertificateKeyFilePassword", "<password>", "--tls-certificate-key-file-password=<password>"];
        let shown = shown(given.iter().map(ToString::to_string));
        assert_eq!(shown, [&["serve"][..], &hidden, &["--port=1"]].concat());
        let parsed = parse(&["--tlsCertificateKeyFilePassword=a"]).expect("valid");
        assert_eq!(parsed, ["net.tls.certificateKeyFilePassword <password>"]);
    }

    #[test]
    fn switches_stand_alone_or_with_a_value() {
        assert_eq!(parse(&["--logappend", "--port", "1"]).expect("valid"), ["net.port 1", "systemLog.logAppend true"]);
        assert_eq!(parse(&["--journal=false"]).expect("valid"), ["storage.journal.enabled false"]);
        assert_eq!(parse(&["--noauth"]).expect("valid"), ["security.authorization disabled"]);
        assert_eq!(parse(&["-vv"]).expect("valid"), ["systemLog.verbosity 2"]);
        for flag in ["--nounixsocket", "--no-unix-socket", "--unix-socket=false"] {
            assert_eq!(parse(&[flag]).expect("valid"), ["net.unixDomainSocket.enabled false"]);
        }
    }

    #[test]
    fn parameters_are_settings() {
        for value in ["1", "true"] {
            let given = parse(&["--setParameter", &format!("enableTestCommands={value}")]).expect("valid");
            assert_eq!(given, ["setParameter.enableTestCommands true"]);
        }
        let given = parse(&["--setParameter", "cursorTimeoutMillis=60000"]).expect("valid");
        assert_eq!(given, ["setParameter.cursorTimeoutMillis 60000"]);
        for (text, expected) in [
            ("enableTestCommands=2", "enableTestCommands: '2' is none of true, false, 1 and 0"),
            ("enableTestCommands", "'enableTestCommands' is not NAME=VALUE"),
            ("syncdelay=5", "setParameter.syncdelay is not supported yet: use --sync-delay"),
            ("nothing=5", "unknown parameter nothing"),
        ] {
            let error = parse(&["--setParameter", text]).expect_err("refused");
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn mistakes_are_named() {
        for (arguments, words) in [
            (["--port", "many"], ["--port <PORT>", "many is not a whole number within 0 to 65535"]),
            (["--inMemorySizeGB", "0"], ["--in-memory-size-gb <GB>", "0 is not a number within 0.25 to 10000"]),
            (["--directoryperdb", "--fork"], ["--fork", "true is not supported, only false"]),
            (["--quiet", "-vvvvvv"], ["-v", "6 is not a whole number within 0 to 5"]),
            (["--replSetHost", "rs"], ["--repl-set-host", "'rs' is not HOST:PORT"]),
            (["--unix-socket", "--nounixsocket"], ["--unix-socket", "--no-unix-socket"]),
        ] {
            let error = parse(&arguments).expect_err("refused");
            assert!(words.iter().all(|word| error.contains(word)), "{words:?} are not in: {error}");
        }
    }
}
