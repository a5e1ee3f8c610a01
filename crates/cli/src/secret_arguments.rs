//! Passwords of the command line, which every user of the machine sees in the list of processes: they are overwritten
//! there as soon as they are read, as mongosh does. The list shows the memory in which the kernel has put the
//! arguments.
//! Source: Linux, `proc(5)`, "/proc/PID/stat", fields `arg_start` and `arg_end`.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;

/// Flags whose value is a password.
const FLAGS: [&str; 4] = ["-p", "--password", "--tlsCertificateKeyFilePassword", "--sslPEMKeyPassword"];
/// Fields of `stat` between the process's name and `arg_start`.
const BEFORE_ARGUMENTS: usize = 45;

/// Overwrites the passwords. Where the system does not allow it, they stay visible.
pub fn hide() {
    let Ok(shown) = fs::read("/proc/self/cmdline") else { return };
    let hidden = hidden(&shown);
    let Some(start) = start_of_arguments().filter(|_| hidden != shown) else { return };
    if let Ok(memory) = File::options().write(true).open("/proc/self/mem") {
        // A machine that forbids this shows the password, as it would for any other program.
        let _ = memory.write_all_at(&hidden, start);
    }
}

fn start_of_arguments() -> Option<u64> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // The name may contain blanks and brackets.
    let (_, fields) = stat.rsplit_once(") ")?;
    fields.split(' ').nth(BEFORE_ARGUMENTS)?.parse().ok().filter(|start| *start > 0)
}

/// The arguments, each with a null byte at its end, with `x` for every byte of a password.
fn hidden(arguments: &[u8]) -> Vec<u8> {
    let mut hidden = Vec::with_capacity(arguments.len());
    let mut is_value = false;
    for argument in arguments.split_inclusive(|byte| *byte == 0) {
        let text = argument.strip_suffix(&[0]).unwrap_or(argument);
        let secrets = [secret_of(text, is_value), of_option(text)];
        let is_secret = |at: usize| secrets.iter().any(|secret| secret.contains(&at));
        let bytes = text.iter().enumerate().map(|(at, byte)| if is_secret(at) { b'x' } else { *byte });
        hidden.extend(bytes);
        hidden.extend(&argument[text.len()..]);
        is_value = FLAGS.iter().any(|flag| text == flag.as_bytes());
    }
    hidden
}

/// The bytes of an argument that are a password; an empty range if there is none.
fn secret_of(argument: &[u8], is_value: bool) -> std::ops::Range<usize> {
    let whole = argument.len();
    if is_value && !argument.starts_with(b"-") {
        return 0..whole;
    }
    let after = |flag: &&&str| argument.starts_with(flag.as_bytes()) && argument.get(flag.len()) == Some(&b'=');
    if let Some(flag) = FLAGS.iter().find(after) {
        return flag.len() + 1..whole;
    }
    if argument.starts_with(b"-p") {
        return 2..whole;
    }
    of_connection_string(argument).unwrap_or(0..0)
}

/// The password of a connection string; `None` if it names no user with a password.
fn of_connection_string(argument: &[u8]) -> Option<std::ops::Range<usize>> {
    let start = argument.windows(3).position(|bytes| bytes == b"://")? + 3;
    let end = argument[start..].iter().rposition(|byte| *byte == b'@')? + start;
    let colon = argument[start..end].iter().position(|byte| *byte == b':')? + start;
    Some(colon + 1..end)
}

/// The password among the options of a connection string; empty if there is none.
fn of_option(argument: &[u8]) -> std::ops::Range<usize> {
    const NAME: &[u8] = b"tlsCertificateKeyFilePassword=";
    let is_connection_string = argument.windows(3).any(|bytes| bytes == b"://");
    let named = argument.windows(NAME.len()).position(|bytes| bytes.eq_ignore_ascii_case(NAME));
    let Some(at) = named.filter(|_| is_connection_string) else { return 0..0 };
    let start = at + NAME.len();
    let length = argument[start..].iter().take_while(|byte| **byte != b'&').count();
    start..start + length
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_of_a_password_is_hidden_and_nothing_else() {
        for (given, shown) in [
            ("mongosh\0-u\0me\0-p\0secret\0--quiet\0", "mongosh\0-u\0me\0-p\0xxxxxx\0--quiet\0"),
            ("b\0shell\0-psecret\0--port\0x\0", "b\0shell\0-pxxxxxx\0--port\0x\0"),
            ("b\0--password=a=b\0", "b\0--password=xxx\0"),
            ("b\0--sslPEMKeyPassword\0key\0", "b\0--sslPEMKeyPassword\0xxx\0"),
            ("b\0-p\0--eval\0secret\0", "b\0-p\0--eval\0secret\0"),
            ("b\0mongodb://me:p@ss@h:5/x\0", "b\0mongodb://me:xxxx@h:5/x\0"),
            ("b\0--uri=mongodb://me:ps@h\0", "b\0--uri=mongodb://me:xx@h\0"),
            (
                "b\0mongodb://h/?tlsCertificateKeyFilePassword=pw&w=1\0",
                "b\0mongodb://h/?tlsCertificateKeyFilePassword=xx&w=1\0",
            ),
            ("b\0mongodb://me@h\0--eval\0a ? b : c\0", "b\0mongodb://me@h\0--eval\0a ? b : c\0"),
        ] {
            assert_eq!(String::from_utf8_lossy(&hidden(given.as_bytes())), shown);
        }
    }

    #[test]
    fn the_kernel_says_where_the_arguments_are() {
        assert!(start_of_arguments().is_some());
    }
}
