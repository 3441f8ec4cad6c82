//! What the index costs an append: two stores of the same messages take turns, one of them with its index kept.

use std::error::Error;
use std::sync::Arc;
use std::time::Instant;

use sottovoce::ConversationStore;
use sottovoce::context::recall::{Recall, RecallQuery};

use super::Settings;
use super::rows::{Goal, Row};
use super::stores::runtime;
use super::support::{Samples, message, options};
use super::talk::Talk;

pub(crate) fn measure(settings: &Settings, rows: &mut Vec<Row>) -> Result<(), Box<dyn Error>> {
    let talk = Talk::new(settings.messages[0], 1);
    let folders = [(); 2].map(|()| tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap());
    let mut times = [Samples::default(), Samples::default()];
    runtime().block_on(async {
        let mut stores: Vec<Arc<dyn ConversationStore>> = Vec::new();
        for folder in &folders {
            let store = options().open(folder.path()).await?;
            store.append_all(talk.messages()).await?;
            stores.push(Arc::new(store));
        }
        let recall = Recall::new(Arc::clone(&stores[0]));
        for at in 0..settings.appends {
            for turn in 0..2 {
                let which = (at + turn) % 2;
                let message = message(at);
                let begun = Instant::now();
                stores[which].append_message(message).await?;
                times[which].push(begun.elapsed());
            }
            // As a conversation does between two turns.
            let query = RecallQuery::new(&talk.questions[0], recall.store().clock().now(), 5);
            recall.find_in(&query, None).await?;
            recall.save().await?;
        }
        Ok::<_, Box<dyn Error>>(())
    })?;
    let [with, without] = times.each_mut().map(|times| times.median().as_secs_f64() * 1e3);
    rows.push(Row::new("an append with recall", with, "ms", Goal::None));
    rows.push(Row::new(
        "the same, divided by an append without",
        with / without,
        "",
        Goal::AtMost(1.05),
    ));
    Ok(())
}
