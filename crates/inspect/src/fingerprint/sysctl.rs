//! Kernel settings that are known to change latency.

use std::io;

use model::Fact;

use crate::read::{fact_of, text};

/// Names as `sysctl` prints them. One that this kernel does not have is no fact.
const NAMES: [&str; 38] = [
    "fs.aio-max-nr",
    "fs.file-max",
    "fs.nr_open",
    "fs.pipe-max-size",
    "kernel.hung_task_timeout_secs",
    "kernel.nmi_watchdog",
    "kernel.numa_balancing",
    "kernel.perf_event_paranoid",
    "kernel.pid_max",
    "kernel.printk",
    "kernel.randomize_va_space",
    "kernel.sched_autogroup_enabled",
    "kernel.sched_cfs_bandwidth_slice_us",
    "kernel.sched_rt_period_us",
    "kernel.sched_rt_runtime_us",
    "kernel.sched_schedstats",
    "kernel.threads-max",
    "kernel.timer_migration",
    "kernel.watchdog_thresh",
    "net.core.busy_poll",
    "net.core.busy_read",
    "net.core.netdev_budget",
    "net.core.netdev_budget_usecs",
    "net.core.netdev_max_backlog",
    "net.core.rmem_default",
    "net.core.rmem_max",
    "net.core.somaxconn",
    "net.core.wmem_default",
    "net.core.wmem_max",
    "vm.compaction_proactiveness",
    "vm.dirty_background_ratio",
    "vm.dirty_ratio",
    "vm.max_map_count",
    "vm.min_free_kbytes",
    "vm.overcommit_memory",
    "vm.stat_interval",
    "vm.swappiness",
    "vm.zone_reclaim_mode",
];

pub fn facts() -> Vec<Fact> {
    NAMES.into_iter().filter_map(setting).collect()
}

fn setting(name: &str) -> Option<Fact> {
    let path = format!("/proc/sys/{}", name.replace('.', "/"));
    match text(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        value => Some(fact_of(&format!("sysctl.{name}"), value, path)),
    }
}
