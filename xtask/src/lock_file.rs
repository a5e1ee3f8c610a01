//! The part of `Cargo.lock` that the checks read.

/// A package of a registry, as the lock file has it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Locked {
    pub name: String,
    pub version: String,
    /// SHA-256 of the package file, in hexadecimal.
    pub checksum: Option<String>,
}

/// The packages that are not our own, in the order of the file.
pub fn packages(text: &str) -> Vec<Locked> {
    let field = |block: &str, name: &str| {
        let line = block.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(" = "));
        line.map(|value| value.trim_matches('"').to_owned())
    };
    let blocks = text.split("[[package]]").skip(1).filter(|block| block.contains("\nsource = "));
    let read = |block: &str| {
        Some(Locked {
            name: field(block, "name")?,
            version: field(block, "version")?,
            checksum: field(block, "checksum"),
        })
    };
    blocks.filter_map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_of_registries_are_read() {
        let text = "version = 4\n\n[[package]]\nname = \"ours\"\nversion = \"0.1.0\"\n\n[[package]]\nname = \"a\"\n\
                    version = \"1.2.3\"\nsource = \"registry+x\"\nchecksum = \"abc\"\ndependencies = [\n \"name\",\n]\n";
        let expected = Locked { name: "a".into(), version: "1.2.3".into(), checksum: Some("abc".into()) };
        assert_eq!(packages(text), [expected]);
    }
}
