//! Export: all that a member may read, piece by piece

use std::collections::VecDeque;

use crate::api::{Action, Conversation, ExportLine, Level, MAX_RECORDS, Secret};
use crate::error::Result;
use crate::team::Team;
use crate::team::caller::{Caller, Place};

/// An export in progress. Each piece asks anew whether the token is still valid and the conversation still granted.
#[derive(Debug)]
pub(crate) struct Export {
    team: Team,
    token: Secret,
    conversations: VecDeque<Conversation>,
    /// The position after which the first of them goes on.
    after: u64,
    lines: u64,
    is_over: bool,
}

impl Export {
    pub(crate) async fn begin(team: Team, caller: &Caller, token: Secret) -> Result<Self> {
        team.note(caller, Action::Export, caller.org).await?;
        let all = team.conversations(caller).await?.conversations;
        let conversations =
            all.into_iter().filter(|conversation| conversation.level.is_some()).collect();
        Ok(Self { team, token, conversations, after: 0, lines: 0, is_over: false })
    }

    /// The next lines. `None` at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<Vec<u8>>> {
        let mut text = Vec::new();
        let Some(conversation) = self.conversations.front().cloned() else {
            if std::mem::replace(&mut self.is_over, true) {
                return Ok(None);
            }
            let lines = self.lines;
            self.line(&mut text, &ExportLine::End(lines));
            return Ok(Some(text));
        };
        let caller = self.team.caller(&self.token, Some(conversation.id)).await?;
        let place: Option<Place> = caller.place(Level::Read).ok();
        if self.after == 0 {
            self.line(&mut text, &ExportLine::Conversation(conversation));
        }
        let Some(place) = place else {
            self.leave();
            return Ok(Some(text));
        };
        let after = i64::try_from(self.after).unwrap_or(i64::MAX);
        let page = self.team.page(place, after, MAX_RECORDS as i64).await?;
        let last = page.records.last().map(|record| record.pos);
        for record in page.records {
            self.line(&mut text, &ExportLine::Record(record));
        }
        match last {
            Some(last) => self.after = last,
            None => {
                for artifact in self.team.artifacts(place).await? {
                    self.line(&mut text, &ExportLine::Artifact(artifact));
                }
                self.leave();
            }
        }
        Ok(Some(text))
    }

    fn leave(&mut self) {
        self.conversations.pop_front();
        self.after = 0;
    }

    fn line(&mut self, text: &mut Vec<u8>, line: &ExportLine) {
        if let Ok(line) = serde_json::to_vec(line) {
            text.extend(line);
            text.push(b'\n');
            self.lines += 1;
        }
    }
}
