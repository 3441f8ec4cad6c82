//! Processes killed at random moments while they append, pack, merge, index and forget.

use std::collections::BTreeSet;
use std::hash::{BuildHasher, RandomState};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use sottovoce::ConversationStore;

use crate::crash::check::{ensure, read};
use crate::crash::house::{append, block_on, open, said, say, text};
use crate::crash::index;
use crate::crash::report::Report;
use crate::crash::told::WORK;
use crate::task::Result;

pub(crate) const NAME: &str = "kills";

/// So few that packing and merging never stop.
const LOOSE: usize = 2;
/// The messages of one batch.
const BATCH: u64 = 5;
/// Rounds on one folder, which each round reads completely several times.
const ROUNDS: usize = 10;

/// The acknowledgements of all processes so far, and what the last one had begun.
#[derive(Default)]
struct Told {
    kept: BTreeSet<u64>,
    forgot: BTreeSet<u64>,
    forgetting: Option<u64>,
    /// The highest acknowledged number.
    last: u64,
}

impl Told {
    fn hear(&mut self, line: &str) -> Result<()> {
        let words: Vec<&str> = line.trim_start_matches('@').split(' ').collect();
        match words.as_slice() {
            ["kept", first, last] => {
                self.last = last.parse()?;
                self.kept.extend(first.parse()?..=self.last);
            }
            ["forgetting", seq] => self.forgetting = Some(seq.parse()?),
            ["forgot", seq, last] => {
                self.forgot.insert(seq.parse()?);
                self.forgetting = None;
                self.last = last.parse()?;
            }
            _ => return Err(format!("it said {line:?}").into()),
        }
        Ok(())
    }
}

pub(crate) fn run(rounds: usize, report: &mut Report) -> Result<()> {
    let began = Instant::now();
    let mut messages = 0;
    for first in (0..rounds).step_by(ROUNDS) {
        // In memory if possible: a killed process's writes are there in any case.
        let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir())?;
        let mut told = Told::default();
        for round in first..rounds.min(first + ROUNDS) {
            report.progress(&format!("{NAME}: {round} of {rounds}"));
            kill(&folder.path().join("root"), &mut told)?;
            if let Err(violation) = check(&folder.path().join("root"), &mut told) {
                report.fail(&format!("{NAME}, round {round}: {violation}"));
                break;
            }
        }
        messages += told.last;
    }
    report.kills(rounds, messages, began.elapsed());
    Ok(())
}

/// Starts a process and kills it during its first calls or after a few.
fn kill(root: &Path, told: &mut Told) -> Result<()> {
    let mut child = Command::new(std::env::current_exe()?)
        .args([WORK, NAME])
        .arg(root)
        .stdout(Stdio::piped())
        .spawn()?;
    let mut lines = BufReader::new(child.stdout.take().ok_or("it has no output")?).lines();
    let chance = RandomState::new().hash_one(told.last);
    for line in lines.by_ref().take((chance % 16) as usize) {
        told.hear(&line?)?;
    }
    std::thread::sleep(Duration::from_micros(chance / 16 % 5_000));
    child.kill()?;
    lines.try_for_each(|line| told.hear(&line?))?;
    child.wait()?;
    Ok(())
}

fn check(root: &Path, told: &mut Told) -> Result<()> {
    block_on(async {
        let store = open(root, LOOSE).await?;
        let (there, last) = read(&store).await?;
        let lost = |seq: &u64| !there.contains(seq) && told.forgetting != Some(*seq);
        let lost: Vec<u64> =
            told.kept.difference(&told.forgot).copied().filter(|seq| lost(seq)).collect();
        ensure!(lost.is_empty(), "{lost:?} were acknowledged and are not there");
        let back: Vec<_> = told.forgot.intersection(&there).collect();
        ensure!(back.is_empty(), "{back:?} were forgotten and are there");
        let segment = index::read(&store).await?.unwrap_or_default();
        let indexed = segment.as_chunks::<8>().0.iter().map(|seq| u64::from_le_bytes(*seq));
        let back: Vec<u64> = indexed.filter(|seq| !there.contains(seq)).collect();
        ensure!(
            back.is_empty(),
            "a segment of the search index holds {back:?}, which were forgotten"
        );
        ensure!(last <= told.last + BATCH, "{last} is the last, {} acknowledged", told.last);
        let report = store.verify(|_| {}).await?;
        ensure!(report.is_sound(), "not sound: {:?}", report.findings);
        append(&store, last + 1).await?;
        let report = store.verify(|_| {}).await?;
        ensure!(report.findings.is_empty(), "not repaired: {:?}", report.findings);
        // Messages that were seen must stay.
        let (there, last) = read(&store).await?;
        told.forgot.extend(told.forgetting.take().filter(|seq| !there.contains(seq)));
        (told.kept, told.last) = (there, last);
        Ok(())
    })
}

/// Writes until it is killed.
pub(crate) fn work(root: &Path) -> Result<()> {
    block_on(async {
        let store = open(root, LOOSE).await?;
        let mut last = store.read_tail(1).await?.last_seq;
        for act in last.. {
            let next = last + 1;
            match act % 7 {
                3 => {
                    let batch = (next..next + BATCH).map(|seq| said(text(seq)));
                    store.append_all(batch.collect::<Result<_>>()?).await?;
                    last += BATCH;
                    say(&format!("kept {next} {last}"));
                }
                // It stands for a segment over the messages that are there.
                1 => {
                    let (there, _) = read(&store).await?;
                    let bytes: Vec<u8> = there.iter().flat_map(|seq| seq.to_le_bytes()).collect();
                    index::write(&store, &bytes).await?;
                }
                5 if last > 20 => {
                    let seq = last - 1 - act % 17;
                    say(&format!("forgetting {seq}"));
                    let forgotten = store.forget(&[seq..=seq]).await?;
                    last += u64::from(forgotten.numbers > 0);
                    say(&format!("forgot {seq} {last}"));
                }
                _ => {
                    append(&store, next).await?;
                    last = next;
                    say(&format!("kept {next} {next}"));
                }
            }
        }
        Ok(())
    })
}
