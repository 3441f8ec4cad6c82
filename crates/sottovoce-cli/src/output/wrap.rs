//! Text on a terminal: lines break between words, and the Markdown of answers is shown instead of its marks. Into a pipe, and where
//! the width is unknown, text goes unchanged.

use std::os::fd::AsFd;
use std::sync::atomic::{AtomicUsize, Ordering};

use anstyle::{AnsiColor, Style};
use rustix::termios::{isatty, tcgetwinsize};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::output::{BOLD, DIM};

const CODE: Style = AnsiColor::Cyan.on_default();
/// In fewer columns, breaking between words helps nobody.
const NARROWEST: usize = 20;
/// Characters that begin no line in languages without spaces.
const CLOSING: &str = "、。，．！？：；）」』】〉》ー々";

/// The width of the terminal behind the pager; 0 without a pager.
static PAGED: AtomicUsize = AtomicUsize::new(0);

/// Says that output goes through a pager to a terminal of this width, or no longer.
pub(crate) fn set_paged(columns: Option<usize>) {
    PAGED.store(columns.unwrap_or(0), Ordering::Relaxed);
}

/// The columns of the terminal that this goes to, if they are known.
pub(crate) fn columns(of: impl AsFd) -> Option<usize> {
    let known = match PAGED.load(Ordering::Relaxed) {
        0 if isatty(&of) => tcgetwinsize(of).ok()?.ws_col.into(),
        paged => paged,
    };
    (known >= NARROWEST).then_some(known)
}

/// Breaks text into lines as it arrives.
pub(crate) struct Wrap {
    columns: Option<usize>,
    /// The least indentation of lines after a break.
    hang: usize,
    /// That of the current line: what it begins with counts, too.
    indent: usize,
    column: usize,
    gap: String,
    word: String,
    markdown: Option<Markdown>,
}

impl Wrap {
    fn new(columns: Option<usize>, hang: usize, markdown: Option<Markdown>) -> Self {
        let (gap, word) = Default::default();
        Self { columns, hang, indent: hang, column: 0, gap, word, markdown }
    }

    /// For an answer on standard output.
    pub(crate) fn answer() -> Self {
        Self::new(columns(std::io::stdout()), 0, Some(Markdown::default()))
    }

    /// What is to be shown of this piece now. The beginning of a word waits for its end.
    pub(crate) fn push(&mut self, text: &str) -> String {
        if self.columns.is_none() {
            return text.to_owned();
        }
        let mut out = String::new();
        for c in text.chars() {
            match c {
                '\n' => {
                    out.push_str(&self.end());
                    out.push(c);
                    (self.column, self.indent) = (0, self.hang);
                    self.gap.clear();
                }
                ' ' | '\t' => {
                    self.place(&mut out);
                    self.gap.push_str(if c == ' ' { " " } else { "    " });
                }
                c => {
                    let may_begin = c.width() == Some(2) && !CLOSING.contains(c);
                    let may_follow = c.width() == Some(1) && self.word.ends_with(is_wide);
                    if (may_begin || may_follow) && !self.word.ends_with('\u{200d}') {
                        self.place(&mut out);
                    }
                    self.word.push(c);
                }
            }
        }
        out
    }

    /// What is still to be shown at the end of a line or of the text.
    pub(crate) fn end(&mut self) -> String {
        let mut out = String::new();
        self.place(&mut out);
        if let Some(markdown) = &mut self.markdown {
            out.push_str(markdown.end_line());
        }
        out
    }

    /// Shows the word, on a new line if this one has no room for it. A word that is longer than a line is left to the terminal.
    fn place(&mut self, out: &mut String) {
        let mut word = std::mem::take(&mut self.word);
        let Some(columns) = self.columns.filter(|_| !word.is_empty()) else { return };
        let is_first = self.column == 0;
        if is_first {
            self.indent = self.hang.max(self.gap.len()).min(columns / 2);
        }
        let is_item = is_first && is_item(&word);
        let mut is_code = false;
        if let Some(markdown) = &mut self.markdown {
            word = markdown.shown(&word, is_first);
            is_code = markdown.is_fenced;
        }
        let width = anstream::adapter::strip_str(&word).to_string().width();
        if !is_code && self.column > self.indent && self.column + self.gap.len() + width > columns {
            out.push('\n');
            self.column = 0;
            self.gap = " ".repeat(self.indent);
        }
        out.push_str(&self.gap);
        out.push_str(&word);
        self.column += self.gap.len() + width;
        self.gap.clear();
        if is_item {
            self.indent = self.column + 1;
        }
    }
}

/// The text with its lines broken for the terminal that it goes to.
pub(crate) fn wrapped(text: &str, to: impl AsFd, hang: usize) -> String {
    let mut wrap = Wrap::new(columns(to), hang, None);
    let shown = wrap.push(text);
    shown + &wrap.end()
}

fn is_wide(c: char) -> bool {
    c.width() == Some(2)
}

/// Whether a line that begins with this word is an item of a list.
fn is_item(word: &str) -> bool {
    let number = word.strip_suffix(['.', ')']).unwrap_or_default();
    matches!(word, "-" | "*" | "•")
        || (!number.is_empty() && number.chars().all(|c| c.is_ascii_digit()))
}

/// Which marks of Markdown are open: bold and code within a line, a heading to its end, a block of code beyond it.
#[derive(Default)]
struct Markdown {
    is_bold: bool,
    is_code: bool,
    is_fenced: bool,
}

impl Markdown {
    /// The word with styles in place of its marks. A mark that closes nothing and opens nothing stays.
    fn shown(&mut self, word: &str, is_first: bool) -> String {
        if is_first && word.starts_with("```") {
            self.is_fenced = !self.is_fenced;
            return format!("{DIM}{word}{DIM:#}");
        }
        match word {
            _ if self.is_fenced => return word.to_owned(),
            "-" | "*" if is_first => return "•".to_owned(),
            _ if is_first && word.len() <= 6 && word.chars().all(|c| c == '#') => {
                self.is_bold = true;
                return format!("{BOLD}{word}");
            }
            _ => {}
        }
        let (mut shown, mut rest, mut before) = (String::new(), word, ' ');
        while let Some(c) = rest.chars().next() {
            let mark = if !self.is_code && rest.starts_with("**") { "**" } else { "`" };
            let after = rest.strip_prefix(mark);
            let is_open = if mark == "`" { self.is_code } else { self.is_bold };
            // A mark opens before a word, not after one.
            let opens = !before.is_alphanumeric()
                && after.is_some_and(|after| after.starts_with(|c: char| c != '*' && c != '`'));
            match after {
                Some(after) if is_open || opens => {
                    match mark {
                        "`" => self.is_code = !is_open,
                        _ => self.is_bold = !is_open,
                    }
                    shown.push_str(&self.style());
                    rest = after;
                }
                _ => {
                    shown.push(c);
                    before = c;
                    rest = rest.get(c.len_utf8()..).unwrap_or_default();
                }
            }
        }
        shown
    }

    /// The style after everything before has ended.
    fn style(&self) -> String {
        let style = if self.is_code { CODE } else { Style::new() };
        format!("\u{1b}[0m{}", if self.is_bold { style.bold() } else { style })
    }

    /// Ends what a line does not pass on to the next.
    fn end_line(&mut self) -> &'static str {
        let is_open = std::mem::take(&mut self.is_bold) | std::mem::take(&mut self.is_code);
        if is_open { "\u{1b}[0m" } else { "" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text in pieces of a few characters.
    fn shown(text: &str, columns: usize, hang: usize, markdown: bool) -> String {
        let markdown = markdown.then(Markdown::default);
        let mut wrap = Wrap::new(Some(columns), hang, markdown);
        let letters: Vec<char> = text.chars().collect();
        let pieces = letters.chunks(3).map(String::from_iter);
        let shown: String = pieces.map(|piece| wrap.push(&piece)).collect();
        shown + &wrap.end()
    }

    #[test]
    fn a_word_that_does_not_fit_goes_to_the_next_line_below_the_first() {
        assert_eq!(shown("one two three", 9, 0, false), "one two\nthree");
        assert_eq!(shown("one two three", 9, 2, false), "one two\n  three");
        assert_eq!(shown("one  two\n\n three", 20, 0, false), "one  two\n\n three");
        assert_eq!(shown("    deep words break", 14, 2, false), "    deep words\n    break");
        assert_eq!(
            shown("- item of a list\nno item", 10, 0, false),
            "- item of\n  a list\nno item"
        );
        let deep = format!("{}one two three", " ".repeat(14));
        assert_eq!(shown(&deep, 20, 0, false), format!("{:14}one\n{:10}two three", "", ""));
        assert_eq!(shown("12. an item here", 11, 0, false), "12. an item\n    here");
        assert_eq!(
            shown("see http://a.very/long/address now", 12, 0, false),
            "see\nhttp://a.very/long/address\nnow"
        );
    }

    #[test]
    fn columns_are_counted_as_a_terminal_shows_them() {
        assert_eq!(shown("日本語の長い文。", 8, 0, false), "日本語の\n長い文。");
        assert_eq!(shown("日本語の。長", 8, 0, false), "日本語\nの。長");
        assert_eq!(shown("a\u{301}b\u{301} c\u{301}d", 5, 0, false), "a\u{301}b\u{301} c\u{301}d");
        assert_eq!(shown("\u{1b}[2mone\u{1b}[0m two", 7, 0, false), "\u{1b}[2mone\u{1b}[0m two");
        let family = "👩\u{200d}👩\u{200d}👧";
        assert_eq!(shown(&format!("{family}{family}"), 3, 0, false), format!("{family}\n{family}"));
    }

    #[test]
    fn marks_of_markdown_become_styles_and_others_stay() {
        let plain = |text| anstream::adapter::strip_str(&shown(text, 80, 0, true)).to_string();
        for (text, seen) in [
            ("**two words** and `a code`.", "two words and a code."),
            ("* one\n- two\n3. three", "• one\n• two\n3. three"),
            ("2**3, 2 * 3, a ** b, snake_case, *so*", "2**3, 2 * 3, a ** b, snake_case, *so*"),
            ("`a ** b` and (**this**)", "a ** b and (this)"),
            ("# Title\ntext", "# Title\ntext"),
            ("```sh\n- **x** `y`\n```\n- z", "```sh\n- **x** `y`\n```\n• z"),
        ] {
            assert_eq!(plain(text), seen);
        }
        let bold = shown("**bold\nplain** `", 80, 0, true);
        assert_eq!(bold, "\u{1b}[0m\u{1b}[1mbold\u{1b}[0m\nplain** `");
    }

    #[test]
    fn code_in_a_block_keeps_its_lines() {
        let block = "```\nlet a = one_long_line;\n```\n";
        let seen = anstream::adapter::strip_str(&shown(block, 12, 0, true)).to_string();
        assert_eq!(seen, block);
    }

    #[test]
    fn where_the_width_is_unknown_nothing_changes_and_nothing_waits() {
        let mut wrap = Wrap::new(None, 4, Some(Markdown::default()));
        assert_eq!(wrap.push("**as it\tis"), "**as it\tis");
        assert_eq!(wrap.end(), "");
    }
}
