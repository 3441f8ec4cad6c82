//! Metrics in OpenMetrics' text format

use std::fmt::{Display, Write};

/// The type of the text.
pub const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Metrics as text, one family after the other. More lines of the last one may be written to it.
#[derive(Debug, Default)]
pub struct OpenMetrics(String);

impl OpenMetrics {
    /// Begins with metrics that are text already, without the line that ends it.
    pub fn new(text: String) -> Self {
        Self(text)
    }

    /// Begins a family.
    pub fn family(&mut self, kind: &str, name: &str, help: &str) {
        let _ = writeln!(self, "# TYPE {name} {kind}\n# HELP {name} {help}");
    }

    /// A count since the process began.
    pub fn counter(&mut self, name: &str, help: &str, value: u64) {
        self.family("counter", name, help);
        let _ = writeln!(self, "{name}_total {value}");
    }

    /// Something that goes up and down.
    pub fn gauge(&mut self, name: &str, help: &str, value: impl Display) {
        self.family("gauge", name, help);
        let _ = writeln!(self, "{name} {value}");
    }

    /// The text with the line that ends it.
    #[must_use]
    pub fn end(mut self) -> String {
        self.0.push_str("# EOF\n");
        self.0
    }
}

impl Write for OpenMetrics {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.0.write_str(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_family_has_its_kind_and_its_help() {
        let mut metrics = OpenMetrics::new("# TYPE before gauge\n".to_owned());
        metrics.counter("answers", "Answers.", 7);
        metrics.gauge("open", "Open conversations.", 1.5);
        assert_eq!(
            metrics.end(),
            "# TYPE before gauge\n# TYPE answers counter\n# HELP answers Answers.\nanswers_total 7\n\
             # TYPE open gauge\n# HELP open Open conversations.\nopen 1.5\n# EOF\n"
        );
    }
}
