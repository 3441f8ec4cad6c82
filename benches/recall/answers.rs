//! How much of the answers is found by the product's own path: stored messages, their meanings, the gate, the budget.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::{Timestamp, tz::TimeZone};
use serde::Deserialize;
use sottovoce::context::recall::{Recall, RecallHit, RecallQuery, ScoreFloor};
use sottovoce::{ChatMessage, ChatRole, ConversationStore, ManualClock};
use tempfile::TempDir;

use super::rows::{Goal, Row};
use super::stores::runtime;
use super::support::{options, print_table};

/// Conversations that the project carries, and what a household asks and says.
const CARRIED: &str = "crates/sottovoce-recall/tests/corpus/conversations.jsonl";
const HOME: &str = "crates/sottovoce-recall/measure/home";
/// The tokens that recall may bring in unless set otherwise, and the characters of a message that count.
const TOKENS: usize = 256;
const LONGEST: usize = 400;
const DAY: i64 = 86_400_000;

/// A conversation, as `corpora.py` describes it.
#[derive(Deserialize)]
struct Conversation {
    turns: Vec<Line>,
    qas: Vec<Asking>,
}

#[derive(Deserialize)]
struct Line {
    s: String,
    x: String,
    cap: Option<String>,
    day: Option<i64>,
    at: Option<i64>,
}

#[derive(Deserialize)]
struct Asking {
    q: String,
    cat: String,
    ev: Vec<u64>,
    #[serde(default)]
    earlier: Vec<String>,
    until: Option<u64>,
}

#[derive(Deserialize)]
struct Said {
    language: String,
    utterance: String,
}

/// Budgets of tokens, as `others.py` has them.
const BUDGETS: [usize; 6] = [64, 128, 256, 512, 1024, 2048];

/// Sums of shares, of so many questions: found @5, @50, within each budget, in the prompt, and whether anything is; the
/// last is of the tokens that come in.
#[derive(Default)]
struct Found {
    questions: usize,
    sums: [f64; 11],
}

/// Prints a table of its own, and returns the rows with goals.
pub(crate) fn measure(is_trial: bool) -> Result<Vec<Row>, Box<dyn Error>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = vec![root.join(CARRIED)];
    match std::env::var_os("RECALL_CORPUS").filter(|_| !is_trial) {
        Some(folder) => files.extend(corpora(Path::new(&folder))?),
        None => println!(
            "SKIPPED: quality on other corpora; name a folder of files *.jsonl by RECALL_CORPUS\n"
        ),
    }
    let (mut cells, mut rows) = (Vec::new(), Vec::new());
    for file in &files {
        let name = file.file_stem().unwrap_or_default().to_string_lossy();
        for (kind, found) in runtime().block_on(of_file(file))? {
            let mut line = vec![format!("{name}: {kind}"), found.questions.to_string()];
            let means = found.sums.map(|sum| sum / found.questions as f64);
            line.extend(means[..10].iter().map(|mean| format!("{:.1}", 100. * mean)));
            line.push(format!("{:.0}", means[10]));
            cells.push(line);
        }
    }
    println!("Percent of the messages with the answer that are found:");
    let head = [
        "kind of question",
        "questions",
        "@5",
        "@50",
        "in 64",
        "in 128",
        "in 256",
        "in 512",
        "in 1,024",
        "in 2,048",
        "in the prompt",
        "of anything",
        "tokens",
    ];
    print_table(&head, &cells);
    let home = root.join(HOME);
    let both = [("idle", false), ("held-idle", false), ("needs", true)];
    for (name, is_needed) in both.into_iter().take(if is_trial { 0 } else { 3 }) {
        let goal = if is_needed { Goal::AtLeast(90.) } else { Goal::AtMost(5.) };
        for (language, share) in runtime().block_on(loud(&files[0], &home.join(name)))? {
            let figure = format!("{name}, {language}: utterances that bring something in");
            rows.push(Row::new(figure, 100. * share, "%", goal));
        }
    }
    Ok(rows)
}

/// Asks every question of a file that has an answer. By kind of question.
async fn of_file(file: &Path) -> Result<BTreeMap<String, Found>, Box<dyn Error>> {
    let mut kinds: BTreeMap<String, Found> = BTreeMap::new();
    for line in std::fs::read_to_string(file)?.lines() {
        let conversation: Conversation = serde_json::from_str(line)?;
        let (_folder, recall, numbers) = conversation.stored().await?;
        let without = ["adversarial", "abstention"];
        let asked = conversation.qas.iter();
        for asking in asked.filter(|qa| !qa.ev.is_empty() && !without.contains(&&*qa.cat)) {
            let shares = conversation.shares(&recall, &numbers, asking).await?;
            for kind in ["all", &asking.cat] {
                let found = kinds.entry(kind.to_owned()).or_default();
                found.questions += 1;
                found.sums.iter_mut().zip(shares).for_each(|(sum, share)| *sum += share);
            }
        }
    }
    Ok(kinds)
}

/// The share of the utterances of a file that bring something into a prompt of the first conversation, by language.
async fn loud(conversations: &Path, file: &Path) -> Result<BTreeMap<String, f64>, Box<dyn Error>> {
    let text = std::fs::read_to_string(conversations)?;
    let first: Conversation = serde_json::from_str(text.lines().next().ok_or("it is empty")?)?;
    let (_folder, recall, _) = first.stored().await?;
    let mut counts: BTreeMap<String, [f64; 2]> = BTreeMap::new();
    for line in std::fs::read_to_string(file.with_extension("jsonl"))?.lines() {
        let said: Said = serde_json::from_str(line)?;
        let query = query(&recall, &said.utterance, 24).floor(ScoreFloor::Needed);
        let found = recall.find_in(&query, None).await?;
        let [loud, all] = counts.entry(said.language).or_default();
        *loud += f64::from(u8::from(!found.hits.is_empty()));
        *all += 1.;
    }
    Ok(counts.into_iter().map(|(language, [loud, all])| (language, loud / all)).collect())
}

fn query<'a>(recall: &Recall, text: &'a str, limit: usize) -> RecallQuery<'a> {
    RecallQuery::new(text, recall.store().clock().now(), limit)
}

impl Conversation {
    /// Its messages in a store of a folder, with their meanings, and the number of each turn. It is noon on the day after the last.
    async fn stored(&self) -> Result<(TempDir, Recall, Vec<u64>), Box<dyn Error>> {
        let time = |line: &Line| line.at.unwrap_or(line.day.unwrap_or_default() * DAY);
        let last = self.turns.iter().map(time).max().unwrap_or_default();
        let noon = Timestamp::from_millisecond(last - last.rem_euclid(DAY) + DAY * 3 / 2)?;
        let clock = Arc::new(ManualClock::at(noon.to_zoned(TimeZone::UTC)));
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))?;
        let store = options().clock(clock).open(folder.path()).await?;
        let mut numbers = Vec::new();
        for turns in self.turns.chunks(512) {
            let messages = turns.iter().map(|line| line.message(time(line)));
            let stored = store.import(messages.collect::<Result<_, _>>()?).await?;
            numbers.extend(stored.iter().map(|stored| stored.seq));
        }
        let recall = Recall::new(Arc::new(store) as Arc<dyn ConversationStore>);
        while recall.understand(1024).await? > 0 {}
        Ok((folder, recall, numbers))
    }

    async fn shares(
        &self,
        recall: &Recall,
        numbers: &[u64],
        asking: &Asking,
    ) -> Result<[f64; 11], Box<dyn Error>> {
        let earlier: Vec<&str> = asking.earlier.iter().map(String::as_str).collect();
        let until = asking.until.and_then(|until| numbers.get(until as usize)).copied();
        let wanted: Vec<u64> =
            asking.ev.iter().filter_map(|turn| numbers.get(*turn as usize).copied()).collect();
        let mut query = query(recall, &asking.q, 300);
        query.earlier = &earlier;
        let is_wanted = move |seq: u64| until.is_none_or(|until| seq < until);
        let found = recall.find(&query, is_wanted, |_| true).await?;
        let mut needed = query.clone().floor(ScoreFloor::Needed);
        needed.limit = 24;
        let needed = recall.find(&needed, is_wanted, |_| true).await?.within(TOKENS, LONGEST);
        let share = |hits: &[RecallHit]| {
            let seen = hits.iter().filter(|hit| wanted.contains(&hit.stored.seq)).count();
            seen as f64 / wanted.len() as f64
        };
        let best = |n: usize| share(&found.hits[..n.min(found.hits.len())]);
        let mut shares = [best(5), best(50), 0., 0., 0., 0., 0., 0., 0., 0., 0.];
        for (within, tokens) in shares[2..8].iter_mut().zip(BUDGETS) {
            *within = share(&found.clone().within(tokens, usize::MAX).hits);
        }
        let letters = |hit: &RecallHit| hit.stored.message.content.chars().count().min(LONGEST);
        shares[8] = share(&needed.hits);
        shares[9] = f64::from(u8::from(!needed.hits.is_empty()));
        shares[10] = needed.hits.iter().map(letters).sum::<usize>() as f64 / 4.;
        Ok(shares)
    }
}

impl Line {
    fn message(&self, at: i64) -> Result<ChatMessage, jiff::Error> {
        let role = if self.s == "assistant" { ChatRole::Assistant } else { ChatRole::User };
        let caption = self.cap.as_deref().filter(|caption| !caption.is_empty());
        let text = match caption {
            Some(caption) => format!("{} (shows {caption})", self.x),
            None => self.x.clone(),
        };
        let mut message = ChatMessage::at(role, text, Timestamp::from_millisecond(at)?);
        if !["user", "assistant"].contains(&&*self.s) {
            message.metadata.insert("speaker".to_owned(), self.s.clone());
        }
        Ok(message)
    }
}

fn corpora(folder: &Path) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "jsonl") {
            files.push(path);
        }
    }
    files.sort();
    if files.is_empty() {
        return Err(format!("{} holds no files *.jsonl", folder.display()).into());
    }
    Ok(files)
}
