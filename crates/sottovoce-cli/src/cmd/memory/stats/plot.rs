//! Draws messages and tokens over time. The picture holds no words except the scope.

use std::error::Error;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use jiff::civil::{Date, Weekday};
use jiff::{ToSpan, Unit};
use plotters::coord::Shift;
use plotters::prelude::*;
use sottovoce::{ChatRole, Config, Scope};

use crate::cmd::memory::stats::tally::{Counts, Day, Tally};
use crate::exit::Failure;
use crate::output;
use crate::private_file::PrivateFile;

const SIZE: (u32, u32) = (900, 620);
const HEADING: u32 = 64;
/// The most bars for single days. Beyond that a bar covers a longer time.
const MOST_DAYS: i64 = 62;
const MOST_WEEKS: i64 = 80;
const MOST_MONTHS: i64 = 120;

/// The fewest bars with room, so that a single one does not fill the picture.
const FEWEST: usize = 7;

/// Colours that colour-blind people can tell apart, in the order of [`ChatRole::ALL`].
const COLORS: [RGBColor; 4] =
    [RGBColor(0, 114, 178), RGBColor(213, 94, 0), RGBColor(150, 150, 150), RGBColor(0, 158, 115)];

/// The value drawn for a day.
type Count = fn(&Day) -> Counts;
type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// The file of a picture.
pub(super) struct Picture {
    place: PathBuf,
    file: PrivateFile,
}

impl Picture {
    /// Checks that the file can be written before counting.
    pub(super) fn begin(place: &Path, force: bool, config: &Config) -> Result<Self, Failure> {
        if !force && place.symlink_metadata().is_ok() {
            return Err(Failure::input(
                format!("{} already exists", place.display()),
                "say --force to replace it",
            ));
        }
        let file = PrivateFile::begin(place, force, config)?;
        Ok(Self { place: place.to_owned(), file })
    }

    /// Draws the picture. Returns its path.
    pub(super) fn draw(mut self, scope: &Scope, tally: &Tally) -> Result<PathBuf, Failure> {
        let mut svg = String::new();
        let title = output::one_line(&scope.to_string());
        draw(&mut svg, &title, &Bars::of(tally))
            .map_err(|error| io::Error::other(error.to_string()))?;
        let written = self.file.file.write_all(svg.as_bytes());
        written.map_err(|error| self.file.unwritable(&error))?;
        self.file.end()?;
        Ok(self.place)
    }
}

/// The time that a bar covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Day,
    Week,
    Month,
    Year,
}

impl Step {
    fn for_span(first: Date, last: Date) -> Self {
        let between = |unit| {
            let span = first.until((unit, last)).ok();
            span.and_then(|span| span.total((unit, first)).ok()).map_or(i64::MAX, |n| n as i64)
        };
        if between(Unit::Day) < MOST_DAYS {
            Self::Day
        } else if between(Unit::Week) < MOST_WEEKS {
            Self::Week
        } else if between(Unit::Month) < MOST_MONTHS {
            Self::Month
        } else {
            Self::Year
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Week => "week",
            Self::Month => "month",
            Self::Year => "year",
        }
    }

    fn axis(self) -> &'static str {
        match self {
            Self::Week => "week, from its Monday",
            step => step.name(),
        }
    }

    /// The first day of the step that contains a day.
    fn start(self, day: Date) -> Date {
        match self {
            Self::Day => day,
            Self::Week => {
                let back = i64::from(day.weekday().since(Weekday::Monday));
                day.checked_sub(back.days()).unwrap_or(day)
            }
            Self::Month => day.first_of_month(),
            Self::Year => day.first_of_year(),
        }
    }

    fn next(self, start: Date) -> Option<Date> {
        let span = match self {
            Self::Day => 1.day(),
            Self::Week => 1.week(),
            Self::Month => 1.month(),
            Self::Year => 1.year(),
        };
        start.checked_add(span).ok()
    }

    fn label(self, start: Date) -> String {
        let form = match self {
            Self::Day | Self::Week => "%Y-%m-%d",
            Self::Month => "%Y-%m",
            Self::Year => "%Y",
        };
        start.strftime(form).to_string()
    }
}

/// The bars of both charts, from the first message to the last.
struct Bars {
    step: Step,
    bars: Vec<(Date, Day)>,
}

impl Bars {
    fn of(tally: &Tally) -> Self {
        let ends = tally.days.first_key_value().zip(tally.days.last_key_value());
        let Some(((&first, _), (&last, _))) = ends else {
            return Self { step: Step::Day, bars: Vec::new() };
        };
        let step = Step::for_span(first, last);
        let starts = std::iter::successors(Some(step.start(first)), |start| step.next(*start));
        let mut bars: Vec<(Date, Day)> = starts
            .take_while(|start| *start <= last)
            .map(|start| (start, Day::default()))
            .collect();
        for (date, day) in &tally.days {
            let start = step.start(*date);
            if let Ok(at) = bars.binary_search_by_key(&start, |(start, _)| *start)
                && let Some((_, sum)) = bars.get_mut(at)
            {
                sum.add(day);
            }
        }
        Self { step, bars }
    }
}

fn draw(svg: &mut String, title: &str, bars: &Bars) -> Result<(), Box<dyn Error>> {
    let whole = SVGBackend::with_string(svg, SIZE).into_drawing_area();
    whole.fill(&WHITE)?;
    let (heading, below) = whole.split_vertically(HEADING);
    heading.draw(&Text::new(title.to_owned(), (16, 10), ("sans-serif", 20)))?;
    legend(&heading)?;
    let halves = below.split_evenly((2, 1));
    let step = bars.step.name();
    let messages: Count = |day| day.messages;
    let tokens: Count = |day| day.tokens;
    let charts =
        [(format!("messages a {step}"), messages), (format!("tokens a {step}, estimated"), tokens)];
    for (area, (name, counts)) in halves.iter().zip(charts) {
        chart(area, &name, bars, counts)?;
    }
    whole.present()?;
    Ok(())
}

fn legend(area: &Area<'_>) -> Result<(), Box<dyn Error>> {
    let mut x = 16;
    for (role, color) in ChatRole::ALL.into_iter().zip(COLORS) {
        area.draw(&Rectangle::new([(x, 42), (x + 14, 56)], color.filled()))?;
        area.draw(&Text::new(role.as_str(), (x + 20, 42), ("sans-serif", 14)))?;
        x += 48 + 8 * role.as_str().len() as i32;
    }
    Ok(())
}

fn chart(area: &Area<'_>, name: &str, bars: &Bars, counts: Count) -> Result<(), Box<dyn Error>> {
    let sum = |day: &Day| counts(day).iter().sum::<u64>();
    let most = bars.bars.iter().map(|(_, day)| sum(day)).max().unwrap_or(0).max(1);
    let width = bars.bars.len().max(FEWEST) as f64;
    let label = |x: &f64| {
        let bar = bars.bars.get(*x as usize).filter(|_| *x >= 0.0 && x.fract() == 0.0);
        bar.map_or_else(String::new, |(start, _)| bars.step.label(*start))
    };
    let mut chart = ChartBuilder::on(area)
        .margin(10)
        .margin_right(24)
        .x_label_area_size(40)
        .y_label_area_size(72)
        .build_cartesian_2d(0.0..width, 0.0..most as f64 * 1.05)?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .x_labels(8)
        .y_labels(6)
        .x_label_formatter(&label)
        .y_label_formatter(&|count| {
            if count.fract() == 0.0 { format!("{count:.0}") } else { String::new() }
        })
        .x_desc(bars.step.axis())
        .y_desc(name)
        .light_line_style(WHITE)
        .draw()?;
    for (at, (_, day)) in bars.bars.iter().enumerate() {
        let mut base = 0.0;
        for (count, color) in counts(day).into_iter().zip(COLORS).filter(|(count, _)| *count > 0) {
            let top = base + count as f64;
            let corners = [(at as f64 + 0.1, base), (at as f64 + 0.9, top)];
            chart.draw_series(std::iter::once(Rectangle::new(corners, color.filled())))?;
            base = top;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn date(text: &str) -> Date {
        text.parse().unwrap()
    }

    #[test]
    fn a_bar_stands_for_longer_the_longer_it_all_took() {
        for (last, step) in [
            ("2024-01-01", Step::Day),
            ("2024-03-02", Step::Day),
            ("2024-03-03", Step::Week),
            ("2025-07-01", Step::Week),
            ("2026-01-01", Step::Month),
            ("2033-12-01", Step::Month),
            ("2034-01-01", Step::Year),
        ] {
            assert_eq!(Step::for_span(date("2024-01-01"), date(last)), step, "{last}");
        }
        assert_eq!(Step::for_span(Date::MIN, Date::MAX), Step::Year);
    }

    #[test]
    fn every_message_is_in_a_bar_and_times_without_any_have_one_too() {
        let one = Day { messages: [1, 0, 0, 2], tokens: [5, 0, 0, 7] };
        for last in ["2024-01-04", "2024-06-30", "2027-02-28", "2090-01-01"] {
            let days = ["2024-01-01", "2024-01-02", last].map(|day| (date(day), one));
            let bars = Bars::of(&Tally { days: days.into_iter().collect(), skipped: Vec::new() });
            let mut sum = Day::default();
            bars.bars.iter().for_each(|(_, day)| sum.add(day));
            assert_eq!(sum, Day { messages: [3, 0, 0, 6], tokens: [15, 0, 0, 21] }, "{last}");
            assert!(bars.bars.windows(2).all(|pair| bars.step.next(pair[0].0) == Some(pair[1].0)));
        }
        assert!(Bars::of(&Tally::default()).bars.is_empty());
    }

    #[test]
    fn the_picture_names_roles_and_axes_and_escapes_the_scope() {
        for bars in [0, 1, 3] {
            let days = (0..bars).map(|day| {
                (
                    date("2024-01-01").checked_add(i64::from(day).days()).unwrap(),
                    Day { messages: [2, 1, 0, 0], tokens: [20, 10, 0, 0] },
                )
            });
            let bars = Bars::of(&Tally { days: days.collect(), skipped: Vec::new() });
            let mut svg = String::new();
            draw(&mut svg, "named/<b>&", &bars).unwrap();
            for part in [
                "user",
                "assistant",
                "system",
                "tool",
                "messages a day",
                "tokens a day, estimated",
                "named/&lt;b&gt;&amp;",
            ] {
                assert!(svg.contains(part), "{part} in {svg}");
            }
            assert!(!svg.contains("<b>"));
        }
    }
}
