//! An artifact: what it is, its text page by page, and its contents as a file.

use std::io::Read;

use axum::body::Body;
use axum::extract::Query;
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream;
use http::header::CONTENT_LENGTH;
use maud::{Markup, html};
use serde::Deserialize;
use sottovoce::store::{Artifact, ArtifactContents, ArtifactLines, find_artifact};

use crate::english as en;
use crate::failure::Failure;
use crate::html::{
    BESIDE, Place, Shell, brief, counted, download, fitting, layout, moment, one_line, size,
};
use crate::link;
use crate::room::Room;

/// How many lines and bytes one page shows.
const LINES: u64 = 400;
const BYTES: usize = 60 << 10;
/// The most bytes of one entry of its metadata.
const ENTRY: usize = 400;
/// How many bytes are read at once.
const CHUNK: usize = 64 << 10;

#[derive(Deserialize)]
pub(crate) struct Asked {
    id: String,
    /// The first line, from 1.
    #[serde(default)]
    from: u64,
}

pub(crate) async fn show(room: Room, Query(asked): Query<Asked>) -> Result<Markup, Failure> {
    let contents = open(&room, &asked.id).await?;
    let artifact = contents.artifact().clone();
    let from = asked.from.max(1);
    let lines = match artifact.is_text() {
        true => Some(lines(contents, from).await?),
        false => None,
    };
    let shell = Shell::of(Place::Outside, en::ARTIFACT, &room.scope, room.title());
    Ok(layout(&room.here.visit, &shell, &page(&room, &artifact, lines.as_ref())))
}

fn page(room: &Room, artifact: &Artifact, lines: Option<&ArtifactLines>) -> Markup {
    let (scope, zone) = (&room.scope, room.zone());
    let entries = fitting(2 * BESIDE, &artifact.metadata, |(name, value)| {
        html! { div { dt { bdi { (one_line(name)) } } dd dir="auto" { (brief(value, ENTRY)) } } }
    });
    html! {
        h1 { bdi { (one_line(&artifact.name)) } }
        dl.facts {
            div { dt { (en::KIND) } dd { (one_line(artifact.kind.as_str())) ", " (one_line(&artifact.mime_type)) } }
            div { dt { (en::SIZE) } dd { (size(artifact.size)) @if let Some(lines) = artifact.lines { ", " (counted(lines, en::LINES)) } } }
            div { dt { (en::STORED) } dd { (moment(artifact.created_at, &zone)) } }
            div { dt { (en::REFERENCE) } dd { code { (artifact.reference()) } } }
            @for entry in &entries.shown { (entry) }
        }
        @if entries.left > 0 { p.muted { (en::and_more(entries.left)) } }
        p { a.button href=(link::with("contents", scope, &[("id", &artifact.id)])) download="" { (en::SAVE_FILE) } }
        @if let Some(lines) = lines {
            pre.artifact tabindex="0" dir="auto" { (lines.text.as_str()) }
            p.pages {
                (en::lines_shown(lines.first, lines.last))
                @if lines.has_more {
                    " · " a href=(link::with("artifact", scope, &[("id", &artifact.id), ("from", &(lines.last + 1).to_string())])) { (en::NEXT_LINES) }
                }
            }
        } @else {
            p.muted { (en::NOT_TEXT) }
        }
    }
}

async fn open(room: &Room, id: &str) -> Result<ArtifactContents, Failure> {
    let store: &dyn sottovoce::ConversationStore = &room.store;
    let id = find_artifact(store, id).await?;
    let opened = match store.artifact_store() {
        Some(artifacts) => artifacts.open_artifact(&id).await?,
        None => None,
    };
    opened.ok_or(Failure::NotFound(en::NO_SUCH_ARTIFACT))
}

async fn lines(contents: ArtifactContents, from: u64) -> Result<ArtifactLines, Failure> {
    let read = tokio::task::spawn_blocking(move || contents.lines(from, LINES, BYTES)).await;
    read.ok().and_then(Result::ok).ok_or(Failure::NotFound(en::ARTIFACT_DAMAGED))
}

/// The contents as a file.
pub(crate) async fn contents(room: Room, Query(asked): Query<Asked>) -> Result<Response, Failure> {
    let contents = open(&room, &asked.id).await?;
    let artifact = contents.artifact().clone();
    let pieces = stream::unfold(Some(contents), |contents| async move {
        let mut contents = contents?;
        let read = tokio::task::spawn_blocking(move || {
            let mut piece = vec![0; CHUNK];
            let read = contents.read(&mut piece)?;
            piece.truncate(read);
            Ok::<_, std::io::Error>((piece, contents))
        });
        match read.await {
            Ok(Ok((piece, contents))) if !piece.is_empty() => {
                Some((Ok(Bytes::from(piece)), Some(contents)))
            }
            Ok(Ok(_)) => None,
            Ok(Err(error)) => Some((Err(error), None)),
            Err(_) => Some((Err(std::io::ErrorKind::Interrupted.into()), None)),
        }
    });
    let contents = ([(CONTENT_LENGTH, artifact.size)], Body::from_stream(pieces));
    Ok(download("application/octet-stream", &file_name(&artifact.name), contents))
}

/// A name that is safe in a header and as a file: the last part of a path, with nothing but plain characters.
fn file_name(name: &str) -> String {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
    let name: String = last.chars().map(plain).take(100).collect();
    match name.trim_start_matches('.') {
        "" => "artifact".to_owned(),
        name => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_name_leads_nowhere_and_ends_no_header() {
        for (name, safe) in [
            ("../../.ssh/id", "id"),
            ("a\"; evil=\"\r\nx", "a___evil____x"),
            (".bashrc", "bashrc"),
            ("", "artifact"),
            ("каша.txt", "____.txt"),
        ] {
            assert_eq!(file_name(name), safe);
        }
    }
}
