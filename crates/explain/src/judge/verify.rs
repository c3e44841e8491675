//! The command that shows whether the fix of a finding works.
//!
//! Where the fix is a variable, a setting that can be taken back, or a limit of the shell, and the
//! run was of a command, it is a ready `whylag prove`. Of a program that has to be changed, only who
//! changes it knows the fixed command: FIXED stands for it. What runs already is recorded again, and
//! asked how the cause stands then.

use model::{Run, Target};

use crate::cause::Id;
use crate::causes::ids;

/// How the fix of a cause is made where it is one thing, whatever the program.
enum OneFix {
    /// An environment variable.
    Variable(String),
    /// A file of the system that is given this value, and the value that it had.
    Setting { file: &'static str, fixed: String, was: String },
    /// What a shell does before it executes the command.
    Before(&'static str),
}

/// The command, as a shell takes it.
pub fn command(run: &Run, cause: Id) -> String {
    let follow = if run.header.follow { " --follow" } else { "" };
    let watch = match &run.header.target {
        Target::Command(arguments) => return prove(run, cause, follow, arguments),
        Target::Process(_) | Target::Thread(_) | Target::Trace(_) => format!("-p PID{follow}"),
        Target::Host => "-a".to_owned(),
        Target::Unit(unit) => format!("-u {}", quoted(unit)),
        Target::Container(_) => "--container ID".to_owned(),
        Target::Cgroup(path) => format!("--cgroup {}", quoted(path)),
        Target::Bench(arguments) => {
            return format!(
                "whylag bench --with-kernel {} && whylag explain",
                command_line(arguments)
            );
        }
        Target::Jitter(arguments) => return of_ticks(run, cause, arguments),
    };
    let seconds = run.length_ns().div_ceil(1_000_000_000).max(1);
    // Of one recording a comparison shows nothing: what it says of the cause by itself does.
    format!("whylag record {watch} --time {seconds}s && whylag explain --why-not {cause}")
}

/// Of a program that prints its ticks a proof; whylag's own timers once more.
fn of_ticks(run: &Run, cause: Id, arguments: &[String]) -> String {
    let Some(at) = arguments.iter().position(|word| word == "--") else {
        return format!("whylag jitter {}", command_line(arguments));
    };
    let (options, command) = (&arguments[..at], &arguments[at + 1..]);
    let time = options.windows(2).find(|two| two[0] == "--time");
    let time = time.map_or_else(String::new, |two| format!(" --time {}", quoted(&two[1])));
    prove(run, cause, &format!(" --ticks{time}"), command)
}

/// With `manner`, options that say how it is recorded.
fn prove(run: &Run, cause: Id, manner: &str, arguments: &[String]) -> String {
    let plain = command_line(arguments);
    let prove = format!("whylag prove{manner} --cause {cause}");
    if let Some(fixed) = fixed_mystery(arguments) {
        let (before, after) = (quoted(&plain), quoted(&fixed));
        // They run for as long as they are told: what they lost is what becomes less.
        let figure = match run.header.target {
            Target::Jitter(_) => "",
            _ => " --metric 'lost_ns=([0-9]+)'",
        };
        return format!("{prove}{figure} --before {before} --after {after}");
    }
    match one_fix(run, cause) {
        Some(OneFix::Variable(variable)) => {
            format!("{prove} --fix {} -- {plain}", quoted(&variable))
        }
        Some(OneFix::Setting { file, fixed, was }) => {
            let echo = |value: &str| quoted(&format!("echo {} > {file}", quoted(value)));
            format!("{prove} --fix {} --undo {} -- {plain}", echo(&fixed), echo(&was))
        }
        Some(OneFix::Before(shell)) => {
            let (before, after) = (quoted(&plain), quoted(&format!("{shell}; exec {plain}")));
            format!("{prove} --before {before} --after {after}")
        }
        None => {
            let before = quoted(&plain);
            format!("{prove} --before {before} --after FIXED")
        }
    }
}

/// The twin without the fault, of `mysteries/bin/X-faulty`.
fn fixed_mystery(arguments: &[String]) -> Option<String> {
    let (program, rest) = arguments.split_first()?;
    let fixed = format!("{}-fixed", program.strip_suffix("-faulty")?);
    let words: Vec<String> = std::iter::once(fixed).chain(rest.iter().cloned()).collect();
    Some(command_line(&words))
}

fn one_fix(run: &Run, cause: Id) -> Option<OneFix> {
    let was = |fact: &str| run.fact(fact).map(str::to_owned);
    let setting = |file, fixed: &str, was: Option<String>| {
        let was = was.filter(|was| !was.is_empty() && was != fixed)?;
        Some(OneFix::Setting { file, fixed: fixed.to_owned(), was })
    };
    match cause {
        ids::LAZY_BINDING => Some(OneFix::Variable("LD_BIND_NOW=1".to_owned())),
        ids::MALLOC_TRIM => {
            let large = "glibc.malloc.trim_threshold=1073741824:\
                         glibc.malloc.mmap_threshold=1073741824";
            Some(OneFix::Variable(format!("GLIBC_TUNABLES={large}")))
        }
        ids::CORE_DUMP => Some(OneFix::Before("ulimit -c 0")),
        ids::NUMA_BALANCING => {
            let was = was("sysctl.kernel.numa_balancing");
            setting("/proc/sys/kernel/numa_balancing", "0", was)
        }
        ids::DIRECT_COMPACTION => {
            setting("/sys/kernel/mm/transparent_hugepage/defrag", "defer", was("thp.defrag"))
        }
        ids::KSM_COW => setting("/sys/kernel/mm/ksm/run", "0", Some("1".to_owned())),
        ids::SLOW_CLOCKSOURCE => clock(run),
        _ => None,
    }
}

/// The fast clock where the kernel has it but does not use it; else a library that was put before
/// the program's own clock.
fn clock(run: &Run) -> Option<OneFix> {
    let current = run.fact("clocksource.current")?;
    let available = run.fact("clocksource.available").unwrap_or_default();
    if current != "tsc" && available.split_whitespace().any(|clock| clock == "tsc") {
        return Some(OneFix::Setting {
            file: "/sys/devices/system/clocksource/clocksource0/current_clocksource",
            fixed: "tsc".to_owned(),
            was: current.to_owned(),
        });
    }
    let is_put_before = run.fact("env.LD_PRELOAD").is_some_and(|library| !library.is_empty());
    is_put_before.then(|| OneFix::Variable("LD_PRELOAD=".to_owned()))
}

fn command_line(arguments: &[String]) -> String {
    arguments.iter().map(|argument| quoted(argument)).collect::<Vec<_>>().join(" ")
}

/// An argument as a shell takes it.
fn quoted(argument: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./=:,+@%".contains(c);
    if !argument.is_empty() && argument.chars().all(is_plain) {
        return argument.to_owned();
    }
    format!("'{}'", argument.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use model::{Fact, RunHeader};

    use super::*;

    fn of(target: Target, facts: &[(&str, &str)], cause: Id) -> String {
        command(&run(target, facts), cause)
    }

    fn run(target: Target, facts: &[(&str, &str)]) -> Run {
        let fact = |(name, value): &(&str, &str)| Fact {
            name: (*name).to_owned(),
            value: (*value).to_owned(),
            source: String::new(),
        };
        Run {
            id: model::RunId(7),
            header: RunHeader { target, ..RunHeader::default() },
            facts: facts.iter().map(fact).collect(),
            heartbeat_ns: 2_500_000_000,
            ..Run::default()
        }
    }

    #[test]
    fn the_fix_is_in_it_where_it_is_one() {
        let server = || Target::Command(vec!["./server".to_owned(), "a b".to_owned()]);
        for (facts, cause, expected) in [
            (&[][..], ids::LAZY_BINDING, "--fix LD_BIND_NOW=1 -- ./server 'a b'"),
            (
                &[("thp.defrag", "madvise")],
                ids::DIRECT_COMPACTION,
                "--fix 'echo defer > /sys/kernel/mm/transparent_hugepage/defrag' \
                 --undo 'echo madvise > /sys/kernel/mm/transparent_hugepage/defrag' \
                 -- ./server 'a b'",
            ),
            (
                &[("clocksource.current", "hpet"), ("clocksource.available", "tsc hpet")],
                ids::SLOW_CLOCKSOURCE,
                "--fix 'echo tsc > \
                 /sys/devices/system/clocksource/clocksource0/current_clocksource' --undo \
                 'echo hpet > /sys/devices/system/clocksource/clocksource0/current_clocksource' \
                 -- ./server 'a b'",
            ),
            (
                &[("clocksource.current", "tsc"), ("env.LD_PRELOAD", "x.so")],
                ids::SLOW_CLOCKSOURCE,
                "--fix LD_PRELOAD= -- ./server 'a b'",
            ),
            (
                &[],
                ids::CORE_DUMP,
                r"--before './server '\''a b'\''' --after 'ulimit -c 0; exec ./server '\''a b'\'''",
            ),
            (&[], ids::FUTEX_CONVOY, r"--before './server '\''a b'\''' --after FIXED"),
        ] {
            let expected = format!("whylag prove --cause {cause} {expected}");
            assert_eq!(of(server(), facts, cause), expected);
        }
    }

    #[test]
    fn a_mystery_has_its_twin_and_what_runs_already_is_compared_with_this_run() {
        let mystery = Target::Command(vec!["mysteries/bin/x-faulty".to_owned(), "5".to_owned()]);
        assert_eq!(
            of(mystery, &[], ids::FUTEX_CONVOY),
            "whylag prove --cause futex-convoy --metric 'lost_ns=([0-9]+)' \
             --before 'mysteries/bin/x-faulty 5' --after 'mysteries/bin/x-fixed 5'"
        );
        let ticks = ["--time", "9s", "--", "mysteries/bin/timer-slack-faulty", "4"];
        assert_eq!(
            of(Target::Jitter(ticks.map(str::to_owned).to_vec()), &[], ids::TIMER_SLACK),
            "whylag prove --ticks --time 9s --cause timer-slack \
             --before 'mysteries/bin/timer-slack-faulty 4' \
             --after 'mysteries/bin/timer-slack-fixed 4'"
        );
        let own = ["--time", "5s"].map(str::to_owned).to_vec();
        assert_eq!(of(Target::Jitter(own), &[], ids::TIMER_SLACK), "whylag jitter --time 5s");
        assert_eq!(
            of(Target::Process(12), &[], ids::FUTEX_CONVOY),
            "whylag record -p PID --time 3s && whylag explain --why-not futex-convoy"
        );
        let mut with_children = run(Target::Process(12), &[]);
        with_children.header.follow = true;
        let again = command(&with_children, ids::FUTEX_CONVOY);
        assert!(again.starts_with("whylag record -p PID --follow --time 3s && "), "{again}");
    }
}
