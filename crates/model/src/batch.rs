//! What a source hands to the store about once a second.

use std::fmt;

use serde::Serialize;
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};

use crate::{
    Bench, Capability, Cost, Event, Fact, Jitter, Messages, MetricSecond, Outlier, Presence,
    Process, SeriesTicks, Sockets, Stack, Sums, ThreadAccounts,
};

/// One step of a recording, stored as a whole or not at all.
///
/// Additions: `seconds`, `outliers`, `events`, `stacks`, `facts`, `losses`, `sockets`,
/// `presences`, `ticks`. Latest values that
/// replace what was stored under the same key: `threads` (tid, first_ns), `processes` (tgid),
/// `sums` (each by its key), `capabilities` (part), `cost`,
/// `bench`, `jitter`. Of `messages`, `programs` (program) and `fast` (program, flow, sample) are
/// replaced, `seconds` and `slow` are added.
///
/// Run files consist of batches. What an older whylag did not know is then empty.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Batch {
    /// Data is complete up to here.
    pub heartbeat_ns: u64,
    /// Added.
    pub facts: Vec<Fact>,
    /// Replaced by part.
    pub capabilities: Vec<Capability>,
    /// Replaced by tgid.
    pub processes: Vec<Process>,
    /// Replaced by (tid, first_ns).
    pub threads: Vec<ThreadAccounts>,
    /// Added.
    pub seconds: Vec<MetricSecond>,
    /// Added. Those below the threshold of the run are kept for the sake of a message only.
    pub outliers: Vec<Outlier>,
    /// Added.
    pub events: Vec<Event>,
    /// Added; a stack that is there already is replaced.
    pub stacks: Vec<Stack>,
    /// Replaced by their keys.
    #[serde(flatten)]
    pub sums: Sums,
    /// Added: (kind, start of the interval, count).
    pub losses: Vec<(String, u64, u64)>,
    /// Replaced.
    pub cost: Option<Cost>,
    /// Replaced.
    pub bench: Option<Bench>,
    /// Replaced, with all ticks.
    pub jitter: Option<Jitter>,
    /// Added to the series of `jitter`.
    pub ticks: Vec<SeriesTicks>,
    /// `slow_count` is the store's to count.
    pub messages: Messages,
    /// Added.
    pub sockets: Sockets,
    /// Added.
    pub presences: Vec<Presence>,
}

/// Reads a batch by the names of these fields, and of the tables of sums.
macro_rules! read_fields {
    ($map:ident: $($field:ident)*) => {{
        let mut sums = Sums::default();
        $(let mut $field = Default::default();)*
        while let Some(key) = $map.next_key::<String>()? {
            match key.as_str() {
                $(stringify!($field) => $field = $map.next_value()?,)*
                table if sums.take(table, &mut $map)? => {}
                _ => _ = $map.next_value::<IgnoredAny>()?,
            }
        }
        Ok(Batch { sums, $($field),* })
    }};
}

/// By hand, because the derived code for a flattened field keeps all it does not know in memory until
/// the end: sixteen times the text, and run files come from anybody.
impl<'de> Deserialize<'de> for Batch {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Batch, D::Error> {
        struct OfFields;

        impl<'de> Visitor<'de> for OfFields {
            type Value = Batch;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a batch")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Batch, M::Error> {
                read_fields!(map: heartbeat_ns facts capabilities processes threads seconds outliers
                    events stacks losses cost bench jitter ticks messages sockets presences)
            }
        }

        deserializer.deserialize_map(OfFields)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_field_is_read_by_the_name_that_it_is_written_with() {
        let written = serde_json::to_value(Batch::default()).unwrap();
        for name in written.as_object().unwrap().keys() {
            // A number where there is a list, a list where there is a number, is no batch.
            let wrong = if name == "heartbeat_ns" { "[]" } else { "7" };
            let read = serde_json::from_str::<Batch>(&format!("{{\"{name}\":{wrong}}}"));
            assert!(read.is_err(), "{name} is not read");
        }
        let read: Batch = serde_json::from_str(r#"{"heartbeat_ns":7,"later":[{"x":[]}]}"#).unwrap();
        assert_eq!(read.heartbeat_ns, 7);
        assert_eq!(serde_json::to_value(Batch { heartbeat_ns: 0, ..read }).unwrap(), written);
        assert!(serde_json::from_str::<Batch>("[]").is_err());
    }
}
