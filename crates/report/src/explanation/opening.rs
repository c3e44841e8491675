//! The sentences that an explanation begins with.

use model::units::{count, counted, duration, moment, share, share_of};
use model::{Account, Blocked, Explanation, Finding, LeadingAccount, RequestTime, Run, RunStatus};

/// From this part of the wall time on it is said how long unrecorded children were waited for, and
/// from that part on first of all, if there is no finding.
const CHILDREN: f64 = 0.2;
const CHILDREN_LEAD: f64 = 0.5;

/// From this part of the wall time on it is said that the threads slept by timers.
const ASLEEP: f64 = 0.5;

/// An account with this part of the wall time is named where there is no finding, and so many of them.
const LARGE: f64 = 0.1;
const LARGEST_SHOWN: usize = 2;

/// Less of the wall time is little.
const LITTLE: f64 = 0.01;

/// From this part of the wall time on it is said first that the threads waited for work.
const IDLE: f64 = 0.5;

/// From this part of the time of the slowest requests on the opening names a cause by it.
pub(super) const LEAST_OF_REQUESTS: f64 = 0.1;

/// What whylag itself took, if that matters.
pub fn own_delay(explanation: &Explanation) -> Option<String> {
    let own = explanation.own_delay.filter(|own| own.matters)?;
    Some(format!(
        "Recording was in the way: whylag itself took {} of the wall time (on the CPU while threads \
         were ready to run: {}; with mmap_lock: {}). That is in no finding.",
        share(own.wall_share),
        duration(own.queued_ns),
        duration(own.locked_ns)
    ))
}

/// The account that most time was lost in, where no cause explains it.
fn leading_account(account: &LeadingAccount, explanation: &Explanation) -> String {
    let call = account.call.as_ref().map_or_else(String::new, |call| format!(" in {call}"));
    let unseen = unseen(explanation);
    let causes = match explanation.findings.len() {
        _ if unseen > 0 => {
            format!("no cause that was looked for explains it, and {} not looked at", were(unseen))
        }
        0 => "no cause of the catalogue explains it".to_owned(),
        _ => "no cause of the catalogue explains it, and what is explained is less".to_owned(),
    };
    format!(
        "{} of the wall time {}{call} ({}): {causes}; here is what is known.",
        share(account.wall_share),
        account.account.describe(),
        account.account
    )
}

/// The first line: the leading cause in plain words.
pub fn leading(explanation: &Explanation, run: &Run) -> String {
    if let Some(account) = &explanation.leading_account {
        return leading_account(account, explanation);
    }
    let has_finding = explanation.findings.iter().any(|finding| !finding.minor);
    if !has_finding && let Some(children) = unrecorded_children(explanation, CHILDREN_LEAD) {
        return children;
    }
    if explanation.findings.is_empty()
        && let Some(late) = late_answer(explanation)
    {
        return late;
    }
    match explanation.findings.first() {
        Some(Finding { requests: Some(cost), title, cause, wall_share, .. })
            if cost.share() >= LEAST_OF_REQUESTS =>
        {
            format!(
                "{title} ({cause}): {} of the time of the {} slowest {}{}, {} of the wall time",
                share(cost.share()),
                count(cost.of),
                if crate::messages::are_requests(run) { "requests" } else { "messages" },
                cost.of_port(),
                share(*wall_share)
            )
        }
        Some(finding) if finding.lost_ns == 0 => format!("{} ({})", finding.title, finding.cause),
        Some(finding) if finding.minor => format!(
            "Nothing that is known took 1 % of the wall time in {}; the largest is {}, {} of the \
             lost time.",
            place(explanation),
            finding.cause,
            share(finding.share)
        ),
        Some(finding) if finding.wall_share == 0.0 => format!(
            "{} ({}): {} of the lost time",
            finding.title,
            finding.cause,
            share(finding.share)
        ),
        Some(finding) => format!(
            "{} ({}): {} of the lost time, {} of the wall time{}",
            finding.title,
            finding.cause,
            share(finding.share),
            share(finding.wall_share),
            own_sleep(explanation)
        ),
        None => match instead(explanation) {
            Some(instead) => format!("{} {instead}", nothing(explanation)),
            None => format!("{}{}", nothing(explanation), mostly(explanation)),
        },
    }
}

/// That there is no finding.
fn nothing(explanation: &Explanation) -> String {
    let place = place(explanation);
    match unseen(explanation) {
        _ if explanation.lost_ns == 0 => {
            format!("No time was lost in {place}: there is nothing to explain.")
        }
        // Of a part that was asked about it is known that it is slow.
        0 if explanation.scope.is_none()
            && (explanation.lost_ns as f64) < LITTLE * explanation.wall_ns as f64 =>
        {
            format!(
                "Little time was lost in {place}, {} of the wall time, and no known cause explains it.",
                share_of(explanation.lost_ns, explanation.wall_ns)
            )
        }
        0 => format!("No known cause explains the time lost in {place}."),
        unseen => format!(
            "No cause that was looked for explains the time lost in {place}; {} not looked at.",
            were(unseen)
        ),
    }
}

/// That the threads mostly sleep until a timer of their own: it may be what they are slow by, beside all that
/// they lose in the rest.
fn own_sleep(explanation: &Explanation) -> String {
    let timer = Account::Blocked(Blocked::TimerSleep);
    let part = explanation.accounts.iter().find(|(account, _, _)| *account == timer);
    match part.filter(|(_, _, part)| *part >= ASLEEP) {
        Some((_, _, part)) => {
            format!("; for {} of it the threads were {}", share(*part), timer.describe())
        }
        None => String::new(),
    }
}

/// Where most of the wall time went instead: a program may be slow because it computes, or sleeps by itself.
/// Threads that wait for something to do are no reason, so these are told as such.
fn mostly(explanation: &Explanation) -> String {
    let accounts = explanation.accounts.iter();
    let largest = accounts.filter(|(_, _, part)| *part >= LARGE).take(LARGEST_SHOWN);
    let is_idle = explanation.idle_ns as f64 >= IDLE * explanation.wall_ns as f64;
    let words: Vec<String> = largest
        .enumerate()
        .map(|(n, (account, _, part))| {
            let of = if n == 0 && !is_idle { " of the wall time" } else { "" };
            format!("{} for {}{of}", account.describe(), share(*part))
        })
        .collect();
    let jitter = match own_sleep(explanation).is_empty() {
        true => "",
        false => " ('whylag jitter' measures how late timers fire)",
    };
    match words.is_empty() {
        true => String::new(),
        false if is_idle => format!(
            " {} of the wall time counts as waiting for work: the threads were {}{jitter}.",
            share_of(explanation.idle_ns, explanation.wall_ns),
            words.join(", and ")
        ),
        false => format!(" The threads were {}{jitter}.", words.join(", and ")),
    }
}

/// Who is waited for, and has always something to do.
fn never_rests(explanation: &Explanation) -> Option<String> {
    let one = explanation.never_rests.as_ref()?;
    Some(format!(
        "For {} of the wall time threads waited for {} (tid {}), which had something to do for {} of its \
         time: whether they waited for room in a queue, an answer or work, it limits what they do.",
        share(one.wall_share),
        one.comm,
        one.tid,
        share(one.busy_share)
    ))
}

/// Who computes for whom, one child process after the other.
fn working_children(explanation: &Explanation) -> Option<String> {
    let one = explanation.working_children.as_ref()?;
    Some(format!(
        "{} (pid {}) waited for {} of the time for {} named {}, one after the other, {} each, which ran on a CPU \
         for most of that: fewer of them, one that is kept running, or several at a time would save it that.",
        one.comm,
        one.tgid,
        share(one.share),
        counted(one.children, "child process"),
        one.child,
        duration(one.ns / one.children.max(1))
    ))
}

/// What is done too often in pieces that are too small.
fn frequent_call(explanation: &Explanation) -> Option<String> {
    let one = explanation.frequent_call.as_ref()?;
    Some(format!(
        "{} was called {}{} times a second (n = {}), which took {} of the wall time, {} each, with what recording \
         adds: fewer calls that do more would save most of that.",
        one.call,
        if one.is_estimate { "about " } else { "" },
        count(one.per_second.round() as u64),
        count(one.count),
        share(one.share),
        duration(one.mean_ns)
    ))
}

/// What is known where there is no finding, rather than where the threads were.
fn instead(explanation: &Explanation) -> Option<String> {
    never_rests(explanation)
        .or_else(|| working_children(explanation))
        .or_else(|| frequent_call(explanation))
        .or_else(|| many_calls(explanation))
        .or_else(|| slow_requests(explanation))
}

/// What the slowest requests did.
fn slow_requests(explanation: &Explanation) -> Option<String> {
    let slow = explanation.slow_requests.as_ref()?;
    let at = slow.at.as_ref().map_or_else(String::new, |at| format!(" of {at}"));
    let largest = slow.times.iter().filter(|time| time.share >= LARGE).take(LARGEST_SHOWN);
    let words: Vec<String> = largest.map(request_time).collect();
    let on_cpu = slow.on_cpu.as_ref().map_or_else(String::new, |function| {
        format!(
            " Of the CPU time of their threads {} was in {}.",
            share(function.share),
            function.name
        )
    });
    Some(format!(
        "The {}{at} took {} on average: {}.{on_cpu}",
        match slow.of {
            1 => "slowest request".to_owned(),
            of => format!("{} slowest requests", count(of)),
        },
        duration(slow.mean_ns),
        if words.is_empty() { "many short things".to_owned() } else { words.join(", and ") }
    ))
}

/// `for 92.1 % of that their thread was waiting in poll, select or epoll in epoll_wait`.
fn request_time(time: &RequestTime) -> String {
    let call = time.call.as_ref().map_or_else(String::new, |call| format!(" in {call}"));
    let did = match time.account {
        Some(account) => account.describe().to_owned() + &call,
        None => "on a CPU, or in short waits".to_owned(),
    };
    let who = match time.in_queue {
        true => "in the socket's queue, while whoever reads them was",
        false => "their thread was",
    };
    let until = match time.by_timer && time.account != Some(Account::Blocked(Blocked::TimerSleep)) {
        true => {
            ", until a time that it had set itself was over (a delay, a rate limit, a time limit)"
        }
        false => "",
    };
    format!("for {} of that {who} {did}{until}", share(time.share))
}

/// That each request makes many calls, which take long together though each may be short.
fn many_calls(explanation: &Explanation) -> Option<String> {
    let many = explanation.many_calls.as_ref()?;
    let all_ns = (many.per_request * many.mean_ns as f64) as u64;
    Some(format!(
        "Each request of {} makes {:.0} calls to {} on average: these take {} ({} each) while a request \
         takes {}, and CPU time is needed for each of them: fewer calls that ask for more would save both.",
        many.process,
        many.per_request,
        many.peer,
        duration(all_ns),
        duration(many.mean_ns),
        duration(many.request_ns)
    ))
}

/// Nothing is found, but a peer has not answered.
fn late_answer(explanation: &Explanation) -> Option<String> {
    let silent = explanation.unanswered.iter().find(|silent| silent.matters)?;
    let lost = match explanation.lost_ns {
        0 => "No time was lost in",
        _ => "No known cause explains the time lost in",
    };
    Some(format!(
        "{lost} {}, unless {} (pid {}) waits for an answer of {}: nothing has come for {}.",
        place(explanation),
        silent.comm,
        silent.tgid,
        super::peer(silent),
        duration(silent.ns)
    ))
}

/// That child processes were waited for which are not recorded, for this part of the wall time at least.
fn unrecorded_children(explanation: &Explanation, least: f64) -> Option<String> {
    let (ns, wall) = (explanation.unrecorded_children_ns, explanation.wall_ns);
    (ns > 0 && ns as f64 >= least * wall as f64).then(|| {
        format!(
            "{} of the wall time went by waiting for child processes that are not recorded: 'whylag \
             record --follow' records them as well.",
            share_of(ns, wall)
        )
    })
}

/// How many causes were not looked at.
fn unseen(explanation: &Explanation) -> usize {
    explanation.not_looked_at.iter().map(|group| group.causes.len()).sum()
}

/// `1 cause was`, `9 causes were`.
fn were(causes: usize) -> String {
    let verb = if causes == 1 { "was" } else { "were" };
    format!("{} {verb}", counted(causes as u64, "cause"))
}

/// The run, or the part of it that was asked about.
fn place(explanation: &Explanation) -> String {
    match &explanation.scope {
        Some(scope) => format!("{} of run {}", scope.what, explanation.run),
        None => format!("run {}", explanation.run),
    }
}

/// That there is more to come, or would have been.
fn unended(run: &Run) -> Option<String> {
    let words = match run.status {
        RunStatus::Complete => return None,
        RunStatus::Recording => {
            "It is still being recorded: this is what is known so far; names of functions, and some causes, \
             come at its end."
        }
        RunStatus::Interrupted => {
            "Its recording was interrupted: it is complete up to the last second, and what is read at the \
             end (names of functions) may be missing."
        }
    };
    Some(words.to_owned())
}

/// How the wall time divides, in a sentence.
pub fn sums(explanation: &Explanation, run: &Run) -> String {
    let wall = explanation.wall_ns;
    let target = &run.header.target;
    let (subject, threads) = match &explanation.scope {
        Some(scope) => {
            let subject = format!(
                "{} ({target}), {} to {} into it",
                place(explanation),
                moment(scope.from_ns),
                moment(scope.to_ns)
            );
            (subject, scope.threads)
        }
        None => (format!("run {} of {target}", explanation.run), run.thread_count()),
    };
    let sums = format!(
        "{}: {} and {} of wall time, of which {} ({}) lost, {} ({}) waiting for work, {} ({}) \
         unaccounted.",
        capitalized(&subject),
        counted(threads, "thread"),
        duration(wall),
        duration(explanation.lost_ns),
        share_of(explanation.lost_ns, wall),
        duration(explanation.idle_ns),
        share_of(explanation.idle_ns, wall),
        duration(explanation.unaccounted_ns),
        share_of(explanation.unaccounted_ns, wall),
    );
    let first = leading(explanation, run);
    let children = unrecorded_children(explanation, CHILDREN);
    let more = [
        unended(run),
        children,
        never_rests(explanation),
        working_children(explanation),
        frequent_call(explanation),
        many_calls(explanation),
    ];
    let more = more.into_iter().flatten().filter(|sentence| !first.ends_with(sentence.as_str()));
    [sums].into_iter().chain(more).collect::<Vec<_>>().join(" ")
}

fn capitalized(text: &str) -> String {
    let mut rest = text.chars();
    rest.next().map_or_else(String::new, |first| first.to_uppercase().chain(rest).collect())
}
