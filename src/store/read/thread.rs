//! Reads the newest messages of one thread.

pub(crate) mod tails;

use std::sync::PoisonError;

use crate::error::Result;
use crate::store::read::query::RangeQuery;
use crate::store::read::reader::Reader;
use crate::store::read::tail::Tail;
use crate::store::read::thread::tails::ThreadTails;
use crate::store::record::name::RecordName;
use crate::store::record::read_result::ReadResult;

/// The document is written by a reader once it covers so many more numbers.
const BEHIND: u64 = 1024;

impl Reader {
    /// The newest `n` messages of a thread, and the index of threads if it is worth saving.
    pub(crate) fn read_thread(
        &self,
        thread: Option<&str>,
        n: usize,
    ) -> Result<(ReadResult, Option<ThreadTails>)> {
        let newest = match self.remembered(n)? {
            Some(reading) => reading,
            None => self.read_tail(n)?,
        };
        if let Some(reading) = newest.of_thread(thread, n, n) {
            return Ok((reading, None));
        }
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        let tails =
            threads.get_or_insert_with(|| ThreadTails::load(&self.folder).unwrap_or_default());
        let mut tail = self.newest()?;
        self.catch_up(tails, &tail)?;
        let mut reading = self.listed(tails, &tail, thread, n)?;
        if reading.is_none() && tails.may_list_more(thread) {
            *tails = ThreadTails::default();
            tail = self.newest()?;
            self.catch_up(tails, &tail)?;
            reading = self.listed(tails, &tail, thread, n)?;
        }
        let is_behind = tails.until.saturating_sub(tails.saved) >= BEHIND;
        let unsaved = is_behind.then(|| tails.clone());
        if is_behind {
            tails.saved = tails.until;
        }
        drop(threads);
        let mut asked = n;
        let reading = loop {
            if let Some(reading) = reading {
                break reading;
            }
            asked = asked.saturating_mul(4);
            reading = self.read_tail(asked)?.of_thread(thread, n, asked);
        };
        Ok((reading, unsaved))
    }

    fn catch_up(&self, tails: &mut ThreadTails, tail: &Tail) -> Result<()> {
        tails.catch_up(tail, |seqs| Ok(self.read_kept(&RangeQuery::Seqs(seqs))?.0))
    }

    /// The newest `n` messages of a thread, if enough of them are listed.
    fn listed(
        &self,
        tails: &ThreadTails,
        tail: &Tail,
        thread: Option<&str>,
        n: usize,
    ) -> Result<Option<ReadResult>> {
        let horizon = self.horizon(tail)?;
        let shows = |name: RecordName| horizon.shows(name);
        let mut unread = Vec::new();
        for seqs in tails.missing().ranges() {
            unread.extend(self.read_if(&RangeQuery::Seqs(seqs))?.messages);
        }
        let mut asked = n;
        while let Some((names, is_all)) = tails.newest(thread, asked, shows) {
            let mut reading = self.read_if(&RangeQuery::Names(names))?;
            reading.messages.extend(unread.iter().cloned());
            reading.messages.sort_by_key(|stored| stored.name);
            // A message that does not open makes room for an older one.
            let most = if is_all { usize::MAX } else { reading.messages.len() };
            if let Some(reading) = reading.of_thread(thread, n, most) {
                return Ok(Some(reading));
            }
            asked = asked.saturating_mul(2);
        }
        Ok(None)
    }
}
