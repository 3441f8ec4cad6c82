//! Process memory: what remains in it, and might be swapped out, after the last holder of a message is gone.
#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "these are tests"
)]

use std::fs::File;
use std::os::unix::fs::FileExt;

use crate::common::*;
use sottovoce::{ChatMessage, ChatRole, ConversationStore};

/// A masked sentence. The program holds it nowhere in plain text, so the search only finds copies.
const MASKED: &[u8] = b"\x2e\x32\x3f\x7a\x39\x3b\x34\x3b\x28\x23\x7a\x2e\x32\x3b\x2e\x7a\x29\x36\x3f\x3f\x2a\x29\x7a\x35\x34\x7a\x2e\x32\x3f\x7a\x28\x35\x35\x3c\x7a\x35\x3c\x7a\x2e\x32\x3f\x7a\x38\x3b\x34\x31";
const MASK: u8 = 0x5a;
/// Allocators overwrite the beginning of freed memory, so the search ignores that part.
const LOST: usize = 20;

fn sentence() -> String {
    MASKED.iter().map(|byte| char::from(byte ^ MASK)).collect()
}

/// How often the sentence occurs in this process's writable memory.
fn found_in_memory() -> usize {
    let sought = &MASKED[LOST..];
    let memory = File::open("/proc/self/mem").unwrap();
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let mut buffer = vec![0_u8; 1 << 16];
    let own = buffer.as_ptr() as u64..buffer.as_ptr() as u64 + buffer.len() as u64;
    let mut found = 0;
    for map in maps.lines().filter(|map| map.split(' ').nth(1).is_some_and(|m| m.starts_with("rw")))
    {
        let (start, end) = map.split(' ').next().unwrap().split_once('-').unwrap();
        let mut at = u64::from_str_radix(start, 16).unwrap();
        let end = u64::from_str_radix(end, 16).unwrap();
        while at < end {
            let length = usize::try_from(end - at).unwrap().min(buffer.len());
            let Ok(read) = memory.read_at(&mut buffer[..length], at) else { break };
            for (offset, window) in buffer[..read].windows(sought.len()).enumerate() {
                let place = at + offset as u64;
                if !own.contains(&place) && window.iter().zip(sought).all(|(a, b)| a ^ MASK == *b) {
                    found += 1;
                }
            }
            // The pieces overlap, so that a sentence across two of them is found.
            at += if read == length && at + (read as u64) < end {
                (read - sought.len()) as u64
            } else {
                read.max(1) as u64
            };
        }
    }
    buffer.fill(0);
    found
}

#[test]
#[ignore = "another test runs it in a process of its own"]
fn a_process_that_remembers_and_lets_go() {
    let Some(root) = child_folder() else { return };
    // Searching must not leave copies itself: the first search shows what exists before.
    assert_eq!(found_in_memory(), 0);
    block_on(async {
        let at = "2025-08-24T16:36:25.123Z".parse().unwrap();
        let store = open(&root).await;
        for _ in 0..3 {
            store.append_message(ChatMessage::at(ChatRole::User, sentence(), at)).await.unwrap();
        }
        let again = open(&root).await;
        let reading = again.read_tail(3).await.unwrap();
        assert_eq!(reading.messages.len(), 3);
        let held = found_in_memory();
        assert!(held >= 3, "the search must see what is held: {held}");
        drop((reading, again, store));
    });
    println!("@left {}", found_in_memory());
    let leaked: &'static str = Box::leak(sentence().into_boxed_str());
    assert!(found_in_memory() > 0, "the search must see what is leaked, {} bytes", leaked.len());
    println!("@done");
}

#[test]
fn nothing_of_a_message_stays_in_memory_when_its_last_holder_is_gone() {
    let root = tempfile::tempdir().unwrap();
    let output = child("a_process_that_remembers_and_lets_go", root.path()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("@done"), "{said}");
    assert!(said.contains("@left 0\n"), "{said}");
}
