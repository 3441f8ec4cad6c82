//! Describes what a deletion affects.

use std::io;
use std::ops::RangeInclusive;

use sottovoce::store::{ForgetPlan, ForgetReport, merged_ranges};
use sottovoce::{ConversationStore, FileConversationStore};

use crate::advice::FindingRow;
use crate::exit::Failure;
use crate::output::{self, DIM, object};

/// The announcement: "delete 2 messages (1 asked for, 1 original) for ever; also take them out of 1 snapshot".
pub(crate) fn deed(whose: &str, plan: &ForgetPlan) -> String {
    let messages = output::messages(plan.message_count());
    let lost = output::counted(plan.lost, "number");
    let deed = match (plan.message_count() > 0 || !whose.is_empty(), plan.lost > 0) {
        (true, false) => format!("delete {whose}{messages}{} for ever", kinds(plan)),
        (true, true) => {
            format!("delete {whose}{messages}{} for ever and record {lost} as gone", kinds(plan))
        }
        (false, _) => format!("record {lost} as gone"),
    };
    let mut also = also(plan);
    if plan.is_whole() && plan.keeps_context {
        also.push("keep the context with its name, its personality and its limits".to_owned());
    }
    if also.is_empty() { deed } else { format!("{deed}; also {}", also.join(", ")) }
}

/// " (1 asked for, 1 original)"; empty if all were asked for.
pub(crate) fn kinds(plan: &ForgetPlan) -> String {
    let copies = if plan.copies.len() == 1 { "restored copy" } else { "restored copies" };
    let originals = if plan.originals.len() == 1 { "original" } else { "originals" };
    let kinds = [
        (plan.messages.len(), "asked for"),
        (plan.answers.len(), if plan.answers.len() == 1 { "answer" } else { "answers" }),
        (plan.originals.len(), originals),
        (plan.copies.len(), copies),
        (plan.hidden.len(), "over the limits"),
    ];
    if plan.messages.len() == plan.message_count() {
        return String::new();
    }
    let kinds = kinds.iter().filter(|(number, _)| *number > 0);
    let kinds: Vec<String> = kinds.map(|(number, kind)| format!("{number} {kind}")).collect();
    format!(" ({})", kinds.join(", "))
}

/// What is deleted besides messages.
fn also(plan: &ForgetPlan) -> Vec<String> {
    let parts = [
        (plan.changed_snapshots.len(), "take them out of", "snapshot"),
        (plan.deleted_snapshots.len(), "delete", "snapshot"),
        (plan.closed_snapshots.len(), "record as unreadable", "snapshot"),
        (plan.artifacts.len(), "delete", "artifact"),
        (plan.backups.len(), "delete", "daily backup"),
    ];
    let parts = parts.iter().filter(|(number, ..)| *number > 0);
    let mut also: Vec<String> = parts
        .map(|(number, deed, what)| format!("{deed} {}", output::counted(*number as u64, what)))
        .collect();
    if plan.summaries > 0 {
        also.push(format!("withdraw {}", summaries(plan)));
    }
    if plan.proposed_title {
        also.push("take away the title that the model proposed".to_owned());
    }
    if plan.description {
        also.push(match plan.keeps_context {
            true => "take away its tags and notes".to_owned(),
            false => "take away its title, tags and notes".to_owned(),
        });
    }
    also
}

fn summaries(plan: &ForgetPlan) -> String {
    let what = if plan.summaries == 1 { "summary" } else { "summaries" };
    format!("{} {what}", plan.summaries)
}

/// Shows every message that will be deleted, unless it must not be shown.
pub(crate) async fn show(store: &FileConversationStore, plan: &ForgetPlan) -> Result<(), Failure> {
    messages(store, &plan.messages).await?;
    let (one, many) = ("and the answer to it:", "and the answers to that:");
    for (numbers, heading) in [
        (&plan.answers, if plan.message_count() == 2 { one } else { many }),
        (&plan.originals, "and what these are restored copies of:"),
        (&plan.copies, "and what was restored of the same from snapshots:"),
    ] {
        if !numbers.is_empty() {
            output::line(format!("{DIM}{heading}{DIM:#}"))?;
            messages(store, numbers).await?;
        }
    }
    Ok(())
}

async fn messages(store: &FileConversationStore, numbers: &[u64]) -> Result<(), Failure> {
    let ranges: Vec<RangeInclusive<u64>> = numbers.iter().map(|number| *number..=*number).collect();
    for range in merged_ranges(ranges) {
        for stored in &store.read_seqs(range).await?.messages {
            output::message(stored, false)?;
        }
    }
    Ok(())
}

/// Reports the deletion.
pub(crate) fn done(forgotten: &ForgetReport) {
    let plan = &forgotten.plan;
    output::skipped(&forgotten.left);
    let removed = forgotten.removed.len();
    let gone = forgotten.numbers.saturating_sub(removed as u64);
    let all = |number: usize, what| output::counted(number as u64, what);
    if forgotten.snapshots > 0 {
        output::note(&format!(
            "removed the forgotten messages from {}",
            all(forgotten.snapshots, "snapshot")
        ));
    }
    if plan.summaries > 0 {
        output::note(&format!("withdrew {}", summaries(plan)));
    }
    if removed > 0 || (gone == 0 && forgotten.snapshots == 0) {
        let kinds = if removed == plan.message_count() { kinds(plan) } else { String::new() };
        output::note(&format!("deleted {} for ever{kinds}", output::messages(removed)));
    }
    if !plan.artifacts.is_empty() {
        output::note(&format!("deleted {} for ever", all(plan.artifacts.len(), "artifact")));
    }
    if forgotten.backups > 0 {
        output::note(&format!(
            "deleted {} that held it; the next one is made without",
            all(forgotten.backups, "daily backup")
        ));
    }
    if forgotten.backups < plan.backups.len() {
        output::warning(&format!(
            "not all daily backups could be deleted, and they may hold it: {}",
            plan.backups.join(", ")
        ));
    }
    if gone > 0 && !plan.is_whole() {
        output::note(&format!("recorded {} as gone", output::counted(gone, "number")));
    }
}

/// Reports the deletion in JSON.
pub(crate) fn json(forgotten: &ForgetReport) -> io::Result<()> {
    let plan = &forgotten.plan;
    output::json(&object!(
        // How many numbers are newly recorded as deleted, with or without a message.
        "numbers": forgotten.numbers, "removed": forgotten.removed,
        // How many messages were asked for, and how many others there are by reason.
        "asked": plan.messages.len(), "answers": plan.answers.len(), "originals": plan.originals.len(),
        "copies": plan.copies.len(), "overLimits": plan.hidden.len(),
        // How many snapshots were changed and deleted.
        "snapshots": forgotten.snapshots, "snapshotsDeleted": plan.deleted_snapshots.len(),
        "summaries": plan.summaries, "artifacts": plan.artifacts.len(),
        "backups": forgotten.backups,
        "left": FindingRow::all(&forgotten.left),
    ))
}
