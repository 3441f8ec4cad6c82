//! Addresses of remotes, as people write them.

/// The address of a text: itself, or that of a folder if it is a path.
pub(super) fn parse(text: &str) -> Result<String, String> {
    if text.contains("://") {
        return Ok(text.to_owned());
    }
    let path = std::path::absolute(text).map_err(|error| error.to_string())?;
    let path = path.to_str().ok_or("the path is not UTF-8")?;
    let escaped = path.replace('%', "%25").replace('#', "%23").replace('?', "%3F");
    Ok(format!("file://{escaped}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_the_address_of_a_folder() {
        for (text, address) in [
            ("/mnt/nas", "file:///mnt/nas"),
            ("/mnt/50% off?#1", "file:///mnt/50%25 off%3F%231"),
            ("s3://bucket/prefix", "s3://bucket/prefix"),
            ("https://nas.local/dav", "https://nas.local/dav"),
        ] {
            assert_eq!(parse(text).unwrap(), address);
        }
        assert!(parse("shared").unwrap().starts_with("file:///"));
        assert!(parse("").is_err());
    }
}
