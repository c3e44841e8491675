//! Text from outside: whoever was recorded, or wrote the store, chose it. What is read is made fit
//! to be shown before it leaves the store.

use model::outside::{self, visible};
use model::{Run, Tick};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Sqlite;
use crate::StoreError;

impl Sqlite {
    /// What was read, with every text of it fit to be shown: whoever was recorded, or wrote the
    /// store or the run file, had these texts in hand.
    pub(super) fn shown<T: Serialize + DeserializeOwned>(&self, read: T) -> Result<T, StoreError> {
        outside::shown(read).map_err(|error| self.damaged(&error))
    }

    fn damaged(&self, error: &serde_json::Error) -> StoreError {
        let what = visible(&error.to_string()).into_owned();
        StoreError::Damaged { path: self.path.clone(), what }
    }

    /// The same of a run, whose large parts are taken one by one: what has an unsafe text takes many
    /// times its memory on the way.
    pub(super) fn shown_run(&self, mut run: Run) -> Result<Run, StoreError> {
        let large = Run {
            processes: self.each_shown(&mut run.processes)?,
            threads: self.each_shown(&mut run.threads)?,
            seconds: self.each_shown(&mut run.seconds)?,
            events: self.each_shown(&mut run.events)?,
            presences: self.each_shown(&mut run.presences)?,
            outliers: self.each_shown(&mut run.outliers)?,
            in_messages: self.each_shown(&mut run.in_messages)?,
            stacks: std::mem::take(&mut *run.stacks)
                .into_iter()
                .map(|(id, stack)| Ok((id, self.shown(stack)?)))
                .collect::<Result<_, StoreError>>()?,
            sums: std::mem::take(&mut run.sums).shown().map_err(|error| self.damaged(&error))?,
            ..Run::default()
        };
        // They have no text, and can be most of a run.
        let ticks = take_ticks(&mut run);
        let mut small = self.shown(run)?;
        put_ticks(&mut small, ticks);
        Ok(Run {
            processes: large.processes,
            threads: large.threads,
            seconds: large.seconds,
            events: large.events,
            presences: large.presences,
            outliers: large.outliers,
            in_messages: large.in_messages,
            stacks: large.stacks,
            sums: large.sums,
            ..small
        })
    }

    pub(super) fn each_shown<T, C>(&self, all: &mut Vec<T>) -> Result<C, StoreError>
    where
        T: Serialize + DeserializeOwned,
        C: FromIterator<T>,
    {
        std::mem::take(all).into_iter().map(|one| self.shown(one)).collect()
    }
}

fn take_ticks(run: &mut Run) -> Vec<Vec<Tick>> {
    let series = run.jitter.iter_mut().flat_map(|jitter| &mut jitter.series);
    series.map(|series| std::mem::take(&mut series.ticks)).collect()
}

fn put_ticks(run: &mut Run, ticks: Vec<Vec<Tick>>) {
    let series = run.jitter.iter_mut().flat_map(|jitter| &mut jitter.series);
    series.zip(ticks).for_each(|(series, ticks)| series.ticks = ticks);
}
