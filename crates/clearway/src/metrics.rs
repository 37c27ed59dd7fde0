//! `metrics_listen`: a server's metrics as OpenMetrics, over HTTP.
//!
//! ```text
//!   curl http://127.0.0.1:9187/metrics
//! ```
//!
//! The names and meanings are the engine's ([`clearway_engine::metrics`]). While the server starts, the answer is 503.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use clearway_engine::Engine;
use clearway_engine::metrics::{Metric, MetricKind, Sample};
use clearway_node::http::{self, NOT_FOUND, OK, Response};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

use crate::error::Result;
use crate::output::notice;

/// The media type of OpenMetrics.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The engine whose metrics are shown, once there is one.
#[derive(Debug, Clone, Default)]
pub(crate) struct MetricsPage(Arc<Mutex<Weak<Engine>>>);

impl MetricsPage {
    /// Answers requests at `address`, if there is one, for as long as the process runs.
    pub(crate) fn listen(address: &str) -> Result<MetricsPage> {
        let page = MetricsPage::default();
        if !address.is_empty() {
            let shown = page.clone();
            let bound = http::serve(address, "clearway metrics", move |path| shown.answer(path))?;
            notice(format_args!("metrics are at http://{bound}/metrics"));
        }
        Ok(page)
    }

    /// Shows the metrics of this engine from now on. It goes when its server ends, although the page stays.
    pub(crate) fn show(&self, engine: &Arc<Engine>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(engine);
    }

    fn answer(&self, path: &str) -> Response {
        let empty = |status| Response {
            status,
            content_type: "text/plain",
            body: String::new(),
        };
        if path.split('?').next() != Some("/metrics") {
            return empty(NOT_FOUND);
        }
        let engine = self.0.lock().unwrap_or_else(PoisonError::into_inner).upgrade();
        let Some(engine) = engine else {
            return empty("503 Service Unavailable");
        };
        let mut registry = Registry::default();
        registry.register_collector(Box::new(Metrics(engine)));
        let mut body = String::new();
        match encode(&mut body, &registry) {
            Ok(()) => Response {
                status: OK,
                content_type: OPEN_METRICS,
                body,
            },
            Err(fmt::Error) => empty("500 Internal Server Error"),
        }
    }
}

/// The metrics of an engine.
#[derive(Debug)]
struct Metrics(Arc<Engine>);

impl Collector for Metrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        for reading in self.0.metrics() {
            let kind = match reading.metric.kind {
                MetricKind::Counter => MetricType::Counter,
                MetricKind::Gauge => MetricType::Gauge,
            };
            let mut of_metric =
                encoder.encode_descriptor(reading.metric.name, reading.metric.help, None, kind)?;
            for sample in &reading.samples {
                put(&mut of_metric, reading.metric, sample)?;
            }
        }
        Ok(())
    }
}

fn put(encoder: &mut MetricEncoder<'_>, metric: &Metric, sample: &Sample) -> fmt::Result {
    let labels: Vec<(&str, &str)> = metric
        .labels
        .iter()
        .copied()
        .zip(sample.labels.iter().map(String::as_str))
        .collect();
    let of_sample = encoder.encode_family(&labels)?;
    match metric.kind {
        MetricKind::Counter => ConstCounter::new(sample.value).encode(of_sample),
        MetricKind::Gauge => ConstGauge::new(sample.value).encode(of_sample),
    }
}

#[cfg(test)]
mod tests {
    use clearway_engine::metrics::METRICS;

    use super::*;

    #[test]
    fn each_metric_has_its_type_and_its_value() {
        let directory = tempfile::tempdir().unwrap();
        let config = clearway_engine::Config::from_toml("shared_buffers = \"2MB\"").unwrap();
        let engine = Engine::open(directory.path(), config).unwrap();
        let page = MetricsPage::default();
        assert!(page.answer("/metrics").status.starts_with("503 "));
        page.show(&engine);
        let answered = page.answer("/metrics?name=all");
        assert_eq!((answered.status, answered.content_type), (OK, OPEN_METRICS));
        for metric in METRICS {
            let told = format!("# TYPE {} {}\n", metric.name, metric.kind.name());
            assert!(answered.body.contains(&told), "{told}{}", answered.body);
        }
        for line in [
            "clearway_transactions_total{outcome=\"rollback\"} 0",
            "clearway_sessions_max 500",
        ] {
            assert!(answered.body.contains(line), "{line}\n{}", answered.body);
        }
        assert!(answered.body.ends_with("# EOF\n"));
        assert_eq!(page.answer("/").status, NOT_FOUND);
        engine.shutdown().unwrap();
        drop(engine);
        assert!(page.answer("/metrics").status.starts_with("503 "));
    }
}
