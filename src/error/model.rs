//! Errors of model servers.

/// A limit of one answer, and how much it allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AnswerLimit {
    /// The most bytes of text, thoughts and calls.
    #[error("{0} bytes")]
    Bytes(usize),
    /// The most bytes received over the network.
    #[error("{0} bytes received")]
    Received(usize),
    /// The most tool calls.
    #[error("{0} tool calls")]
    Calls(usize),
    /// The most seconds.
    #[error("{0} s")]
    Seconds(u64),
}

impl serde::Serialize for AnswerLimit {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

/// Why a model gave no answer. The texts hold no conversation text.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelFailure {
    /// No server listens at the address.
    #[error("the model server cannot be reached: {0}")]
    Unreachable(Box<dyn std::error::Error + Send + Sync>),
    /// The server does not have the model.
    #[error("the server has no model {model:?}")]
    NoSuchModel {
        /// The model's name.
        model: String,
    },
    /// The server's queue is still full after several tries.
    #[error("the server is busy with other requests")]
    Busy,
    /// The server was silent for too long.
    #[error("the server was silent for {seconds} s")]
    TimedOut {
        /// The time waited.
        seconds: u64,
    },
    /// The model would send the conversation to another machine.
    #[error("{model:?} runs in a cloud, which is not allowed")]
    Cloud {
        /// The model's name.
        model: String,
    },
    /// The prompt does not fit into the model's window, even with half of it left out.
    #[error("the prompt is longer than the model's window")]
    PromptTooLong,
    /// The server refused the request.
    #[error("the server answered with status {status}: {reason}")]
    Refused {
        /// The HTTP status.
        status: u16,
        /// The server's reason, without conversation text.
        reason: String,
    },
    /// The server closed the connection before its answer began. It may have worked on the request, so the request is
    /// not repeated.
    #[error("interrupted: the server closed the connection while it worked: {reason}")]
    Interrupted {
        /// The operating system's reason.
        reason: String,
    },
    /// The answer began but did not reach its end.
    #[error("the answer broke off: {reason}")]
    BrokeOff {
        /// What happened, without conversation text.
        reason: String,
    },
    /// The answer exceeded a limit and was cut there.
    #[error("the answer was cut off at {limit}")]
    TooMuch {
        /// The limit.
        limit: AnswerLimit,
    },
    /// The answer has no text.
    #[error("the model gave an empty answer")]
    Empty,
    /// A summary is too short for its messages.
    #[error("the model's summary is too short for its messages")]
    TooShort,
    /// The server does not follow the protocol.
    #[error("the server gave an answer that is not understood: {reason}")]
    Unintelligible {
        /// What is wrong with it.
        reason: &'static str,
    },
}

impl ModelFailure {
    pub(super) fn help(&self) -> &'static str {
        match self {
            Self::Unreachable(_) => {
                "start it, for Ollama with `ollama serve`, or correct LanguageModel.BaseUrl"
            }
            Self::NoSuchModel { .. } => {
                "download it, for Ollama with `ollama pull`, or set LanguageModel.Model to one that the server has"
            }
            Self::Busy => "try again in a moment",
            Self::TimedOut { .. } => {
                "check whether the server still works, or raise LanguageModel.TimeoutSeconds"
            }
            Self::Cloud { .. } => {
                "choose a model that runs on this machine, or allow it with LanguageModel.AllowCloud"
            }
            Self::PromptTooLong => "use fewer words, or raise LanguageModel.NumCtx",
            Self::Refused { status: 401 | 403, .. } => {
                "put the server's key into a file and name it in LanguageModel.ApiKeyFile"
            }
            Self::Refused { .. } => "check the server's log",
            Self::Interrupted { .. } => {
                "ask again; if it happens again, look into the server's log: it may have run out of memory"
            }
            Self::BrokeOff { .. } | Self::Empty => "ask again",
            Self::TooMuch { limit: AnswerLimit::Calls(_) } => {
                "ask again, choose another model, or raise LanguageModel.MaxToolCalls"
            }
            Self::TooMuch { limit: AnswerLimit::Seconds(_) } => {
                "ask again, choose another model, or raise LanguageModel.MaxAnswerSeconds"
            }
            Self::TooMuch { .. } => {
                "ask again, choose another model, or raise LanguageModel.MaxAnswerBytes"
            }
            Self::TooShort => "choose a larger model; the messages stay unchanged",
            Self::Unintelligible { .. } => {
                "check that LanguageModel.BaseUrl is the address of a model server"
            }
        }
    }
}
