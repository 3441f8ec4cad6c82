//! A server of teams: `cargo run -p sottovoce-team-server --example team_server -- 127.0.0.1:8473 DATABASE OBJECTS [CERTIFICATE KEY | plain]`
//!
//! DATABASE is a `postgres://` URL, or the path of a SQLite file. OBJECTS is a folder for artifacts and packs, or the address of an object
//! store. If there is no organisation yet, it creates one and prints its first owner. It speaks HTTPS with a certificate and its key, and
//! plain HTTP on loopback, or anywhere if `plain` says so. The operator's token is that of the environment variable `OPERATOR_TOKEN`.

#![allow(clippy::print_stdout, reason = "a program of its own")]

use std::error::Error;

use sottovoce_remote::{Credentials, open};
use sottovoce_team_server::{
    DatabaseOptions, Limits, Rate, Team, listen, listen_plain, listen_tls, open_database, serve,
};
use tokio_util::sync::CancellationToken;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [address, database, objects, transport @ ..] = &arguments[..] else {
        return Err("usage: team_server ADDRESS DATABASE OBJECTS [CERTIFICATE KEY | plain]".into());
    };
    let objects = match objects.contains("://") {
        true => objects.clone(),
        false => {
            std::fs::create_dir_all(objects)?;
            format!("file://{}", std::fs::canonicalize(objects)?.display())
        }
    };
    let objects = open(&objects, &Credentials::from_environment())?;
    let team = Team::new(open_database(database, DatabaseOptions::default()).await?, objects);
    let operator = std::env::var("OPERATOR_TOKEN").ok().map(|token| token.parse()).transpose()?;
    let mut limits = Limits::default();
    if std::env::var_os("UNLIMITED").is_some() {
        let rate = Rate { per_second: 1e9, burst: 1e12 };
        (limits.member_requests, limits.org_requests, limits.strangers) = (rate, rate, rate);
    }
    let address = address.parse()?;
    let (scheme, listening) = match transport {
        [] => ("http", listen(address).await),
        [plain] if plain == "plain" => ("http", listen_plain(address).await),
        [certificate, key] => {
            ("https", listen_tls(address, certificate.as_ref(), key.as_ref()).await)
        }
        _ => return Err("a certificate needs its key".into()),
    };
    let with_help = |error: sottovoce_team_server::Error| match error.help() {
        Some(help) => format!("{error}; {help}"),
        None => error.to_string(),
    };
    let listening = listening.map_err(with_help)?;
    if team.is_empty().await? {
        println!("{}", serde_json::to_string(&team.create_organisation(None).await?)?);
    }
    println!("{scheme}://{}", listening.address());
    let stop = CancellationToken::new();
    let on_signal = stop.clone();
    tokio::spawn(async move {
        drop(tokio::signal::ctrl_c().await);
        on_signal.cancel();
    });
    serve(listening, team, operator, limits, stop).await;
    Ok(())
}
