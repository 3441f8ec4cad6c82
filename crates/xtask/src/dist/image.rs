//! Images for containers, in the layout of the Open Container Initiative, made without a daemon.
#![expect(
    clippy::indexing_slicing,
    reason = "an index of a JSON value finds or inserts, and does not panic"
)]

use serde_json::{Value, json};

use crate::dist::archive::{Owned, gzip, tar};
use crate::dist::digest::sha256;
use crate::dist::file::File;
use crate::dist::target::Target;
use crate::task::Result;

/// Who runs the program: nobody whom the host knows.
const USER: u64 = 65532;

/// What the program writes: the store, and the settings and the key. Both are to be volumes.
const FOLDERS: [Owned; 2] =
    [Owned { path: "config", user: USER }, Owned { path: "data", user: USER }];

/// The archive that `podman load` and `skopeo copy oci-archive:` read.
pub(crate) fn make(target: Target, version: &str, binary: &[u8], time: u64) -> Result<Vec<u8>> {
    let layer = tar(&[File::program("sottovoce", binary)], &FOLDERS, time)?;
    let created = timestamp(time)?;
    let config = json!({
        "created": created,
        "architecture": target.architecture(),
        "os": "linux",
        "config": {
            "User": format!("{USER}:{USER}"),
            "Entrypoint": ["/sottovoce"],
            "Cmd": ["up"],
            "WorkingDir": "/data",
            "Env": [
                "HOME=/data",
                "XDG_CONFIG_HOME=/config",
                "SOTTOVOCE__CONTEXT__STORAGEROOT=/data/store",
            ],
            "Volumes": {"/config": {}, "/data": {}},
            "Labels": {
                "org.opencontainers.image.title": "sottovoce",
                "org.opencontainers.image.version": version,
                "org.opencontainers.image.licenses": "MIT OR Apache-2.0",
            },
        },
        "rootfs": {"type": "layers", "diff_ids": [format!("sha256:{}", sha256(&layer))]},
        "history": [{"created": created, "created_by": "cargo xtask dist"}],
    });
    let layer = gzip(&layer)?;
    let config = serde_json::to_vec(&config)?;
    let manifest = serde_json::to_vec(&json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": descriptor("application/vnd.oci.image.config.v1+json", &config),
        "layers": [descriptor("application/vnd.oci.image.layer.v1.tar+gzip", &layer)],
    }))?;
    let mut listed = descriptor("application/vnd.oci.image.manifest.v1+json", &manifest);
    listed["platform"] = json!({"architecture": target.architecture(), "os": "linux"});
    listed["annotations"] = json!({"org.opencontainers.image.ref.name": version});
    let index = serde_json::to_vec(&json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": [listed],
    }))?;
    let mut files = vec![
        File::new("oci-layout", br#"{"imageLayoutVersion":"1.0.0"}"#.as_slice()),
        File::new("index.json", index),
    ];
    files.extend([config, manifest, layer].map(|blob| {
        let path = format!("blobs/sha256/{}", sha256(&blob));
        File::new(path, blob)
    }));
    tar(&files, &[], time)
}

fn descriptor(kind: &str, blob: &[u8]) -> Value {
    json!({"mediaType": kind, "digest": format!("sha256:{}", sha256(blob)), "size": blob.len()})
}

/// The time as RFC 3339 writes it.
fn timestamp(time: u64) -> Result<String> {
    Ok(jiff::Timestamp::from_second(i64::try_from(time)?)?.to_string())
}
