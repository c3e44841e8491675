//! Where the time of a message went: its parts, each filled from the intervals of the thread that
//! had it. And what slow messages have that the others lack.
//!
//! What no interval covers is reported as not covered: there the thread ran, or waited for less than the
//! shortest interval that was kept. Nothing is spread over the rest.

use std::collections::{BTreeMap, HashMap};

use model::{
    Account, Context, ContrastPart, ContrastSide, Message, MessageBreakdown, MessageContrast,
    MessagePart, MessageTime, Outlier, Run, SegmentKind, SlowMessages, Syscall,
};

use crate::part::clip::{Clip, clips};

/// The slow messages of a run that was loaded whole, with what their threads did, and what they have
/// more of than the control group of their flow.
pub fn slow_messages(run: &Run) -> SlowMessages {
    let slowest = break_down(run, run.messages.looked_at());
    let fast = break_down(run, &run.messages.fast);
    let mut contrasts = Vec::new();
    for program in &run.messages.programs {
        for flow in &program.flows {
            let of = |all: &[MessageBreakdown]| -> Vec<MessageBreakdown> {
                let is_of = |one: &&MessageBreakdown| {
                    (one.message.program, one.message.flow) == (program.program, flow.flow)
                };
                all.iter().filter(is_of).cloned().collect()
            };
            contrasts.push((flow.name.clone(), contrast(&of(&slowest), &of(&fast))));
        }
    }
    SlowMessages { slowest, contrasts }
}

/// The intervals in the time of the messages that are looked at, or else those of the run or of a
/// part of it.
pub(crate) fn intervals(run: &Run) -> &[Outlier] {
    if run.in_messages.is_empty() { &run.outliers } else { &run.in_messages }
}

/// The breakdown of each of these messages.
pub fn break_down<'a>(
    run: &Run,
    messages: impl IntoIterator<Item = &'a Message>,
) -> Vec<MessageBreakdown> {
    let mut by_thread: HashMap<u32, Vec<&Outlier>> = HashMap::new();
    for outlier in intervals(run) {
        by_thread.entry(outlier.tid).or_default().push(outlier);
    }
    for outliers in by_thread.values_mut() {
        outliers.sort_by_key(|outlier| outlier.start_ns);
    }
    let one = |message: &Message| {
        let flow = run.messages.flow_of(message).cloned().unwrap_or_default();
        let parts = message.segments().into_iter().map(|segment| {
            let outliers = segment.tid.and_then(|tid| by_thread.get(&tid));
            let outliers = outliers.map_or(&[][..], Vec::as_slice);
            let time = time_within(run, segment.from_ns, segment.to_ns, outliers);
            let ahead = match segment.kind {
                SegmentKind::Behind(ahead) => run.messages.flow(message.program, ahead.flow),
                _ => None,
            };
            let thread = run.threads.iter().find(|thread| Some(thread.tid) == segment.tid);
            MessagePart {
                name: segment.name(&flow, ahead),
                segment,
                ns: segment.ns(),
                comm: thread.map_or_else(String::new, |thread| thread.comm.clone()),
                time,
            }
        });
        MessageBreakdown {
            message: message.clone(),
            flow: flow.name.clone(),
            parts: parts.collect(),
        }
    };
    messages.into_iter().map(one).collect()
}

/// What a thread did from then to then; `outliers` are its own, in the order of their start.
pub(crate) fn time_within(
    run: &Run,
    from_ns: u64,
    to_ns: u64,
    outliers: &[&Outlier],
) -> Vec<MessageTime> {
    // Those that begin behind it are not in it.
    let behind = outliers.partition_point(|outlier| outlier.start_ns < to_ns);
    let of_it = outliers[..behind].iter().copied();
    let mut known: Vec<MessageTime> = Vec::new();
    for clip in clips(of_it, from_ns, to_ns) {
        for (account, ns) in clip.accounts.iter().filter(|(_, ns)| *ns > 0) {
            let time = MessageTime {
                account: Some(account),
                ns,
                call: clip.outlier.syscall.map(|call| call.call),
                place: place(run, &clip, account),
                by: by(&clip, account),
                by_timer: is_by_timer(&clip, account),
            };
            let same =
                known.iter_mut().find(|known| MessageTime { ns, ..(*known).clone() } == time);
            match same {
                Some(same) => same.ns = same.ns.saturating_add(ns),
                None => known.push(time),
            }
        }
    }
    let sum = known.iter().fold(0u64, |sum, time| sum.saturating_add(time.ns));
    let rest = to_ns.saturating_sub(from_ns).saturating_sub(sum);
    if rest > 0 {
        known.push(MessageTime {
            account: None,
            ns: rest,
            call: None,
            place: None,
            by: None,
            by_timer: false,
        });
    }
    known.sort_by_key(|time| std::cmp::Reverse(time.ns));
    known
}

/// Functions of the kernel that every sleep goes through; behind them is what it sleeps for.
const WAYS_TO_SLEEP: [&str; 14] = [
    "schedule",
    "__schedule",
    "io_schedule",
    "bit_wait",
    "__wait_on",
    "wait_on_",
    "out_of_line_wait",
    "folio_wait",
    "wait_for_completion",
    "do_wait",
    "mutex_lock",
    "__mutex_lock",
    "rwsem_down",
    "preempt_schedule",
];

/// The function in which it slept.
fn place(run: &Run, clip: &Clip, account: Account) -> Option<String> {
    let is_its_own = clip.own_details && matches!(account, Account::Blocked(_));
    let stack = run.stacks.get(&clip.outlier.kernel_stack.filter(|_| is_its_own)?)?;
    let is_way = |name: &str| WAYS_TO_SLEEP.iter().any(|way| name.starts_with(way));
    let mut names = stack.frames.iter().filter_map(|frame| frame.symbol.as_deref());
    names.find(|name| !is_way(name)).map(str::to_owned)
}

fn is_by_timer(clip: &Clip, account: Account) -> bool {
    let is_its_own =
        clip.own_details && clip.outlier.blocked.map(Account::Blocked) == Some(account);
    is_its_own && clip.outlier.is_ended_by_timer()
}

/// Who was to blame, as far as it is known.
fn by(clip: &Clip, account: Account) -> Option<String> {
    let outlier = clip.outlier;
    match account {
        Account::Blocked(kind) if clip.own_details && outlier.blocked == Some(kind) => {
            if let Some(holder) = outlier.holder.as_ref().filter(|_| kind.is_kernel_lock()) {
                return Some(format!("held by {} (tid {})", holder.comm, holder.tid));
            }
            if outlier.is_ended_by_timer() {
                return Some("until a time that it had set".to_owned());
            }
            let waker = outlier.waker.as_ref()?;
            match waker.context {
                Context::Task => Some(format!("woken by {} (tid {})", waker.comm, waker.tid)),
                Context::SoftIrq => Some("woken by a softirq".to_owned()),
                Context::HardIrq => Some("woken by an interrupt".to_owned()),
            }
        }
        account if account.is_waiting_for_cpu() => {
            let runner = outlier.ran_instead.first()?;
            Some(format!("{} (tid {}) ran", runner.comm, runner.tid))
        }
        _ => None,
    }
}

/// What is compared: the part, and what was done in it.
type Kind = (ContrastPart, Option<Account>, Option<Syscall>);

/// Differences smaller than this part of the slow messages' mean are not reported.
const LEAST_SHARE: f64 = 0.01;

/// What the slow messages of a flow have more of than its control group, the most first. Both are
/// of one flow; empty if one of them is.
fn contrast(slow: &[MessageBreakdown], fast: &[MessageBreakdown]) -> Vec<MessageContrast> {
    if slow.is_empty() || fast.is_empty() {
        return Vec::new();
    }
    let (of_slow, of_fast) = (sides(slow), sides(fast));
    let none = |group: &[MessageBreakdown]| ContrastSide {
        n: group.len() as u64,
        ..ContrastSide::default()
    };
    let mut all: Vec<MessageContrast> = of_slow
        .iter()
        .map(|(kind, side)| MessageContrast {
            part: kind.0.clone(),
            account: kind.1,
            call: kind.2,
            slow: *side,
            fast: of_fast.get(kind).copied().unwrap_or_else(|| none(fast)),
        })
        .collect();
    let total: u64 = slow.iter().fold(0, |sum, one| sum.saturating_add(one.message.total_ns()));
    let least = LEAST_SHARE * total as f64 / slow.len() as f64;
    all.retain(|contrast| contrast.difference_ns() >= least);
    all.sort_by(|a, b| b.difference_ns().total_cmp(&a.difference_ns()));
    all
}

fn sides(group: &[MessageBreakdown]) -> BTreeMap<Kind, ContrastSide> {
    let n = group.len() as u64;
    let mut sides: BTreeMap<Kind, ContrastSide> = BTreeMap::new();
    for one in group {
        let mut of_one: BTreeMap<Kind, u64> = BTreeMap::new();
        for part in &one.parts {
            if matches!(part.segment.kind, SegmentKind::Behind(_)) {
                let kind = (ContrastPart::Queued, None, None);
                *of_one.entry(kind).or_default() += part.ns;
                continue;
            }
            for time in &part.time {
                let name = ContrastPart::Named(part.name.clone());
                *of_one.entry((name, time.account, time.call)).or_default() += time.ns;
            }
        }
        for (kind, ns) in of_one {
            let side = sides.entry(kind).or_insert(ContrastSide { n, ..ContrastSide::default() });
            side.with += 1;
            side.mean_ns += ns as f64 / n as f64;
        }
    }
    sides
}

#[cfg(test)]
mod tests;
