//! The command with real servers, which `.ci/remotes` starts. It hands over a file with lines of an address and a file of
//! credentials.

use super::*;
use sync::done;

/// The variable that names the file.
const REMOTES: &str = "SOTTOVOCE_COMMAND_REMOTES";

/// A home on a device that trusts the certificate of the servers.
struct Device {
    home: Home,
    credentials: String,
}

impl Device {
    fn new(credentials: &str) -> Self {
        Self { home: Home::new(), credentials: credentials.to_owned() }
    }

    fn asks(&self, arguments: &[&str]) -> Output {
        let with = ["--credentials-file", &self.credentials];
        let mut command = self.home.command(&[arguments, &with].concat());
        if let Some(file) = std::env::var_os("SSL_CERT_FILE") {
            command.env("SSL_CERT_FILE", file);
        }
        command.output().unwrap()
    }

    fn sync(&self) {
        done(&self.asks(&["sync"]));
    }
}

#[test]
fn each_real_server_carries_what_was_said_and_forgotten_between_two_devices() {
    let Ok(list) = std::env::var(REMOTES) else {
        // The test harness keeps what a test prints if it passes, but not this.
        let text =
            "is not set; the command has not been tried on a real server. `.ci/remotes` sets it";
        std::io::stderr().write_all(format!("SKIPPED: {REMOTES} {text}\n").as_bytes()).unwrap();
        return;
    };
    let list = std::fs::read_to_string(list).unwrap();
    assert!(!list.is_empty());
    for line in list.lines() {
        let (address, credentials) = line.split_once(' ').unwrap();
        carries(address, credentials);
        // Of a passing test nothing else is shown.
        std::io::stderr()
            .write_all(format!("the command syncs by {address}\n").as_bytes())
            .unwrap();
    }
}

fn carries(address: &str, credentials: &str) {
    let (first, second) = (Device::new(credentials), Device::new(credentials));
    first.home.keep(&["canary one", "canary gone"]);
    done(&first.asks(&["sync", "init", address, "--name", "first"]));
    first.sync();
    let shown = first.home.run(&["device", "add"]);
    done(&second.asks(&["device", "join", out(&shown).trim(), "--name", "second"]));
    second.home.keep(&["canary two"]);
    second.sync();
    done(&first.home.run(&["forget", "2", "--yes"]));
    first.sync();
    second.sync();
    assert_eq!(first.home.words(), ["canary one", "canary two"], "{address}");
    assert_eq!(second.home.words(), first.home.words().as_slice(), "{address}");
    done(&first.asks(&["device", "remove", "second", "--yes"]));
    let shut = second.asks(&["sync"]);
    assert_eq!(code(&shut), 1, "{address}: {}", err(&shut));
}
