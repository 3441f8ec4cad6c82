//! Words of a conversation, in memory that is overwritten before it is freed.

use std::{borrow::Borrow, fmt};

use zeroize::{Zeroize, Zeroizing};

/// A word or name that somebody said. Overwritten on drop; never shown by `Debug`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub(crate) struct Word(Box<str>);

impl Word {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Word {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

impl Borrow<str> for Word {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl Drop for Word {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl fmt::Debug for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Word(..)")
    }
}

/// Makes room for `more` bytes. Growth by itself would leave a copy in freed memory.
pub(crate) fn reserve(text: &mut Zeroizing<String>, more: usize) {
    let needed = text.len().saturating_add(more);
    if text.capacity() < needed {
        let mut grown = Zeroizing::new(String::with_capacity(needed * 2));
        grown.push_str(text);
        *text = grown;
    }
}

/// Adds items to a list, without a copy of the others in freed memory.
pub(crate) fn extend<T: Copy + Zeroize>(list: &mut Zeroizing<Vec<T>>, items: &[T]) {
    let needed = list.len().saturating_add(items.len());
    if list.capacity() < needed {
        let mut grown = Zeroizing::new(Vec::with_capacity(needed.saturating_mul(2).max(64)));
        grown.extend_from_slice(list);
        *list = grown;
    }
    list.extend_from_slice(items);
}

/// Overwrites what a foreign function that replaces a short string again and again has just freed: an allocator hands
/// out first what was freed last. `length` is of the longest of the strings.
pub(crate) fn overwrite_freed(length: usize) {
    // The allocator of glibc has blocks of 24 bytes, 40 bytes and so on. It keeps seven freed ones of each size at hand; behind these,
    // what was freed last may come after seven others. With 10 blocks, a word was left in every fourth run of the test.
    for size in (24..length.saturating_mul(2).saturating_add(16)).step_by(16) {
        let mut blocks: [Vec<u8>; 32] = std::array::from_fn(|_| Vec::with_capacity(size));
        blocks.iter_mut().for_each(Zeroize::zeroize);
    }
}
