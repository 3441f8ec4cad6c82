//! `/context` and `/scope`: show and change the context, or switch to another conversation.

use std::sync::Arc;

use clap::{CommandFactory, Parser, Subcommand};
use sottovoce::persona::{NewPersonaConversation, Persona, PersonaChange, PersonaFailure, Preset};
use sottovoce::{Error, Scope, with_causes};

use crate::cli::whose;
use crate::cmd::GROUPS;
use crate::cmd::chat::Chat;
use crate::cmd::chat::lines::Line;
use crate::cmd::context::{Action, Open};
use crate::cmd::named::{ListArgs, list_contexts};
use crate::exit::{Exit, Failure, Outcome};
use crate::{advice, output};

/// How many slips of the finger a command is still recognised with.
const SLIPS: usize = 2;

const QUOTES: &str =
    "a name of several words needs quotes: `/context new \"Living room\"`; a preset may follow it";

/// Shows and changes the context, or goes over to another one.
#[derive(Parser)]
#[command(
    name = "/context",
    bin_name = "/context",
    no_binary_name = true,
    disable_version_flag = true
)]
struct Behind {
    #[command(subcommand)]
    action: Option<Verb>,
}

#[derive(Subcommand)]
enum Verb {
    #[command(flatten)]
    Other(Other),
    #[command(flatten)]
    One(Action),
}

/// Actions on other contexts.
#[derive(Subcommand)]
enum Other {
    /// Creates a context and switches to it
    New {
        /// Its name; several words need quotes
        name: String,
        /// The preset to create it from, by id or name; the default system prompt unless given
        preset: Option<String>,
        #[arg(hide = true)]
        more: Vec<String>,
    },
    /// Switches to a context
    Use {
        /// Its name or id; several words need no quotes
        #[arg(required = true)]
        name: Vec<String>,
    },
    List(ListArgs),
}

/// The commands of a chat, as they are completed: those behind `/context` are the shell's.
pub(super) fn commands() -> Vec<String> {
    let fixed =
        ["/context", "/explain", "/forget last", "/help", "/off ", "/quit", "/retry", "/scope "];
    let behind = Behind::command();
    let behind = behind.get_subcommands().map(|below| {
        let space = if below.get_positionals().next().is_some() { " " } else { "" };
        format!("/context {}{space}", below.get_name())
    });
    let mut commands: Vec<String> = fixed.map(str::to_owned).into_iter().chain(behind).collect();
    commands.sort();
    commands
}

/// What somebody meant by a command that does not exist, as far as that shows.
pub(super) fn meant(name: &str) -> String {
    let (bare, all) = (name.trim_start_matches('/'), commands());
    let verb = format!("/context {bare}");
    let near = |command: &&String| {
        let first = command.split(' ').next().unwrap_or_default();
        // Nothing that deletes is proposed.
        first != "/forget" && strsim::damerau_levenshtein(first, name) <= SLIPS
    };
    if all.iter().any(|command| command.trim_end() == verb) {
        format!("`{verb}` does that; ")
    } else if let Some(near) = all.iter().find(near) {
        format!("did you mean `{}`? ", near.trim_end())
    } else if GROUPS.iter().any(|(_, names)| names.split(' ').any(|name| name == bare)) {
        format!("outside the chat `sottovoce {bare}` does that; ")
    } else {
        String::new()
    }
}

/// Advice for the shell with the chat's commands in their place.
fn in_chat(text: &str) -> String {
    let mut text = text
        .replace("sottovoce snapshot list", "/context history")
        .replace("sottovoce context", "/context")
        .replace("sottovoce artifact", "/context");
    for verb in Behind::command().get_subcommands() {
        let name = verb.get_name();
        text = text.replace(&format!("sottovoce {name}"), &format!("/context {name}"));
    }
    text
}

impl Chat {
    /// Runs `/context`.
    pub(super) async fn context(&mut self, line: &str) -> Result<(), Failure> {
        let Some(words) = shlex::split(line) else {
            self.complain("a quotation mark in that line has no second one");
            return Ok(());
        };
        let action = match Behind::try_parse_from(words).map(|behind| behind.action) {
            Ok(Some(Verb::Other(other))) => return self.other(other).await,
            Ok(Some(Verb::One(action))) => Some(action),
            Ok(None) => None,
            Err(error) if error.use_stderr() => {
                let text = error.render().to_string();
                // clap's advice is for a command line.
                let text = text.split("For more information, try").next().unwrap_or_default();
                self.complain(text.trim_start_matches("error: ").trim_end());
                output::note("/context help lists the verbs");
                return Ok(());
            }
            Err(help) => return Ok(output::line(in_chat(&help.render().ansi().to_string()))?),
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
            // Store the spoken text before the command runs.
            self.conversation.close().await?;
        }
        // These commands ask questions, or read input to add.
        let reads = matches!(action, Some(Action::Export(_) | Action::Add(_)));
        if reads {
            self.lines.lend(true)?;
        }
        let open =
            Open { session: &self.session, store: &self.store, conversation: &self.conversation };
        let done = open.obey(action).await;
        if reads {
            self.lines.lend(false)?;
        }
        if !is_looking {
            self.warm_up();
        }
        self.done(done)
    }

    /// Lists contexts, creates one, or switches to one.
    async fn other(&mut self, other: Other) -> Result<(), Failure> {
        let id = match other {
            Other::List(args) => {
                let done =
                    list_contexts(&self.session, &args, "`/context new NAME` makes one").await;
                return self.done(done);
            }
            Other::New { more, .. } if !more.is_empty() => {
                Err(Failure::input("a context has one name, and at most one preset", QUOTES))
            }
            Other::New { name, preset, .. } => self.made(name, preset).await,
            Other::Use { name } => {
                let name = name.join(" ");
                match self.session.find_context(&name).await {
                    Ok((_, context)) => Ok(context.id),
                    Err(failure) => Err(self.with_names(&name, failure).await),
                }
            }
        };
        match id {
            Ok(id) => self.go(Scope::Named { id }).await,
            Err(failure) => self.done(Err(failure)),
        }
    }

    /// The error for an unknown context, with the names of existing ones. Only a chat shows them, because the output
    /// of other commands may be logged.
    async fn with_names(&self, meant: &str, failure: Failure) -> Failure {
        let Failure::Library(Error::Persona(PersonaFailure::NoSuchConversation { known })) =
            &failure
        else {
            return failure;
        };
        let contexts = match self.session.contexts() {
            Ok(Some(contexts)) if !known.is_empty() => contexts,
            _ => return failure,
        };
        let Ok(listed) = contexts.list().await else { return failure };
        let shown = |id: &String| {
            let context = listed.contexts.iter().find(|context| context.id == *id);
            context.map_or_else(|| id.clone(), |context| format!("“{}” ({id})", context.name))
        };
        let known: Vec<String> = known.iter().map(shown).collect();
        Failure::NotFound {
            what: output::one_line(&format!(
                "there is no such context as “{meant}”; there are {}",
                known.join(", ")
            )),
            help: "`/context list --all` shows all of them".to_owned(),
        }
    }

    /// Creates a context and returns its id.
    async fn made(&self, name: String, preset: Option<String>) -> Result<String, Failure> {
        let new = match preset {
            Some(preset) => {
                let presets = self.session.presets().await?;
                let preset = Preset::find(presets, &preset).map_err(|error| match error {
                    Error::Persona(PersonaFailure::NoSuchPreset { known }) => Failure::NotFound {
                        what: format!(
                            "there is no such preset as “{}”; there are {}",
                            output::one_line(&preset),
                            known.join(", ")
                        ),
                        help: QUOTES.to_owned(),
                    },
                    error => error.into(),
                })?;
                NewPersonaConversation::from_preset(&preset, Some(name), PersonaChange::default())
            }
            None => NewPersonaConversation::new(
                name,
                Persona::new(&*self.session.config()?.language_model.system_prompt),
            ),
        };
        Ok(self.session.contexts_or_make()?.create(new).await?.id)
    }

    /// Reports a command's result. An error does not end the chat.
    fn done(&mut self, done: Outcome) -> Result<(), Failure> {
        match done {
            Ok(Exit::Done) => {}
            Ok(exit) => self.ended(exit),
            Err(failure @ (Failure::Io(_) | Failure::Interrupted(_))) => return Err(failure),
            Err(failure) => {
                match &failure {
                    Failure::Library(error) => {
                        output::error(&with_causes(error), &in_chat(advice::help(error)));
                    }
                    failure => output::failure(failure),
                }
                self.ended(failure.code());
            }
        }
        Ok(())
    }

    /// Shows the current scope, or switches to another conversation.
    pub(super) async fn scope(&mut self, text: &str) -> Result<(), Failure> {
        if text.is_empty() {
            output::line(self.store.scope().to_string())?;
            return Ok(());
        }
        match whose::scope(text) {
            Ok(scope) => self.go(scope).await,
            Err(refusal) => {
                self.complain(&format!("{text:?}: {refusal}"));
                Ok(())
            }
        }
    }

    /// Switches to another conversation.
    async fn go(&mut self, scope: Scope) -> Result<(), Failure> {
        // The spoken text belongs to the conversation so far.
        self.conversation.close().await?;
        if let Some(warming_up) = self.warming_up.take() {
            warming_up.abort();
        }
        let store = Arc::new(self.session.open_scope(scope.clone()).await?);
        let opened = self.session.conversation_from(Arc::clone(&store), false).await;
        self.conversation = match opened {
            Ok(conversation) => conversation,
            // An expired context, for example, does not end the chat.
            Err(failure @ Failure::Library(Error::Persona(_))) => {
                self.warm_up();
                return self.done(Err(failure));
            }
            Err(failure) => return Err(failure),
        };
        self.session.scope = scope;
        output::note(&format!("switched to {}", store.scope()));
        self.store = store;
        self.introduce().await?;
        self.last = None;
        self.lines.forget();
        self.warm_up();
        Ok(())
    }

    /// Asks a question. Only a yes confirms. A line that is neither yes nor no becomes the next line.
    pub(super) async fn confirmed(&mut self, question: &str) -> Result<bool, Failure> {
        let Line::Words(answer) = self.line(Some(question)).await? else { return Ok(false) };
        match answer.to_lowercase().as_str() {
            "y" | "yes" => Ok(true),
            "n" | "no" => Ok(false),
            // It was typed before the question was shown.
            _ => {
                self.lines.put_back(Line::Words(answer));
                Ok(false)
            }
        }
    }
}
