//! Steps on what other devices are told.

use std::collections::BTreeSet;
use std::path::Path;

use sottovoce::exchange::{Exchange, Origin};

use crate::crash::check::ensure;
use crate::crash::house::{block_on, open};
use crate::crash::told::Told;
use crate::task::Result;

/// Checks that others are told of no message that is here, and of all of those that are forgotten together or of none.
/// Returns whether they are told of them, and whether these are here.
pub(crate) fn told_to_others(root: &Path, told: &Told, forgets: &[u64]) -> Result<(bool, bool)> {
    block_on(async {
        let exchange = Exchange::new(open(root, 1).await?);
        let stretch = exchange.messages(0).await?;
        ensure!(stretch.read_to >= stretch.last_seq, "more messages than one stretch");
        let here: BTreeSet<Origin> =
            stretch.messages.iter().map(|stored| stored.message.origin).collect();
        let gone = exchange.forgotten().await?;
        let both: Vec<_> = gone.intersection(&here).collect();
        ensure!(both.is_empty(), "others are told to delete what is here: {both:?}");
        let are_told = gone.len() == forgets.len();
        ensure!(are_told || gone.is_empty(), "others are told of {} messages", gone.len());
        ensure!(are_told || !told.forgot, "others are not told of what was forgotten");
        let are_here = stretch.messages.iter().any(|stored| forgets.contains(&stored.seq));
        Ok((are_told, are_here))
    })
}
