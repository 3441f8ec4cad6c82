//! What the steps do to a store. Each reports what was acknowledged.

use std::ops::RangeInclusive;
use std::path::Path;

use sottovoce::ConversationStore;
use sottovoce::admin::RepairOptions;
use sottovoce::store::Document;

use crate::crash::check;
use crate::crash::house::{LOOSE, append, block_on, open, said, say, text};
use crate::task::Result;

pub(crate) fn filled(root: &Path, loose: usize, messages: u64) -> Result<()> {
    block_on(async {
        let store = open(root, loose).await?;
        for seq in 1..=messages {
            append(&store, seq).await?;
        }
        Ok(())
    })
}

pub(crate) fn appends(root: &Path, loose: usize, messages: u64) -> Result<()> {
    block_on(async {
        let store = open(root, loose).await?;
        let there = store.read_tail(1).await?.last_seq;
        for seq in there + 1..=there + messages {
            append(&store, seq).await?;
            say(&format!("kept {seq}"));
        }
        Ok(())
    })
}

pub(crate) fn imports(root: &Path, loose: usize, messages: u64) -> Result<()> {
    block_on(async {
        let store = open(root, loose).await?;
        let there = store.read_tail(1).await?.last_seq;
        let last = there + messages;
        let messages = (there + 1..=last).map(|seq| {
            let mut message = said(text(seq))?;
            message.timestamp = "2020-01-01T00:00:00Z".parse()?;
            Ok(message)
        });
        store.import(messages.collect::<Result<_>>()?).await?;
        say(&format!("kept {last}"));
        Ok(())
    })
}

pub(crate) fn forgets(root: &Path, loose: usize) -> Result<()> {
    block_on(async {
        open(root, loose).await?.forget(&[2..=3, 5..=5]).await?;
        say("forgot");
        Ok(())
    })
}

pub(crate) fn repair(root: &Path) -> Result<()> {
    block_on(async {
        open(root, LOOSE).await?.repair(RepairOptions::default(), |_| {}).await?;
        Ok(())
    })
}

pub(crate) fn answers(root: &Path, numbers: RangeInclusive<u64>) -> Result<()> {
    block_on(async {
        let store = open(root, LOOSE).await?;
        for number in numbers {
            let newest = store.read_tail(1).await?;
            let utterance = newest.messages.last().ok_or("there is nothing to answer")?;
            let answers = vec![said(text(newest.last_seq + 1))?];
            let learnt = check::document_of(number);
            let kept = store.append_answers_with_document(
                answers,
                utterance,
                Document::Calibration,
                learnt.as_bytes(),
            );
            let (stored, written) = kept.await?;
            written?;
            say(&format!("kept {}", stored.last().ok_or("nothing was stored")?.seq));
            say(&format!("document {number}"));
        }
        Ok(())
    })
}

pub(crate) fn writes(root: &Path, numbers: RangeInclusive<u64>) -> Result<()> {
    block_on(async {
        let store = open(root, LOOSE).await?;
        for number in numbers {
            let text = check::document_of(number);
            store.write_document(Document::Calibration, text.as_bytes()).await?;
            say(&format!("document {number}"));
        }
        Ok(())
    })
}
