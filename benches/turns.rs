//! Benchmark of whole turns with a real model server: how much of each prompt it has read already, and how long the
//! rest takes.
//!
//! `cargo bench --bench turns -- [--url http://127.0.0.1:11434] [--model NAME] [--turns 30,200] [--plot FILE.svg]
//! [--json FILE]`
//!
//! It needs a server with Ollama's API. It shows the share of cached tokens if the server reports it
//! (`prompt_cached_count`), and always the evaluation time.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, missing_docs)]
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod support;

use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::tz::Offset;
use plotters::prelude::*;
use sottovoce::context::{LastNContextProvider, Placement};
use sottovoce::conversation::TurnReport;
use sottovoce::model::{ModelRequest, OllamaChatRenderer, OllamaPromptRenderer, PromptRenderer};
use sottovoce::prompt::Prompt;
use sottovoce::{Conversation, ConversationStore, ManualClock, ModelOptions, Ollama, OllamaModel};
use support::{Samples, is_trial, message, options, print_table, shown};

const LAST_N: usize = 6;
const SYSTEM: &str = "You are the voice assistant of a household. Answer in one or two short \
    sentences that sound natural when spoken, without lists or markup.";

/// Colours that colour-blind people can tell apart.
const COLORS: [RGBColor; 4] =
    [RGBColor(230, 25, 75), RGBColor(60, 180, 75), RGBColor(213, 94, 0), RGBColor(0, 130, 200)];

/// A way to fill the prompt.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    /// A configured conversation, prepared at the wake word as the docs advise.
    Default,
    /// The same without preparing.
    Unprepared,
    /// Exactly the last six messages, with the current time in the system prompt.
    TimeAtHead,
    /// Exactly the last six messages and the current time in one text.
    OneText,
}

impl Way {
    const ALL: [Self; 4] = [Self::Default, Self::Unprepared, Self::TimeAtHead, Self::OneText];

    fn name(self) -> &'static str {
        match self {
            Self::Default => "default, prepare() before",
            Self::Unprepared => "default, unprepared",
            Self::TimeAtHead => "last 6, time at the head",
            Self::OneText => "last 6, one text",
        }
    }
}

struct Settings {
    url: String,
    model: String,
    turns: Vec<usize>,
    plot: Option<String>,
    json: Option<String>,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let settings = settings();
    let server = Ollama::new(&settings.url, Duration::from_secs(300))?;
    if is_trial() {
        return Ok(());
    }
    let version = match server.version().await {
        Ok(version) => version,
        Err(error) => {
            println!(
                "SKIPPED: nothing was measured: {error}; start a server or name it with --url"
            );
            return Ok(());
        }
    };
    println!("{} on {}, which says it is version {version}\n", settings.model, settings.url);
    let mut runs = Vec::new();
    for &turns in &settings.turns {
        for way in Way::ALL {
            let reports = converse(&settings, way, turns).await?;
            eprintln!("{turns} turns {}: done", way.name());
            runs.push((way, turns, reports));
        }
    }
    print_runs(&runs);
    if let Some(file) = &settings.json {
        write_rows(file, &runs)?;
    }
    if let Some(file) = &settings.plot {
        let longest = settings.turns.iter().max().copied().unwrap_or(0);
        plot(file, &settings.model, runs.iter().filter(|(_, turns, _)| *turns == longest))?;
        println!("\nplotted {longest} turns to {file}");
    }
    Ok(())
}

fn settings() -> Settings {
    let mut settings = Settings {
        url: "http://127.0.0.1:11434".to_owned(),
        model: "llama3.2".to_owned(),
        turns: vec![30, 200],
        plot: None,
        json: None,
    };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().expect("a value behind the option");
        match argument.as_str() {
            "--url" => settings.url = value(),
            "--model" => settings.model = value(),
            "--turns" => {
                settings.turns = value().split(',').map(|turns| turns.parse().unwrap()).collect();
            }
            "--plot" => settings.plot = Some(value()),
            "--json" => settings.json = Some(value()),
            _ => {}
        }
    }
    settings
}

/// Holds a conversation of this many turns through the public API.
async fn converse(
    settings: &Settings,
    way: Way,
    turns: usize,
) -> Result<Vec<Utterance>, Box<dyn Error>> {
    let zone = Offset::constant(1).to_time_zone();
    let clock = Arc::new(ManualClock::at(message(0).timestamp.to_zoned(zone.clone())));
    let store = options().clock(clock.clone()).open_in_memory().await?;
    let store: Arc<dyn ConversationStore> = Arc::new(store);
    let history = match way {
        Way::Default | Way::Unprepared => LastNContextProvider::in_blocks(),
        Way::TimeAtHead | Way::OneText => LastNContextProvider::new(),
    };
    let builder = Conversation::builder(store.clone()).system(SYSTEM).history(history);
    let mut options = ModelOptions::new(&settings.model);
    options.num_ctx = Some(4096);
    // As short as voice answers are. A small model would not stop.
    options.num_predict = Some(32);
    options.temperature = Some(0.0);
    options.strict = true;
    let server = Ollama::new(&settings.url, Duration::from_secs(300))?;
    let model = OllamaModel::new(server, options);
    let model = match way {
        Way::Default | Way::Unprepared => model,
        Way::TimeAtHead => model.renderer(TimeAtHead),
        Way::OneText => model.renderer(OllamaPromptRenderer::new),
    };
    let conversation = builder.last_n(LAST_N).model(model).build();
    let mut reports = Vec::new();
    for turn in 0..turns {
        let mut said = message(2 * turn);
        // Real users do not number what they say.
        said.content = said.content.rsplit_once(" (").unwrap().0.to_owned();
        clock.set(said.timestamp.to_zoned(zone.clone()));
        let mut prepared = Duration::ZERO;
        if way == Way::Default {
            let begun = Instant::now();
            conversation.warm_up().await?;
            prepared = begun.elapsed();
        }
        let (_, kept) = conversation.ask_message(said).await?.whole().await?;
        reports.push((kept.report, prepared));
    }
    Ok(reports)
}

/// The plain way: system prompt with the current time, then the messages unchanged.
struct TimeAtHead(ModelOptions);

impl PromptRenderer for TimeAtHead {
    fn render(&self, prompt: &Prompt) -> ModelRequest {
        let mut plain = prompt.clone();
        plain.system =
            format!("The current time is {}. {}", prompt.now.strftime("%A %F %R"), prompt.system);
        let stamped = OllamaChatRenderer::new(self.0.clone()).render(&plain);
        let mut body: serde_json::Value = serde_json::from_str(&stamped.body).unwrap();
        let said = prompt.placed(Placement::History).chain([&prompt.user_input]);
        let lines = body["messages"].as_array_mut().unwrap().iter_mut().skip(1);
        for (line, message) in lines.zip(said) {
            line["content"] = message.content.as_str().into();
        }
        ModelRequest::json(stamped.path, &body)
    }
}

/// The share of tokens that came from the cache.
fn cached(report: &TurnReport) -> Option<f64> {
    Some(100.0 * report.usage.cached_tokens? as f64 / report.usage.prompt_tokens? as f64)
}

fn evaluation(report: &TurnReport) -> Duration {
    report.usage.prompt_time.unwrap_or_default()
}

type Figure = fn(&TurnReport) -> f64;
/// The figures of a turn, and the time of preparing it.
type Utterance = (TurnReport, Duration);
type Run = (Way, usize, Vec<Utterance>);

fn print_runs(runs: &[Run]) {
    let mut rows = Vec::new();
    for (way, turns, reports) in runs {
        let sum = |count: fn(&TurnReport) -> Option<u64>| {
            reports.iter().filter_map(|(report, _)| count(report)).sum::<u64>()
        };
        let tokens = sum(|report| report.usage.prompt_tokens);
        let from_cache = sum(|report| report.usage.cached_tokens);
        let told = reports.iter().any(|(report, _)| report.usage.cached_tokens.is_some());
        let whole: Duration = reports.iter().map(|(report, _)| evaluation(report)).sum();
        let prepared: Duration = reports.iter().map(|(_, prepared)| *prepared).sum();
        let sliding: Option<Duration> = runs
            .iter()
            .find(|(way, other, _)| *way == Way::TimeAtHead && other == turns)
            .map(|(_, _, reports)| reports.iter().map(|(report, _)| evaluation(report)).sum());
        let (mut first, mut evaluated) = (Samples::default(), Samples::default());
        for (report, _) in reports {
            first.push(report.time_to_first_token.unwrap_or_default());
            evaluated.push(evaluation(report));
        }
        let drops = reports
            .windows(2)
            .map(|pair| (pair[0].0.receipt.start(), pair[1].0.receipt.start()))
            .filter(|(before, now)| before.is_some() && before != now)
            .count();
        rows.push(vec![
            way.name().to_owned(),
            turns.to_string(),
            drops.to_string(),
            (tokens / *turns as u64).to_string(),
            if told {
                format!("{:.1} %", 100.0 * from_cache as f64 / tokens as f64)
            } else {
                "not told".to_owned()
            },
            shown(whole / u32::try_from(*turns).unwrap()),
            shown(evaluated.median()),
            sliding.map_or_else(String::new, |sliding| {
                format!("{:.2}", whole.as_secs_f64() / sliding.as_secs_f64())
            }),
            shown(first.median()),
            shown(prepared / u32::try_from(*turns).unwrap()),
        ]);
    }
    let head = [
        "prompt",
        "turns",
        "beginning moved",
        "mean tokens",
        "from the cache",
        "mean evaluation",
        "median",
        "of time at head's",
        "median to 1st token",
        "mean preparing",
    ];
    print_table(&head, &rows);
}

/// One line per turn.
fn write_rows(file: &str, runs: &[Run]) -> Result<(), Box<dyn Error>> {
    let mut lines = String::new();
    for (way, turns, reports) in runs {
        for (turn, (report, prepared)) in reports.iter().enumerate() {
            let row = serde_json::json!({
                "prompt": way.name(), "turns": turns, "turn": turn + 1, "report": report,
                "prepareMs": prepared.as_secs_f64() * 1e3,
            });
            lines += &format!("{row}\n");
        }
    }
    Ok(std::fs::write(file, lines)?)
}

fn plot<'a>(
    file: &str,
    model: &str,
    runs: impl Iterator<Item = &'a Run>,
) -> Result<(), Box<dyn Error>> {
    let runs: Vec<&Run> = runs.collect();
    let turns = runs.iter().map(|(_, turns, _)| *turns).max().unwrap_or(1);
    let area = SVGBackend::new(file, (960, 720)).into_drawing_area();
    area.fill(&WHITE)?;
    let halves = area.split_evenly((2, 1));
    let slowest = runs
        .iter()
        .flat_map(|(_, _, reports)| {
            reports.iter().map(|(report, _)| evaluation(report).as_secs_f64() * 1e3)
        })
        .fold(1.0, f64::max);
    let panels: [(&str, f64, Figure); 2] = [
        ("prompt tokens from the cache, %", 100.0, |report| cached(report).unwrap_or_default()),
        ("evaluation of the prompt, ms", slowest * 1.05, |report| {
            evaluation(report).as_secs_f64() * 1e3
        }),
    ];
    for (half, (label, most, value)) in halves.iter().zip(panels) {
        let mut chart = ChartBuilder::on(half)
            .caption(format!("{label} ({model})"), ("sans-serif", 18))
            .margin(12)
            .x_label_area_size(36)
            .y_label_area_size(56)
            .build_cartesian_2d(1..turns, 0.0..most)?;
        chart.configure_mesh().x_desc("turn").y_desc(label).light_line_style(WHITE).draw()?;
        for (at, (way, _, reports)) in runs.iter().enumerate() {
            let color = COLORS[at % COLORS.len()];
            let points =
                reports.iter().enumerate().map(|(turn, (report, _))| (turn + 1, value(report)));
            chart
                .draw_series(LineSeries::new(points, color.stroke_width(2)))?
                .label(way.name())
                .legend(move |(x, y)| {
                    PathElement::new([(x, y), (x + 18, y)], color.stroke_width(2))
                });
        }
        chart
            .configure_series_labels()
            .background_style(WHITE.mix(0.85))
            .border_style(BLACK.mix(0.3))
            .position(SeriesLabelPosition::MiddleRight)
            .draw()?;
    }
    area.present()?;
    Ok(())
}
