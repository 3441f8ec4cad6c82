//! Shows the persona of a chat and its limits.

use sottovoce::prompt::Receipt;

use crate::cmd::memory::context::named::shown::expiry;
use crate::cmd::talk::chat::Chat;
use crate::exit::Failure;
use crate::output;
use crate::output::reply::NEARLY_FULL;

impl Chat {
    /// Shows the persona if this conversation is a context, and warns if it expires soon.
    pub(super) async fn introduce(&mut self) -> Result<(), Failure> {
        self.is_full = false;
        let Some(context) = self.session.context_of(&self.config, &self.store).await? else {
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
