//! Checks of a store after its writer has ended.

use std::collections::BTreeSet;
use std::ops::{ControlFlow, RangeInclusive};
use std::path::{Path, PathBuf};

use sottovoce::admin::Rekey;
use sottovoce::store::{Document, FindingKind};
use sottovoce::{ConversationStore, EncryptionKey, Error, FileConversationStore, StoreOptions};

use crate::crash::house::{
    Whose, append, block_on, new_key, old_key, open, open_as, options, text,
};
use crate::crash::told::Told;
use crate::task::Result;

/// What a step may have done to a conversation.
#[derive(Default)]
pub(crate) struct Expected {
    pub(crate) whose: Whose,
    /// The number of messages before.
    pub(crate) before: u64,
    /// How many messages may exist beyond the acknowledged ones.
    pub(crate) more: u64,
    /// The numbers that were forgotten before, with that of the record of it.
    pub(crate) gone: Option<RangeInclusive<u64>>,
    /// The numbers that are forgotten together.
    pub(crate) forgets: &'static [u64],
}

impl Expected {
    /// Messages are appended one by one.
    pub(crate) fn one_more_than(before: u64) -> Self {
        Self { before, more: 1, ..Self::default() }
    }
}

macro_rules! ensure {
    ($true:expr, $($otherwise:tt)+) => {
        if !$true {
            return Err(format!($($otherwise)+).into());
        }
    };
}
pub(crate) use ensure;

/// Checks that everything acknowledged exists, in order and once, with at most `more` beyond it; that a verification
/// finds nothing; and that the next append continues the numbers and repairs the rest.
pub(crate) fn conversation(root: &Path, told: &Told, expected: &Expected) -> Result<()> {
    block_on(async {
        let store = open_as(&expected.whose, root, 1).await?;
        let report = options(&expected.whose)?.verify_catalog(root).await?;
        ensure!(report.is_sound(), "the list of conversations is not sound: {:?}", report.findings);
        let (seqs, last) = read(&store).await?;
        let kept = told.kept.unwrap_or(expected.before);
        let forgot = seqs.iter().all(|seq| !expected.forgets.contains(seq))
            && !expected.forgets.is_empty()
            && last > kept;
        ensure!(forgot || !told.forgot, "what was forgotten is back: {seqs:?}");
        // The forget record takes a number itself.
        let most = last - u64::from(forgot);
        let gone = |seq: &u64| expected.gone.as_ref().is_some_and(|gone| gone.contains(seq));
        let all: BTreeSet<u64> = (1..=most)
            .filter(|seq| !gone(seq) && (!forgot || !expected.forgets.contains(seq)))
            .collect();
        ensure!(seqs == all, "a gap: {seqs:?} of {last}");
        ensure!(most >= kept, "{most} messages, though {kept} were acknowledged");
        ensure!(most <= kept + expected.more, "{most} messages, {kept} acknowledged");
        let report = store.verify(|_| {}).await?;
        ensure!(report.is_sound(), "not sound: {:?}", report.findings);
        let came_back = report.findings.iter().any(|f| f.kind == FindingKind::Resurrected);
        ensure!(!(told.forgot && came_back), "the bytes of what was forgotten are on the disk");
        ensure!(report.messages == all.len(), "checking counts {} messages", report.messages);

        append(&store, last + 1).await?;
        for store in [store, open_as(&expected.whose, root, 1).await?] {
            let report = store.verify(|_| {}).await?;
            ensure!(report.findings.is_empty(), "not repaired: {:?}", report.findings);
            let (seqs, now) = read(&store).await?;
            ensure!(now == last + 1 && seqs.len() == all.len() + 1, "after an append: {seqs:?}");
        }
        Ok(())
    })
}

/// The existing numbers, by every way of reading, and the last number given.
pub(crate) async fn read(store: &FileConversationStore) -> Result<(BTreeSet<u64>, u64)> {
    let reading = store.read_tail(usize::MAX).await?;
    ensure!(reading.skipped.is_empty(), "passed over: {:?}", reading.skipped);
    let ranged = store.read_seqs(0..=u64::MAX).await?;
    ensure!(reading.messages == ranged.messages, "the tail and the range of all numbers differ");
    let places = reading.messages.iter().map(|stored| (stored.ordered_at(), stored.seq));
    ensure!(places.is_sorted_by(|a, b| a < b), "not in order or not once");
    for stored in &reading.messages {
        ensure!(stored.message.content == text(stored.seq), "{} holds other words", stored.seq);
    }
    Ok((reading.messages.iter().map(|stored| stored.seq).collect(), reading.last_seq))
}

/// A document that is long enough to reveal a partial write.
pub(crate) fn document_of(number: u64) -> String {
    format!("{number} ").repeat(2000)
}

/// Checks that the document is the last acknowledged one or the next, and complete.
pub(crate) fn document(root: &Path, told: &Told, before: u64) -> Result<()> {
    block_on(async {
        let bytes = open(root, 1).await?.read_document(Document::Calibration).await?;
        let found = bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        let last = told.document.unwrap_or(before);
        let whole = [last, last + 1].iter().any(|n| found.as_ref() == Some(&document_of(*n)));
        ensure!(whole, "the document is neither the last one nor the next");
        Ok(())
    })
}

/// Checks that everything is readable with both keys; that the change continues; and that afterwards only the new key
/// opens anything.
pub(crate) fn rekeyed(root: &Path, told: &Told, before: u64) -> Result<()> {
    block_on(async {
        let both = StoreOptions::new(old_key()?).also_with(new_key()?).open(root).await?;
        let (seqs, _) = read(&both).await?;
        ensure!(seqs.iter().copied().eq(1..=before), "under both keys: {seqs:?}");
        let report = both.verify(|_| {}).await?;
        ensure!(report.is_sound(), "not sound under both keys: {:?}", report.findings);
        ensure!(!told.done || open(root, 1).await.is_err(), "the old key still opens it");
        let keys = sottovoce::admin::store_keys(root, &[])?.len();
        ensure!(!told.done || keys == 1, "the vault names {keys} keys still");
        rekey(root).await?;
        let indexed = root.join("recall");
        let is_empty = !indexed.exists() || std::fs::read_dir(indexed)?.next().is_none();
        ensure!(is_empty, "a segment of the search index has outlived its key");
        let old = open(root, 1).await;
        ensure!(matches!(old, Err(ref e) if e.is::<Error>()), "the old key opens it: {old:?}");
        let bytes = open_as(&NEW, root, 1).await?.read_document(Document::Calibration).await?;
        ensure!(bytes.as_deref().map(Vec::as_slice) == Some(b"1"), "the document is lost");
        Ok(())
    })?;
    conversation(root, told, &Expected { whose: NEW, before, ..Expected::default() })
}

const NEW: Whose = Whose { user: None, is_rekeyed: true };

pub(crate) async fn rekey(root: &Path) -> Result<()> {
    let rekeyed =
        Rekey::new(old_key()?, new_key()?).run(root, |_| ControlFlow::Continue(())).await?;
    ensure!(rekeyed.left.is_empty() && rekeyed.kept.is_empty(), "left as it was: {rekeyed:?}");
    Ok(())
}

/// Checks that there is a whole key or none, that an acknowledged key exists, and that a key can be created if there
/// is none.
pub(crate) fn key(root: &Path, told: &Told) -> Result<()> {
    let path = key_path(root);
    if let Some(told) = &told.key {
        let key = EncryptionKey::read_file(&path)?.ok_or("the key is gone")?;
        ensure!(print(&key) == *told, "it is another key");
    }
    let made = print(&EncryptionKey::read_or_make_file(&path)?);
    let again = EncryptionKey::read_file(&path)?.ok_or("the key is gone again")?;
    ensure!(print(&again) == made, "the key has changed");
    Ok(())
}

pub(crate) fn key_path(root: &Path) -> PathBuf {
    root.join("config/key")
}

/// The key's text. Nothing is sealed under it.
pub(crate) fn print(key: &EncryptionKey) -> String {
    key.to_hex().map(|hex| hex.trim().to_owned()).unwrap_or_default()
}
