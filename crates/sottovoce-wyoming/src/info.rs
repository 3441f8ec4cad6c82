//! What the agent tells about itself.

use serde_json::json;

use crate::event::Event;

/// The answer to `describe`. No list of languages means every language.
pub(crate) fn info() -> Event {
    let attribution = json!({
        "name": "Sottovoce",
        "url": "https://crates.io/crates/sottovoce",
    });
    let model = json!({
        "name": "sottovoce",
        "description": "A language model on your own machine, with an encrypted memory",
        "attribution": attribution,
        "installed": true,
        "version": null,
        "languages": [],
    });
    let handle = json!({
        "name": "sottovoce",
        "description": "Remembers what was said, encrypted, on this machine",
        "attribution": attribution,
        "installed": true,
        "version": env!("CARGO_PKG_VERSION"),
        "supports_handled_streaming": true,
        "supports_home_control": false,
        "models": [model],
    });
    let none: [u8; 0] = [];
    Event::new(
        "info",
        json!({
            "asr": none, "tts": none, "intent": none, "wake": none, "mic": none, "snd": none,
            "handle": [handle],
        }),
    )
}
