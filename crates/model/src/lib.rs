//! The vocabulary of whylag, shared by every room.
//!
//! A source (the recorder, a benchmark, a trace reader) turns the world into these types; the
//! store keeps them; explain and report read them. The one important type is [`Run`]: all that is
//! known of one recording.
//!
//! Caveats. This room is pure: no I/O, no clock, no thread. Every time is CLOCK_MONOTONIC in
//! nanoseconds (`u64`) of the recorded host, every duration is nanoseconds, unless a name says
//! otherwise. Numbers of system calls are those of the architecture whylag was built for.

pub mod account;
pub mod annotations;
pub mod batch;
pub mod bench;
pub mod chain_end;
pub mod check;
pub mod comparison;
mod describe;
mod event;
pub mod figures;
pub mod finding;
pub mod grid;
pub mod histogram;
pub mod jitter;
pub mod ladder;
pub mod leg;
mod message;
pub mod metric;
pub mod others;
pub mod outlier;
pub mod outside;
mod page_read;
pub mod presence;
pub mod proof;
mod recorder_part;
mod retry;
pub mod run;
pub mod runs_comparison;
pub mod series;
pub mod shared;
pub mod socket;
pub mod stack;
pub mod sums;
pub mod syscall;
mod text_form;
pub mod thread;
pub mod units;
pub mod wait;

pub use account::{Account, Accounts, Blocked, ParseAccountError, part_of};
pub use annotations::Annotations;
pub use batch::Batch;
pub use bench::{Bench, BenchCase, BenchOutlier, BenchRound, BenchStep, StoryShape, WorkerKind};
pub use chain_end::ChainEnd;
pub use check::{Check, CheckResult, Checkup, Compared, Subject, Unbound};
pub use comparison::{
    BenchComparison, CheckupDiff, CheckupDifference, FigureComparison, StepComparison,
};
pub use event::{Event, EventDetail, EventKind};
pub use figures::{CauseFigure, LatencyFigure, OwnFigure, RunFigures};
pub use finding::{
    BelowBar, CallDuration, Coincidence, Concentration, Evidence, Excluded, Explanation, Finding,
    FrequentCall, HeldOpen, Hurt, LeadingAccount, Link, LostStack, ManyCalls, NeverRests,
    NotLookedAt, NotRuledOut, OnCpu, OwnDelay, RequestCost, RequestFunction, RequestTime, Rhythm,
    RhythmKind, Role, RuledOut, SampledCall, SampledCalls, SampledFunction, Scope, SlowRequests,
    Standing, Turns, Unanswered, UnseenTasks, WhyNot, WorkingChildren,
};
pub use grid::{Grid, GridCell, GridRow, Outcome, Split};
pub use histogram::Histogram;
pub use jitter::{
    Conversion, EarlyLatePairs, Estimate, Jitter, JitterControl, JitterLaw, JitterProgram,
    JitterSeries, JitterThread, LateTick, LawModel, Period, SeriesTicks, Tick,
};
pub use ladder::{Along, LadderVerdict, ScalabilityLaw};
pub use leg::{Leg, LegKind};
pub use message::{
    Answer, AtSocket, Call, ContrastPart, ContrastSide, FlowKind, HandOver, Message, MessageAhead,
    MessageBreakdown, MessageContrast, MessageFlow, MessageMetric, MessagePart, MessagePoint,
    MessagePublish, MessageSecond, MessageSegment, MessageTime, Messages, Peer, SegmentKind,
    Service, ServiceRole, SlowMessages, TraceState, TracedProgram, UnfinishedMessage,
};
pub use metric::{Metric, MetricSecond};
pub use others::{Crowd, OtherThreads};
pub use outlier::{
    Context, FirstCall, Holder, Interrupts, Outlier, OutlierKind, Runner, SlotsLeft, SyscallCall,
    TimerLegs, Waker,
};
pub use page_read::{Evictor, PageRead};
pub use presence::Presence;
pub use proof::{
    AccountChange, Better, CauseProof, CauseVerdict, Difference, LatencyChange, Measured, Proof,
    ProofVerdict, Trial, TrialSide,
};
pub use recorder_part::{PartName, RecorderPart};
pub use retry::Retry;
pub use run::{
    BoundThreads, Capability, Cost, Counter, CpuTime, Fact, Labels, Losses, Origin, ProbeCost,
    Process, Run, RunEnd, RunHeader, RunId, RunStatus, RunSummary, Target, Window,
};
pub use runs_comparison::{
    AccountDelta, CauseDelta, ComparedSide, LatencyDelta, RunsComparison, Shifted,
};
pub use series::{MetricChange, Series, SeriesChange, SeriesKind, Trend, TrendLine, WeekChange};
pub use shared::Shared;
pub use socket::{
    BlockedSends, Connecting, Depth, Drops, QueueSecond, Resent, SentLast, Socket, SocketAddress,
    SocketKind, Sockets, Timeout, TimeoutKind,
};
pub use stack::{Frame, ImportedCall, PathSum, SourceLine, Space, Stack, StackId, StackSum};
pub use sums::{Sum, SumVisitor, Sums, put_into_groups};
pub use syscall::Syscall;
pub use thread::ThreadAccounts;
pub use wait::*;
