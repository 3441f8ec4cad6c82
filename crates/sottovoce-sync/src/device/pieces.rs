//! The contents of artifacts, in pieces of which each is an object

use sottovoce::Scope;
use sottovoce::exchange::{Exchange, ObjectKind};
use sottovoce::store::Artifact;

use crate::device::Device;
use crate::device::collect::removal;
use crate::error::{SyncError, SyncResult};
use crate::id::Id;
use crate::piece::{MAX_PIECES, Piece, receive_pieces, send_pieces};
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
        let device = self.state.device;
        let put = |piece: Piece| async move {
            let object = self.new_id()?;
            self.objects.put(ObjectKind::Piece, device, object, piece).await?;
            SyncResult::Ok(object)
        };
        let pieces = match send_pieces(exchange, &artifact.id, put).await {
            Err(SyncError::Store(sottovoce::Error::Damaged { .. })) => {
                report.problems.push(Problem::Artifact { id: artifact.id.clone() });
                None
            }
            sent => sent?,
        };
        Ok(pieces.map(|pieces| (Contents { artifact, device, pieces: pieces.clone() }, pieces)))
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
        let (objects, device) = (&self.objects, contents.device);
        let get = |object: Id| async move {
            let found = objects.object(ObjectKind::Piece, device, object).await;
            SyncResult::Ok(found.ok().flatten())
        };
        if receive_pieces(exchange, &contents.artifact, &contents.pieces, get).await? {
            let name = format!("{ARTIFACT}{id}");
            self.note_values(exchange.store().scope(), exchange, [name]).await?;
            report.artifacts += 1;
            return Ok(());
        }
        // No device publishes more pieces than that.
        if contents.pieces.len() <= MAX_PIECES {
            let removed = removal(self.removed_at(exchange.store().scope()).await?);
            let wanted = self.state.wanted.entry(scope).or_default();
            wanted.insert(id.clone(), (contents, removed));
        }
        report.problems.push(Problem::Artifact { id });
        Ok(())
    }

    /// Tries again to fetch the artifacts whose contents were not there.
    pub(super) async fn fetch_wanted(&mut self, report: &mut SyncReport) -> SyncResult<()> {
        let wanted = std::mem::take(&mut self.state.wanted);
        for (text, artifacts) in wanted {
            let Ok(scope) = text.parse::<Scope>() else { continue };
            let exchange = self.exchange(&scope).await?;
            let removed = removal(self.removed_at(&scope).await?);
            // What was forgotten with the conversation is not fetched, and others are to hear that it is gone.
            let left = artifacts.into_values().filter(|(_, before)| *before == removed);
            for (contents, _) in left {
                self.fetch(&exchange, contents, report).await?;
            }
        }
        Ok(())
    }
}
