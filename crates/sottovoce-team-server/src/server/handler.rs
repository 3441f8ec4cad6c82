//! Answers requests: finds the route, the caller and the limits, and turns errors into answers

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, Request, Response, StatusCode};
use hyper::body::Incoming;
use sottovoce_net::{Body, Client, OPEN_METRICS, bearer, network, same};
use tokio::sync::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::api::Secret;
use crate::error::{Error, Result};
use crate::server::limits::Limits;
use crate::server::metrics::Metrics;
use crate::server::pages::Pages;
use crate::server::rates::Rates;
use crate::server::reply::{json, not_allowed, problem, whole};
use crate::server::routes::{Found, Ids, Operation, find};
use crate::server::watch::Watch;
use crate::team::{Caller, Team};

/// The description of the interface.
const DESCRIPTION: &str = include_str!("../../openapi.json");

/// What all requests share.
#[derive(Debug)]
pub(super) struct Handler {
    pub(super) team: Team,
    operator: Option<Secret>,
    pub(super) rates: Rates,
    pub(super) metrics: Metrics,
    pub(super) watch: Watch,
    pub(super) pages: Pages,
    /// When the database was last asked about health, and whether it answered.
    healthy: Mutex<Option<(Instant, bool)>>,
    /// Cancelled when the server ends.
    pub(super) stop: CancellationToken,
}

impl Handler {
    pub(super) fn new(
        team: Team,
        operator: Option<Secret>,
        limits: Limits,
        stop: CancellationToken,
    ) -> Self {
        Self {
            team,
            operator,
            rates: Rates::new(limits),
            metrics: Metrics::default(),
            watch: Watch::new(limits.look),
            pages: Pages::default(),
            healthy: Mutex::default(),
            stop,
        }
    }

    pub(super) async fn answer(
        self: Arc<Self>,
        request: Request<Incoming>,
        client: Client,
    ) -> Response<Body> {
        client.admit();
        let began = Instant::now();
        let (response, may_wait) = match find(request.method(), request.uri().path()) {
            Found::Nothing => (problem(&Error::NotFound { what: "path" }), false),
            Found::Methods(methods) => (not_allowed(&methods), false),
            Found::Route(operation, ids) => {
                let answered = self.route(operation, ids, request, &client).await;
                let answered = answered.and_then(|answer| Ok(client.hold(answer)?));
                let may_wait = matches!(operation, Operation::Changes | Operation::Conversations);
                (answered.unwrap_or_else(|error| failed(operation, &error)), may_wait)
            }
        };
        self.metrics.count_answer(response.status());
        if !may_wait {
            self.metrics.count_time(began.elapsed());
        }
        response
    }

    async fn route(
        &self,
        operation: Operation,
        ids: Ids,
        request: Request<Incoming>,
        client: &Client,
    ) -> Result<Response<Body>> {
        let peer = self.peer(request.headers(), client);
        match operation {
            Operation::Health => self.health().await,
            Operation::Description => Ok(whole("application/json", DESCRIPTION)),
            Operation::Metrics => {
                self.check_operator(request.headers(), peer)?;
                let text = self.metrics.text(self.team.database().load(), self.watch.waiting());
                Ok(whole(OPEN_METRICS, text))
            }
            Operation::CreateOrganisation => {
                self.check_operator(request.headers(), peer)?;
                self.create_organisation(client, request).await
            }
            Operation::Accept => match self.accept(client, request).await {
                // Whoever has an invitation does not wait for those who guess at the same address.
                Err(error @ Error::NotFound { .. }) => {
                    self.rates.count_stranger(peer)?;
                    Err(error)
                }
                accepted => accepted,
            },
            _ => {
                let caller = self.caller(request.headers(), ids, peer).await?;
                self.rates.count_request(&caller)?;
                if ids.org != Some(caller.org) {
                    return Err(Error::NotFound { what: "organisation" });
                }
                self.operate(operation, ids, caller, client, request).await
            }
        }
    }

    /// The address to count, as the proxy in front tells it if there is one.
    fn peer(&self, headers: &HeaderMap, client: &Client) -> IpAddr {
        let told = headers.get_all("x-forwarded-for").iter().next_back();
        // The proxy adds the last one. What comes before may be of the client's own making.
        let told = told.filter(|_| self.rates.limits().is_behind_proxy);
        let last =
            told.and_then(|told| told.to_str().ok()?.rsplit(',').next()?.trim().parse().ok());
        network(last.unwrap_or_else(|| client.address()))
    }

    /// Who asks. What is asked without a valid token is counted by address.
    async fn caller(&self, headers: &HeaderMap, ids: Ids, peer: IpAddr) -> Result<Caller> {
        let found = match token(headers) {
            Some(token) => self.team.caller(&token, ids.conversation).await,
            None => Err(Error::Unauthorized),
        };
        if matches!(found, Err(Error::Unauthorized)) {
            self.rates.count_stranger(peer)?;
        }
        found
    }

    fn check_operator(&self, headers: &HeaderMap, peer: IpAddr) -> Result<()> {
        let is_operator = self
            .operator
            .as_ref()
            .zip(token(headers))
            .is_some_and(|(operator, token)| same(operator.as_bytes(), token.as_bytes()));
        if is_operator {
            return Ok(());
        }
        self.rates.count_stranger(peer)?;
        Err(Error::Unauthorized)
    }

    async fn health(&self) -> Result<Response<Body>> {
        let told = |status, state| Ok(json(status, &serde_json::json!({ "state": state })));
        if self.stop.is_cancelled() {
            return told(StatusCode::SERVICE_UNAVAILABLE, "stopping");
        }
        // Anybody may ask, and the database is asked once a second, whatever it says.
        let mut known = self.healthy.lock().await;
        if known.is_none_or(|(at, _)| at.elapsed() > Duration::from_secs(1)) {
            let asked = self.team.is_empty().await;
            let asked = asked.inspect_err(|error| tracing::warn!(%error, "the database fails"));
            *known = Some((Instant::now(), asked.is_ok()));
        }
        match *known {
            Some((_, true)) => told(StatusCode::OK, "ready"),
            _ => Err(Error::Unavailable),
        }
    }
}

fn failed(operation: Operation, error: &Error) -> Response<Body> {
    let response = problem(error);
    if response.status().is_server_error() {
        tracing::warn!(?operation, %error, "a request failed");
    }
    response
}

/// The token of a request.
fn token(headers: &HeaderMap) -> Option<Secret> {
    bearer(headers)?.parse().ok()
}
