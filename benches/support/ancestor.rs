//! The algorithm that this store descends from, in its best form in plain Rust: one envelope per message, named by
//! time. A read lists and sorts all names, then opens the last n. It has no lock, no fsync, no cache between reads
//! and no runtime, which is in its favour here.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use sottovoce::ChatMessage;
use sottovoce_cipher::Cipher;

pub(crate) struct LegacyFormat {
    root: PathBuf,
    seals: Seals,
    seq: usize,
}

/// Seals and opens a message's envelope.
pub(crate) struct Seals(Cipher);

#[derive(Serialize, Deserialize)]
struct Envelope<'a> {
    alg: &'a str,
    iv: &'a str,
    ciphertext: &'a str,
    tag: &'a str,
}

impl LegacyFormat {
    pub(crate) fn new(root: &Path) -> Self {
        fs::create_dir(root).unwrap();
        Self::resume(root, 0)
    }

    /// Continues an earlier one.
    pub(crate) fn resume(root: &Path, appended: usize) -> Self {
        Self { root: root.into(), seals: Seals::new(), seq: appended }
    }

    /// A plain write, as in the document: it is in the page cache when this returns.
    pub(crate) fn append(&mut self, message: &ChatMessage) -> PathBuf {
        self.seq += 1;
        let time = message.timestamp.strftime("%Y%m%dT%H%M%S%3fZ");
        let name = format!("{time}_{:04}_{}.json", self.seq, message.role.as_str());
        let path = self.root.join(name);
        fs::write(&path, self.seals.seal(message)).unwrap();
        path
    }

    pub(crate) fn read_tail(&self, n: usize) -> Vec<ChatMessage> {
        let mut names = self.names();
        names.sort_unstable_by(|a, b| b.cmp(a));
        names.truncate(n);
        names.reverse();
        names.iter().map(|name| self.read(name)).collect()
    }

    /// Every record's name, unsorted.
    pub(crate) fn names(&self) -> Vec<OsString> {
        fs::read_dir(&self.root)
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .filter(|name| name.as_encoded_bytes().ends_with(b".json"))
            .collect()
    }

    pub(crate) fn read(&self, name: &OsStr) -> ChatMessage {
        self.seals.open(&fs::read(self.root.join(name)).unwrap())
    }
}

impl Seals {
    pub(crate) fn new() -> Self {
        Self(Cipher::new(&Sha256::digest(b"a secret for measuring").into()))
    }

    pub(crate) fn seal(&self, message: &ChatMessage) -> Vec<u8> {
        let mut nonce = [0; 12];
        getrandom::fill(&mut nonce).unwrap();
        let mut bytes = serde_json::to_vec(message).unwrap();
        let tag = self.0.seal(&nonce, b"", &mut bytes).unwrap();
        let envelope = Envelope {
            alg: "AES-256-GCM",
            iv: &BASE64.encode(nonce),
            ciphertext: &BASE64.encode(&bytes),
            tag: &BASE64.encode(tag),
        };
        serde_json::to_vec(&envelope).unwrap()
    }

    pub(crate) fn open(&self, line: &[u8]) -> ChatMessage {
        let envelope: Envelope<'_> = serde_json::from_slice(line).unwrap();
        let iv: [u8; 12] = BASE64.decode(envelope.iv).unwrap().try_into().unwrap();
        let tag: [u8; 16] = BASE64.decode(envelope.tag).unwrap().try_into().unwrap();
        let mut bytes = BASE64.decode(envelope.ciphertext).unwrap();
        assert!(self.0.open(&iv, b"", &mut bytes, &tag));
        serde_json::from_slice(&bytes).unwrap()
    }
}

/// The least cost of a durable append on this disk: no store that publishes whole files can be faster.
pub(crate) fn durable_floor(folder: &Path, at: usize, bytes: &[u8]) -> io::Result<()> {
    let temporary = folder.join(".tmp");
    let mut file = File::create(&temporary)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&temporary, folder.join(format!("{at}.json")))?;
    File::open(folder)?.sync_all()
}
