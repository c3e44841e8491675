//! What a recording gives up while it lasts, because it costs too much.

use std::mem;

use model::units::share;
use model::{Capability, Cost, RecorderPart};

use super::Tracer;
use crate::call_windows::{self, CallWindows};
use crate::frequent::TooFrequent;
use crate::{Error, cost, host};

/// Nobody takes what is missing of a part for "not there" if it is less than that: there was too much of it
/// for half a second at least before (`frequent`), which was recorded whole.
const HARDLY_NS: u64 = 200_000_000;

impl Tracer {
    /// Gives up what is too frequent, and the most expensive part if recording costs more than its
    /// budget. Gives the parts that have changed.
    pub fn save_cost(&mut self, cost: &Cost) -> Result<Vec<Capability>, Error> {
        let mut changed = Vec::new();
        for beyond in self.too_frequent(cost)? {
            let now_ns = clock::monotonic_ns();
            let because = beyond.because(now_ns.saturating_sub(self.since_ns()));
            self.given_up.push((beyond.part, now_ns, because.clone()));
            changed.extend(self.give_up(beyond.part, because));
        }
        if let Some((part, because)) = self.beyond_budget(cost) {
            changed.extend(self.give_up(part, because));
        }
        Ok(changed)
    }

    /// What was given up so shortly before the recording stopped that it is as good as recorded.
    pub fn hardly_missed(&self, stopped_ns: u64) -> Vec<Capability> {
        let given_up = self.given_up.iter();
        given_up
            .filter(|(_, at_ns, _)| stopped_ns.saturating_sub(*at_ns) < HARDLY_NS)
            .map(|(part, _, because)| Capability {
                part: *part,
                on: true,
                because: because.clone(),
            })
            .collect()
    }

    /// Parts that the others can do without and of which a CPU has too much.
    fn too_frequent(&mut self, cost: &Cost) -> Result<Vec<TooFrequent>, Error> {
        let Some(frequencies) = &mut self.frequencies else { return Ok(Vec::new()) };
        let cpus = cost::cpus(&self.probes)?;
        let mut beyond = frequencies.look(clock::monotonic_ns(), &cpus, cost);
        let dispensable: Vec<_> = self.probes.dispensable().collect();
        beyond.retain(|one| dispensable.contains(&one.part));
        Ok(beyond)
    }

    /// Records without a part from now on; system calls are sampled then, if they can be.
    fn give_up(&mut self, part: RecorderPart, because: String) -> Vec<Capability> {
        self.probes.shed(part);
        let off = |part, because| Capability { part, on: false, because };
        if part != RecorderPart::SystemCalls || !self.probes.samples_calls() {
            return vec![off(part, because)];
        }
        let sampled = RecorderPart::SampledCalls;
        if let Some(unfit) = call_windows::unfit_host() {
            return vec![off(part, because), off(sampled, unfit)];
        }
        self.call_windows = Some(CallWindows::new());
        let because = format!("{because}; 'whylag show' estimates how many there are");
        vec![off(part, because), Capability { part: sampled, on: true, because: String::new() }]
    }

    /// The most expensive part and why it is to go, if recording costs more than its budget.
    fn beyond_budget(&mut self, cost: &Cost) -> Option<(RecorderPart, String)> {
        let budget = self.budget_percent?;
        let now = clock::monotonic_ns();
        let spent = cost.cpu_ns + cost.bpf_ns;
        let (since, before) = mem::replace(&mut self.budget_seen, (now, spent));
        if since == 0 || now <= since {
            return None;
        }
        let available = (now - since) as f64 * host::cpu_count() as f64;
        let percent = 100.0 * spent.saturating_sub(before) as f64 / available;
        if percent <= budget {
            return None;
        }
        let parts: Vec<RecorderPart> = self.probes.dispensable().collect();
        let part = cost::most_expensive(cost, &parts)?;
        let because = format!(
            "shed: recording took {} of the CPUs, the budget is {budget} %",
            share(percent / 100.0)
        );
        Some((part, because))
    }
}
