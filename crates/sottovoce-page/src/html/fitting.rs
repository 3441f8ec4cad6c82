//! Lists that end before a page becomes too large.

use maud::Markup;

/// The most bytes of what fills a page, and of lists beside that. With the frame around them, a page has less than 100 kB.
pub(crate) const ROOM: usize = 48_000;
pub(crate) const BESIDE: usize = 8_000;

/// A list as far as it fits.
pub(crate) struct Fitting {
    pub(crate) shown: Vec<Markup>,
    /// How many items did not fit.
    pub(crate) left: u64,
}

/// The first items, as far as their markup fits into so many bytes.
pub(crate) fn fitting<T>(
    bytes: usize,
    items: impl IntoIterator<Item = T>,
    mut item: impl FnMut(T) -> Markup,
) -> Fitting {
    let (mut shown, mut used) = (Vec::new(), 0);
    let mut items = items.into_iter();
    for next in items.by_ref() {
        let markup = item(next);
        used += markup.0.len();
        if used > bytes {
            return Fitting { shown, left: 1 + items.count() as u64 };
        }
        shown.push(markup);
    }
    Fitting { shown, left: 0 }
}

#[cfg(test)]
mod tests {
    use maud::html;

    use super::*;

    #[test]
    fn what_does_not_fit_is_counted_and_never_overtaken_by_something_shorter() {
        let texts = ["aaaa", "bbbb", "cccccccc", "d"];
        let list = fitting(10, texts, |text| html! { (text) });
        let shown: Vec<String> = list.shown.into_iter().map(Markup::into_string).collect();
        assert_eq!((shown, list.left), (vec!["aaaa".to_owned(), "bbbb".to_owned()], 2));
        assert_eq!(fitting(10, ["a", "b"], |text| html! { (text) }).left, 0);
    }
}
