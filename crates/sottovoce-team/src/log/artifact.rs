//! Artifacts: their contents go to the server in sealed pieces, and come from there when somebody opens them

use sottovoce::exchange::{Exchange, ObjectKind};
use sottovoce::store::Artifact;
use sottovoce::{Error, Scope};
use sottovoce_sync::{Piece, SyncError, receive_pieces, send_pieces};
use sottovoce_team_api::Id;

use crate::error::{TeamError, TeamResult};
use crate::log::Log;
use crate::log::contents::{ArtifactPieces, Keys, new_id};
use crate::teams::Teams;

/// What became of an artifact that was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FetchedArtifact {
    /// It is here now, and was not before.
    Fetched,
    /// No team has it, as far as is known here.
    Unknown,
    /// The server does not have all of it, or has other contents under its name.
    Incomplete,
}

impl Log<'_> {
    /// Uploads an artifact's contents. `None` if it was deleted meanwhile or cannot be read: it is tried again with the next
    /// change.
    pub(crate) async fn upload(&self, artifact: Artifact) -> TeamResult<Option<ArtifactPieces>> {
        let put = |piece: Piece| async move {
            let id = new_id()?;
            let sealed = self.keys.seal_bytes(ObjectKind::Piece, &id.to_string(), &piece)?;
            self.server.put_bytes(&self.piece_path(id), &sealed).await?;
            TeamResult::Ok(id)
        };
        match send_pieces(self.exchange, &artifact.id, put).await {
            Ok(pieces) => Ok(pieces.map(|pieces| ArtifactPieces { artifact, pieces })),
            Err(TeamError::Sync(SyncError::Store(Error::Damaged { .. }))) => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(crate) fn piece_path(&self, piece: Id) -> String {
        format!("{}/artifacts/{piece}", self.path())
    }

    /// Fetches an artifact's contents and stores them. Returns whether they were there.
    async fn fetch(&self, described: &ArtifactPieces) -> TeamResult<bool> {
        let get = |id: Id| async move {
            let sealed = self.server.get_bytes(&self.piece_path(id)).await?;
            let open =
                |sealed: Vec<u8>| self.keys.open_bytes(ObjectKind::Piece, &id.to_string(), &sealed);
            TeamResult::Ok(sealed.and_then(open))
        };
        receive_pieces(self.exchange, &described.artifact, &described.pieces, get).await
    }
}

impl Teams {
    /// Fetches an artifact that a member has added and that is not here yet.
    ///
    /// # Errors
    /// Those of the server and of adding an artifact.
    pub async fn fetch_artifact(&self, scope: &Scope, id: &str) -> TeamResult<FetchedArtifact> {
        let (root, mut state, _lock) = self.locked().await?;
        let unknown = Ok(FetchedArtifact::Unknown);
        let Ok((team, conversation, shared)) = state.shared_as(scope) else { return unknown };
        let mut shared = shared.clone();
        let Some(described) = shared.artifacts.remove(id) else { return unknown };
        let membership = state.membership(team)?;
        let (server, device) = (&self.server_of(membership)?, membership.device);
        let exchange = &Exchange::new(self.open(scope).await?);
        let keys = &Keys::new(conversation, &shared.keys)?;
        let log = Log { server, team, id: conversation, device, keys, exchange };
        if !log.fetch(&described).await? {
            return Ok(FetchedArtifact::Incomplete);
        }
        state.set(team, conversation, shared);
        state.write(&root).await?;
        Ok(FetchedArtifact::Fetched)
    }

    /// Fetches all artifacts that are not here yet, and returns how many came. Those that are not completely at the server are
    /// left for another time.
    ///
    /// # Errors
    /// Those of [`fetch_artifact`](Self::fetch_artifact).
    pub async fn fetch_artifacts(&self) -> TeamResult<usize> {
        let mut fetched = 0;
        for team in self.state().await?.teams.values() {
            for shared in team.conversations.values() {
                for id in shared.artifacts.keys() {
                    match self.fetch_artifact(&shared.scope()?, id).await {
                        Ok(FetchedArtifact::Fetched) => fetched += 1,
                        Ok(_) => {}
                        Err(TeamError::NotAMember { .. }) => break,
                        Err(error) => return Err(error),
                    }
                }
            }
        }
        Ok(fetched)
    }
}
