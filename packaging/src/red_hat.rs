//! The `.rpm`, without a signature: SHA256SUMS has its sum, and a repository signs what it serves.

use crate::binary::Linkage;
use crate::payload::{Entry, Kind, Payload};
use rpm::{BuildConfig, CompressionWithLevel, Dependency, FileOptions, PackageBuilder};
use std::path::Path;

const ZSH: &str = "usr/share/zsh/site-functions/_bunko";
/// The number of this package among those of one version.
const RELEASE: &str = "1";
/// Directories of this package alone, which a removal takes.
const OWN: [&str; 5] =
    ["/usr/lib/bunko", "/usr/lib/bunko/bin", "/usr/share/bunko", "/usr/share/bunko/monitoring", "/usr/share/doc/bunko"];
/// Directories that belong to the server's user.
const OWNED: [(&str, u16); 2] = [("/var/lib/bunko", 0o700), ("/var/log/bunko", 0o750)];

/// Makes the package; returns its name.
/// # Errors
/// A sentence that names the file.
pub fn make(payload: &Payload, out: &Path) -> Result<String, String> {
    let machine = payload.binary.machine.kernel;
    let mut builder = PackageBuilder::new(
        "bunko",
        &payload.version,
        "Apache-2.0",
        machine,
        "Document database that MongoDB's drivers work with",
    );
    let compression = CompressionWithLevel::Gzip(6);
    builder.using_config(BuildConfig::v4().source_date(payload.epoch).compression(compression).reserved_space(None));
    builder.release(RELEASE).vendor("The Bunko authors").group("Applications/Databases");
    builder.description(
        "One binary: a server that speaks MongoDB's wire protocol, tools that dump and restore in mongodump's formats, \
         and a lab that measures servers.",
    );
    builder.build_host("localhost");
    let script = |name: &str| {
        let text = payload.repository_file(&format!("deploy/rpm/{name}"))?;
        String::from_utf8(text).map_err(|error| format!("deploy/rpm/{name}: {error}"))
    };
    builder.pre_install_script(script("pre")?).post_install_script(script("post")?);
    builder.pre_uninstall_script(script("preun")?).post_uninstall_script(script("postun")?);
    for command in ["/bin/sh", "/usr/sbin/groupadd", "/usr/sbin/useradd"] {
        builder.requires(Dependency::any(command));
    }
    if let Linkage::Dynamic { glibc, .. } = &payload.binary.linkage {
        builder.requires(Dependency::any(format!("libc.so.6(GLIBC_{glibc})(64bit)")));
        builder.requires(Dependency::any("libgcc_s.so.1()(64bit)"));
    }
    for entry in payload.distribution(ZSH)? {
        add(&mut builder, &entry).map_err(|error| format!("{}: {error}", entry.path))?;
    }
    for path in OWN {
        builder.with_dir_entry(FileOptions::dir(path).permissions(0o755)).map_err(|error| format!("{path}: {error}"))?;
    }
    for (path, mode) in OWNED {
        let options = FileOptions::dir(path).permissions(mode).user("bunko").group("bunko");
        builder.with_dir_entry(options).map_err(|error| format!("{path}: {error}"))?;
    }
    let package = builder.build().map_err(|error| error.to_string())?;
    let name = format!("bunko-{}-{RELEASE}.{machine}.rpm", payload.version);
    let mut bytes = Vec::new();
    package.write(&mut bytes).map_err(|error| error.to_string())?;
    crate::payload::write(&out.join(&name), &bytes)?;
    Ok(name)
}

fn add(builder: &mut PackageBuilder, entry: &Entry) -> Result<(), rpm::Error> {
    let path = format!("/{}", entry.path);
    if let Kind::Link(target) = entry.kind {
        builder.with_symlink(FileOptions::symlink(path, target))?;
        return Ok(());
    }
    let options = FileOptions::new(path).permissions(entry.mode);
    let options = match entry.kind {
        // A changed file stays, and the new one is put beside it as .rpmnew.
        Kind::Configuration(_) => options.config().noreplace(),
        Kind::File(_) | Kind::Directory | Kind::Link(_) => options,
    };
    builder.with_file_contents(entry.bytes().unwrap_or_default(), options)?;
    Ok(())
}
