//! The configuration block for MCP clients.

use std::net::SocketAddr;
use std::path::Path;

use serde_json::{Value, json};

use crate::exit::{Exit, Failure, Outcome};
use crate::output;

/// Prints the block that Claude Desktop, Cursor and Windsurf read from their files, and VS Code under `servers`.
pub(super) fn print(file: Option<&Path>, http: Option<SocketAddr>, token: bool) -> Outcome {
    let server = match http {
        Some(address) => connected(address, token),
        None => started(file)?,
    };
    let block = json!({ "mcpServers": { "sottovoce": server } });
    output::line(format!("{block:#}"))?;
    Ok(Exit::Done)
}

/// A client that starts the server has neither this folder nor this environment.
fn started(file: Option<&Path>) -> Result<Value, Failure> {
    let program = std::env::current_exe()?;
    let mut arguments = vec!["mcp".to_owned()];
    if let Some(file) = file {
        let file = std::path::absolute(file)?;
        arguments.extend(["--config".to_owned(), file.display().to_string()]);
    }
    // Secrets must not be printed.
    let is_told = |name: &str| {
        let name = name.to_ascii_uppercase();
        name.starts_with("SOTTOVOCE__")
            && !["ENCRYPTIONKEY", "PASSPHRASE", "TOKEN", "KEYFD"].iter().any(|s| name.ends_with(s))
    };
    // Environment variables that are not text do not concern this program.
    let environment: serde_json::Map<String, Value> = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .filter(|(name, _)| is_told(name))
        .map(|(name, value)| (name, Value::String(value)))
        .collect();
    let mut server = json!({ "command": program.display().to_string(), "args": arguments });
    if !environment.is_empty()
        && let Some(server) = server.as_object_mut()
    {
        server.insert("env".to_owned(), Value::Object(environment));
    }
    Ok(server)
}

fn connected(address: SocketAddr, token: bool) -> Value {
    let mut server = json!({ "type": "http", "url": format!("http://{address}/mcp") });
    if token && let Some(server) = server.as_object_mut() {
        let header = json!({ "Authorization": "Bearer ${SOTTOVOCE__MCP__TOKEN}" });
        server.insert("headers".to_owned(), header);
    }
    server
}
