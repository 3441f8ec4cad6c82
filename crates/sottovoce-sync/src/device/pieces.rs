//! The contents of artifacts, in pieces of which each is an object

use std::io;

use sottovoce::Scope;
use sottovoce::exchange::{Exchange, ObjectKind};
use sottovoce::store::{Artifact, ArtifactStore};

use crate::device::Device;
use crate::error::SyncResult;
use crate::id::Id;
use crate::piece::{MAX_PIECES, PieceReader, read_piece};
use crate::report::{Problem, SyncReport};
use crate::stream::change::Contents;
use crate::values::ARTIFACT;

impl Device {
    /// Uploads an artifact's contents. `None` if it has been deleted meanwhile, or cannot be read.
    pub(super) async fn upload(
        &self,
        exchange: &Exchange,
        artifact: Artifact,
        report: &mut SyncReport,
    ) -> SyncResult<Option<(Contents, Vec<Id>)>> {
        let opened = match exchange.store().open_artifact(&artifact.id).await {
            Ok(opened) => opened,
            Err(sottovoce::Error::Damaged { .. }) => {
                report.problems.push(Problem::Artifact { id: artifact.id.clone() });
                return Ok(None);
            }
            Err(error) => return Err(error.into()),
        };
        let Some(mut contents) = opened else { return Ok(None) };
        let mut pieces = Vec::new();
        loop {
            let (piece, rest) = read_piece(contents).await?;
            contents = rest;
            if piece.is_empty() {
                break;
            }
            let object = self.new_id()?;
            self.objects.put(ObjectKind::Piece, self.state.device, object, piece).await?;
            pieces.push(object);
        }
        let device = self.state.device;
        Ok(Some((Contents { artifact, device, pieces: pieces.clone() }, pieces)))
    }

    /// Fetches an artifact. If its contents are not there, it is tried again with the next sync.
    pub(super) async fn fetch(
        &mut self,
        exchange: &Exchange,
        contents: Contents,
        report: &mut SyncReport,
    ) -> SyncResult<()> {
        let scope = exchange.store().scope().to_string();
        let id = contents.artifact.id.clone();
        if contents.pieces.len() > MAX_PIECES {
            report.problems.push(Problem::Artifact { id });
            return Ok(());
        }
        let (sender, reader) = PieceReader::new();
        let adding = exchange.receive_artifact(contents.artifact.clone(), reader);
        let sending = async {
            for object in &contents.pieces {
                let found = self.objects.object(ObjectKind::Piece, contents.device, *object).await;
                let failed = !matches!(found, Ok(Some(_)));
                let piece = match &found {
                    Ok(Some(_)) => found.ok().flatten(),
                    _ => None,
                };
                let piece = piece.ok_or_else(|| io::Error::other("a piece is not there"));
                // The receiver is gone if the artifact is not wanted any more.
                if sender.send(piece).await.is_err() || failed {
                    break;
                }
            }
            drop(sender);
        };
        let (added, ()) = tokio::join!(adding, sending);
        match added {
            Ok(()) => {
                let name = format!("{ARTIFACT}{id}");
                self.note_values(exchange.store().scope(), exchange, [name]).await?;
                report.artifacts += 1;
            }
            Err(sottovoce::Error::Io { .. }) => {
                let wanted = self.state.wanted.entry(scope).or_default();
                wanted.insert(id.clone(), contents);
                report.problems.push(Problem::Artifact { id });
            }
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    /// Tries again to fetch the artifacts whose contents were not there.
    pub(super) async fn fetch_wanted(&mut self, report: &mut SyncReport) -> SyncResult<()> {
        let wanted = std::mem::take(&mut self.state.wanted);
        for (text, artifacts) in wanted {
            let Ok(scope) = text.parse::<Scope>() else { continue };
            let exchange = self.exchange(&scope).await?;
            for (_, contents) in artifacts {
                self.fetch(&exchange, contents, report).await?;
            }
        }
        Ok(())
    }
}
