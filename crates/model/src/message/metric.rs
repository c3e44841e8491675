//! What is measured of messages, and the values of it.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::Histogram;
use crate::text_form::text_form;

/// What is measured of each message.
///
/// Text form: `total`, `infrastructure`, `logic`, `answering`, `held`, `publish_gap`, `to_point:0`,
/// `to_publish:0`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum MessageMetric {
    /// From receipt to end.
    Total,
    /// From receipt to the start of the logic.
    Infrastructure,
    /// From the start of the logic to the end.
    Logic,
    /// From the first byte of an answer to the last, of requests that were answered in parts.
    Answering,
    /// As [`MessageMetric::Total`], of requests that nobody worked on meanwhile: long polls and
    /// subscriptions. They are in no other metric.
    Held,
    /// From one publish to the next, or from logic start to the first.
    PublishGap,
    /// From receipt to the infrastructure point of this place.
    ToPoint(u32),
    /// The gap that ended with the publish of this place.
    ToPublish(u32),
}

/// The values of one metric of one flow within a time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessageSecond {
    /// Number of the program.
    pub program: u32,
    /// Number of the flow in the program.
    pub flow: u32,
    /// What was measured.
    pub metric: MessageMetric,
    /// Start of the interval: about a second long, or since the program began to trace.
    pub start_ns: u64,
    /// The values counted in it. The sum is held within what the buckets allow; lowest and highest
    /// value are bounds of a bucket where the exact one is not known.
    pub histogram: Histogram,
}

impl fmt::Display for MessageMetric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MessageMetric::Total => f.write_str("total"),
            MessageMetric::Infrastructure => f.write_str("infrastructure"),
            MessageMetric::Logic => f.write_str("logic"),
            MessageMetric::Answering => f.write_str("answering"),
            MessageMetric::Held => f.write_str("held"),
            MessageMetric::PublishGap => f.write_str("publish_gap"),
            MessageMetric::ToPoint(place) => write!(f, "to_point:{place}"),
            MessageMetric::ToPublish(place) => write!(f, "to_publish:{place}"),
        }
    }
}

impl FromStr for MessageMetric {
    type Err = String;

    fn from_str(s: &str) -> Result<Self, Self::Err> {
        let unknown = || format!("'{s}' is no metric of messages");
        let (kind, place) = s.split_once(':').unwrap_or((s, ""));
        let place = || place.parse().map_err(|_| unknown());
        Ok(match kind {
            "total" => MessageMetric::Total,
            "infrastructure" => MessageMetric::Infrastructure,
            "logic" => MessageMetric::Logic,
            "answering" => MessageMetric::Answering,
            "held" => MessageMetric::Held,
            "publish_gap" => MessageMetric::PublishGap,
            "to_point" => MessageMetric::ToPoint(place()?),
            "to_publish" => MessageMetric::ToPublish(place()?),
            _ => return Err(unknown()),
        })
    }
}

text_form!(MessageMetric);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MessageFlow;

    #[test]
    fn metrics_survive_their_text_form() {
        let flow = MessageFlow {
            points: vec!["journalled".into()],
            publishes: vec!["fill".into(), "trade-report".into()],
            ..MessageFlow::default()
        };
        let metrics: Vec<_> = flow.metrics().collect();
        assert_eq!(metrics.len(), 7);
        for metric in &metrics {
            assert_eq!(metric.to_string().parse(), Ok(*metric));
        }
        assert_eq!(flow.metric_name(metrics[6]), "gap to trade-report");
        assert!("to_point:".parse::<MessageMetric>().is_err());
    }
}
