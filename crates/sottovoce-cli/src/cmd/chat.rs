//! `sottovoce chat`

mod context;
mod lines;

use std::ops::RangeInclusive;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use lines::{Line, Lines};
use sottovoce::conversation::TurnReport;
use sottovoce::model::ModelFailure;
use sottovoce::prompt::Receipt;
use sottovoce::{
    Answer, ChatMessage, ChatRole, Config, Conversation, ConversationStore, Error,
    FileConversationStore, Source,
};
use tokio::task::JoinHandle;

use crate::cmd::forget::announce;
use crate::cmd::named::shown::expiry;
use crate::cmd::prompt::{HistoryOptions, explain_turn};
use crate::cmd::reply::{self, End, NEARLY_FULL, NoModel};
use crate::exit::{Exit, Failure, Outcome};
use crate::interrupt::{Interrupt, StopRequest};
use crate::output;
use crate::session::Session;

/// How long the chat waits at its start for the server to say whether it has the model.
const LOOK: Duration = Duration::from_secs(2);

const HELP: &str = "\
Every line is an utterance, and so is a paste of several lines. These are not:
  /retry         asks again what found no whole answer
  /off WORDS     asks WORDS and keeps neither them nor the answer
  /forget last   deletes the last exchange for ever
                 (in a pipe: /forget last yes)
  /explain       what the last prompt held, and why; also of a failed answer
  /context       what there is, and how full the prompt is
  /context VERB  shows and changes what prompts hold, such as /context add FILE;
                 /context help lists the verbs
  /scope [SCOPE] whose conversation this is, or goes over to another one
  //WORDS        says /WORDS
  /help          this
  /quit          ends it, as Ctrl-D does
Ctrl-C interrupts the answer; what was shown of it is kept. Lines that are typed
or pasted meanwhile wait, and come next in their order, also after Ctrl-C.";

const AFTER_HELP: &str = "\
Examples:
  sottovoce chat                        until Ctrl-D
  sottovoce chat --clean                the model sees nothing said before
  sottovoce --user ann chat             Ann's own conversation
  sottovoce chat < questions.txt        each line gets an answer";

/// A conversation on the terminal, or line by line through a pipe
///
/// Stores and answers every line, in the order in which they are typed. A paste of several lines is one. Lines can be edited and recalled
/// with the arrow keys. They are remembered for this session only, and never written anywhere unsealed. `/help` lists
/// the commands of a chat.
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// The speaker's name, for conversations of several people
    #[arg(long, value_name = "NAME")]
    speaker: Option<String>,

    /// Starts clean: prompts hold nothing that was said before this chat
    #[arg(long)]
    clean: bool,

    #[command(flatten)]
    history: HistoryOptions,
}

/// A chat in progress.
struct Chat {
    session: Session,
    store: Arc<FileConversationStore>,
    conversation: Conversation,
    speaker: Option<String>,
    lines: Lines,
    interrupt: Interrupt,
    last: Option<TurnReport>,
    /// How the last turn ended: the exit code for a pipe. On a terminal the user has seen it.
    exit: Exit,
    over: bool,
    warming_up: Option<JoinHandle<()>>,
    /// Whether the user was told that the history is nearly full.
    is_full: bool,
}

pub(crate) async fn run(session: &Session, args: Args) -> Outcome {
    if session.json {
        return Err(Failure::input(
            "chat is for people",
            "use `sottovoce --json ask` for one question at a time",
        ));
    }
    let session = session.with(|config| args.history.apply(config))?;
    let store = Arc::new(session.store_or_make().await?);
    let conversation = session.conversation_from(Arc::clone(&store), args.clean).await?;
    let mut chat = Chat {
        session,
        store,
        conversation,
        speaker: args.speaker,
        lines: Lines::start(context::commands())?,
        interrupt: Interrupt::listen()?,
        last: None,
        exit: Exit::Done,
        over: false,
        warming_up: None,
        is_full: false,
    };
    if chat.lines.is_terminal() {
        chat.interrupt = chat.interrupt.and_hangup()?;
        look_for_model(chat.session.config()?).await;
        let model = &chat.session.config()?.language_model;
        let url = output::without_login(&model.base_url);
        output::note(&format!(
            "{} at {url}\n/help lists the commands; Ctrl-D ends the chat",
            model.model
        ));
    }
    chat.introduce().await?;
    chat.warm_up();
    let outcome = chat.hold().await;
    if let Some(warming_up) = chat.warming_up {
        warming_up.abort();
    }
    // What was shown is stored, whatever ended the chat.
    chat.conversation.close().await?;
    outcome
}

/// Warns at the start if there is no model; waits only a moment. Utterances are stored anyway.
async fn look_for_model(config: &Config) {
    let look = async { config.server()?.show(&config.language_model.model).await };
    let Ok(Err(error)) = tokio::time::timeout(LOOK, look).await else { return };
    if let Some(missing) = NoModel::of(config, &error) {
        missing.report();
        output::note("what you say is kept; /retry asks again once a model is there");
    }
}

/// Whether a line is a command. What was pasted in several lines never is.
fn is_command(words: &str) -> bool {
    words.starts_with('/') && !words.starts_with("//") && !words.contains('\n')
}

impl Chat {
    async fn hold(&mut self) -> Outcome {
        while !self.over {
            match self.line(None).await? {
                Line::End => self.over = true,
                Line::Nothing => {}
                Line::Garbled => self.complain("that line is not UTF-8, so it was skipped"),
                Line::Words(words) if is_command(&words) => self.command(&words).await?,
                Line::Words(words) => {
                    let said = words.strip_prefix('/').filter(|said| said.starts_with('/'));
                    let utterance = self.utterance(said.unwrap_or(&words));
                    let answer = self.conversation.ask_message(utterance).await;
                    self.show(answer).await?;
                }
            }
        }
        Ok(self.exit)
    }

    /// Loads the model and lets it read the beginning of the next prompt while the user types. If that fails, the
    /// answer reports it.
    fn warm_up(&mut self) {
        if self.lines.is_terminal() {
            let conversation = self.conversation.clone();
            self.warming_up = Some(tokio::spawn(async move { drop(conversation.warm_up().await) }));
        }
    }

    /// The next line, or the answer to a question.
    async fn line(&mut self, question: Option<&str>) -> Result<Line, Failure> {
        let is_terminal = self.lines.is_terminal();
        // Keep one request across interruptions, because the reading thread cannot be stopped.
        let mut line = pin!(self.lines.next(question));
        loop {
            tokio::select! {
                line = &mut line => return Ok(line?),
                heard = self.interrupt.heard() => match heard {
                    // It was meant for the answer that has just ended. At the prompt, Ctrl-C is not a signal.
                    StopRequest::Interrupt if is_terminal => {}
                    StopRequest::Interrupt | StopRequest::Terminate => break,
                }
            }
        }
        if is_terminal {
            output::note("");
        }
        self.exit = Exit::Interrupted;
        self.over = true;
        Ok(Line::End)
    }

    fn ended(&mut self, exit: Exit) {
        if !self.lines.is_terminal() {
            self.exit = exit;
        }
    }

    /// Runs a chat command.
    async fn command(&mut self, line: &str) -> Result<(), Failure> {
        let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        match (name, rest.trim()) {
            ("/quit" | "/exit", "") => self.over = true,
            ("/help", _) => output::line(HELP)?,
            ("/retry", "") => {
                let answer = self.conversation.retry().await;
                self.show(answer).await?;
            }
            ("/off", "") => self.complain("/off needs the words that are not to be kept"),
            ("/off", words) => {
                let utterance = self.utterance(words);
                let answer = self.conversation.ask_off_record(utterance).await;
                self.show(answer).await?;
            }
            ("/context", action) => self.context(action).await?,
            ("/scope", scope) => self.scope(scope).await?,
            ("/forget", "last") => self.forget(false).await?,
            ("/forget", "last yes") => self.forget(true).await?,
            ("/explain", "") => match &self.last {
                Some(report) => explain_turn(report),
                None => output::note("no prompt was sent yet"),
            },
            ("/forget", _) => {
                self.complain("/forget knows only `last`; `sottovoce forget` knows numbers")
            }
            _ => {
                let meant = context::meant(name);
                self.complain(&format!("there is no such {name}; {meant}/help lists them"));
            }
        }
        Ok(())
    }

    fn complain(&mut self, what: &str) {
        output::warning(what);
        self.ended(Exit::Misused);
    }

    fn utterance(&self, words: &str) -> ChatMessage {
        let message = self.conversation.message(ChatRole::User, words).else_from(Source::Typed);
        match &self.speaker {
            Some(speaker) => message.with_metadata("speaker", speaker),
            None => message,
        }
    }

    /// Shows an answer as it arrives, and the turn's figures. A failed turn does not end the chat.
    async fn show(&mut self, answer: sottovoce::Result<Answer>) -> Result<(), Failure> {
        let mut reply = match answer {
            Ok(answer) => reply::read(answer, &mut self.interrupt, output::piece).await?,
            Err(error) => {
                let failure = Failure::from(error);
                output::failure(&failure);
                self.ended(failure.code());
                return Ok(());
            }
        };
        reply.end_line()?;
        self.last.clone_from(&reply.report);
        let exit = match &reply.end {
            End::Complete(kept) => {
                let exit = reply.say_done(&kept.report);
                self.warn_when_full(&kept.report.receipt);
                exit
            }
            End::Interrupted(heard) => {
                self.over = *heard == StopRequest::Terminate;
                reply.say_interrupted()
            }
            End::Failed(error) => {
                let fits =
                    !matches!(error, Error::Model { failure: ModelFailure::PromptTooLong, .. });
                let retry = if fits { "; /retry asks again" } else { "" };
                reply.say_failed(self.session.config()?, error, retry)
            }
        };
        if self.over {
            self.exit = exit;
        } else {
            self.warm_up();
        }
        self.ended(exit);
        Ok(())
    }

    /// Deletes the last exchange permanently, after the user has confirmed everything that goes with it.
    pub(super) async fn forget(&mut self, sure: bool) -> Result<(), Failure> {
        // An answer that was just interrupted belongs to it.
        self.conversation.close().await?;
        let exchange = self.conversation.last_exchange().await?;
        if exchange.is_empty() {
            output::note("nothing is kept yet");
            return Ok(());
        }
        if !sure && !self.lines.is_terminal() {
            self.complain("this deletes permanently; in a pipe write /forget last yes");
            return Ok(());
        }
        let seqs: Vec<RangeInclusive<u64>> =
            exchange.iter().map(|stored| stored.seq..=stored.seq).collect();
        let forgotten = loop {
            let plan = self.store.plan_forget_exchanges(&seqs).await?;
            if !sure {
                announce::show(&self.store, &plan).await?;
                let question = format!("Really {}? [y/N] ", announce::deed("", &plan));
                if !self.confirmed(&question).await? {
                    output::note("nothing was deleted");
                    return Ok(());
                }
            }
            match self.conversation.forget_planned(&plan).await {
                Err(Error::MoreThanAnnounced) => {
                    output::note("the conversation has changed meanwhile");
                }
                forgotten => break forgotten?,
            }
        };
        announce::done(&forgotten);
        self.lines.forget();
        Ok(())
    }

    /// Shows the persona if this conversation is a context, and warns if it expires soon.
    pub(super) async fn introduce(&mut self) -> Result<(), Failure> {
        self.is_full = false;
        let Some(context) = self.session.context_of(&self.store).await? else {
            return Ok(());
        };
        let preset = match &context.assigned_persona.preset {
            Some(preset) => format!(", made from {}", output::one_line(preset)),
            None => String::new(),
        };
        let (name, expiry) = (output::one_line(&context.name), expiry(&self.session, &context));
        output::note(&format!("this is “{name}”{preset}; it {expiry} unless something is said"));
        if context.expires_soon {
            let id = &context.id;
            output::warning(&format!(
                "it expires within 24 hours; `sottovoce context extend {id}` postpones that"
            ));
        }
        Ok(())
    }

    /// Warns once that the history is nearly full.
    pub(super) fn warn_when_full(&mut self, receipt: &Receipt) {
        if !self.is_full && receipt.is_history_filled(NEARLY_FULL) {
            self.is_full = true;
            output::warning(
                "the history is more than 80 % full, and what is oldest will leave the prompt; \
                 `/context compact` has the model summarize it",
            );
        }
    }
}
