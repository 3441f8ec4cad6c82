//! Options and output shared by presets and contexts: the persona.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use sottovoce::persona::{Persona, PersonaChange};

use crate::exit::Failure;
use crate::output::{self, DIM, Object, object};
use crate::session::without_line_end;

/// More than any system prompt may have, so that a wrong file is not read to its end.
const LONGEST: u64 = 1 << 20;

/// Options that describe a persona.
#[derive(clap::Args)]
pub(crate) struct Traits {
    /// The system prompt, which starts every prompt
    #[arg(long, value_name = "TEXT")]
    system_prompt: Option<String>,

    /// Reads the system prompt from a file; `-` is standard input
    #[arg(long, value_name = "FILE", conflicts_with = "system_prompt")]
    system_prompt_file: Option<PathBuf>,

    /// The model's behaviour, which follows the system prompt
    #[arg(long, value_name = "TEXT")]
    personality: Option<String>,

    /// The sampling temperature, 0 to 1; 0.7 unless given
    #[arg(long, value_name = "T")]
    temperature: Option<f64>,

    /// The most tokens of an answer; 1000 unless given
    #[arg(long, value_name = "N")]
    max_tokens: Option<u32>,

    /// The most tokens of history in a prompt; 15000 unless given
    #[arg(long, value_name = "N")]
    max_history_tokens: Option<u32>,

    /// After how many days without an interaction a context expires; 7 unless given
    #[arg(long, value_name = "DAYS")]
    expiry_days: Option<u32>,
}

impl Traits {
    /// The change that these options describe.
    pub(crate) fn change(self) -> Result<PersonaChange, Failure> {
        let system_prompt = match self.system_prompt_file {
            Some(file) => Some(read(&file)?),
            None => self.system_prompt,
        };
        Ok(PersonaChange {
            system_prompt,
            personality: self.personality,
            temperature: self.temperature,
            max_tokens: self.max_tokens,
            max_history_tokens: self.max_history_tokens,
            expiry_days: self.expiry_days,
        })
    }
}

fn read(file: &Path) -> Result<String, Failure> {
    let mut text = String::new();
    let done = match file == Path::new("-") {
        true => io::stdin().lock().take(LONGEST).read_to_string(&mut text),
        false => File::open(file).and_then(|file| file.take(LONGEST).read_to_string(&mut text)),
    };
    done.map_err(|error| {
        let what = format!("the system prompt in {} cannot be read: {error}", file.display());
        Failure::input(what, "name a text file in UTF-8, or give the text with --system-prompt")
    })?;
    Ok(without_line_end(&text).to_string())
}

/// A new persona with these fields. `what` needs it, and `help` says where it may come from instead.
pub(crate) fn own(change: &PersonaChange, what: &str, help: &str) -> Result<Persona, Failure> {
    let prompt = change.system_prompt.clone().ok_or_else(|| Failure::input(what, help))?;
    let mut persona = Persona::new(prompt);
    change.apply(&mut persona);
    Ok(persona)
}

/// A persona in JSON.
pub(crate) fn persona_row(persona: &Persona) -> Object {
    object!(
        "systemPrompt": persona.system_prompt, "personality": persona.personality,
        "temperature": persona.temperature, "maxTokens": persona.max_tokens,
        "maxHistoryTokens": persona.max_history_tokens, "expiryDays": persona.expiry_days,
    )
}

/// One line for a field that is shown completely.
pub(crate) fn row(name: &str, value: &str) -> io::Result<()> {
    output::line(format!("{DIM}{name:<18}{DIM:#} {}", output::one_line(value)))
}

/// Shows a persona as text.
pub(crate) fn show_persona(persona: &Persona) -> io::Result<()> {
    row("temperature", &persona.temperature.to_string())?;
    row("max-tokens", &persona.max_tokens.to_string())?;
    row("max-history-tokens", &persona.max_history_tokens.to_string())?;
    row("expiry-days", &persona.expiry_days.to_string())?;
    words("personality", &persona.personality)?;
    words("system-prompt", &persona.system_prompt)
}

/// Shows a text, which may have many lines.
fn words(name: &str, words: &str) -> io::Result<()> {
    if words.trim().is_empty() {
        return row(name, "none");
    }
    let words = output::printable(words).replace('\n', "\n    ");
    output::line(format!("{DIM}{name}{DIM:#}\n    {words}"))
}
