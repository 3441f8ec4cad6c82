//! Counts for monitoring, in OpenMetrics' text format

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http::StatusCode;
use sottovoce_net::OpenMetrics;

use crate::database::Load;

/// The upper bounds of the times that are counted, in microseconds.
const BOUNDS: [u64; 8] = [1_000, 5_000, 10_000, 50_000, 100_000, 500_000, 1_000_000, 10_000_000];

/// What was counted since the process began.
#[derive(Debug, Default)]
pub(super) struct Metrics {
    /// Answers by the first digit of their status, from 1.
    answers: [AtomicU64; 5],
    limited: AtomicU64,
    busy: AtomicU64,
    records: AtomicU64,
    bytes: AtomicU64,
    /// By bound; the last are those above all.
    times: [AtomicU64; 9],
    microseconds: AtomicU64,
}

impl Metrics {
    pub(super) fn count_answer(&self, status: StatusCode) {
        if let Some(count) = self.answers.get(usize::from(status.as_u16() / 100).saturating_sub(1))
        {
            count.fetch_add(1, Ordering::Relaxed);
        }
        match status {
            StatusCode::TOO_MANY_REQUESTS => self.limited.fetch_add(1, Ordering::Relaxed),
            StatusCode::SERVICE_UNAVAILABLE => self.busy.fetch_add(1, Ordering::Relaxed),
            _ => 0,
        };
    }

    pub(super) fn count_time(&self, time: Duration) {
        let microseconds = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let at = BOUNDS.iter().position(|bound| microseconds <= *bound).unwrap_or(BOUNDS.len());
        if let Some(count) = self.times.get(at) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        self.microseconds.fetch_add(microseconds, Ordering::Relaxed);
    }

    pub(super) fn count_records(&self, records: usize, bytes: usize) {
        self.records.fetch_add(records as u64, Ordering::Relaxed);
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(super) fn text(&self, load: Load, waiting: usize) -> String {
        let mut text = OpenMetrics::default();
        let get = |count: &AtomicU64| count.load(Ordering::Relaxed);
        text.family("counter", "sottovoce_team_answers", "Answers by class of status.");
        for (class, count) in (1..).zip(&self.answers) {
            let count = get(count);
            let _ = writeln!(text, "sottovoce_team_answers_total{{class=\"{class}xx\"}} {count}");
        }
        for (name, help, value) in [
            ("limited", "Requests refused by a rate or a quota.", &self.limited),
            ("busy", "Requests refused since the server was busy.", &self.busy),
            ("records", "Records that clients appended, repeated ones included.", &self.records),
            ("record_bytes", "Sealed bytes of those records.", &self.bytes),
        ] {
            text.counter(&format!("sottovoce_team_{name}"), help, get(value));
        }
        for (name, help, value) in [
            ("waiting", "Requests that wait for changes.", waiting),
            ("connections_used", "Connections of the database in use.", load.used),
            ("connections_most", "The most connections of the database.", load.most),
        ] {
            text.gauge(&format!("sottovoce_team_{name}"), help, value);
        }
        let name = "sottovoce_team_seconds";
        let _ = writeln!(
            text,
            "# TYPE {name} histogram\n# UNIT {name} seconds\n# HELP {name} Time until the answer, without waiting for changes."
        );
        let mut sum = 0;
        for (bound, count) in BOUNDS.iter().zip(&self.times) {
            sum += get(count);
            let bound = Duration::from_micros(*bound).as_secs_f64();
            let _ = writeln!(text, "{name}_bucket{{le=\"{bound}\"}} {sum}");
        }
        sum += self.times.last().map_or(0, get);
        let seconds = Duration::from_micros(get(&self.microseconds)).as_secs_f64();
        let _ = writeln!(
            text,
            "{name}_bucket{{le=\"+Inf\"}} {sum}\n{name}_sum {seconds}\n{name}_count {sum}"
        );
        text.end()
    }
}
