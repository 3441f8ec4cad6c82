//! Benchmark of prompts: the time to build and render them, and how much of each request a model server has read
//! already.
//!
//! `cargo bench --bench prompt`
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::print_stdout, missing_docs)]

mod support;

use std::sync::Arc;
use std::time::Instant;

use jiff::tz::{Offset, TimeZone};
use sottovoce::context::LastNContextProvider;
use sottovoce::model::{
    OllamaChatRenderer, OllamaPromptRenderer, OpenAiChatRenderer, PromptRenderer,
};
use sottovoce::prompt::{EntryOutcome, Prompt};
use sottovoce::{Conversation, ConversationBuilder, ConversationStore, ManualClock, ModelOptions};
use support::{Samples, is_trial, message, options, print_table, shown, timed};

const LAST_N: usize = 6;
const SYSTEM: &str = "You are the voice assistant of a household. Answer in one or two short \
    sentences that sound natural when spoken, without lists or markup.";

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let (messages, rounds, lengths) =
        if is_trial() { (40, 1, &[3][..]) } else { (1_000, 2_000, &[30, 200][..]) };
    print_times(messages, rounds).await;
    print_reuse(lengths).await;
}

async fn print_times(messages: usize, rounds: usize) {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let store = options().clock(clock_at(messages)).open(folder.path()).await.unwrap();
    store.append_all((0..messages).map(message).collect()).await.unwrap();
    let utterance = store.append_message(message(messages)).await.unwrap();
    let store: Arc<dyn ConversationStore> = Arc::new(store);
    let conversation = builder(&store, Window::Blocks, None).last_n(LAST_N).build();
    let options = ModelOptions::new("llama3.2:3b");
    let renderers: [(&str, Box<dyn PromptRenderer>); 3] = [
        ("OllamaChatRenderer", Box::new(OllamaChatRenderer::new(options.clone()))),
        ("OllamaPromptRenderer", Box::new(OllamaPromptRenderer::new(options.clone()))),
        ("OpenAiChatRenderer", Box::new(OpenAiChatRenderer::new(options))),
    ];
    let mut samples: Vec<(Samples, Samples)> =
        renderers.iter().map(|_| Default::default()).collect();
    let mut sizes = vec![0; renderers.len()];
    let mut history = 0;
    for _ in 0..rounds {
        for (at, (_, renderer)) in renderers.iter().enumerate() {
            let started = Instant::now();
            let (prompt, _) = conversation.prompt(Arc::clone(&utterance)).await.unwrap();
            let (rendering, request) = timed(|| renderer.render(&prompt));
            samples[at].0.push(started.elapsed());
            samples[at].1.push(rendering);
            sizes[at] = request.body.len();
            history = prompt.context.len();
        }
    }
    println!(
        "The last {LAST_N} in blocks ({history} messages) of an unchanged store of {messages}; median ± half the \
         distance between the quartiles of {rounds} rounds:\n"
    );
    let rows: Vec<Vec<String>> = renderers
        .iter()
        .zip(&mut samples)
        .zip(&sizes)
        .map(|(((name, _), (whole, rendering)), size)| {
            vec![
                (*name).to_owned(),
                format!("{size}"),
                shown(whole.median()),
                shown(whole.spread()),
                shown(rendering.median()),
            ]
        })
        .collect();
    print_table(&["renderer", "body bytes", "build + render", "±", "of it render"], &rows);
}

#[derive(Clone, Copy)]
enum Window {
    Blocks,
    Sliding,
}

#[derive(Clone, Copy)]
enum Form {
    Chat,
    Text,
}

async fn print_reuse(lengths: &[usize]) {
    println!(
        "\nWhat a conversation from its first word has in common with the turn before, as bytes from the start of \
         what\nthe model reads (the messages' JSON, or the system prompt and the text); the rest is read anew. Budgets \
         that drop\nnothing are left out.\n"
    );
    let mut rows = Vec::new();
    for &turns in lengths {
        for budget in [None, Some(900), Some(300)] {
            for (name, window, form) in [
                ("in blocks, chat (default)", Window::Blocks, Form::Chat),
                ("exactly the last 6, chat", Window::Sliding, Form::Chat),
                ("in blocks, one text", Window::Blocks, Form::Text),
                ("exactly the last 6, one text", Window::Sliding, Form::Text),
            ] {
                let reuse = converse(turns, window, form, budget).await;
                if budget.is_some() && reuse.turns_that_dropped == 0 {
                    continue;
                }
                rows.push(vec![
                    name.to_owned(),
                    turns.to_string(),
                    budget.map_or_else(|| "none".to_owned(), |tokens| tokens.to_string()),
                    reuse.turns_that_dropped.to_string(),
                    reuse.turns_that_moved.to_string(),
                    (reuse.sent / (turns - 1)).to_string(),
                    format!("{:.1} %", 100.0 * reuse.unchanged as f64 / reuse.sent as f64),
                    ((reuse.sent - reuse.unchanged) / (turns - 1)).to_string(),
                ]);
            }
        }
    }
    let head = [
        "history",
        "turns",
        "token budget",
        "turns that dropped",
        "beginning moved",
        "mean bytes",
        "unchanged",
        "mean bytes anew",
    ];
    print_table(&head, &rows);
}

#[derive(Default)]
struct Reuse {
    sent: usize,
    unchanged: usize,
    turns_that_dropped: usize,
    turns_that_moved: usize,
}

/// Holds a conversation through the public API, and adds up the shared beginnings of successive requests.
async fn converse(turns: usize, window: Window, form: Form, budget: Option<usize>) -> Reuse {
    let clock = clock_at(0);
    let store = options().clock(clock.clone()).open_in_memory().await.unwrap();
    let store: Arc<dyn ConversationStore> = Arc::new(store);
    let builder = builder(&store, window, budget);
    let conversation = builder.last_n(LAST_N).build();
    let mut before: Option<Vec<u8>> = None;
    let mut reuse = Reuse::default();
    let mut began_at = None;
    for turn in 0..turns {
        let said = message(2 * turn);
        clock.set(said.timestamp.to_zoned(zone()));
        let heard = conversation.prepare_turn_for(said).await.unwrap();
        let dropped =
            |entry: &sottovoce::prompt::ReceiptEntry| entry.outcome == EntryOutcome::OverBudget;
        reuse.turns_that_dropped += usize::from(heard.receipt.entries.iter().any(dropped));
        let first = heard.prompt.context.first().and_then(|(_, message)| message.seq());
        reuse.turns_that_moved += usize::from(began_at.is_some() && first != began_at);
        began_at = first;
        let now = read_by_model(&heard.prompt, form);
        if let Some(before) = before {
            let common = before.iter().zip(&now).take_while(|(a, b)| a == b).count();
            reuse.sent += now.len();
            reuse.unchanged += common;
        }
        before = Some(now);
        conversation.store().append_message(message(2 * turn + 1)).await.unwrap();
    }
    reuse
}

fn read_by_model(prompt: &Prompt, form: Form) -> Vec<u8> {
    match form {
        Form::Chat => {
            let body =
                OllamaChatRenderer::new(ModelOptions::new("llama3.2:3b")).render(prompt).body;
            let (_, rest) = body.split_once(r#""messages":"#).unwrap();
            rest.rsplit_once(r#","stream":"#).unwrap().0.into()
        }
        Form::Text => {
            format!("{}\n{}", prompt.system, OllamaPromptRenderer::render_text(prompt)).into()
        }
    }
}

fn builder(
    store: &Arc<dyn ConversationStore>,
    window: Window,
    budget: Option<usize>,
) -> ConversationBuilder {
    let history = match window {
        Window::Blocks => LastNContextProvider::in_blocks(),
        Window::Sliding => LastNContextProvider::new(),
    };
    let builder = Conversation::builder(store.clone()).system(SYSTEM).history(history);
    match budget {
        Some(tokens) => builder.budget(tokens),
        None => builder,
    }
}

fn clock_at(at: usize) -> Arc<ManualClock> {
    Arc::new(ManualClock::at(message(at).timestamp.to_zoned(zone())))
}

fn zone() -> TimeZone {
    Offset::constant(1).to_time_zone()
}
