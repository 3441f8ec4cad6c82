//! Access rules: which conversations the server may read and change.

use sottovoce::{Error, Result, Scope};

/// The word in `Mcp.Scopes` that stands for all contexts.
const CONTEXTS: &str = "contexts";

/// The conversations that the server may read and change: contexts, and scopes by name. A server that may use no scope
/// has a memory of its own.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Access {
    pub(crate) contexts: bool,
    pub(crate) scopes: Vec<Scope>,
}

impl Access {
    /// Parses the setting `Mcp.Scopes`: words separated by spaces or commas.
    pub(crate) fn parse(setting: &str) -> Result<Self> {
        let mut access = Self::default();
        for word in setting.split([' ', ',', ';']).filter(|word| !word.is_empty()) {
            if word == CONTEXTS {
                access.contexts = true;
                continue;
            }
            let scope: Scope = word.parse().map_err(|error| Error::Config {
                place: "Mcp.Scopes".to_owned(),
                reason: format!(
                    "{word} is neither `contexts` nor a scope such as `default`: {error}"
                ),
            })?;
            if !access.scopes.contains(&scope) {
                access.scopes.push(scope);
            }
        }
        Ok(access)
    }

    /// Whether the server may use a conversation that is not a context.
    pub(crate) fn has(&self, scope: &Scope) -> bool {
        self.scopes.contains(scope) || *scope == self.memory()
    }

    /// The conversation that clients remember in if they name none: the first scope that the server may use, or one of
    /// its own.
    pub(crate) fn memory(&self) -> Scope {
        let own = || Scope::Named { id: "mcp-memory".to_owned() };
        self.scopes.first().cloned().unwrap_or_else(own)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_named_may_be_touched() {
        let access = Access::parse("contexts, default dm/42").unwrap();
        assert!(access.contexts);
        assert!(access.has(&Scope::Default) && access.has(&Scope::Dm { user: "42".into() }));
        assert!(!access.has(&Scope::Dm { user: "43".into() }));
        assert_eq!(Access::parse("").unwrap(), Access::default());
        assert!(Access::parse("everything").is_err());
    }
}
