//! What part of a run is asked about: one outlier, one message, a window of time, or one thread.
//!
//! The part itself is made in `run`.

use model::{Message, Run, Window};

use crate::text::{count, counted, duration};

/// What is asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Question {
    /// The outlier of this number: 1 is the longest of the run.
    Outlier(usize),
    /// From, to: nanoseconds since the start of the run. The end may be beyond that of the run.
    Window(u64, u64),
    /// The thread of this tid.
    Thread(u32),
    /// The slow message of this number: 1 is the slowest of the run.
    Message(usize),
}

/// Why a run has no such part; says what is there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "each message says what it is about")]
pub enum QuestionError {
    #[error(
        "run {0} has no interval kept whole: thread states were sampled from /proc, which gives \
         accounts only; 'whylag explain {0}' explains those"
    )]
    Sampled(model::RunId),
    #[error("run {run} has no outlier: nothing in it took {threshold} or longer")]
    NoOutliers { run: model::RunId, threshold: String },
    #[error(
        "run {0} has no slow message or request: no recorded program traced one ('whylag trace \
         --help'), and none was seen at a socket ('whylag record --slower-than' says what is slow)"
    )]
    NoMessages(model::RunId),
    #[error("run {run} has no slow message {number}: it has {there}, 1 is the slowest")]
    NoSuchMessage { run: model::RunId, number: usize, there: String },
    #[error("run {run} has no outlier {number}: {there}, 1 is the longest")]
    NoSuchOutlier { run: model::RunId, number: usize, there: String },
    #[error("the window {window} is outside run {run}, which is {length} long")]
    Outside { run: model::RunId, window: String, length: String },
    #[error(
        "the window {window} does not end after its start: write the earlier time first, as in \
         1.2..1.5s; run {run} is {length} long"
    )]
    Reversed { run: model::RunId, window: String, length: String },
    #[error("run {run} has no thread {tid}: 'whylag show {run}' lists its {threads}")]
    NoThread { run: model::RunId, tid: u32, threads: String },
}

impl Question {
    /// Where in `run` that is, thread by thread where it goes from one to another.
    ///
    /// # Errors
    /// If there is no such part.
    pub fn parts(&self, run: &Run) -> Result<Vec<Window>, QuestionError> {
        match *self {
            Question::Message(number) => Ok(message(run, number)?.windows()),
            _ => Ok(vec![self.part(run)?]),
        }
    }

    /// The number of the outlier, if one is asked about.
    pub fn outlier(&self) -> Option<u64> {
        match *self {
            Question::Outlier(number) => Some(number as u64),
            _ => None,
        }
    }

    /// Where in `run` that is. Checks that it is there.
    ///
    /// # Errors
    /// If it is not.
    pub fn part(&self, run: &Run) -> Result<Window, QuestionError> {
        let start = run.header.started_ns;
        let length = run.length_ns();
        let no_intervals = run.header.sampled && run.outliers.is_empty();
        match *self {
            Question::Outlier(_) | Question::Window(..) | Question::Message(_) if no_intervals => {
                Err(QuestionError::Sampled(run.id))
            }
            Question::Outlier(_) if run.outliers.is_empty() => Err(QuestionError::NoOutliers {
                run: run.id,
                threshold: duration(run.header.threshold_ns),
            }),
            Question::Outlier(number) => {
                let outlier = number.checked_sub(1).and_then(|place| run.outliers.get(place));
                let outlier = outlier.ok_or_else(|| QuestionError::NoSuchOutlier {
                    run: run.id,
                    number,
                    there: numbered(run),
                })?;
                let (from_ns, to_ns) = (outlier.start_ns, outlier.end_ns());
                Ok(Window { from_ns, to_ns, tid: Some(outlier.tid) })
            }
            Question::Message(number) => {
                let message = message(run, number)?;
                Ok(Window { from_ns: message.t0_ns, to_ns: message.end_ns, tid: None })
            }
            Question::Window(from, to) => {
                let window = window(from, to);
                let (id, length_text) = (run.id, duration(length));
                if to <= from {
                    return Err(QuestionError::Reversed { run: id, window, length: length_text });
                }
                if from >= length {
                    return Err(QuestionError::Outside { run: id, window, length: length_text });
                }
                let at = |offset: u64| start.saturating_add(offset.min(length));
                Ok(Window { from_ns: at(from), to_ns: at(to), tid: None })
            }
            Question::Thread(tid) => {
                // Of very many the store gives the one that is asked about only when it is asked.
                if run.sums.others.is_empty() {
                    must_have(run, tid)?;
                }
                let to_ns = start.saturating_add(length);
                Ok(Window { from_ns: start, to_ns, tid: Some(tid) })
            }
        }
    }
}

/// Refuses a thread that is not in the run by itself.
pub(crate) fn must_have(run: &Run, tid: u32) -> Result<(), QuestionError> {
    if run.threads.iter().any(|thread| thread.tid == tid) {
        return Ok(());
    }
    let summed = run.summed().map_or_else(String::new, |summed| format!(" ({summed})"));
    let threads = counted(run.thread_count(), "thread") + &summed;
    Err(QuestionError::NoThread { run: run.id, tid, threads })
}

/// The slow message of this number.
pub(crate) fn message(run: &Run, number: usize) -> Result<&Message, QuestionError> {
    let slow = &run.messages.slow;
    if slow.is_empty() {
        return Err(QuestionError::NoMessages(run.id));
    }
    number.checked_sub(1).and_then(|place| slow.get(place)).ok_or_else(|| {
        QuestionError::NoSuchMessage { run: run.id, number, there: count(slow.len() as u64) }
    })
}

/// `it has 12`, or which of them have numbers.
fn numbered(run: &Run) -> String {
    let loaded = run.outliers.len() as u64;
    if run.outlier_count > loaded {
        return format!(
            "of its {} the longest {} are numbered",
            count(run.outlier_count),
            count(loaded)
        );
    }
    format!("it has {}", count(loaded))
}

fn window(from: u64, to: u64) -> String {
    format!("{}..{}", duration(from), duration(to))
}

pub(crate) fn what(whole: &Run, question: &Question) -> String {
    match *question {
        Question::Outlier(number) => {
            let outlier = number.checked_sub(1).and_then(|place| whole.outliers.get(place));
            let of = outlier.map(|o| format!(" ({}, tid {})", o.comm, o.tid));
            format!("outlier {number}{}", of.unwrap_or_default())
        }
        Question::Window(from, to) => {
            format!("the window {}", window(from, to.min(whole.length_ns())))
        }
        Question::Message(number) => {
            let of = message(whole, number).ok().map(|message| {
                let flow = whole.messages.flow_of(message).map_or("message", |f| f.name.as_str());
                format!(" ({flow} {}, {})", message.id, duration(message.total_ns()))
            });
            format!("slow message {number}{}", of.unwrap_or_default())
        }
        Question::Thread(tid) => {
            let comm = whole.threads.iter().find(|t| t.tid == tid).map(|t| t.comm.as_str());
            format!("thread {} (tid {tid})", comm.unwrap_or("?"))
        }
    }
}

/// What the explanation rests on, and what is not in it.
pub(crate) fn basis(whole: &Run, question: &Question, intervals: u64, alone: bool) -> String {
    let threshold = duration(whole.header.threshold_ns);
    let n = counted(intervals, "interval");
    match question {
        Question::Outlier(_) => format!(
            "Based on {n} of at least {threshold} kept whole: the outlier and what is within it."
        ),
        Question::Window(..) => format!(
            "Based on {n} of at least {threshold} kept whole, cut to the window. What threads did \
             in between, shorter intervals included, is not known and counts as unaccounted."
        ),
        Question::Message(number) => {
            let message = message(whole, *number).ok();
            let kept = duration(message.map_or(whole.header.threshold_ns, |m| m.kept_ns));
            format!(
                "Based on {n} of at least {kept} kept whole, of the threads that had the message, \
                 each for its time. In between they ran, or waited for less than {kept} at a time; \
                 that counts as unaccounted."
            )
        }
        Question::Thread(_) if alone => "The accounts of the thread are complete; it was the only \
                                      one of its process, so the sums of the process are its own."
            .to_owned(),
        Question::Thread(_) => format!(
            "The accounts of the thread are complete; whom it waited for is known only of its {n} \
             of at least {threshold}, kept whole: sums of its process are not divided by thread."
        ),
    }
}
