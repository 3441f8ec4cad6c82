//! A server of teams: `cargo run -p sottovoce-http --example team_server -- 127.0.0.1:8473 DATABASE FOLDER`
//!
//! DATABASE is a `postgres://` URL, or the path of a SQLite file. FOLDER holds artifacts and packs. If there is no organisation yet,
//! it creates one and prints its first owner. The operator's token is that of the environment variable `OPERATOR_TOKEN`.

#![allow(clippy::print_stdout, reason = "a program of its own")]

use std::error::Error;

use sottovoce_http::{DatabaseOptions, Limits, Rate, Team, listen, open_database, serve};
use sottovoce_sync::{Credentials, open};
use tokio_util::sync::CancellationToken;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    let mut arguments = std::env::args().skip(1);
    let (Some(address), Some(database), Some(folder)) =
        (arguments.next(), arguments.next(), arguments.next())
    else {
        return Err("usage: team_server ADDRESS DATABASE FOLDER".into());
    };
    std::fs::create_dir_all(&folder)?;
    let folder = std::fs::canonicalize(folder)?;
    let objects = open(&format!("file://{}", folder.display()), &Credentials::from_environment())?;
    let team = Team::new(open_database(&database, DatabaseOptions::default()).await?, objects);
    let operator = std::env::var("OPERATOR_TOKEN").ok().map(|token| token.parse()).transpose()?;
    let mut limits = Limits::default();
    if std::env::var_os("UNLIMITED").is_some() {
        let rate = Rate { per_second: 1e9, burst: 1e12 };
        (limits.member_requests, limits.org_requests, limits.strangers) = (rate, rate, rate);
    }
    if team.is_empty().await? {
        println!("{}", serde_json::to_string(&team.create_organisation(None).await?)?);
    }
    let listening = listen(address.parse()?).await?;
    println!("http://{}", listening.address());
    let stop = CancellationToken::new();
    let on_signal = stop.clone();
    tokio::spawn(async move {
        drop(tokio::signal::ctrl_c().await);
        on_signal.cancel();
    });
    serve(listening, team, operator, limits, stop).await;
    Ok(())
}
