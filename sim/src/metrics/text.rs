//! Writing the Prometheus text format.

use std::fmt::Write;

use super::histogram::Histogram;

/// Label names and values, in the order they are written.
pub(super) type Labels<'a> = &'a [(&'a str, &'a str)];

/// A page in the making, numbers as Python's client writes them: floats all.
#[derive(Default)]
pub(super) struct Text {
    pub(super) out: String,
}

impl Text {
    pub(super) fn family(&mut self, name: &str, kind: &str, help: &str) {
        let _ = write!(self.out, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
    }

    pub(super) fn sample(&mut self, name: &str, labels: Labels<'_>, value: f64) {
        self.raw_sample(name, labels, &float(value));
    }

    /// A sample whose number is written already.
    pub(super) fn raw_sample(&mut self, name: &str, labels: Labels<'_>, value: &str) {
        self.out.push_str(name);
        for (at, (label, text)) in labels.iter().enumerate() {
            self.out.push(if at == 0 { '{' } else { ',' });
            let _ = write!(self.out, "{label}=\"");
            escape(&mut self.out, text);
            self.out.push('"');
        }
        self.out.push_str(if labels.is_empty() { " " } else { "} " });
        self.out.push_str(value);
        self.out.push('\n');
    }
}

/// Python's `prometheus_client`: base labels on every sample, labels sorted, `_created` beside every counter.
pub(super) struct PythonClient<'a> {
    pub(super) text: Text,
    pub(super) labels: Labels<'a>,
    /// Unix seconds for the `_created` families; `None` leaves them out, as its multi-process mode does.
    pub(super) created: Option<f64>,
}

impl PythonClient<'_> {
    pub(super) fn gauge(&mut self, name: &str, help: &str, value: f64) {
        self.text.family(name, "gauge", help);
        self.text.sample(name, self.labels, value);
    }

    /// A counter; `name` is without `_total`.
    pub(super) fn counter(&mut self, name: &str, help: &str, value: u64) {
        let total = format!("{name}_total");
        self.text.family(&total, "counter", help);
        self.text.sample(&total, self.labels, value as f64);
        self.created(name, help, &[&[]]);
    }

    /// A family with one more label.
    pub(super) fn labelled(&mut self, name: &str, kind: &str, help: &str, label: &str, values: &[(&str, f64)]) {
        let sample = if kind == "counter" { format!("{name}_total") } else { name.to_owned() };
        self.text.family(&sample, kind, help);
        for (text, value) in values {
            let extra = [(label, *text)];
            let labels = merged(self.labels, &extra);
            self.text.sample(&sample, &labels, *value);
        }
        if kind == "counter" {
            let extra: Vec<_> = values.iter().map(|(text, _)| [(label, *text)]).collect();
            self.created(name, help, &extra.iter().map(<[_; 1]>::as_slice).collect::<Vec<_>>());
        }
    }

    pub(super) fn histogram(&mut self, name: &str, help: &str, histogram: &Histogram) {
        self.text.family(name, "histogram", help);
        let bucket = format!("{name}_bucket");
        for (bound, count) in histogram.cumulative() {
            let bound = float(bound);
            let extra = [("le", bound.as_str())];
            let labels = merged(self.labels, &extra);
            self.text.sample(&bucket, &labels, count as f64);
        }
        self.text.sample(&format!("{name}_count"), self.labels, histogram.count() as f64);
        self.text.sample(&format!("{name}_sum"), self.labels, histogram.sum());
        self.created(name, help, &[&[]]);
    }

    /// What the client library itself exposes about the process.
    pub(super) fn process(&mut self, started: f64) {
        let text = &mut self.text;
        for (name, help, values) in GC {
            text.family(name, "counter", help);
            for (generation, value) in ["0", "1", "2"].into_iter().zip(values) {
                text.sample(name, &[("generation", generation)], value);
            }
        }
        text.family("python_info", "gauge", "Python platform information");
        let version = [("implementation", "CPython"), ("major", "3"), ("minor", "12"), ("patchlevel", "1")];
        text.sample("python_info", &[version.as_slice(), &[("version", "3.12.1")]].concat(), 1.0);
        let start = "Start time of the process since unix epoch in seconds.";
        for (name, kind, help, value) in [
            ("process_virtual_memory_bytes", "gauge", "Virtual memory size in bytes.", 4_648_574_976.0),
            ("process_resident_memory_bytes", "gauge", "Resident memory size in bytes.", 1_066_618_880.0),
            ("process_start_time_seconds", "gauge", start, started),
            ("process_cpu_seconds_total", "counter", "Total user and system CPU time spent in seconds.", 37.14),
            ("process_open_fds", "gauge", "Number of open file descriptors.", 50.0),
            ("process_max_fds", "gauge", "Maximum number of open file descriptors.", 20_000.0),
        ] {
            text.family(name, kind, help);
            text.sample(name, &[], value);
        }
    }

    fn created(&mut self, name: &str, help: &str, series: &[Labels<'_>]) {
        let Some(created) = self.created else { return };
        let name = format!("{name}_created");
        self.text.family(&name, "gauge", help);
        for extra in series {
            let labels = merged(self.labels, extra);
            self.text.sample(&name, &labels, created);
        }
    }
}

/// Both, sorted by name.
fn merged<'a>(labels: Labels<'a>, extra: Labels<'a>) -> Vec<(&'a str, &'a str)> {
    let mut all = [labels, extra].concat();
    all.sort_unstable_by_key(|(label, _)| *label);
    all
}

const GC: [(&str, &str, [f64; 3]); 3] = [
    ("python_gc_objects_collected_total", "Objects collected during gc", [14_034.0, 2890.0, 918.0]),
    ("python_gc_objects_uncollectable_total", "Uncollectable objects found during GC", [0.0, 0.0, 0.0]),
    ("python_gc_collections_total", "Number of times this generation was collected", [1379.0, 126.0, 9.0]),
];

/// A float as Python's client writes it: `4.0`, `1.0e+06`, `+Inf`, `NaN`.
fn float(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "+Inf".to_owned() } else { "-Inf".to_owned() };
    }
    if value.abs() < 1e6 {
        return format!("{value:?}");
    }
    let text = format!("{value:e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let point = if mantissa.contains('.') { "" } else { ".0" };
    format!("{mantissa}{point}e+{exponent:0>2}")
}

fn escape(out: &mut String, text: &str) {
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '"' => out.push_str("\\\""),
            '\n' => out.push_str("\\n"),
            other => out.push(other),
        }
    }
}
