//! `/context` and `/scope`: looking at what the model is told, and changing it.

use std::sync::Arc;

use sottovoce::{ConversationStore, Scope};

use super::Chat;
use super::lines::Line;
use crate::cmd::snapshot::{said_restored, show};
use crate::cmd::stats::{self, moment};
use crate::exit::Failure;
use crate::output;

impl Chat<'_> {
    /// Obeys what stands behind `/context`.
    pub(super) async fn context(&mut self, line: &str) -> Result<(), Failure> {
        let (action, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let rest = rest.trim();
        let done = match (action, rest) {
            ("" | "stats", "") => self.stats().await,
            ("clear", "") => self.clear().await,
            ("save", description) => self.save(description).await,
            ("history", "") => self.history().await,
            ("restore", id) if !id.is_empty() => self.restore(id).await,
            ("show", id) if !id.is_empty() => self.saved(id).await,
            _ => {
                self.complain(
                    "/context knows clear, save [DESCRIPTION], history, show ID, restore ID and stats",
                );
                return Ok(());
            }
        };
        match done {
            // What is the matter with a command does not end the chat.
            Err(failure @ Failure::Library(_)) => {
                failure.report();
                self.ended(failure.code());
                Ok(())
            }
            done => done,
        }
    }

    async fn stats(&mut self) -> Result<(), Failure> {
        let stats = self.store.stats().await?;
        Ok(stats::show(self.store.scope(), &stats)?)
    }

    async fn clear(&mut self) -> Result<(), Failure> {
        let profile = self.conversation.clear().await?;
        let at = profile.cleared.map_or_else(String::new, |cleared| moment(cleared.at));
        output::note(&format!("cleared the context at {at}; nothing was deleted"));
        self.last = None;
        self.prepare();
        Ok(())
    }

    async fn save(&mut self, description: &str) -> Result<(), Failure> {
        let description = Some(description.to_owned()).filter(|text| !text.is_empty());
        let snapshot = self.conversation.save_snapshot(description).await?;
        Ok(show(self.session, &snapshot)?)
    }

    async fn history(&mut self) -> Result<(), Failure> {
        let (snapshots, findings) = self.store.snapshots().await?;
        output::skipped(&findings);
        if snapshots.is_empty() {
            output::note("no snapshot was saved in this conversation; /context save saves one");
        }
        Ok(snapshots.iter().try_for_each(|snapshot| show(self.session, snapshot))?)
    }

    async fn saved(&mut self, id: &str) -> Result<(), Failure> {
        let snapshot = self.conversation.snapshot(id).await?;
        show(self.session, &snapshot)?;
        let mut messages = snapshot.messages.iter();
        Ok(messages.try_for_each(|saved| output::said(saved.seq, &saved.message))?)
    }

    async fn restore(&mut self, id: &str) -> Result<(), Failure> {
        let restored = self.conversation.restore(id).await?;
        output::note(&said_restored(restored.len()));
        self.prepare();
        Ok(())
    }

    /// Says whose conversation this is, or goes over to another one.
    pub(super) async fn scope(&mut self, text: &str) -> Result<(), Failure> {
        if text.is_empty() {
            output::line(self.store.scope().to_string())?;
            return Ok(());
        }
        let scope: Scope = match text.parse() {
            Ok(scope) => scope,
            Err(error) => {
                self.complain(&error.to_string());
                return Ok(());
            }
        };
        // What was spoken here belongs here.
        self.conversation.close().await?;
        if let Some(preparing) = self.preparing.take() {
            preparing.abort();
        }
        let store = Arc::new(self.session.open_scope(&self.config, scope).await?);
        self.conversation = self.session.conversation(&self.config, Arc::clone(&store))?;
        output::note(&format!("this is {} now", store.scope()));
        self.store = store;
        self.last = None;
        self.lines.forget();
        self.prepare();
        Ok(())
    }

    /// Asks a question that only a yes answers.
    pub(super) async fn confirmed(&mut self, question: &str) -> Result<bool, Failure> {
        let answer = self.line(Some(question)).await?;
        Ok(
            matches!(answer, Line::Words(answer) if ["y", "yes"].contains(&answer.to_lowercase().as_str())),
        )
    }
}
