//! Charts: drawn as SVG, told apart by pattern as well as by colour, each with its figures in a table.

use maud::{Markup, html};

use crate::english as en;
use crate::html::format::counted;

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 160.0;
/// Room for the labels below and above.
const BELOW: f64 = 18.0;
const ABOVE: f64 = 14.0;
/// Up to so many bars each have their label. The most characters of one.
const FEW: usize = 6;
const LABEL: usize = 16;

/// A bar: what it stands for, and its parts from the bottom.
pub(crate) struct Bar {
    pub(crate) label: String,
    pub(crate) parts: [u64; 2],
}

impl Bar {
    pub(crate) fn new(label: impl Into<String>, first: u64, second: u64) -> Self {
        Self { label: label.into(), parts: [first, second] }
    }

    fn sum(&self) -> u64 {
        self.parts.iter().sum()
    }
}

/// Bars beside each other.
pub(crate) fn bars(id: &str, title: &str, names: [&str; 2], all: &[Bar]) -> Markup {
    let most = all.iter().map(Bar::sum).max().unwrap_or(0).max(1);
    let step = WIDTH / number(all.len().max(1) as u64);
    let width = (step * 0.72).min(48.0);
    figure(
        id,
        title,
        names,
        all,
        &html! {
            @for (at, bar) in all.iter().enumerate() {
                @let x = step * number(at as u64) + (step - width) / 2.0;
                @let first = HEIGHT * number(bar.parts[0]) / number(most);
                @let second = HEIGHT * number(bar.parts[1]) / number(most);
                g {
                    title { (bar.label) ": " (counted(bar.sum(), ("", ""))) }
                    rect.hit x=(px(step * number(at as u64))) y="0" width=(px(step)) height=(px(ABOVE + HEIGHT)) {}
                    rect.one x=(px(x)) y=(px(ABOVE + HEIGHT - first)) width=(px(width)) height=(px(first)) {}
                    rect.two fill={ "url(#" (id) "-hatch)" } x=(px(x)) y=(px(ABOVE + HEIGHT - first - second)) width=(px(width)) height=(px(second)) {}
                }
            }
            (axis(all, step, most))
        },
    )
}

/// A line over the same labels, of the first parts.
pub(crate) fn line(id: &str, title: &str, name: &str, all: &[Bar]) -> Markup {
    let most = all.iter().map(|bar| bar.parts[0]).max().unwrap_or(0).max(1);
    let step = WIDTH / number(all.len().max(1) as u64);
    let place = |(at, bar): (usize, &Bar)| {
        let x = step * (number(at as u64) + 0.5);
        (x, ABOVE + HEIGHT - HEIGHT * number(bar.parts[0]) / number(most))
    };
    let places: Vec<(f64, f64)> = all.iter().enumerate().map(place).collect();
    let points: Vec<String> =
        places.iter().map(|(x, y)| format!("{},{}", px(*x), px(*y))).collect();
    figure(
        id,
        title,
        [name, ""],
        all,
        &html! {
            polyline points=(points.join(" ")) {}
            @for ((x, y), bar) in places.iter().zip(all) {
                circle cx=(px(*x)) cy=(px(*y)) r="3" {
                    title { (bar.label) ": " (counted(bar.parts[0], ("", ""))) }
                }
            }
            (axis(all, step, most))
        },
    )
}

/// The first, middle and last labels, and the greatest value.
fn axis(all: &[Bar], step: f64, most: u64) -> Markup {
    let last = all.len().saturating_sub(1);
    let are_few = all.len() <= FEW;
    let mut shown = vec![0, last / 2, last];
    if all.len() == 24 {
        shown = vec![0, 6, 12, 18, 23];
    }
    if are_few {
        shown = (0..all.len()).collect();
    }
    shown.dedup();
    html! {
        line.axis x1="0" x2=(px(WIDTH)) y1=(px(ABOVE + HEIGHT)) y2=(px(ABOVE + HEIGHT)) {}
        text x="0" y="10" { (counted(most, ("", ""))) }
        @for at in shown {
            @if let Some(bar) = all.get(at) {
                @let anchor = match at { _ if are_few => "middle", 0 => "start", _ if at == last => "end", _ => "middle" };
                @let x = match at { 0 if !are_few => 0.0, _ if at == last && !are_few => WIDTH, _ => step * (number(at as u64) + 0.5) };
                text x=(px(x)) y=(px(ABOVE + HEIGHT + BELOW - 4.0)) text-anchor=(anchor) { (label(&bar.label)) }
            }
        }
    }
}

/// As much of a label as fits under a bar. The table has all of it.
fn label(text: &str) -> String {
    match text.chars().count() {
        0..=LABEL => text.to_owned(),
        _ => text.chars().take(LABEL - 1).chain(['…']).collect(),
    }
}

fn figure(id: &str, title: &str, names: [&str; 2], all: &[Bar], inside: &Markup) -> Markup {
    let height = px(ABOVE + HEIGHT + BELOW);
    let has_two = !names[1].is_empty();
    html! {
        figure.chart {
            figcaption {
                h2 #(id) { (title) }
                @if has_two { p.key { span.one { (names[0]) } span.two { (names[1]) } } }
            }
            svg viewBox={ "0 0 720 " (height) } role="img" aria-labelledby=(id) {
                defs {
                    pattern id={ (id) "-hatch" } width="5" height="5" patternUnits="userSpaceOnUse" patternTransform="rotate(45)" {
                        rect.ground width="5" height="5" {}
                        rect.stripe width="2" height="5" {}
                    }
                }
                (inside)
            }
            details {
                summary { (en::AS_TABLE) }
                table {
                    caption.hidden { (title) }
                    thead { tr { th scope="col" {} @for name in names.iter().filter(|name| !name.is_empty()) { th.number scope="col" { (name) } } } }
                    tbody {
                        @for bar in all {
                            tr {
                                th scope="row" { (bar.label) }
                                td.number { (counted(bar.parts[0], ("", ""))) }
                                @if has_two { td.number { (counted(bar.parts[1], ("", ""))) } }
                            }
                        }
                    }
                }
            }
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "a picture needs three digits")]
fn number(count: u64) -> f64 {
    count as f64
}

fn px(length: f64) -> String {
    format!("{length:.1}")
}
