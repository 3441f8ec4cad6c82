//! WebDAV, and which credentials it takes

use std::sync::Arc;

use ::object_store::http::HttpBuilder;
use ::object_store::path::Path;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use http::HeaderValue;
use url::Url;
use zeroize::Zeroizing;

use super::services::{connector, never, unusable};
use super::{Listing, Server};
use crate::credentials::Credentials;
use crate::remote::Result;

pub(crate) fn webdav(url: &Url, credentials: &Credentials) -> Result<Server> {
    let place = url.as_str().trim_end_matches('/').to_owned();
    let mut connector = connector(&place, Some(url.as_str()))?;
    connector.is_webdav = true;
    if let Some(user) = credentials.get(&["WEBDAV_USERNAME"]) {
        let password = credentials.get(&["WEBDAV_PASSWORD"]).unwrap_or_default();
        let basic = Zeroizing::new(format!("{user}:{password}"));
        let basic = Zeroizing::new(format!("Basic {}", BASE64_STANDARD.encode(basic.as_bytes())));
        let mut value = HeaderValue::from_str(&basic).map_err(|_| unusable(&place))?;
        value.set_sensitive(true);
        connector.authorization = Some(value);
    }
    let base = Path::from_url_path(url.path()).map_err(|_| unusable(&place))?;
    let builder = HttpBuilder::new()
        .with_url(place.as_str())
        .with_http_connector(connector)
        .with_retry(never());
    let store = Arc::new(builder.build().map_err(|_| unusable(&place))?);
    Ok(Server { store, listing: Listing::Whole { base }, prefix: Path::default(), place })
}
