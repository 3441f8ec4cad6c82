//! The steps of a store that is killed: initial state, work, and check.

use std::path::Path;

use sottovoce::store::Document;
use sottovoce::{ConversationStore, EncryptionKey};

use crate::crash::beside;
use crate::crash::check::{self, Expected};
use crate::crash::house::{LOOSE, Whose, append, block_on, open, open_as, said, say, text};
use crate::crash::index;
use crate::crash::shared;
use crate::crash::told::Told;
use crate::crash::work::{answers, appends, filled, forgets, imports, repair, writes};
use crate::task::Result;

pub(crate) struct Step {
    pub(crate) name: &'static str,
    /// Long steps skip the removal of fsyncs when time is short.
    pub(crate) is_long: bool,
    /// Creates the initial state.
    pub(crate) seed: fn(&Path) -> Result<()>,
    /// Does the work, in a process that may end at any moment.
    pub(crate) work: fn(&Path) -> Result<()>,
    /// Checks the state after the end, and continues from it.
    pub(crate) check: fn(&Path, &Told) -> Result<()>,
}

const BOB: Whose = Whose { user: Some("bob"), is_rekeyed: false };

pub(crate) const STEPS: [Step; 22] = [
    Step {
        name: "first-append",
        is_long: false,
        seed: |_| Ok(()),
        work: |root| appends(root, LOOSE, 2),
        check: |root, told| check::conversation(root, told, &Expected::one_more_than(0)),
    },
    // The key list is in another folder than the message.
    Step {
        name: "first-of-user",
        is_long: false,
        seed: |_| Ok(()),
        work: |root| {
            block_on(async {
                append(&open_as(&BOB, root, LOOSE).await?, 1).await?;
                say("kept 1");
                Ok(())
            })
        },
        check: |root, told| {
            let expected = Expected { whose: BOB, ..Expected::one_more_than(0) };
            check::conversation(root, told, &expected)
        },
    },
    Step {
        name: "append",
        is_long: false,
        seed: |root| filled(root, LOOSE, 3),
        work: |root| appends(root, LOOSE, 2),
        check: |root, told| check::conversation(root, told, &Expected::one_more_than(3)),
    },
    Step {
        name: "bulk",
        is_long: true,
        seed: |root| filled(root, 2, 3),
        work: |root| {
            block_on(async {
                let store = open(root, 2).await?;
                let stored = store
                    .append_all((4..=15).map(|seq| said(text(seq))).collect::<Result<_>>()?)
                    .await?;
                say(&format!("kept {}", stored.last().ok_or("nothing was stored")?.seq));
                Ok(())
            })
        },
        check: |root, told| {
            check::conversation(
                root,
                told,
                &Expected { before: 3, more: 12, ..Expected::default() },
            )
        },
    },
    // A batch that goes straight into a pack and is older than the existing messages.
    Step {
        name: "import",
        is_long: true,
        seed: |root| filled(root, 2, 3),
        work: |root| imports(root, 2, 12),
        check: |root, told| {
            let expected = Expected { before: 3, more: 12, ..Expected::default() };
            check::conversation(root, told, &expected)
        },
    },
    // An older message, which is packed before earlier ones.
    Step {
        name: "import-one",
        is_long: true,
        seed: |root| filled(root, 1, 2),
        work: |root| imports(root, 1, 1),
        check: |root, told| check::conversation(root, told, &Expected::one_more_than(2)),
    },
    // The third message creates the first pack.
    Step {
        name: "pack",
        is_long: false,
        seed: |root| filled(root, 1, 2),
        work: |root| appends(root, 1, 2),
        check: |root, told| check::conversation(root, told, &Expected::one_more_than(2)),
    },
    // The seventeenth message creates the eighth pack, so that packs merge.
    Step {
        name: "merge",
        is_long: true,
        seed: |root| filled(root, 1, 16),
        work: |root| appends(root, 1, 2),
        check: |root, told| check::conversation(root, told, &Expected::one_more_than(16)),
    },
    Step {
        name: "forget",
        is_long: false,
        seed: |root| filled(root, LOOSE, 6),
        work: |root| forgets(root, LOOSE),
        check: |root, told| {
            check::conversation(
                root,
                told,
                &Expected { before: 6, more: 0, forgets: &[2, 3, 5], ..Expected::default() },
            )
        },
    },
    Step {
        name: "forget-packed",
        is_long: true,
        seed: |root| filled(root, 1, 9),
        work: |root| forgets(root, 1),
        check: |root, told| {
            check::conversation(
                root,
                told,
                &Expected { before: 9, more: 0, forgets: &[2, 3, 5], ..Expected::default() },
            )
        },
    },
    // What other devices are told: of messages in packs and in files of their own.
    Step {
        name: "forget-shared",
        is_long: false,
        seed: |root| filled(root, 3, 6),
        work: |root| forgets(root, 3),
        check: |root, told| {
            let forgets = &[2, 3, 5];
            shared::told_to_others(root, told, forgets)?;
            let expected = Expected { before: 6, forgets, ..Expected::default() };
            check::conversation(root, told, &expected)?;
            // The next writer has finished it, or it never came about.
            let (are_told, are_here) = shared::told_to_others(root, told, forgets)?;
            check::ensure!(are_told != are_here, "others are not told of what is forgotten");
            Ok(())
        },
    },
    // A message and a document in one commit.
    Step {
        name: "answer",
        is_long: false,
        seed: |root| {
            filled(root, LOOSE, 3)?;
            writes(root, 1..=1)
        },
        work: |root| answers(root, 2..=3),
        check: |root, told| {
            check::document(root, told, 1)?;
            check::conversation(root, told, &Expected::one_more_than(3))
        },
    },
    Step {
        name: "document",
        is_long: false,
        seed: |root| {
            filled(root, LOOSE, 1)?;
            writes(root, 1..=1)
        },
        work: |root| writes(root, 2..=3),
        check: |root, told| {
            check::document(root, told, 1)?;
            check::conversation(root, told, &Expected { before: 1, more: 0, ..Expected::default() })
        },
    },
    Step {
        name: "settings",
        is_long: false,
        seed: |root| {
            filled(root, LOOSE, 1)?;
            beside::set(root, 1..=1)
        },
        work: |root| beside::set(root, 2..=3),
        check: |root, told| {
            beside::settings(root, told, 1)?;
            check::conversation(root, told, &Expected { before: 1, more: 0, ..Expected::default() })
        },
    },
    Step {
        name: "snapshots",
        is_long: true,
        seed: |root| {
            filled(root, LOOSE, 2)?;
            beside::save(root, beside::FIRST)
        },
        work: beside::save_and_delete,
        check: |root, told| {
            beside::snapshots(root, told)?;
            check::conversation(root, told, &Expected { before: 2, more: 0, ..Expected::default() })
        },
    },
    Step {
        name: "forget-saved",
        is_long: true,
        seed: |root| {
            filled(root, LOOSE, 6)?;
            beside::save(root, beside::FIRST)
        },
        work: |root| forgets(root, LOOSE),
        check: |root, told| {
            beside::withdrawn(root, told, &[2, 3, 5])?;
            check::conversation(
                root,
                told,
                &Expected { before: 6, more: 0, forgets: &[2, 3, 5], ..Expected::default() },
            )
        },
    },
    Step {
        name: "repair",
        is_long: false,
        seed: |root| {
            filled(root, LOOSE, 3)?;
            Ok(std::fs::remove_file(root.join("head"))?)
        },
        work: repair,
        check: |root, told| {
            // Without an acknowledgement the caller must ask again.
            if !told.done {
                repair(root)?;
            }
            check::conversation(root, told, &Expected { before: 3, more: 0, ..Expected::default() })
        },
    },
    // The first segment of the search index.
    Step {
        name: "index",
        is_long: true,
        seed: index::seed,
        work: index::save,
        check: |root, told| {
            index::answers(root, told, &[])?;
            let (before, gone) = (index::LAST, Some(index::GONE));
            check::conversation(root, told, &Expected { before, gone, ..Expected::default() })
        },
    },
    // A segment in place of one that nobody can use.
    Step {
        name: "index-again",
        is_long: true,
        seed: index::seed_useless,
        work: index::save,
        check: |root, told| {
            index::answers(root, told, &[])?;
            let (before, gone) = (index::LAST, Some(index::GONE));
            check::conversation(root, told, &Expected { before, gone, ..Expected::default() })
        },
    },
    // A segment that goes with forgotten messages.
    Step {
        name: "forget-indexed",
        is_long: true,
        seed: |root| {
            index::seed(root)?;
            index::save(root)
        },
        work: |root| forgets(root, 1),
        check: |root, told| {
            let forgets = &[2, 3, 5];
            index::answers(root, told, forgets)?;
            let (before, gone) = (index::LAST, Some(index::GONE));
            check::conversation(
                root,
                told,
                &Expected { before, gone, forgets, ..Expected::default() },
            )
        },
    },
    // Packs, single files, a document and a segment of the search index.
    Step {
        name: "rekey",
        is_long: true,
        seed: |root| {
            filled(root, 1, 4)?;
            block_on(async {
                let store = open(root, LOOSE).await?;
                store.write_document(Document::Calibration, b"1").await?;
                index::write(&store, b"1").await
            })
        },
        work: |root| block_on(check::rekey(root)),
        check: |root, told| check::rekeyed(root, told, 4),
    },
    Step {
        name: "key-file",
        is_long: false,
        seed: |_| Ok(()),
        work: |root| {
            let key = EncryptionKey::read_or_make_file(&check::key_path(root))?;
            say(&format!("key {}", check::print(&key)));
            Ok(())
        },
        check: check::key,
    },
];

/// Does a step's work, and reports its end.
pub(crate) fn work(name: &str, root: &Path) -> Result<()> {
    let step = STEPS.iter().find(|step| step.name == name);
    (step.ok_or("no such step")?.work)(root)?;
    say("done");
    Ok(())
}
