//! Markdown for people, in the layout of Mimir: a title, facts in bold, the messages, the artifacts.

use std::io::Write;

use crate::error::Result;
use crate::message::ChatMessage;
use crate::store::folder::artifact_files;
use crate::store::read::reader::Reader;
use crate::store::read::record_dump::{self, Body, Part, Record};
use crate::store::read::stats;
use crate::store::{Artifact, Progress};
use crate::transfer::export::exported::{Exported, unwritten};

/// Writes one conversation.
pub(super) fn conversation(
    reader: &Reader,
    part: Part,
    to: &mut dyn Write,
    progress: &dyn Fn(Progress),
) -> Result<Exported> {
    let tail = reader.load(0)?;
    let (artifacts, wrong) = artifact_files::list(&reader.folder, &tail.profile)?;
    let mut done = Exported::default();
    let stats = stats::stats(reader)?;
    let scope = reader.folder.scope.to_string();
    let profile = &tail.profile;
    let title = one_line(profile.title.as_deref().unwrap_or(&scope));
    let mut put = |text: String| to.write_all(text.as_bytes()).map_err(unwritten);
    put(format!("# {title}\n\n**Conversation:** {scope}\n"))?;
    if let Some(created) = profile.created_at.or(stats.first) {
        put(format!("**Created:** {created}\n"))?;
    }
    if let Some(updated) = stats.last {
        put(format!("**Updated:** {updated}\n"))?;
    }
    put(format!("**Messages:** {}\n**Artifacts:** {}\n", stats.message_count, artifacts.len()))?;
    if !profile.tags.is_empty() {
        let tags: Vec<String> = profile.tags.iter().map(|tag| one_line(tag)).collect();
        put(format!("**Tags:** {}\n", tags.join(", ")))?;
    }
    put("\n## Messages\n".to_owned())?;
    let total = usize::try_from(stats.message_count).unwrap_or(usize::MAX);
    done.skipped = record_dump::read(reader, &tail, part, &mut |Record { body, .. }| {
        if let Body::Message(message) = body {
            put(in_words(&message))?;
            done.messages += 1;
            let now = usize::try_from(done.messages).unwrap_or(usize::MAX);
            progress(Progress { done: now, total: total.max(now) });
        }
        Ok(())
    })?;
    done.skipped.extend(wrong);
    if !artifacts.is_empty() {
        put("\n## Artifacts\n\n".to_owned())?;
        artifacts.iter().try_for_each(|artifact| put(listed(artifact)))?;
    }
    put("\n".to_owned())?;
    Ok(done)
}

fn in_words(message: &ChatMessage) -> String {
    let (role, at) = (message.role.as_str(), message.said_at());
    let speaker = message.speaker().map(|name| format!(", {}", one_line(name)));
    let mut text = format!("\n### {role}{} ({at})\n\n", speaker.unwrap_or_default());
    for line in message.content.lines() {
        // A line of a message must not look like a heading.
        if line.trim_start().starts_with('#') {
            text.push('\\');
        }
        text.push_str(line);
        text.push('\n');
    }
    for call in &message.tool_calls {
        text.push_str(&format!("\n`{}({})`\n", one_line(&call.name), call.arguments));
    }
    text
}

fn listed(artifact: &Artifact) -> String {
    format!("- `{}`: {}\n", artifact.id, one_line(&artifact.description()))
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
