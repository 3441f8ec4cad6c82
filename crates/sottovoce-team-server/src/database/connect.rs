//! The pool of connections to PostgreSQL

use std::str::FromStr;

use deadpool_postgres::{Manager, ManagerConfig, Pool, RecyclingMethod, Runtime};
use sottovoce::http::tls_config;
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::{Config, NoTls};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::database::options::DatabaseOptions;
use crate::error::{Error, Result};

/// A pool of connections that are opened when they are needed.
pub(super) fn pool(address: &str, options: DatabaseOptions) -> Result<Pool> {
    // What is wrong with it is not shown: it may contain a password.
    let mut config = Config::from_str(address).map_err(|_| Error::DatabaseAddress {
        reason: "is not a URL that PostgreSQL's clients understand",
    })?;
    if config.get_dbname().is_none() {
        return Err(Error::DatabaseAddress { reason: "names no database" });
    }
    config.application_name("sottovoce");
    config.connect_timeout(options.wait.max(std::time::Duration::from_secs(1)));
    // A server that has vanished is noticed.
    config.keepalives_idle(options.statement);
    config.tcp_user_timeout(options.statement);
    let milliseconds = options.statement.as_millis();
    let server = config.get_options().unwrap_or_default();
    config.options(format!(
        "{server} -c statement_timeout={milliseconds} -c idle_in_transaction_session_timeout={milliseconds}"
    ));
    let fast = ManagerConfig { recycling_method: RecyclingMethod::Fast };
    let is_near = config.get_hosts().iter().all(is_near);
    let manager = match config.get_ssl_mode() {
        SslMode::Disable => Manager::from_config(config, NoTls, fast),
        SslMode::Prefer if is_near => Manager::from_config(config, NoTls, fast),
        _ => {
            config.ssl_mode(SslMode::Require);
            let tls = tls_config().map_err(|_| Error::DatabaseAddress {
                reason: "needs TLS, and this system has no certificates: install them (Debian: ca-certificates)",
            })?;
            Manager::from_config(config, MakeRustlsConnect::new(tls), fast)
        }
    };
    Pool::builder(manager)
        .max_size(options.connections.max(1))
        .wait_timeout(Some(options.wait))
        .create_timeout(Some(options.wait.max(std::time::Duration::from_secs(5))))
        .runtime(Runtime::Tokio1)
        .build()
        .map_err(|_| Error::DatabaseAddress { reason: "cannot be used" })
}

fn is_near(host: &Host) -> bool {
    match host {
        Host::Tcp(name) => {
            name == "localhost"
                || name.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
        }
        #[cfg(unix)]
        Host::Unix(_) => true,
    }
}
