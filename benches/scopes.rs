//! Benchmark of scopes: opening one conversation out of ten thousand against one out of ten.
//!
//! `cargo bench --bench scopes`
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::print_stdout, missing_docs)]

mod support;

use std::path::Path;
use std::time::Instant;

use sottovoce::admin::scopes;
use sottovoce::{ConversationStore, FileConversationStore, Scope};
use support::{Samples, is_trial, message, options, print_table, shown};
use tempfile::TempDir;

/// Messages of each conversation.
const MESSAGES: usize = 20;
const ROUNDS: usize = 400;
/// How many conversations are used. The same number for both roots, so that the processor's caches hold as much.
const BUSY: usize = 10;

fn scope(at: usize) -> Scope {
    let id = |number: usize| number.to_string();
    Scope::Guild { guild: id(at % 7), channel: id(at % 101), user: id(at) }
}

/// A root with a number of conversations.
struct Root {
    folder: TempDir,
    scopes: usize,
    open: Samples,
    append: Samples,
}

impl Root {
    async fn lay_out(scopes: usize, disk: &Path) -> Self {
        let folder = tempfile::tempdir_in(disk).unwrap();
        for at in 0..scopes {
            let store = open(&folder, at).await;
            store.append_all((0..MESSAGES).map(message).collect()).await.unwrap();
        }
        Self { folder, scopes, open: Samples::default(), append: Samples::default() }
    }

    /// Opens one of ten conversations that lie far apart, as a bot does for every message.
    async fn measure(&mut self, round: usize) {
        let at = round % BUSY * (self.scopes / BUSY);
        let begun = Instant::now();
        let store = open(&self.folder, at).await;
        assert_eq!(store.read_tail(6).await.unwrap().messages.len(), 6);
        self.open.push(begun.elapsed());
        let begun = Instant::now();
        store.append_message(message(round)).await.unwrap();
        self.append.push(begun.elapsed());
    }
}

async fn open(folder: &TempDir, at: usize) -> FileConversationStore {
    options().scope(scope(at)).open(folder.path()).await.unwrap()
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let disk = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (few, many, rounds) = if is_trial() { (10, 20, 3) } else { (10, 10_000, ROUNDS) };
    let mut roots = [Root::lay_out(few, disk).await, Root::lay_out(many, disk).await];
    for round in 0..rounds {
        // They take turns, and each starts equally often.
        roots.rotate_left(1);
        for root in &mut roots {
            root.measure(round).await;
        }
    }
    roots.sort_by_key(|root| root.scopes);
    let [few, many] = &mut roots;
    let row = |figure: &str, few: &mut Samples, many: &mut Samples| {
        let (few, many) = (few.median(), many.median());
        let ratio = many.as_secs_f64() / few.as_secs_f64();
        vec![figure.to_owned(), shown(few), shown(many), format!("{ratio:.2}")]
    };
    let rows = [
        row("open and first tail of 6", &mut few.open, &mut many.open),
        row("first append", &mut few.append, &mut many.append),
    ];
    let heads = [
        "figure".to_owned(),
        format!("one of {}", few.scopes),
        format!("one of {}", many.scopes),
        "ratio".to_owned(),
    ];
    print_table(&heads.each_ref().map(String::as_str), &rows);
    let begun = Instant::now();
    assert_eq!(scopes(many.folder.path()).unwrap().len(), many.scopes);
    println!("\nlisting {} conversations takes {:.0?}", many.scopes, begun.elapsed());
}
