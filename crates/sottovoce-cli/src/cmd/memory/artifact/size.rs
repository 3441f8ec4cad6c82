//! Sizes in bytes, as users write them.

/// Parses a number of bytes with an optional unit: 4096, 64K, 1MiB, 2GB.
pub(super) fn parse(text: &str) -> Result<u64, String> {
    let wrong = || "a number of bytes, such as 4096, 64K, 1MiB or 2GB".to_owned();
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = text.get(digits.len()..).unwrap_or_default().to_ascii_lowercase();
    let each: u64 = match unit.as_str() {
        "" | "b" => 1,
        "k" | "kib" => 1 << 10,
        "m" | "mib" => 1 << 20,
        "g" | "gib" => 1 << 30,
        "kb" => 1_000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        _ => return Err(wrong()),
    };
    let number: u64 = digits.trim().parse().map_err(|_| wrong())?;
    number.checked_mul(each).filter(|bytes| *bytes > 0).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn sizes_are_understood_with_and_without_units() {
        for (text, bytes) in
            [("4096", 4096), ("64K", 65_536), ("1MiB", 1 << 20), ("2gb", 2_000_000_000), ("7 B", 7)]
        {
            assert_eq!(parse(text), Ok(bytes), "{text}");
        }
        for wrong in ["", "K", "0", "-1", "1.5M", "1T", "18446744073709551615K"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
