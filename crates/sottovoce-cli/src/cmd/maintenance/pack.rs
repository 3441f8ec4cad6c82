//! `sottovoce pack`

use crate::cmd::import::advance;
use crate::exit::{Exit, Outcome};
use crate::interrupt::Interrupt;
use crate::output;
use crate::session::Session;

/// Moves all messages except the newest into packs now, and merges packs
///
/// Appending does this by itself from time to time. Run it after copying in single files, and before a backup: packs
/// are few, and large ones never change. It changes no message, and an interruption loses none.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

pub(crate) async fn run(session: &Session, _: Args) -> Outcome {
    let config = session.config()?;
    let store = session.store(&config).await?;
    let mut interrupt = Interrupt::listen()?;
    let bar = output::progress(Some(0), "packing");
    let packing = store.pack(|progress| advance(&bar, progress));
    let packed = interrupt.or("what was moved stays moved", packing).await?;
    bar.finish_and_clear();
    let packed = packed?;
    if session.json {
        output::json(&packed)?;
    } else {
        output::line(format!(
            "moved {} into packs: {} before, {} now, {:.1} MiB",
            output::messages(packed.moved),
            packed.packs_before,
            packed.packs_after,
            packed.bytes as f64 / f64::from(1 << 20),
        ))?;
    }
    Ok(Exit::Done)
}
