//! Options for the history of a prompt.

use sottovoce::Config;

/// The options of every command that builds a prompt.
#[derive(Debug, clap::Args)]
pub(crate) struct HistoryOptions {
    /// At least N messages of history, instead of Context.LastN
    ///
    /// The history of a prompt grows from N messages to four times as many, and is then cut back to N, in whole
    /// exchanges. The beginning of the prompt therefore seldom changes, and a local model reads only what is new. A
    /// context has as much history as its token limit allows, and a conversation with a rolling window (`sottovoce
    /// settings --window`) has the messages within it; N does not matter there.
    #[arg(long, short = 'n', value_name = "N", value_parser = clap::value_parser!(u16).range(..=10_000))]
    last_n: Option<u16>,

    /// Exactly N messages of history, as with Context.Exact
    ///
    /// In a conversation with a rolling window, exactly the messages within the window. A local model then reads the
    /// whole prompt again in every turn.
    #[arg(long)]
    exact: bool,
}

impl HistoryOptions {
    pub(crate) fn apply(&self, config: &mut Config) {
        if let Some(n) = self.last_n {
            config.context.last_n = n.into();
        }
        config.context.exact |= self.exact;
    }
}
