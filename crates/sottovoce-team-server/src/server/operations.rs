//! What each route does, once the caller is known

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use hyper::body::Incoming;
use serde::de::DeserializeOwned;
use sottovoce_net::{Body, Client, Held, pieces};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use crate::api::{
    AcceptInvitation, Append, ChangeMember, CreateInvitation, CreateOrganisation, CreateToken,
    Level, MAX_ARTIFACT, MAX_BODY, Page, Role, SetGrant,
};
use crate::error::{Error, Result};
use crate::server::handler::Handler;
use crate::server::query::Query;
use crate::server::reply::{json, nothing, whole};
use crate::server::routes::{Ids, Operation};
use crate::team::{Caller, Export, Needs, Permit, check_profile};

/// The most bytes of a request that appends no records.
const SMALL: usize = 128 << 10;

/// The most bytes of a request that anybody may send.
const OF_STRANGERS: usize = 4 << 10;

/// How many pieces of an export wait for a client that reads slowly.
const PIECES: usize = 2;

impl Handler {
    pub(super) async fn create_organisation(
        &self,
        client: &Client,
        request: Request<Incoming>,
    ) -> Result<Response<Body>> {
        let (body, _): (CreateOrganisation, _) = body(client, request, SMALL).await?;
        check_profile(body.profile.as_ref())?;
        Ok(json(StatusCode::CREATED, &self.team.create_organisation(body.profile).await?))
    }

    pub(super) async fn accept(
        &self,
        client: &Client,
        request: Request<Incoming>,
    ) -> Result<Response<Body>> {
        let (body, _): (AcceptInvitation, _) = body(client, request, OF_STRANGERS).await?;
        check_profile(body.profile.as_ref())?;
        Ok(json(StatusCode::CREATED, &self.team.accept(body).await?))
    }

    pub(super) async fn operate(
        &self,
        operation: Operation,
        ids: Ids,
        caller: Caller,
        client: &Client,
        request: Request<Incoming>,
    ) -> Result<Response<Body>> {
        let team = &self.team;
        let query = Query::parse(request.uri().query())?;
        let is_own = ids.other == Some(caller.member);
        let permit = caller.permit(needs(operation, is_own))?;
        let ok = StatusCode::OK;
        match operation {
            Operation::Organisation => Ok(json(ok, &team.organisation(&permit).await?)),
            Operation::Members => Ok(json(ok, &team.members(&permit).await?)),
            Operation::ChangeMember => {
                let member = ids.other("member")?;
                let (body, _): (ChangeMember, _) = body(client, request, SMALL).await?;
                team.change_member(&permit, member, body).await.map(nothing)
            }
            Operation::RemoveMember => {
                team.remove_member(&permit, ids.other("member")?).await.map(nothing)
            }
            Operation::Invite => {
                let (body, _): (CreateInvitation, _) = body(client, request, SMALL).await?;
                Ok(json(StatusCode::CREATED, &team.invite(&permit, &body).await?))
            }
            Operation::Invitations => Ok(json(ok, &team.invitations(&permit).await?)),
            Operation::Withdraw => {
                team.withdraw(&permit, ids.other("invitation")?).await.map(nothing)
            }
            Operation::IssueToken => {
                let (body, _): (CreateToken, _) = body(client, request, SMALL).await?;
                Ok(json(StatusCode::CREATED, &team.issue_token(&permit, &body).await?))
            }
            Operation::Tokens => Ok(json(ok, &team.tokens(&permit).await?)),
            Operation::RevokeToken => {
                team.revoke_token(&permit, ids.other("token")?).await.map(nothing)
            }
            Operation::Audit => Ok(json(ok, &team.audit(&permit, query.after, query.limit).await?)),
            Operation::Export => Ok(self.export(Export::begin(team.clone(), permit).await?)),
            Operation::CreateConversation => {
                Ok(json(StatusCode::CREATED, &team.create_conversation(&permit).await?))
            }
            Operation::Conversations => self.conversations(permit, query).await,
            _ => self.operate_in_conversation(operation, ids, permit, query, client, request).await,
        }
    }

    async fn operate_in_conversation(
        &self,
        operation: Operation,
        ids: Ids,
        permit: Permit,
        query: Query,
        client: &Client,
        request: Request<Incoming>,
    ) -> Result<Response<Body>> {
        let team = &self.team;
        match operation {
            Operation::Read => self.page(&permit, query).await,
            Operation::Changes => self.changes(permit, query).await,
            Operation::Append => self.append(&permit, client, request).await,
            Operation::DeleteConversation => team.delete_conversation(&permit).await.map(nothing),
            Operation::Grants => Ok(json(StatusCode::OK, &team.grants(&permit).await?)),
            Operation::Grant => {
                let member = ids.other("member")?;
                let (body, _): (SetGrant, _) = body(client, request, SMALL).await?;
                team.grant(&permit, member, body.level).await.map(nothing)
            }
            Operation::RevokeGrant => {
                team.revoke_grant(&permit, ids.other("member")?).await.map(nothing)
            }
            Operation::Artifacts => {
                let artifacts = team.artifacts(&permit).await?;
                Ok(json(StatusCode::OK, &serde_json::json!({ "artifacts": artifacts })))
            }
            Operation::PutArtifact => {
                let artifact = ids.other("artifact")?;
                let bytes = client.read(request.into_body(), MAX_ARTIFACT).await;
                let bytes = Bytes::from(bytes.map_err(|error| Error::unread(error, MAX_ARTIFACT))?);
                self.rates.count_bytes(team, &permit.caller, bytes.len()).await?;
                team.put_artifact(&permit, artifact, bytes).await.map(nothing)
            }
            Operation::Artifact => {
                let take = |bytes| Ok(client.take(bytes)?);
                let (bytes, held) = team.artifact(&permit, ids.other("artifact")?, take).await?;
                Ok(whole("application/octet-stream", Body::from(bytes).holding(held)))
            }
            Operation::DeleteArtifact => {
                team.delete_artifact(&permit, ids.other("artifact")?).await.map(nothing)
            }
            _ => Err(Error::NotFound { what: "path" }),
        }
    }

    async fn append(
        &self,
        permit: &Permit,
        client: &Client,
        request: Request<Incoming>,
    ) -> Result<Response<Body>> {
        let (caller, place) = (&permit.caller, permit.place()?);
        let (body, _held): (Append, _) = body(client, request, MAX_BODY).await?;
        let bytes = body.records.iter().map(|record| record.sealed.len()).sum();
        let (records, forgets) =
            (body.records.len(), body.records.iter().any(|record| !record.forgets.is_empty()));
        // Forgetting is allowed also where nothing more may be stored.
        if bytes > 0 {
            self.rates.count_bytes(&self.team, caller, bytes).await?;
        }
        let appended = self.team.append(permit, body).await?;
        self.metrics.count_records(records, bytes);
        self.watch.announce(place.id, i64::try_from(appended.last).ok());
        self.watch.announce(caller.org, None);
        if forgets {
            let team = self.team.clone();
            tokio::spawn(async move { team.after_forgetting().await });
        }
        Ok(json(StatusCode::OK, &appended))
    }

    async fn page(&self, permit: &Permit, query: Query) -> Result<Response<Body>> {
        let place = permit.place()?;
        if place.last > query.after {
            let page = self.pages.read(&self.team, permit, query).await?;
            return Ok(whole("application/json", page));
        }
        // The conversation's row says that there is nothing.
        let page = Page { records: Vec::new(), last: place.last.unsigned_abs() };
        Ok(json(StatusCode::OK, &page))
    }

    /// Waits until there are records after a position.
    async fn changes(&self, mut permit: Permit, query: Query) -> Result<Response<Body>> {
        let deadline = Instant::now() + query.wait;
        let mut place = permit.place()?;
        let mut marks = None;
        while place.last <= query.after && Instant::now() < deadline && !self.stop.is_cancelled() {
            match &mut marks {
                // What is appended until the next look is a change.
                None => marks = Some(self.watch.subscribe(place.id)),
                Some(marks) => self.wait(marks, deadline).await,
            }
            permit = self.team.renew(&permit).await?;
            place = permit.place()?;
        }
        self.page(&permit, query).await
    }

    /// Waits until the list differs from what was seen.
    async fn conversations(&self, mut permit: Permit, query: Query) -> Result<Response<Body>> {
        let deadline = Instant::now() + query.wait;
        let mut marks = self.watch.subscribe(permit.caller.org);
        loop {
            let list = self.team.conversations(&permit).await?;
            let is_old = query.seen == Some(list.seen);
            if !is_old || Instant::now() >= deadline || self.stop.is_cancelled() {
                return Ok(json(StatusCode::OK, &list));
            }
            self.wait(&mut marks, deadline).await;
            permit = self.team.renew(&permit).await?;
        }
    }

    /// Waits for a change, until the deadline or until the server ends.
    async fn wait(&self, marks: &mut watch::Receiver<Option<i64>>, deadline: Instant) {
        tokio::select! {
            _ = marks.changed() => {}
            () = sleep_until(deadline) => {}
            () = self.stop.cancelled() => {}
        }
    }

    fn export(&self, mut export: Export) -> Response<Body> {
        let (pieces, body) = pieces(PIECES);
        let time = self.rates.limits().net.unread;
        tokio::spawn(async move {
            loop {
                match export.next().await {
                    Ok(Some(lines)) => {
                        if !pieces.send(Bytes::from(lines), time).await {
                            return;
                        }
                    }
                    Ok(None) => return pieces.complete(),
                    // The answer breaks off, so that nobody takes it for the whole.
                    Err(error) => return tracing::warn!(%error, "an export broke off"),
                }
            }
        });
        whole("application/x-ndjson", body)
    }
}

/// The JSON of a request, and the memory that it takes. An empty body is an object without members.
async fn body<T: DeserializeOwned>(
    client: &Client,
    request: Request<Incoming>,
    most: usize,
) -> Result<(T, Held)> {
    let read = client.read(request.into_body(), most).await;
    let held = read.map_err(|error| Error::unread(error, most))?;
    let text: &[u8] = if held.is_empty() { b"{}" } else { &held };
    let parsed = serde_json::from_slice(text).map_err(|error| Error::Invalid {
        // The error itself may quote the body.
        what: format!(
            "the body is not the JSON that this request has, at line {} column {}",
            error.line(),
            error.column()
        ),
    })?;
    Ok((parsed, held))
}

/// What an operation needs. Members leave, and take back what they were granted, by themselves.
fn needs(operation: Operation, is_own: bool) -> Needs {
    match operation {
        Operation::Invite | Operation::Invitations | Operation::Withdraw | Operation::Audit => {
            Needs::Role(Role::Admin)
        }
        Operation::RemoveMember if !is_own => Needs::Role(Role::Admin),
        Operation::RevokeGrant if is_own => Needs::Level(Level::Read),
        Operation::DeleteConversation | Operation::Grant | Operation::RevokeGrant => {
            Needs::AdminOr(Level::Manage)
        }
        Operation::Grants => Needs::AdminOr(Level::Read),
        Operation::Read | Operation::Changes | Operation::Artifacts | Operation::Artifact => {
            Needs::Level(Level::Read)
        }
        Operation::Append | Operation::PutArtifact | Operation::DeleteArtifact => {
            Needs::Level(Level::Write)
        }
        _ => Needs::Role(Role::Member),
    }
}
