//! The figure: how long a question takes against the length of the conversation, and what the cache saves in each
//! turn. Lines differ by their dashes and marks, so that it can be printed in black.

use std::error::Error;

use plotters::coord::Shift;
use plotters::prelude::*;

use super::latency::Latency;
use super::turns::{Held, Reports, recalls};

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

pub(crate) fn draw(
    file: &str,
    latencies: &[Latency],
    reports: &Reports,
) -> Result<(), Box<dyn Error>> {
    let area = SVGBackend::new(file, (960, 720)).into_drawing_area();
    area.fill(&WHITE)?;
    let (upper, lower) = area.split_vertically(360);
    draw_latency(&upper, latencies)?;
    draw_cache(&lower, reports)?;
    area.present()?;
    Ok(())
}

fn draw_latency(area: &Area<'_>, latencies: &[Latency]) -> Result<(), Box<dyn Error>> {
    let turns = |at: Option<&Latency>| at.map_or(1., |latency| latency.turns as f64);
    let longest = latencies.iter().map(|latency| latency.most).fold(0.1, f64::max);
    let mut chart = ChartBuilder::on(area)
        .caption("a question, the index in memory", ("sans-serif", 18))
        .margin(12)
        .x_label_area_size(36)
        .y_label_area_size(56)
        .build_cartesian_2d(
            (turns(latencies.first())..turns(latencies.last()) * 1.1).log_scale(),
            (0.01..longest * 1.5).log_scale(),
        )?;
    chart.configure_mesh().x_desc("turns").y_desc("ms").light_line_style(WHITE).draw()?;
    let half = latencies.iter().map(|latency| (latency.turns as f64, latency.half));
    let most = latencies.iter().map(|latency| (latency.turns as f64, latency.most));
    chart
        .draw_series(LineSeries::new(half.clone(), BLACK.stroke_width(2)))?
        .label("half of the questions")
        .legend(|(x, y)| PathElement::new([(x, y), (x + 18, y)], BLACK.stroke_width(2)));
    chart.draw_series(half.map(|at| Circle::new(at, 4, BLACK.filled())))?;
    chart
        .draw_series(DashedLineSeries::new(most.clone(), 6, 4, BLACK.stroke_width(1)))?
        .label("99 %")
        .legend(|(x, y)| PathElement::new([(x, y), (x + 8, y)], BLACK.stroke_width(1)));
    chart.draw_series(most.map(|at| TriangleMarker::new(at, 5, BLACK.filled())))?;
    labels(&mut chart)
}

fn draw_cache(area: &Area<'_>, [with, without]: &Reports) -> Result<(), Box<dyn Error>> {
    let mut chart = ChartBuilder::on(area)
        .caption("prompt tokens from the cache; dots recall something", ("sans-serif", 18))
        .margin(12)
        .x_label_area_size(36)
        .y_label_area_size(56)
        .build_cartesian_2d(1..with.len(), 0.0..100.0)?;
    chart.configure_mesh().x_desc("turn").y_desc("%").light_line_style(WHITE).draw()?;
    let points = |turns: &[Held]| -> Vec<(usize, f64)> {
        (1..).zip(turns.iter().map(|held| 100. * held.cached)).collect()
    };
    chart
        .draw_series(LineSeries::new(points(with), BLACK.stroke_width(2)))?
        .label("with recall")
        .legend(|(x, y)| PathElement::new([(x, y), (x + 18, y)], BLACK.stroke_width(2)));
    let recalling = points(with).into_iter().zip(with).filter(|(_, held)| recalls(held));
    chart.draw_series(recalling.map(|(at, _)| Circle::new(at, 4, BLACK.filled())))?;
    chart
        .draw_series(DashedLineSeries::new(points(without), 6, 4, BLACK.stroke_width(1)))?
        .label("without")
        .legend(|(x, y)| PathElement::new([(x, y), (x + 8, y)], BLACK.stroke_width(1)));
    labels(&mut chart)
}

fn labels<'a, T>(chart: &mut ChartContext<'a, SVGBackend<'a>, T>) -> Result<(), Box<dyn Error>>
where
    T: CoordTranslate,
{
    chart
        .configure_series_labels()
        .background_style(WHITE)
        .border_style(BLACK.mix(0.3))
        .position(SeriesLabelPosition::LowerRight)
        .draw()?;
    Ok(())
}
