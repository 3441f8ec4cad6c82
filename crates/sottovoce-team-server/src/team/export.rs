//! Export: all that a member may read, piece by piece

use std::collections::VecDeque;

use crate::api::{Action, Conversation, ExportLine, Level, MAX_RECORDS};
use crate::error::{Error, Result};
use crate::team::Team;
use crate::team::caller::{Needs, Permit};

/// An export in progress. Each piece asks anew whether the token is still valid and the conversation still granted.
#[derive(Debug)]
pub(crate) struct Export {
    team: Team,
    permit: Permit,
    conversations: VecDeque<Conversation>,
    /// The position after which the first of them goes on.
    after: u64,
    lines: u64,
    is_over: bool,
}

impl Export {
    pub(crate) async fn begin(team: Team, permit: Permit) -> Result<Self> {
        team.change(&permit, Action::Export, permit.caller.org, None, Vec::new()).await?;
        let all = team.conversations(&permit).await?.conversations;
        let conversations =
            all.into_iter().filter(|conversation| conversation.level.is_some()).collect();
        Ok(Self { team, permit, conversations, after: 0, lines: 0, is_over: false })
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
        let caller = self.team.caller_in(&self.permit.caller, conversation.id).await?;
        if self.after == 0 {
            self.line(&mut text, &ExportLine::Conversation(conversation));
        }
        let after = i64::try_from(self.after).unwrap_or(i64::MAX);
        let read = async {
            let permit = caller.permit(Needs::Level(Level::Read))?;
            let page = self.team.page(&permit, after, MAX_RECORDS as i64).await?;
            Ok::<_, Error>((permit, page))
        };
        let (permit, page) = match read.await {
            // It is not granted any more.
            Err(Error::NotFound { .. }) => {
                self.leave();
                return Ok(Some(text));
            }
            read => read?,
        };
        let last = page.records.last().map(|record| record.pos);
        for record in page.records {
            self.line(&mut text, &ExportLine::Record(record));
        }
        match last {
            Some(last) => self.after = last,
            None => {
                for artifact in self.team.artifacts(&permit).await? {
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
