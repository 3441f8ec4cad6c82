//! Addresses and credentials

use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;

use sottovoce_remote::{ADDRESSES, Credentials, open};

pub(crate) fn credentials(lines: &str) -> Credentials {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("credentials");
    let mut options = std::fs::OpenOptions::new();
    let mut file = options.write(true).create_new(true).mode(0o600).open(&path).unwrap();
    file.write_all(lines.as_bytes()).unwrap();
    Credentials::from_file(&path).unwrap()
}

#[test]
fn an_address_with_credentials_is_refused_and_not_repeated() {
    for address in [
        "https://me:hunter2@server/folder",
        "https://hunter2@server/folder",
        "s3://key:hunter2@bucket/prefix",
        "az://container/prefix?sig=hunter2",
        "https://server/folder#hunter2",
        "https://me:hunter2@server:port/folder",
        "hunter2",
    ] {
        let error = open(address, &Credentials::default()).unwrap_err();
        assert!(!format!("{error}{error:?}").contains("hunter2"), "{error:?}");
    }
}

#[test]
fn an_address_of_another_form_is_refused() {
    for address in [
        "",
        "folder",
        "ftp://server/a",
        "file://server/folder",
        "file:relative",
        "s3://",
        "s3:///prefix",
        "s3://bucket:80/prefix",
        "s3://bucket/.hidden",
        "s3://bucket/a%2fb",
    ] {
        let credentials = credentials("AWS_ACCESS_KEY_ID=a\nAWS_SECRET_ACCESS_KEY=b");
        assert!(open(address, &credentials).is_err(), "{address}");
    }
}

#[test]
fn the_page_about_devices_has_each_address_and_each_variable() {
    let page = include_str!("../../../../docs/sync.md");
    for line in ADDRESSES.lines() {
        let scheme = line.trim().split_once("//").unwrap().0;
        assert!(page.contains(&format!("`{scheme}//")), "it lacks {scheme}");
        let words = line.split(|c: char| !c.is_ascii_uppercase() && c != '_');
        for variable in words.filter(|word| word.contains('_')) {
            assert!(page.contains(&format!("`{variable}`")), "it lacks {variable}");
        }
    }
}

#[cfg(feature = "http")]
mod servers {
    use sottovoce_remote::{ErrorKind, open};

    use super::credentials;

    const S3: &str =
        "AWS_ACCESS_KEY_ID=hunter1\nAWS_SECRET_ACCESS_KEY=hunter2\nAWS_SESSION_TOKEN=hunter3";

    #[test]
    fn nothing_is_sent_without_tls_but_to_this_machine() {
        for (address, lines, accepted) in [
            ("http://127.0.0.1:1/a", "", true),
            ("http://[::1]:1/a", "", true),
            ("http://localhost:1/a", "", true),
            ("http://192.168.1.1/a", "", false),
            ("http://localhost.example/a", "", false),
            ("https://example.org/a", "", true),
            ("s3://bucket", "AWS_ENDPOINT_URL=http://127.0.0.1:1", true),
            ("s3://bucket", "AWS_ENDPOINT_URL=http://example.org", false),
            ("s3://bucket", "AWS_ENDPOINT_URL=https://example.org", true),
            ("s3://bucket", "AWS_ENDPOINT_URL=https://a:hunter2@example.org", false),
        ] {
            let opened = open(address, &credentials(&format!("{S3}\n{lines}")));
            assert_eq!(opened.is_ok(), accepted, "{address} {lines} {opened:?}");
        }
    }

    #[test]
    fn missing_credentials_are_named() {
        for (address, wanted) in [
            ("s3://bucket", "AWS_ACCESS_KEY_ID"),
            ("az://container", "AZURE_STORAGE_ACCOUNT_NAME"),
            ("gs://bucket", "GOOGLE_APPLICATION_CREDENTIALS"),
        ] {
            let error = open(address, &credentials("")).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Refused);
            assert!(error.to_string().contains(wanted), "{error}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn neither_debug_nor_errors_show_credentials() {
        let azure = "AZURE_STORAGE_ACCOUNT_NAME=me\nAZURE_STORAGE_ENDPOINT=http://127.0.0.1:1/me\n";
        for (address, lines) in [
            ("s3://bucket/a", format!("{S3}\nAWS_ENDPOINT_URL=http://127.0.0.1:1")),
            ("az://container/a", format!("{azure}AZURE_STORAGE_ACCOUNT_KEY=aHVudGVyMg==")),
            ("az://container/a", format!("{azure}AZURE_STORAGE_SAS_TOKEN=sv=1&sig=hunter2")),
            ("http://127.0.0.1:1/a", "WEBDAV_USERNAME=hunter1\nWEBDAV_PASSWORD=hunter2".to_owned()),
        ] {
            let remote = open(address, &credentials(&lines)).unwrap();
            let error = remote.get("b").await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unreachable, "{error}");
            assert_eq!(error.place(), format!("{address}/b"));
            let shown = format!("{remote:?} {error} {error:?}");
            for secret in ["hunter", "aHVud", "sig="] {
                assert!(!shown.contains(secret), "{shown}");
            }
        }
    }

    #[test]
    fn unusable_credentials_are_not_repeated() {
        let lines = "AZURE_STORAGE_ACCOUNT_NAME=me\nAZURE_STORAGE_ACCOUNT_KEY=hunter2!";
        let error = open("az://container", &credentials(lines)).unwrap_err();
        assert!(!format!("{error:?}").contains("hunter2"), "{error:?}");
        let error = open("gs://bucket", &credentials("GOOGLE_SERVICE_ACCOUNT_KEY={hunter2"));
        assert!(!format!("{:?}", error.unwrap_err()).contains("hunter2"));
    }
}
