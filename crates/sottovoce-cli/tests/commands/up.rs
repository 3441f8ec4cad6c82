//! All servers in one process.

use super::*;
use talk::Talk;

/// Runs it with these settings, which make it fail.
fn fails(talk: &Talk, settings: &[(&str, &str)]) -> Output {
    let mut command = talk.command(&["up"]);
    for name in ["SERVE__ADDRESS", "WYOMING__ADDRESSES", "UP__HEALTHADDRESS"] {
        command.env(format!("SOTTOVOCE__{name}"), "127.0.0.1:0");
    }
    command.envs(settings.iter().map(|(name, value)| (format!("SOTTOVOCE__{name}"), value)));
    command.output().unwrap()
}

#[test]
fn an_address_that_is_taken_is_named_and_nothing_runs() {
    let talk = Talk::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = listener.local_addr().unwrap().to_string();
    for (name, setting) in [
        ("SERVE__ADDRESS", "Serve.Address"),
        ("WYOMING__ADDRESSES", "Wyoming.Addresses"),
        ("MCP__ADDRESS", "Mcp.Address"),
        ("UP__HEALTHADDRESS", "Up.HealthAddress"),
    ] {
        let refused = fails(&talk, &[(name, &taken)]);
        assert_eq!(code(&refused), 2, "{setting}: {}", err(&refused));
        assert!(
            err(&refused).contains(&format!("error: {setting}: cannot listen")),
            "{}",
            err(&refused)
        );
        assert!(!err(&refused).contains("serving at"), "{}", err(&refused));
    }
}

#[test]
fn a_setting_that_cannot_be_used_is_named_and_so_is_a_process_without_a_server() {
    let talk = Talk::new();
    for (name, value, setting) in [
        ("SERVE__ADDRESS", "localhost", "Serve.Address"),
        ("WYOMING__ADDRESSES", "127.0.0.1:0=guild/x", "Wyoming.Addresses"),
        ("WYOMING__MAP", "kitchen", "Wyoming.Map"),
        ("WYOMING__ALLOW", "pi.local", "Wyoming.Allow"),
        ("WYOMING__PHRASES", "pl=Nie teraz.|cs", "Wyoming.Phrases"),
        ("MCP__ADDRESS", "8765", "Mcp.Address"),
        ("UP__HEALTHADDRESS", "here", "Up.HealthAddress"),
        ("WYOMING__ANNOUNCE", "often", "Wyoming.Announce"),
    ] {
        let refused = fails(&talk, &[(name, value)]);
        assert_eq!(code(&refused), 5, "{setting}: {}", err(&refused));
        assert!(err(&refused).contains(setting), "{}", err(&refused));
    }
    let none = fails(&talk, &[("SERVE__ADDRESS", ""), ("WYOMING__ADDRESSES", "")]);
    assert_eq!(code(&none), 2);
    assert!(err(&none).contains("no server has an address"), "{}", err(&none));
    let open = fails(&talk, &[("WYOMING__ADDRESSES", "0.0.0.0:0")]);
    assert!(err(&open).contains("Wyoming.Allow"), "{}", err(&open));
    let open = fails(&talk, &[("UP__HEALTHADDRESS", "0.0.0.0:0")]);
    assert!(
        err(&open).contains("Up.HealthAddress") && err(&open).contains("Serve.Token"),
        "{}",
        err(&open)
    );
}
