//! What recall costs a turn: 30 utterances, a third of which recall something, with recall and without.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp, tz::TimeZone};
use sottovoce::context::Placement;
use sottovoce::context::recall::ScoreFloor;
use sottovoce::conversation::TurnReport;
use sottovoce::prompt::EntryOutcome;
use sottovoce::{
    ChatMessage, ChatRole, Conversation, ConversationStore, ManualClock, ModelOptions, Ollama,
    OllamaModel,
};

use super::ollama::{Answer, Ask, OllamaStub};
use super::rows::{Goal, Row};
use super::stores::runtime;
use super::support::{Samples, options};

const TURNS: usize = 30;
const SYSTEM: &str = "You are the voice assistant of a household. Answer in one or two short \
    sentences that sound natural when spoken, without lists or markup.";
const ANSWER: &str = "All right, that is done. Is there anything else that I can do for you now?";
const CONVERSATIONS: &str =
    include_str!("../../crates/sottovoce-recall/tests/corpus/conversations.jsonl");
const NEEDS_NOTHING: &str =
    include_str!("../../crates/sottovoce-recall/tests/corpus/needs-nothing.txt");

/// A model server with Ollama's API.
pub(crate) struct Server {
    pub(crate) url: String,
    pub(crate) model: String,
}

/// A turn, and the share of its prompt that the server had read before.
pub(crate) struct Held {
    pub(crate) report: TurnReport,
    pub(crate) cached: f64,
}

/// The turns with recall, and those without.
pub(crate) type Reports = [Vec<Held>; 2];

pub(crate) fn measure(
    server: Option<&Server>,
    rows: &mut Vec<Row>,
) -> Result<Reports, Box<dyn Error>> {
    let reports = runtime().block_on(async {
        Ok::<_, Box<dyn Error>>([hold(server, 256).await?, hold(server, 0).await?])
    })?;
    let [with, without] = &reports;
    let of = server.map_or("scripted model", |server| &server.model);
    let row =
        |figure: &str, value, unit, goal| Row::new(format!("{of}: {figure}"), value, unit, goal);
    rows.extend([
        row("turns of 30 that recall something", recalling(with) as f64, "", Goal::None),
        row("tokens of a prompt with recall", tokens(with), "", Goal::None),
        row("tokens of a prompt without", tokens(without), "", Goal::None),
        row("tokens from the cache with recall", cached(with), "%", Goal::AtLeast(85.)),
        row("tokens from the cache without", cached(without), "%", Goal::None),
        row("until the first word with recall", first_word(with), "ms", Goal::None),
        row("until the first word without", first_word(without), "ms", Goal::None),
    ]);
    Ok(reports)
}

/// Holds the turns with a server, or with a script that keeps in mind what it has read, as a server does.
async fn hold(server: Option<&Server>, tokens: usize) -> Result<Vec<Held>, Box<dyn Error>> {
    if let Some(server) = server {
        let share = |report: &TurnReport| {
            let told = report.usage.cached_tokens.zip(report.usage.prompt_tokens);
            told.map(|(cached, all)| cached as f64 / all as f64)
        };
        let reports = converse(server, tokens).await?.into_iter();
        let held = reports.map(|report| Some(Held { cached: share(&report)?, report }));
        return held.collect::<Option<_>>().ok_or("the server does not tell its cache".into());
    }
    let stub = OllamaStub::start();
    // It does not count tokens: the estimates then stay the same with recall and without.
    let uncounted = serde_json::json!({ "prompt_eval_count": null });
    stub.always_to(Ask::Reply, Answer::saying(&[ANSWER]).done(uncounted));
    let scripted = Server { url: stub.url(), model: "llama3.2".to_owned() };
    let reports = converse(&scripted, tokens).await?;
    let (mut before, mut shares) = (String::new(), Vec::new());
    for seen in stub.all_seen() {
        if !matches!(seen.ask, Ask::Reply | Ask::WarmUp) {
            continue;
        }
        let prompt = read_prompt(&seen.json());
        let same = prompt.bytes().zip(before.bytes()).take_while(|(now, then)| now == then);
        if seen.ask == Ask::Reply {
            shares.push(same.count() as f64 / prompt.len() as f64);
        }
        before = prompt;
    }
    assert_eq!(shares.len(), reports.len());
    Ok(reports.into_iter().zip(shares).map(|(report, cached)| Held { report, cached }).collect())
}

/// The text that a model would read.
fn read_prompt(request: &serde_json::Value) -> String {
    let messages = request["messages"].as_array().into_iter().flatten();
    messages.map(|message| format!("{}\n{}\n", message["role"], message["content"])).collect()
}

/// Holds the turns. Without tokens nothing is recalled.
async fn converse(server: &Server, tokens: usize) -> Result<Vec<TurnReport>, Box<dyn Error>> {
    let start: Timestamp = "2024-12-02T09:00:00Z".parse()?;
    let clock = Arc::new(ManualClock::at(start.to_zoned(TimeZone::UTC)));
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))?;
    let store = options().clock(clock.clone()).open(folder.path()).await?;
    let (said, questions) = conversation()?;
    store.append_all(said).await?;
    let store: Arc<dyn ConversationStore> = Arc::new(store);
    let mut options = ModelOptions::new(&server.model);
    options.num_ctx = Some(4096);
    options.num_predict = Some(32);
    options.temperature = Some(0.0);
    let model = OllamaModel::new(Ollama::new(&server.url, Duration::from_secs(300))?, options);
    let mut builder = Conversation::builder(store).system(SYSTEM).model(model);
    if tokens > 0 {
        builder = builder.recall(tokens, ScoreFloor::Needed);
    }
    let conversation = builder.build();
    let mut others = NEEDS_NOTHING.lines().filter(|line| !line.starts_with(['#', '[']));
    let mut questions = questions.into_iter();
    let mut reports = Vec::new();
    for turn in 0..TURNS {
        let utterance = match turn % 3 {
            2 => questions.next().ok_or("too few questions")?,
            _ => others.next().ok_or("too few utterances")?.to_owned(),
        };
        clock.advance(SignedDuration::from_secs(40));
        // The prompt is read at the wake word, as the documentation advises.
        conversation.warm_up().await?;
        let (_, kept) = conversation.ask(&utterance).await?.whole().await?;
        reports.push(kept.report);
    }
    Ok(reports)
}

/// What was said in the first conversation that the project carries, and the questions about it.
fn conversation() -> Result<(Vec<ChatMessage>, Vec<String>), Box<dyn Error>> {
    let line = CONVERSATIONS.lines().next().ok_or("no conversation")?;
    let read: serde_json::Value = serde_json::from_str(line)?;
    let message = |turn: &serde_json::Value| {
        let role = if turn["s"] == "assistant" { ChatRole::Assistant } else { ChatRole::User };
        let at = Timestamp::from_millisecond(turn["at"].as_i64()?).ok()?;
        Some(ChatMessage::at(role, turn["x"].as_str()?.to_owned(), at))
    };
    let said = read["turns"].as_array().and_then(|turns| turns.iter().map(message).collect());
    let questions = read["qas"].as_array().and_then(|asked| {
        asked.iter().map(|asked| Some(asked["q"].as_str()?.to_owned())).collect()
    });
    Ok((said.ok_or("no turns")?, questions.ok_or("no questions")?))
}

/// Whether recall brought something into a prompt.
pub(crate) fn recalls(held: &Held) -> bool {
    held.report.receipt.entries.iter().any(|entry| {
        entry.placement == Placement::NewestTurn && entry.outcome == EntryOutcome::Included
    })
}

fn recalling(turns: &[Held]) -> usize {
    turns.iter().filter(|held| recalls(held)).count()
}

/// The tokens of a prompt, as the server counts them or as estimated.
fn prompt_tokens(Held { report, .. }: &Held) -> f64 {
    report.usage.prompt_tokens.map_or(report.receipt.used_tokens as f64, |tokens| tokens as f64)
}

fn tokens(turns: &[Held]) -> f64 {
    turns.iter().map(prompt_tokens).sum::<f64>() / turns.len() as f64
}

/// The share of all tokens, in percent.
fn cached(turns: &[Held]) -> f64 {
    let from_cache: f64 = turns.iter().map(|held| held.cached * prompt_tokens(held)).sum();
    100. * from_cache / turns.iter().map(prompt_tokens).sum::<f64>()
}

fn first_word(turns: &[Held]) -> f64 {
    let mut times = Samples::default();
    for time in turns.iter().filter_map(|held| held.report.time_to_first_token) {
        times.push(time);
    }
    times.median().as_secs_f64() * 1e3
}
