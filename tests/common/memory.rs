//! Secret words, and a search for what is left of them in this process's memory.
#![allow(dead_code, unreachable_pub, reason = "each test file uses some of it")]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "these are tests")]

use std::fs::File;
use std::os::unix::fs::FileExt;

use zeroize::Zeroizing;

/// Letters of a secret word before its ending.
const LETTERS: usize = 24;
/// Allocators overwrite the beginning of freed memory, so the search ignores that part of a word.
const LOST: usize = 16;
/// The letters that are sought. A stemmer may take off some of the rest.
const SOUGHT: usize = 7;
/// Endings that stemmers take off in several steps.
const ENDINGS: [&str; 10] = [
    "izations", "fulness", "ingly", "ungen", "heiten", "issement", "erions", "aciones", "andolas",
    "ational",
];

/// A letter of a secret word. The program holds the words nowhere, so that a search only finds copies.
fn letter(word: usize, at: usize) -> u8 {
    let mixed = ((word * 64 + at + 1) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    b'a' + ((mixed ^ mixed >> 31).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 40) as u8 % 26
}

/// A text with secret words in place of digits.
pub fn text(form: &str) -> Zeroizing<String> {
    // Growth would leave copies.
    let mut text = Zeroizing::new(String::with_capacity(4096));
    for c in form.chars() {
        match c.to_digit(10) {
            Some(word) => {
                let word = word as usize;
                (0..LETTERS).for_each(|at| text.push(char::from(letter(word, at))));
                text.push_str(ENDINGS[word]);
            }
            None => text.push(c),
        }
    }
    text
}

/// How often each secret word occurs in this process's writable memory.
pub fn found_in_memory() -> [usize; 10] {
    let memory = File::open("/proc/self/mem").unwrap();
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let mut buffer = vec![0_u8; 1 << 16];
    let own = buffer.as_ptr() as u64..buffer.as_ptr() as u64 + buffer.len() as u64;
    let mut found = [0; 10];
    let first: [u8; 10] = std::array::from_fn(|word| letter(word, LOST));
    for map in maps.lines().filter(|map| map.split(' ').nth(1).is_some_and(|m| m.starts_with("rw")))
    {
        let (start, end) = map.split(' ').next().unwrap().split_once('-').unwrap();
        let mut at = u64::from_str_radix(start, 16).unwrap();
        let end = u64::from_str_radix(end, 16).unwrap();
        while at < end {
            let length = usize::try_from(end - at).unwrap().min(buffer.len());
            let Ok(read) = memory.read_at(&mut buffer[..length], at) else { break };
            for (offset, window) in buffer[..read].windows(SOUGHT).enumerate() {
                let is_own = own.contains(&(at + offset as u64));
                for (word, found) in found.iter_mut().enumerate() {
                    if window[0] == first[word] && !is_own {
                        let is_letter = |(at, byte): (usize, &u8)| *byte == letter(word, at);
                        *found += usize::from((LOST..).zip(window).all(is_letter));
                    }
                }
            }
            // The pieces overlap, so that a word across two of them is found.
            let is_last = read < length || at + read as u64 >= end;
            at += if is_last { read.max(1) } else { read - SOUGHT } as u64;
        }
    }
    buffer.fill(0);
    found
}
