//! Shows the code that lets another device in.

use std::io::{self, IsTerminal};
use std::path::PathBuf;

use anstyle::AnsiColor;
use qrcode::render::unicode::Dense1x2;
use qrcode::{EcLevel, QrCode};
use sottovoce::Config;
use sottovoce_sync::Invitation;

use crate::cmd::share::text;
use crate::exit::Failure;
use crate::output;
use crate::private_file;
use crate::session::Session;

/// Where the code goes.
#[derive(Debug, clap::Args)]
pub(super) struct Target {
    /// Writes the code to a new file that only its owner can read, instead of showing it
    #[arg(long, value_name = "FILE")]
    to: Option<PathBuf>,
}

impl Target {
    /// Refuses a file that cannot be written, before anything is done.
    pub(super) fn check(&self, config: &Config) -> Result<(), Failure> {
        match &self.to {
            Some(file) => private_file::check(file, false, config).map(drop),
            None => Ok(()),
        }
    }

    /// The file, for JSON.
    pub(super) fn file(&self) -> Option<&std::path::Path> {
        self.to.as_deref()
    }

    /// Writes the code to its file, or shows it to people: as text, and on a terminal as a picture too.
    pub(super) fn put(
        &self,
        session: &Session,
        config: &Config,
        invitation: &Invitation,
    ) -> Result<(), Failure> {
        let code = invitation.code();
        if let Some(file) = &self.to {
            text::write(file, &code, config)?;
            output::note(&format!("wrote the code to {}", file.display()));
        } else if !session.json {
            output::line(&*code)?;
            if io::stdout().is_terminal()
                && let Some(picture) = picture(&code)
            {
                output::line(picture)?;
            }
        }
        output::note(
            "anyone who has the code can read everything that is shared: keep it to yourself",
        );
        Ok(())
    }
}

/// A QR code in black on white, whatever colours the terminal has.
fn picture(code: &str) -> Option<String> {
    let style = AnsiColor::BrightWhite.on(AnsiColor::Black);
    let code = QrCode::with_error_correction_level(code, EcLevel::L).ok()?;
    // The terminal's foreground is the paper.
    let (ink, paper) = (Dense1x2::Light, Dense1x2::Dark);
    let picture = code.render::<Dense1x2>().dark_color(ink).light_color(paper).build();
    let lines = picture.lines().map(|line| format!("{style}{line}{style:#}"));
    Some(lines.collect::<Vec<_>>().join("\n"))
}
