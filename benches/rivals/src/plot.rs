//! Plots cost against number of messages, one panel per figure.

use std::error::Error;
use std::path::Path;

use plotters::coord::Shift;
use plotters::prelude::*;

use crate::contender::{Kind, Outcome};
use crate::figure::{Cell, Figure, Unit, Who};

const PANELS: [Figure; 9] = [
    Figure::Unchanged,
    Figure::OwnAppend,
    Figure::OtherAppend,
    Figure::Open,
    Figure::Memory,
    Figure::Day,
    Figure::Append,
    Figure::Bulk,
    Figure::Scan,
];
const COLUMNS: usize = 3;
const PANEL: (u32, u32) = (360, 270);
const LEGEND: u32 = 36;

/// Colours that colour-blind people can tell apart.
fn color(who: Who) -> RGBColor {
    match who {
        Who::Store(Kind::Ours) => RGBColor(213, 94, 0),
        Who::Store(Kind::SqlCipher) => RGBColor(0, 114, 178),
        Who::Store(Kind::Redb) => RGBColor(0, 158, 115),
        Who::Store(Kind::Document) => RGBColor(40, 40, 40),
        Who::Store(Kind::JsonLines) => RGBColor(204, 121, 167),
        Who::Store(Kind::JsonFile) => RGBColor(150, 150, 150),
        Who::Floor => RGBColor(230, 190, 0),
    }
}

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

pub(crate) fn plot(file: &Path, cells: &[Cell]) -> Outcome<()> {
    draw(file, cells).map_err(|error| format!("{}: {error}", file.display()).into())
}

fn draw(file: &Path, cells: &[Cell]) -> Result<(), Box<dyn Error>> {
    let measured = |figure: &Figure| cells.iter().any(|cell| cell.figure == *figure);
    let panels: Vec<Figure> = PANELS.into_iter().filter(measured).collect();
    let rows = panels.len().div_ceil(COLUMNS).max(1);
    let size = (PANEL.0 * COLUMNS as u32, PANEL.1 * rows as u32 + LEGEND);
    let whole = SVGBackend::new(file, size).into_drawing_area();
    whole.fill(&WHITE)?;
    let (legend, below) = whole.split_vertically(LEGEND);
    draw_legend(&legend, cells)?;
    for (area, figure) in below.split_evenly((rows, COLUMNS)).iter().zip(panels) {
        let mine: Vec<Cell> = cells.iter().filter(|cell| cell.figure == figure).copied().collect();
        draw_panel(area, figure, &mine)?;
    }
    whole.present()?;
    Ok(())
}

fn draw_legend(area: &Area<'_>, cells: &[Cell]) -> Result<(), Box<dyn Error>> {
    let mut x = 16;
    for who in Who::ALL {
        if cells.iter().any(|cell| cell.who == who) {
            let line = [(x, 20), (x + 22, 20)];
            area.draw(&PathElement::new(line, color(who).stroke_width(3)))?;
            area.draw(&Text::new(who.name(), (x + 28, 13), ("sans-serif", 14)))?;
            x += 56 + 8 * who.name().len() as i32;
        }
    }
    Ok(())
}

fn draw_panel(area: &Area<'_>, figure: Figure, cells: &[Cell]) -> Result<(), Box<dyn Error>> {
    let (fewest, most) = span(cells.iter().map(|cell| cell.messages as f64));
    let (least, dearest) = span(cells.iter().map(|cell| cell.summary.median));
    let mut chart = ChartBuilder::on(area)
        .caption(caption(figure), ("sans-serif", 15))
        .margin(8)
        .x_label_area_size(26)
        .y_label_area_size(62)
        .build_cartesian_2d(
            (fewest / 1.5..most * 1.5).log_scale(),
            (least / 2.0..dearest * 2.0).log_scale(),
        )?;
    let unit = figure.unit();
    chart
        .configure_mesh()
        .x_label_formatter(&|messages| format!("{messages:.0}"))
        .y_label_formatter(&|cost| tick(unit, *cost))
        .x_labels(5)
        .y_labels(8)
        .light_line_style(WHITE)
        .draw()?;
    for who in Who::ALL {
        let points: Vec<(f64, f64)> = cells
            .iter()
            .filter(|cell| cell.who == who)
            .map(|cell| (cell.messages as f64, cell.summary.median))
            .collect();
        let color = color(who);
        chart.draw_series(LineSeries::new(points.clone(), color.stroke_width(2)))?;
        chart.draw_series(points.into_iter().map(|at| Circle::new(at, 3, color.filled())))?;
    }
    Ok(())
}

fn caption(figure: Figure) -> String {
    match figure.unit() {
        Unit::SecondsEach => format!("{}, each", figure.name()),
        _ => figure.name().to_owned(),
    }
}

/// A power of ten in words.
fn tick(unit: Unit, cost: f64) -> String {
    let steps = match unit {
        Unit::Bytes => [(1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B")],
        Unit::Seconds | Unit::SecondsEach => [(1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")],
    };
    // Slightly less, because 1e-3 may be computed as 0.00099999.
    let step = steps.into_iter().find(|(size, _)| cost >= size * 0.999);
    step.map_or_else(String::new, |(size, name)| format!("{:.0} {name}", cost / size))
}

fn span(values: impl Iterator<Item = f64>) -> (f64, f64) {
    values.fold((f64::INFINITY, f64::MIN_POSITIVE), |(least, most), value| {
        (least.min(value), most.max(value))
    })
}
