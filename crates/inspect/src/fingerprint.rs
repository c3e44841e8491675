//! The fingerprint of the environment: what has to be known to compare two runs.
//!
//! Names of facts are stable; `docs` and causes refer to them. A fact that cannot be read has the
//! value `unknown: <reason>`.
//!
//! | of | facts |
//! |---|---|
//! | [`host`] | `host.name`, `kernel.release`, `kernel.version`, `kernel.command_line`, `kernel.preemption`, `cpu.model`, `cpu.count`, `cpu.online`, `cpu.hypervisor`, `memory.total_bytes`, `swaps`, `thp.enabled`, `thp.defrag`, `clocksource.current`, `clocksource.available`, `clocksource.read_ns`, `sysctl.*` |
//! | [`command`], [`process`] | `binary.path`, `binary.build_id`, `binary.binding`, `binary.plt_slots`, `cgroup.<controller>`, `cgroup.cpu.quota_us`, `cgroup.cpu.period_us`, `rlimit.*`, `env.*`, `env.left_out` |

mod binary;
pub(crate) mod cgroup;
mod clocksource;
mod cpu;
mod environment;
pub(crate) mod kernel;
mod limits;
mod memory;
mod sysctl;

use std::ffi::OsString;
use std::path::Path;

use model::Fact;

/// Facts of the host: kernel, CPUs, memory, clocks, sysctls.
pub fn host() -> Vec<Fact> {
    let mut facts = kernel::facts();
    facts.extend(cpu::facts());
    facts.extend(memory::facts());
    facts.extend(clocksource::facts());
    facts.extend(sysctl::facts());
    facts
}

/// Facts of a command about to be started by this process, with the environment it will get.
///
/// `program` is its name or path; without a slash it is looked for in the `PATH` of `environment`.
/// Limits and cgroup are those of this process, which the command inherits.
pub fn command(
    program: &Path,
    environment: impl IntoIterator<Item = (OsString, OsString)>,
) -> Vec<Fact> {
    let environment: Vec<_> = environment.into_iter().collect();
    let mut facts = binary::of_command(program, &environment);
    facts.extend(cgroup::facts("self"));
    facts.extend(limits::facts("self"));
    facts.extend(environment::of_command(&environment));
    facts
}

/// Facts of a live process, with the environment it was started with.
pub fn process(pid: u32) -> Vec<Fact> {
    let process = pid.to_string();
    let mut facts = binary::of_process(pid);
    facts.extend(cgroup::facts(&process));
    facts.extend(limits::facts(&process));
    facts.extend(environment::of_process(pid));
    facts
}
