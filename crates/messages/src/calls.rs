//! Puts calls with the requests that they were made for, and with the requests that they were at the
//! other end, where that was recorded, too.

use std::collections::VecDeque;

use model::{Answer, AtSocket, Call, Context, Message, Outlier};

/// Calls and requests that wait for others to be put with, and how long they do.
const WAITING: usize = 20_000;
const WAITING_NS: u64 = 10_000_000_000;

/// Calls of one request that are kept, the longest.
const KEPT: usize = 16;

/// From a request over its calls to those of its peers, and on.
const STEPS: usize = 4;

/// What was seen in the last seconds.
#[derive(Default)]
pub(crate) struct Calls {
    calls: VecDeque<Call>,
    requests: VecDeque<Message>,
    sleeps: VecDeque<Sleep>,
}

/// A thread slept until another one of its process let it go on.
struct Sleep {
    tid: u32,
    waker_tid: u32,
    from_ns: u64,
    to_ns: u64,
}

impl Sleep {
    fn of(outlier: &Outlier) -> Option<Sleep> {
        let waker = outlier.waker.as_ref()?;
        let is_by_thread = waker.context == Context::Task && waker.tgid == outlier.tgid;
        (outlier.blocked.is_some() && is_by_thread).then(|| Sleep {
            tid: outlier.tid,
            waker_tid: waker.tid,
            from_ns: outlier.start_ns,
            to_ns: outlier.end_ns(),
        })
    }
}

impl Calls {
    /// Adds what was seen since the last time, kept or not.
    pub fn add<'a>(
        &mut self,
        now_ns: u64,
        calls: Vec<Call>,
        requests: impl Iterator<Item = &'a Message>,
    ) {
        self.calls.extend(calls);
        self.requests.extend(requests.cloned());
        let is_old = |end_ns: u64| end_ns.saturating_add(WAITING_NS) < now_ns;
        while self.calls.len() > WAITING || self.calls.front().is_some_and(|c| is_old(c.read_ns)) {
            self.calls.pop_front();
        }
        while self.requests.len() > WAITING
            || self.requests.front().is_some_and(|m| is_old(m.end_ns))
        {
            self.requests.pop_front();
        }
        while self.sleeps.len() > WAITING || self.sleeps.front().is_some_and(|s| is_old(s.to_ns)) {
            self.sleeps.pop_front();
        }
    }

    /// Adds intervals, of which the sleeps show who works for whom.
    pub fn add_sleeps<'a>(&mut self, outliers: impl Iterator<Item = &'a Outlier>) {
        self.sleeps.extend(outliers.filter_map(Sleep::of));
    }

    /// The calls that were made for a request.
    pub fn put_with(&self, request: &mut Message) {
        let calls = self.made_for(request, STEPS);
        if let Some(at_socket) = &mut request.at_socket {
            at_socket.calls = calls;
        }
    }

    fn made_for(&self, request: &Message, steps: usize) -> Vec<Call> {
        let Some(at) = &request.at_socket else { return Vec::new() };
        let slept: Vec<&Sleep> = self.sleeps.iter().filter(|s| s.tid == request.tid).collect();
        let is_its = |call: &&Call| {
            call.tgid == at.tgid
                && (request.logic_start_ns..request.end_ns).contains(&call.sent_ns)
                && (is_cause(request, at, call) || self.is_waited_for(&slept, call))
        };
        let mut calls: Vec<Call> = self.calls.iter().filter(is_its).cloned().collect();
        calls.sort_by_key(|call| std::cmp::Reverse(call.ns()));
        calls.truncate(KEPT);
        calls.sort_by_key(|call| call.sent_ns);
        for call in &mut calls {
            call.answer = self.answer(call, steps);
        }
        calls
    }

    /// A thread that works on no request of its own made the call, and woke the one that had read the
    /// request out of a sleep into which the answer came.
    fn is_waited_for(&self, slept: &[&Sleep], call: &Call) -> bool {
        let ends = |sleep: &&&Sleep| {
            sleep.waker_tid == call.tid && (sleep.from_ns..sleep.to_ns).contains(&call.arrived_ns)
        };
        // What a thread has read last is its cause still when it has long been answered.
        let is_of_its_own = |request: &Message| {
            request.at_socket.as_ref().is_some_and(|at| at.link == call.cause)
                && (request.logic_start_ns..request.end_ns).contains(&call.sent_ns)
        };
        slept.iter().any(|sleep| ends(&sleep)) && !self.requests.iter().any(is_of_its_own)
    }

    /// The request that a call was at its other end.
    fn answer(&self, call: &Call, steps: usize) -> Option<Answer> {
        let is_it = |request: &&Message| {
            request.at_socket.as_ref().is_some_and(|at| at.link == call.link)
                && (call.sent_ns..=call.arrived_ns).contains(&request.t0_ns)
        };
        let request = self.requests.iter().find(is_it)?;
        let served_ns = request.published.first().map_or(request.end_ns, |first| first.time_ns);
        Some(Answer {
            program: request.program,
            tid: request.tid,
            arrived_ns: request.t0_ns,
            read_ns: request.logic_start_ns,
            served_ns,
            calls: steps
                .checked_sub(1)
                .map(|left| self.made_for(request, left))
                .unwrap_or_default(),
        })
    }
}

/// What a thread read last, a request or the answer to a call, is what its next call is for. Of other
/// threads that is not known: where one reads and another answers, any of the process may have
/// worked on the request in between.
fn is_cause(request: &Message, at: &AtSocket, call: &Call) -> bool {
    match call.cause {
        0 => at.handed.is_some() || request.tid == call.tid,
        cause => cause == at.link,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A request of process `tgid`, whose only thread has its number, on connection `link`.
    fn request(tgid: u32, link: u64, t0_ns: u64, end_ns: u64) -> Message {
        let at_socket = AtSocket { tgid, link, ..AtSocket::default() };
        Message {
            program: tgid,
            flow: 1,
            id: 1,
            sample: None,
            t0_ns,
            logic_start_ns: t0_ns + 10,
            end_ns,
            tid: tgid,
            points: Vec::new(),
            published: Vec::new(),
            publishes: 1,
            longest_gap_ns: 0,
            depth: None,
            ahead: Vec::new(),
            kept_ns: 0,
            at_socket: Some(at_socket),
        }
    }

    fn call(tgid: u32, link: u64, sent_ns: u64, arrived_ns: u64) -> Call {
        let (program, tid, read_ns) = (99, tgid, arrived_ns + 1);
        Call { program, tgid, tid, link, cause: 0, sent_ns, arrived_ns, read_ns, answer: None }
    }

    #[test]
    fn a_request_leads_to_the_peers_of_its_peers() {
        let mut front = request(1, 11, 1_000, 9_000);
        let middle = request(2, 22, 2_000, 8_000);
        let back = request(3, 33, 3_000, 7_000);
        let made = vec![
            call(1, 22, 1_900, 8_100),
            call(2, 33, 2_900, 7_100),
            call(1, 22, 9_500, 9_900), // for another request
            call(2, 22, 1_950, 8_100), // of another process
            Call { cause: 12, ..call(1, 22, 1_960, 8_100) }, // for one beside it
        ];
        let mut calls = Calls::default();
        calls.add(10_000, made, [&front, &middle, &back].into_iter());
        calls.put_with(&mut front);
        let of_front = &front.at_socket.unwrap().calls;
        assert_eq!(of_front.iter().map(|call| call.sent_ns).collect::<Vec<_>>(), [1_900]);
        let answer = of_front[0].answer.as_ref().unwrap();
        assert_eq!((answer.program, answer.arrived_ns, answer.read_ns), (2, 2_000, 2_010));
        assert_eq!(answer.calls[0].answer.as_ref().unwrap().program, 3);
    }

    #[test]
    fn calls_of_a_thread_that_the_reader_waits_for_are_of_its_request() {
        let mut own = request(1, 11, 1_000, 9_000);
        let helper = |cause| Call { tid: 7, cause, ..call(1, 55, 2_000, 6_000) };
        let sleep = |waker_tid, to_ns| Sleep { tid: 1, waker_tid, from_ns: 1_500, to_ns };
        let calls_of_own = |own: &mut Message, cause, sleep, others: &[&Message]| {
            let mut calls = Calls::default();
            calls.sleeps.push_back(sleep);
            calls.add(10_000, vec![helper(cause)], others.iter().copied());
            calls.put_with(own);
            own.at_socket.as_ref().unwrap().calls.len()
        };
        assert_eq!(calls_of_own(&mut own, 0, sleep(7, 6_500), &[]), 1);
        assert_eq!(calls_of_own(&mut own, 66, sleep(7, 6_500), &[]), 1, "66 is answered");
        let others = request(1, 66, 1_200, 8_000);
        assert_eq!(calls_of_own(&mut own, 66, sleep(7, 6_500), &[&others]), 0, "it is for 66");
        assert_eq!(calls_of_own(&mut own, 0, sleep(7, 5_500), &[]), 0, "before the answer came");
        assert_eq!(calls_of_own(&mut own, 0, sleep(8, 6_500), &[]), 0, "another let it go on");
    }

    #[test]
    fn calls_to_oneself_have_an_end_and_old_ones_are_forgotten() {
        let mut looped = request(1, 22, 1_000, 9_000);
        let mut calls = Calls::default();
        let made = vec![call(1, 22, 1_010, 8_000)];
        let again = request(1, 22, 1_010, 9_000);
        calls.add(10_000, made, [&again].into_iter());
        calls.put_with(&mut looped);
        assert!(!looped.at_socket.as_ref().unwrap().calls.is_empty());
        calls.add(20_000_000_000, Vec::new(), std::iter::empty());
        calls.put_with(&mut looped);
        assert!(looped.at_socket.unwrap().calls.is_empty());
    }
}
