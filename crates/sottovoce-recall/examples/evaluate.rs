//! Measures the ranker on conversations with known answers.
//!
//! `evaluate FILE.jsonl...`: each line is a conversation with `turns` (`s` speaker, `x` text, `cap` caption, `day`,
//! `ses` session, `dlen` letters of its date) and `qas` (`q` question, `cat` kind, `ev` numbers of the turns that
//! hold the answer). Prints the share of those turns found among the best 5, 50, and within 1,024 and 256 tokens.

#![allow(clippy::indexing_slicing, clippy::print_stdout, reason = "this is a measurement")]

use std::{collections::BTreeMap, error::Error};

use serde::Deserialize;
use sottovoce_recall::{
    Asked, BuildOptions, Hit, Index, Question, Role, Segment, Turn, select_within,
};

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
    day: Option<i32>,
    at: Option<i64>,
    dlen: usize,
    ses: u32,
}

#[derive(Deserialize)]
struct Asking {
    q: String,
    cat: String,
    ev: Vec<u64>,
}

fn turn(seq: u64, line: &Line, by_pause: bool) -> Turn<'_> {
    let day = line.day.unwrap_or_default();
    let role = if line.s == "assistant" { Role::Assistant } else { Role::User };
    Turn {
        speaker: Some(&*line.s).filter(|name| !["user", "assistant"].contains(name)),
        session: (!by_pause).then_some(line.ses),
        caption: line.cap.as_deref().filter(|caption| !caption.is_empty()),
        ..Turn::new(seq, line.at.unwrap_or(i64::from(day) * 86_400_000), day, role, &line.x)
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let by_pause = std::env::var_os("BY_PAUSE").is_some();
    let ranks = std::env::var_os("RANKS").is_some();
    for path in std::env::args().skip(1) {
        let mut sums: BTreeMap<String, (usize, [f64; 4])> = BTreeMap::new();
        for (number, line) in std::fs::read_to_string(&path)?.lines().enumerate() {
            let conversation: Conversation = serde_json::from_str(line)?;
            let turns = (0..).zip(&conversation.turns).map(|(seq, line)| turn(seq, line, by_pause));
            let mut index = Index::default();
            index.insert(0, Segment::build(turns, &BuildOptions::default()));
            let years = index.years().ok_or("no turns")?;
            // The questions are asked on the day after the conversation.
            let last = conversation.turns.iter().filter_map(|turn| turn.day).max();
            let now = jiff::civil::Date::constant(1970, 1, 1)
                .checked_add(jiff::Span::new().days(last.unwrap_or_default() + 1))?
                .at(12, 0, 0, 0)
                .to_zoned(jiff::tz::TimeZone::UTC)?;
            let asked = Asked::new(now, years);
            for asking in &conversation.qas {
                if asking.ev.is_empty() || ["adversarial", "abstention"].contains(&&*asking.cat) {
                    continue;
                }
                let question = Question::new(&asking.q, &asked);
                let hits = index.rank(&question, |_| true, 300);
                if ranks {
                    let found: Vec<u64> = hits.iter().take(50).map(|hit| hit.seq).collect();
                    println!("{number}\t{}\t{found:?}", asking.q);
                }
                let line = |hit: &Hit| &conversation.turns[hit.seq as usize];
                let length = |hit: &Hit| {
                    let line = line(hit);
                    let caption = line.cap.as_ref().filter(|caption| !caption.is_empty());
                    line.s.chars().count()
                        + 3
                        + line.x.chars().count()
                        + caption.map_or(0, |c| c.chars().count() + 10)
                };
                let heading = |hit: &Hit| line(hit).dlen + 3;
                let share = |found: &[u64]| {
                    let right = asking.ev.iter().filter(|seq| found.contains(seq)).count();
                    right as f64 / asking.ev.len() as f64
                };
                let first = |n: usize| hits.iter().take(n).map(|hit| hit.seq).collect::<Vec<_>>();
                let within = |tokens| {
                    select_within(&hits, tokens, length, heading)
                        .iter()
                        .map(|hit| hit.seq)
                        .collect::<Vec<_>>()
                };
                let shares = [
                    share(&first(5)),
                    share(&first(50)),
                    share(&within(1024)),
                    share(&within(256)),
                ];
                for kind in ["", &asking.cat] {
                    let (count, sum) = sums.entry(kind.to_owned()).or_default();
                    *count += 1;
                    sum.iter_mut().zip(shares).for_each(|(sum, share)| *sum += share * 100.);
                }
            }
        }
        for (kind, (count, sums)) in sums {
            let name = if kind.is_empty() { &path } else { &kind };
            let [five, fifty, many, few] = sums.map(|sum| sum / count as f64);
            println!("{five:6.2} {fifty:6.2} {many:6.2} {few:6.2}  {count:4} {name}");
        }
    }
    Ok(())
}
