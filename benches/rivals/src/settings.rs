//! The settings from the command line.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use crate::contender::{Kind, Outcome};
use crate::figure::Figure;

pub(crate) const HELP: &str = "\
Measures sottovoce's store against other ways to keep a conversation.

  cargo run --release --manifest-path benches/rivals/Cargo.toml -- [OPTIONS]

The contenders:
  sottovoce      this library through its public API, from a single-threaded runtime
  SQLCipher      encrypted SQLite: raw key, WAL, synchronous=FULL, an index on time, prepared statements
  redb           a key-value store with the same envelopes; one process at a time
  one file each  one sealed file a message in a flat folder; lists and sorts names, opens the newest. Not durable
  JSON lines     one plain file, read whole and parsed. Not sealed, not durable
  one JSON file  one plain file, rewritten for each message. Not sealed, not durable; up to 100,000 messages

They take turns in every round; medians and spread are of all rounds, with the files in the page cache. Before each
figure the program waits until the machine is quiet, and where the medians of the first and the last half of the rounds
differ by more than a tenth, it holds them again, up to three times; what never settled is marked with a ~.

  --messages N,N,…   conversations of so many messages [1000,10000,100000,1000000]
  --figure F,F,…     only these: unchanged own-append other-append open memory append bulk scan disk day [all]
  --rivals R,R,…     only against these: sqlcipher redb document json-lines json-file [all]
  --per-day N        messages a day, for the figure `day` [100]
  --rounds N         rounds of each figure; appends have five times as many, bulk a fifth [40]
  --patience S       seconds to wait for a quiet machine before each figure [60]
  --dir DIR          where the stores go, in a folder of their own that is deleted at the end [beside the program];
                     a million messages take 7 GB and a million files there
  --ext4             on a journaled ext4 in an image file below DIR, which takes root: made, mounted, and removed again
  --json FILE        every figure, for machines
  --plot FILE.svg    cost against number of messages
  --quick            a trial of some seconds, whose figures mean nothing
  --help             this
";

pub(crate) struct Settings {
    pub(crate) messages: Vec<usize>,
    pub(crate) figures: Vec<String>,
    pub(crate) kinds: Vec<Kind>,
    pub(crate) per_day: usize,
    pub(crate) rounds: usize,
    pub(crate) sittings: usize,
    pub(crate) patience: Duration,
    pub(crate) dir: PathBuf,
    pub(crate) ext4: bool,
    pub(crate) json: Option<PathBuf>,
    pub(crate) plot: Option<PathBuf>,
}

impl Settings {
    /// `None` if only help was requested.
    pub(crate) fn parse(arguments: &[String]) -> Outcome<Option<Self>> {
        let program = std::env::current_exe()?;
        let mut settings = Self {
            messages: vec![1_000, 10_000, 100_000, 1_000_000],
            figures: Vec::new(),
            kinds: Kind::ALL.to_vec(),
            per_day: 100,
            rounds: 40,
            sittings: 3,
            patience: Duration::from_secs(60),
            // The system's folder for temporary files is often in memory.
            dir: program.parent().ok_or("the program is in no folder")?.to_owned(),
            ext4: false,
            json: None,
            plot: None,
        };
        let mut arguments = arguments.iter();
        while let Some(option) = arguments.next() {
            let mut value = || arguments.next().ok_or(format!("{option} wants a value"));
            match option.as_str() {
                "--messages" => settings.messages = numbers(value()?)?,
                "--figure" => settings.figures = figures(value()?)?,
                "--rivals" => settings.kinds = kinds(value()?)?,
                "--per-day" => settings.per_day = number(value()?)?,
                "--rounds" => settings.rounds = number(value()?)?,
                "--patience" => settings.patience = Duration::from_secs(value()?.parse()?),
                "--dir" => settings.dir = value()?.into(),
                "--ext4" => settings.ext4 = true,
                "--json" => settings.json = Some(value()?.into()),
                "--plot" => settings.plot = Some(value()?.into()),
                "--quick" => {
                    settings.messages = vec![200];
                    settings.rounds = 2;
                    settings.sittings = 1;
                    settings.patience = Duration::ZERO;
                }
                "--help" | "-h" => return Ok(None),
                _ => return Err(format!("{option} is no option; see --help").into()),
            }
        }
        Ok(Some(settings))
    }

    pub(crate) fn wants(&self, figure: Figure) -> bool {
        self.figures.is_empty() || self.figures.iter().any(|code| code == figure.code())
    }
}

/// A number of at least one.
fn number(text: &str) -> Outcome<usize> {
    match usize::from_str(text) {
        Ok(number) if number > 0 => Ok(number),
        _ => Err(format!("{text} is no number above 0").into()),
    }
}

fn numbers(text: &str) -> Outcome<Vec<usize>> {
    let mut numbers: Vec<usize> = text.split(',').map(number).collect::<Outcome<_>>()?;
    if numbers.iter().any(|number| *number < 100) {
        return Err("a conversation of fewer than 100 messages tells nothing".into());
    }
    numbers.sort_unstable();
    numbers.dedup();
    Ok(numbers)
}

fn figures(text: &str) -> Outcome<Vec<String>> {
    let known = |code: &str| Figure::ALL.iter().any(|figure| figure.code() == code);
    match text.split(',').find(|code| !known(code)) {
        Some(code) => Err(format!("{code} is no figure; see --help").into()),
        None => Ok(text.split(',').map(str::to_owned).collect()),
    }
}

/// This store and the named rivals.
fn kinds(text: &str) -> Outcome<Vec<Kind>> {
    let named = text.split(',').map(|code| {
        Kind::by_code(code).ok_or_else(|| format!("{code} is no rival; see --help").into())
    });
    let named = named.collect::<Outcome<Vec<_>>>()?;
    let mut kinds = Kind::ALL.to_vec();
    kinds.retain(|kind| *kind == Kind::Ours || named.contains(kind));
    Ok(kinds)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Outcome<Option<Settings>> {
        let arguments: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        Settings::parse(&arguments)
    }

    #[test]
    fn a_typing_error_measures_nothing() {
        let wrong = [
            "--message 100",
            "--messages 1e6",
            "--messages",
            "--figure tails",
            "--rounds 0",
            "--rivals sqlite",
        ];
        for line in wrong {
            assert!(parsed(line).is_err(), "{line}");
        }
        assert!(parsed("--rounds 3 --help").unwrap().is_none());
    }

    #[test]
    fn only_what_is_asked_for_is_measured() {
        let settings = parsed("--figure scan,open --messages 1000,200").unwrap().unwrap();
        assert_eq!(settings.messages, [200, 1000]);
        let wanted = Figure::ALL.into_iter().filter(|figure| settings.wants(*figure));
        let expected = [Figure::Open, Figure::OpenAlone, Figure::Scan, Figure::ScanTwo];
        assert_eq!(wanted.collect::<Vec<_>>(), expected);
        assert!(parsed("").unwrap().unwrap().wants(Figure::Disk));
    }
}
