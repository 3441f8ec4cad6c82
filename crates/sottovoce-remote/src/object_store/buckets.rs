//! Services with buckets or containers: S3, Azure and Google Cloud Storage, and which credentials each one takes

use std::sync::Arc;

use ::object_store::ObjectStore;
use ::object_store::aws::AmazonS3Builder;
use ::object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use ::object_store::gcp::GoogleCloudStorageBuilder;
use ::object_store::list::PaginatedListStore;
use ::object_store::path::Path;
use url::Url;

use super::services::{connector, error, never, unusable};
use super::{Listing, Server};
use crate::address::other;
use crate::credentials::Credentials;
use crate::error::{ErrorKind, RemoteError};
use crate::name::{is_name, is_part};
use crate::remote::Result;

/// A bucket or container of a service, and what stands before all names there.
struct Bucket {
    name: String,
    prefix: String,
    /// The address, for errors.
    place: String,
}

fn bucket(url: &Url, place: &str) -> Result<Bucket> {
    let name = url.host_str().unwrap_or_default();
    let prefix = url.path().trim_matches('/');
    if url.port().is_some() || !is_part(name) {
        return Err(other(
            place,
            "the address does not start with the name of a bucket or container",
        ));
    }
    if !prefix.is_empty() && !is_name(prefix) {
        return Err(other(place, "the prefix may contain letters, digits, '-', '_', '.' and '/'"));
    }
    Ok(Bucket { name: name.to_owned(), prefix: prefix.to_owned(), place: place.to_owned() })
}

fn refused(place: &str, wanted: &str) -> RemoteError {
    error(ErrorKind::Refused, place, &format!("there are no credentials; set {wanted}"))
}

fn server<S: ObjectStore + PaginatedListStore>(
    store: ::object_store::Result<S>,
    bucket: Bucket,
) -> Result<Server> {
    let store = Arc::new(store.map_err(|_| unusable(&bucket.place))?);
    Ok(Server {
        store: Arc::<S>::clone(&store),
        listing: Listing::Pages(store),
        prefix: Path::from(bucket.prefix),
        place: bucket.place,
    })
}

pub(crate) fn s3(url: &Url, place: &str, credentials: &Credentials) -> Result<Server> {
    let bucket = bucket(url, place)?;
    let key = credentials.get(&["AWS_ACCESS_KEY_ID"]);
    let secret = credentials.get(&["AWS_SECRET_ACCESS_KEY"]);
    let (Some(key), Some(secret)) = (key, secret) else {
        return Err(refused(place, "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"));
    };
    let endpoint = credentials.get(&["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"]);
    let region = credentials.get(&["AWS_REGION", "AWS_DEFAULT_REGION"]).unwrap_or("us-east-1");
    let mut builder = AmazonS3Builder::new()
        .with_access_key_id(key)
        .with_secret_access_key(secret)
        .with_region(region)
        .with_bucket_name(&bucket.name)
        .with_disable_bulk_delete(true)
        .with_http_connector(connector(place, endpoint)?)
        .with_retry(never());
    if let Some(endpoint) = endpoint {
        builder = builder.with_endpoint(endpoint).with_allow_http(true);
    }
    if let Some(token) = credentials.get(&["AWS_SESSION_TOKEN"]) {
        builder = builder.with_token(token);
    }
    server(builder.build(), bucket)
}

pub(crate) fn azure(url: &Url, place: &str, credentials: &Credentials) -> Result<Server> {
    let bucket = bucket(url, place)?;
    let account = credentials.get(&["AZURE_STORAGE_ACCOUNT_NAME", "AZURE_STORAGE_ACCOUNT"]);
    let Some(account) = account else {
        return Err(refused(place, "AZURE_STORAGE_ACCOUNT_NAME"));
    };
    let endpoint = credentials.get(&["AZURE_STORAGE_ENDPOINT"]);
    let mut builder = MicrosoftAzureBuilder::new()
        .with_account(account)
        .with_container_name(&bucket.name)
        .with_http_connector(connector(place, endpoint)?)
        .with_retry(never());
    if let Some(endpoint) = endpoint {
        builder = builder.with_endpoint(endpoint.to_owned()).with_allow_http(true);
    }
    let key = credentials.get(&["AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_KEY"]);
    builder = match (key, credentials.get(&["AZURE_STORAGE_SAS_TOKEN"])) {
        (Some(key), _) => builder.with_access_key(key),
        (None, Some(token)) => builder.with_config(AzureConfigKey::SasKey, token),
        (None, None) => {
            return Err(refused(place, "AZURE_STORAGE_ACCOUNT_KEY or AZURE_STORAGE_SAS_TOKEN"));
        }
    };
    server(builder.build(), bucket)
}

pub(crate) fn gcs(url: &Url, place: &str, credentials: &Credentials) -> Result<Server> {
    let bucket = bucket(url, place)?;
    let mut builder = GoogleCloudStorageBuilder::new()
        .with_bucket_name(&bucket.name)
        .with_http_connector(connector(place, None)?)
        .with_retry(never());
    let text = credentials.get(&["GOOGLE_SERVICE_ACCOUNT_KEY"]);
    let file = credentials.get(&["GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_SERVICE_ACCOUNT"]);
    builder = match (text, file) {
        (Some(text), _) => builder.with_service_account_key(text),
        (None, Some(file)) => builder.with_application_credentials(file),
        (None, None) => {
            return Err(refused(
                place,
                "GOOGLE_APPLICATION_CREDENTIALS or GOOGLE_SERVICE_ACCOUNT_KEY",
            ));
        }
    };
    server(builder.build(), bucket)
}
