//! All contenders' stores side by side, open, each with the same conversation.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use sottovoce::ChatMessage;

use crate::contender::{Contender, Kind, Outcome, Words};
use crate::talk::Talk;

/// The messages of one batch.
const BATCH: usize = 20_000;

pub(crate) struct Arena {
    pub(crate) talk: Talk,
    folder: PathBuf,
    seats: Vec<Seat>,
}

pub(crate) struct Seat {
    pub(crate) kind: Kind,
    pub(crate) folder: PathBuf,
    talk: Talk,
    contender: Option<Box<dyn Contender>>,
    /// The number of messages.
    next: usize,
}

impl Arena {
    /// Fills every store, and waits until everything is on disk.
    pub(crate) fn lay_out(folder: PathBuf, talk: Talk, kinds: &[Kind]) -> Outcome<Self> {
        fs::create_dir_all(folder.join("floor"))?;
        let mut seats = Vec::new();
        print!("{} messages, written in", talk.messages);
        for &kind in kinds.iter().filter(|kind| talk.messages <= kind.limit()) {
            let started = Instant::now();
            seats.push(Seat::fill(kind, folder.join(kind.code()), talk)?);
            print!(" {:.1?} ({})", started.elapsed(), kind.name());
            io::stdout().flush()?;
        }
        sync(&folder)?;
        println!();
        Ok(Self { talk, folder, seats })
    }

    pub(crate) fn messages(&self) -> usize {
        self.talk.messages
    }

    pub(crate) fn floor(&self) -> PathBuf {
        self.folder.join("floor")
    }

    pub(crate) fn kinds(&self) -> Vec<Kind> {
        self.seats.iter().map(|seat| seat.kind).collect()
    }

    pub(crate) fn seat(&mut self, kind: Kind) -> Outcome<&mut Seat> {
        let seat = self.seats.iter_mut().find(|seat| seat.kind == kind);
        Ok(seat.ok_or("this contender does not take part at this size")?)
    }

    /// Deletes all of it.
    pub(crate) fn clear(self) -> Outcome<()> {
        drop(self.seats);
        Ok(fs::remove_dir_all(self.folder)?)
    }
}

impl Seat {
    fn fill(kind: Kind, folder: PathBuf, talk: Talk) -> Outcome<Self> {
        fs::create_dir(&folder)?;
        let mut contender = kind.create(&folder)?;
        for first in (0..talk.messages).step_by(BATCH) {
            let last = (first + BATCH).min(talk.messages);
            contender.append_all(talk.messages(first..last)?)?;
        }
        contender.tidy()?;
        Ok(Self { kind, folder, talk, contender: Some(contender), next: talk.messages })
    }

    pub(crate) fn contender(&mut self) -> Outcome<&mut dyn Contender> {
        match &mut self.contender {
            Some(contender) => Ok(contender.as_mut()),
            None => Err("this contender's store is closed".into()),
        }
    }

    /// Takes the place of the next message.
    pub(crate) fn take_place(&mut self) -> usize {
        self.next += 1;
        self.next - 1
    }

    pub(crate) fn take_one(&mut self) -> Outcome<ChatMessage> {
        let place = self.take_place();
        self.talk.message(place)
    }

    /// Takes the next messages with their places.
    pub(crate) fn take(&mut self, messages: usize) -> Outcome<Vec<ChatMessage>> {
        let first = self.next;
        self.next += messages;
        self.talk.messages(first..self.next)
    }

    /// Works on the folder. Closes the store first if it allows only one opener.
    pub(crate) fn beside<T>(&mut self, work: impl FnOnce(&Path) -> Outcome<T>) -> Outcome<T> {
        if !self.kind.is_exclusive() {
            return work(&self.folder);
        }
        self.contender = None;
        let outcome = work(&self.folder);
        self.contender = Some(self.kind.open(&self.folder)?);
        outcome
    }

    /// Closes the store, and works with the reopened one.
    pub(crate) fn reopened<T>(
        &mut self,
        work: impl FnOnce(Kind, &Path) -> Outcome<(Box<dyn Contender>, T)>,
    ) -> Outcome<T> {
        self.contender = None;
        let (contender, outcome) = work(self.kind, &self.folder)?;
        self.contender = Some(contender);
        Ok(outcome)
    }

    /// Writes out a contender's data in the page cache, so that no rival's fsync has to.
    pub(crate) fn settle(&self) -> Outcome<()> {
        if self.kind.is_durable() { Ok(()) } else { sync(&self.folder) }
    }

    /// Checks that these are the newest messages, and this many.
    pub(crate) fn check(&self, words: &Words, expected: usize) -> Outcome<()> {
        let newest = self.talk.message(self.next - 1)?;
        if words.newest() != Some(&newest) {
            return Err(format!("{} did not return the newest message", self.kind.name()).into());
        }
        self.check_count(words, expected)
    }

    pub(crate) fn check_count(&self, words: &Words, expected: usize) -> Outcome<()> {
        if words.len() != expected {
            let (name, len) = (self.kind.name(), words.len());
            return Err(format!("{name} returned {len} messages instead of {expected}").into());
        }
        Ok(())
    }

    pub(crate) fn count(&self) -> usize {
        self.next
    }
}

fn sync(folder: &Path) -> Outcome<()> {
    Ok(rustix::fs::syncfs(File::open(folder)?)?)
}
