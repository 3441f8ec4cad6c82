//! `/context` and `/scope`: looking at what the model is told, and changing it.

use std::sync::Arc;

use clap::Parser;
use sottovoce::{ConversationStore, Error, Scope};

use super::Chat;
use super::lines::Line;
use crate::cmd::context::{Action, Open};
use crate::exit::{Exit, Failure};
use crate::output;

/// What stands behind `/context`.
#[derive(Parser)]
#[command(name = "/context", no_binary_name = true, disable_version_flag = true)]
struct Behind {
    #[command(subcommand)]
    action: Option<Action>,
}

impl Chat {
    /// Obeys what stands behind `/context`.
    pub(super) async fn context(&mut self, line: &str) -> Result<(), Failure> {
        let Some(words) = shlex::split(line) else {
            self.complain("a quotation mark in that line has no second one");
            return Ok(());
        };
        let action = match Behind::try_parse_from(words) {
            Ok(Behind { action }) => action,
            Err(error) if error.use_stderr() => {
                let text = error.render().to_string();
                self.complain(text.trim_start_matches("error: ").trim_end());
                return Ok(());
            }
            Err(help) => return Ok(output::line(help.render().ansi().to_string())?),
        };
        let is_looking = matches!(
            action,
            None | Some(
                Action::Messages { .. }
                    | Action::Artifacts
                    | Action::Show(_)
                    | Action::Stats
                    | Action::Export(_)
                    | Action::History
            )
        );
        if !is_looking {
            // What was spoken until now comes before what is done now.
            self.conversation.close().await?;
        }
        let open = Open {
            session: &self.session,
            config: &self.config,
            store: &self.store,
            conversation: &self.conversation,
        };
        let done = open.obey(action).await;
        if !is_looking {
            self.last = None;
            self.prepare();
        }
        match done {
            Ok(exit) => {
                if exit != Exit::Done {
                    self.ended(exit);
                }
                Ok(())
            }
            // What is the matter with a command does not end the chat.
            Err(
                failure @ (Failure::Library(_) | Failure::Input { .. } | Failure::Nothing { .. }),
            ) => {
                failure.report();
                self.ended(failure.code());
                Ok(())
            }
            Err(failure) => Err(failure),
        }
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
        let store = Arc::new(self.session.open_scope(&self.config, scope.clone()).await?);
        let opened = self.session.conversation_from(&self.config, Arc::clone(&store), false).await;
        self.conversation = match opened {
            Ok(conversation) => conversation,
            // One that has expired, for example, does not end the chat with another.
            Err(failure @ Failure::Library(Error::Context(_))) => {
                failure.report();
                self.ended(failure.code());
                self.prepare();
                return Ok(());
            }
            Err(failure) => return Err(failure),
        };
        self.session.scope = scope;
        output::note(&format!("this is {} now", store.scope()));
        self.store = store;
        self.introduce().await?;
        self.last = None;
        self.lines.forget();
        self.prepare();
        Ok(())
    }

    /// Asks a question. Anything but a yes is a no, and what is neither is the next line.
    pub(super) async fn confirmed(&mut self, question: &str) -> Result<bool, Failure> {
        let Line::Words(answer) = self.line(Some(question)).await? else { return Ok(false) };
        match answer.to_lowercase().as_str() {
            "y" | "yes" => Ok(true),
            "n" | "no" => Ok(false),
            // It was typed before the question was there.
            _ => {
                self.lines.put_back(Line::Words(answer));
                Ok(false)
            }
        }
    }
}
