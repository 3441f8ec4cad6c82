//! What is spoken when there is no answer.

use std::collections::BTreeMap;

use sottovoce::Error;

/// Why there is no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// Nothing was heard.
    Unheard,
    /// The model gave no answer, or not all of it.
    Model,
    /// What was said could not be stored.
    Memory,
}

impl Trouble {
    pub(crate) fn of(error: &Error) -> Self {
        match error {
            Error::Model { .. } | Error::NoModel => Self::Model,
            _ => Self::Memory,
        }
    }
}

/// By language: nothing heard, no answer of the model, and no memory.
const PHRASES: [[&str; 4]; 6] = [
    [
        "en",
        "I did not hear anything.",
        "I cannot think of an answer right now. Please try again in a moment.",
        "I cannot reach my memory right now, so I had better not answer.",
    ],
    [
        "de",
        "Ich habe nichts gehört.",
        "Mir fällt gerade keine Antwort ein. Bitte versuche es gleich noch einmal.",
        "Ich komme gerade nicht an mein Gedächtnis und antworte lieber nicht.",
    ],
    [
        "fr",
        "Je n'ai rien entendu.",
        "Je ne trouve pas de réponse pour l'instant. Réessaie dans un moment.",
        "Je n'ai pas accès à ma mémoire pour l'instant, je préfère ne pas répondre.",
    ],
    [
        "es",
        "No he oído nada.",
        "Ahora mismo no se me ocurre una respuesta. Inténtalo de nuevo en un momento.",
        "Ahora mismo no llego a mi memoria, así que prefiero no responder.",
    ],
    [
        "it",
        "Non ho sentito nulla.",
        "In questo momento non trovo una risposta. Riprova tra poco.",
        "In questo momento non raggiungo la mia memoria e preferisco non rispondere.",
    ],
    [
        "nl",
        "Ik heb niets gehoord.",
        "Ik weet nu even geen antwoord. Probeer het straks nog eens.",
        "Ik kan nu niet bij mijn geheugen en geef liever geen antwoord.",
    ],
];

/// What is spoken when there is no answer, in the language of the turn.
#[derive(Debug, Clone, Default)]
pub struct Phrases {
    own: BTreeMap<String, String>,
}

impl Phrases {
    /// Speaks this sentence in a language, by its code such as `pl`, whatever went wrong.
    #[must_use]
    pub fn with(mut self, language: impl Into<String>, sentence: impl Into<String>) -> Self {
        self.own.insert(language.into().to_lowercase(), sentence.into());
        self
    }

    /// The sentence for a trouble. A language without one gets English.
    pub(crate) fn of(&self, trouble: Trouble, language: &str) -> &str {
        let language = language.to_lowercase();
        let code = language.split(['-', '_']).next().unwrap_or_default();
        if let Some(own) = self.own.get(&language).or_else(|| self.own.get(code)) {
            return own;
        }
        let [english, ..] = &PHRASES;
        let [_, unheard, model, memory] =
            PHRASES.iter().find(|[known, ..]| *known == code).unwrap_or(english);
        match trouble {
            Trouble::Unheard => unheard,
            Trouble::Model => model,
            Trouble::Memory => memory,
        }
    }
}
