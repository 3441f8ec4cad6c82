//! A conversation as a file, before something of it is forgotten.

use std::io::{self, Write};

use axum::body::Body;
use axum::extract::Form;
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream;
use serde::Deserialize;
use sottovoce::export::{ExportForm, ExportRange, Exporter};
use tokio::sync::mpsc;

use crate::html::download;
use crate::room::Room;

/// How many pieces wait for a browser that reads slowly.
const WAITING: usize = 16;
const PIECE: usize = 32 << 10;

#[derive(Deserialize)]
pub(crate) struct Asked {
    #[serde(default)]
    form: String,
}

pub(crate) async fn export(room: Room, Form(asked): Form<Asked>) -> Response {
    let (form, kind, ending) = match asked.form.as_str() {
        "markdown" => (ExportForm::Markdown, "text/markdown; charset=utf-8", "md"),
        _ => (ExportForm::Json, "application/json", "json"),
    };
    let (sender, receiver) = mpsc::channel(WAITING);
    let (store, failed) = (room.store.clone(), sender.clone());
    tokio::spawn(async move {
        let writer = io::BufWriter::with_capacity(PIECE, Pieces(sender));
        let mut exporter = Exporter::to_writer(form, writer);
        let exported = async {
            exporter.add(&store, ExportRange::default(), |_| {}).await?;
            exporter.finish().await
        };
        if let Err(error) = exported.await {
            tracing::warn!(%error, "an export was broken off");
            // The browser must not take what it has for the whole.
            let _ = failed.send(Err(io::Error::other("the export failed"))).await;
        }
    });
    let day = room.here.app.house.clock().now().date();
    let pieces = stream::unfold(receiver, |mut receiver| async move {
        receiver.recv().await.map(|piece| (piece, receiver))
    });
    download(kind, &format!("sottovoce-{day}.{ending}"), Body::from_stream(pieces))
}

/// Hands on what the export writes on its blocking thread.
struct Pieces(mpsc::Sender<io::Result<Bytes>>);

impl Write for Pieces {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let piece = Bytes::copy_from_slice(bytes);
        self.0.blocking_send(Ok(piece)).map_err(|_| io::ErrorKind::BrokenPipe)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
