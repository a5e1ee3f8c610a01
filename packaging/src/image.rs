//! The OCI image, as one archive that `podman load`, `docker load` and `skopeo copy oci-archive:` read.
//!
//! It has no shell: the binary is entry point and health check. A binary that is linked to libraries brings those of
//! this machine.
//! Source: OCI image format specification 1.1; `Healthcheck` is Docker's.

use crate::archive::{gzip, sha256, tar};
use crate::binary::Linkage;
use crate::payload::{Entry, Payload, programs, read, write};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use std::path::Path;

/// The user and group that the server runs as, as in MongoDB's images, so that their volumes can be taken over.
const OWNER: u64 = 999;
const BINARY: &str = "/usr/bin/bunko";
const SECOND_NANOS: u64 = 1_000_000_000;

/// Makes the archive; returns its name.
/// # Errors
/// A sentence that names the file.
pub fn make(payload: &Payload, out: &Path) -> Result<String, String> {
    let layer = tar(root(payload)?, payload.epoch)?;
    let compressed = gzip(&layer)?;
    let config = bytes(&config(payload, &sha256(&layer)));
    let manifest = bytes(&json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": descriptor("application/vnd.oci.image.config.v1+json", &config),
        "layers": [descriptor("application/vnd.oci.image.layer.v1.tar+gzip", &compressed)],
    }));
    let mut listed = descriptor("application/vnd.oci.image.manifest.v1+json", &manifest);
    listed["platform"] = json!({"architecture": payload.binary.machine.debian, "os": "linux"});
    listed["annotations"] = json!({
        "io.containerd.image.name": format!("docker.io/library/bunko:{}", payload.version),
        "org.opencontainers.image.ref.name": payload.version,
    });
    let index = bytes(&json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": [listed],
    }));
    let mut entries = vec![
        Entry::file("index.json", 0o644, index),
        Entry::file("oci-layout", 0o644, *br#"{"imageLayoutVersion":"1.0.0"}"#),
    ];
    for blob in [config, manifest, compressed] {
        entries.push(Entry::file(format!("blobs/sha256/{}", sha256(&blob)), 0o644, blob));
    }
    let name = format!("bunko-{}-{}.oci.tar", payload.version, payload.binary.machine.debian);
    write(&out.join(&name), &tar(entries, payload.epoch)?)?;
    Ok(name)
}

/// The files of the image.
fn root(payload: &Payload) -> Result<Vec<Entry>, String> {
    let mut entries = payload.documents("usr/share/doc/bunko", "LICENSE")?;
    entries.push(Entry::file(&BINARY[1..], 0o755, payload.binary.bytes.clone()));
    // Health checks and commands of compose files call the programs of MongoDB's image.
    entries.extend(programs("usr/bin", "bunko"));
    entries.push(Entry::file("etc/bunko/bunko.conf", 0o644, payload.repository_file("deploy/image/bunko.conf")?));
    let users = format!("root:x:0:0::/:/\nbunko:x:{OWNER}:{OWNER}::/data/db:/\n");
    entries.push(Entry::file("etc/passwd", 0o644, users));
    entries.push(Entry::file("etc/group", 0o644, format!("root:x:0:\nbunko:x:{OWNER}:\n")));
    // Runtimes that know the container's addresses put a file of their own in its place.
    entries.push(Entry::file("etc/hosts", 0o644, "127.0.0.1 localhost\n::1 localhost\n"));
    entries.push(Entry::directory("data/db", 0o700, OWNER));
    entries.push(Entry::directory("tmp", 0o1777, 0));
    // Runtimes mount these, and cannot make them in a root that is read-only.
    for place in ["dev", "proc", "sys", "docker-entrypoint-initdb.d"] {
        entries.push(Entry::directory(place, 0o755, 0));
    }
    if let Linkage::Dynamic { libraries, .. } = &payload.binary.linkage {
        for library in libraries {
            entries.push(Entry::file(&library[1..], 0o755, read(Path::new(library))?));
        }
    }
    Ok(entries)
}

fn config(payload: &Payload, layer: &str) -> Value {
    let created = Timestamp::UNIX_EPOCH + SignedDuration::from_secs(payload.epoch.into());
    let created = created.to_string();
    json!({
        "created": created,
        "architecture": payload.binary.machine.debian,
        "os": "linux",
        "config": {
            "User": format!("{OWNER}:{OWNER}"),
            "ExposedPorts": {"27017/tcp": {}},
            "Env": ["PATH=/usr/bin"],
            "Entrypoint": [BINARY, "serve", "--config", "/etc/bunko/bunko.conf"],
            "Volumes": {"/data/db": {}},
            "StopSignal": "SIGTERM",
            "Healthcheck": {
                "Test": ["CMD", BINARY, "ping"],
                "Interval": 30 * SECOND_NANOS,
                "Timeout": 6 * SECOND_NANOS,
                "StartPeriod": 60 * SECOND_NANOS,
            },
            "Labels": {
                "org.opencontainers.image.licenses": "Apache-2.0",
                "org.opencontainers.image.title": "bunko",
                "org.opencontainers.image.version": payload.version,
            },
        },
        "rootfs": {"type": "layers", "diff_ids": [format!("sha256:{layer}")]},
        "history": [{"created": created, "created_by": "cargo xtask package oci"}],
    })
}

fn descriptor(media_type: &str, blob: &[u8]) -> Value {
    json!({"mediaType": media_type, "digest": format!("sha256:{}", sha256(blob)), "size": blob.len()})
}

fn bytes(document: &Value) -> Vec<u8> {
    document.to_string().into_bytes()
}
