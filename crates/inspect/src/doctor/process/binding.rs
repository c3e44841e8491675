//! How its calls of libraries are bound, and what comes between caller and callee.

use model::units::{count, counted};

use super::Target;
use crate::doctor::entry::{Entry, Look};
use crate::elf::{Binding, Kind};
use crate::live::Library;

pub(super) const ENTRIES: &[Entry<Target>] = &[
    Entry {
        id: "lazy-binding",
        why: "The first call through a slot that is not bound goes through the dynamic linker, which \
              reads symbol tables of many libraries: microseconds, or milliseconds when they have to \
              come from disk; once per slot, and on paths that are seldom taken it comes at a bad \
              moment.",
        source: "/proc/PID/mem",
        look: |of| {
            lazy_binding(of.libraries()?, &executable(of).unwrap_or_default(), is_locked(of))
        },
    },
    Entry {
        id: "program",
        why: "A static program binds nothing and needs no file but its own; a dynamic one depends on \
              pages of its libraries being in memory.",
        source: "/proc/PID/exe",
        look: |of| {
            let path = executable(of)?;
            program(of.libraries()?.iter().find(|library| library.path == path))
        },
    },
    Entry {
        id: "dynamic-linker",
        why: "An auditor (LD_AUDIT) or profiler sees each call through the PLT, and LD_PRELOAD puts \
              functions in front of others: both make binding, or each call, more expensive.",
        source: "/proc/PID/environ",
        look: |of| Ok(dynamic_linker(&of.get("environ")?)),
    },
    Entry {
        id: "deleted-libraries",
        why: "Code of a file that was replaced runs on until the process is restarted; its pages \
              cannot be shared with newer processes any more.",
        source: "/proc/PID/maps",
        look: |of| Ok(deleted(of.libraries()?)),
    },
    Entry {
        id: "uprobes",
        why: "A probe in user code costs a trap into the kernel, one to two microseconds, at each \
              pass.",
        source: "/proc/PID/maps",
        look: |of| {
            let is_probed = of.get("maps")?.lines().any(|line| line.ends_with("[uprobes]"));
            Ok(uprobes(is_probed))
        },
    },
];

/// Where distributions keep their libraries.
const SYSTEM: [&str; 7] =
    ["/lib/", "/lib32/", "/lib64/", "/usr/lib/", "/usr/lib32/", "/usr/lib64/", "/usr/libexec/"];

/// The path of its program.
fn executable(of: &Target) -> Result<String, String> {
    let path = std::fs::read_link(format!("/proc/{}/exe", of.pid()));
    let path = path.map_err(|error| format!("/proc/PID/exe: {error}"))?;
    let path = path.to_string_lossy();
    Ok(path.strip_suffix(" (deleted)").unwrap_or(&path).to_owned())
}

/// True if what it has in memory stays there. Not all of what is resident is its own.
fn is_locked(of: &Target) -> bool {
    let kib = |name| of.number(name).unwrap_or(0);
    kib("VmLck") * 2 >= kib("VmRSS").max(1)
}

/// Only calls of the program itself and of libraries that came with it count. Debian and others
/// link the C library and most others lazily, whose last slots are internal calls of rare paths
/// that nobody can relink. And they count only as long as the linker's pages can be dropped: in
/// locked memory a first call takes microseconds.
fn lazy_binding(libraries: &[Library], executable: &str, is_locked: bool) -> Result<Look, String> {
    let counted_libraries: Vec<(&Library, usize, usize)> = libraries
        .iter()
        .filter_map(|library| library.counts().map(|(slots, left)| (library, slots, left)))
        .collect();
    let slots: usize = counted_libraries.iter().map(|(_, slots, _)| slots).sum();
    let unbound: usize = counted_libraries.iter().map(|(.., left)| left).sum();
    let is_own = |library: &Library| {
        library.path == executable || !SYSTEM.iter().any(|folder| library.path.starts_with(folder))
    };
    let own = counted_libraries.iter().filter(|(library, ..)| is_own(library));
    let own: usize = own.map(|(.., left)| left).sum();
    let unknown = libraries.len() - counted_libraries.len();
    if counted_libraries.is_empty() {
        let because = libraries.iter().find_map(|library| match &library.slots {
            Err(because) => Some(because.clone()),
            Ok(slots) => slots.unbound.as_ref().err().cloned(),
        });
        return Err(because.unwrap_or_else(|| "it has no program that is an ELF file".to_owned()));
    }
    let mut worst: Vec<_> = counted_libraries.iter().filter(|(.., left)| *left > 0).collect();
    worst.sort_by_key(|(.., left)| std::cmp::Reverse(*left));
    let most_unbound = worst.iter().take(5).map(|(library, slots, left)| {
        format!("{} {} of {}", library.name(), count(*left as u64), count(*slots as u64))
    });
    let mut detail = most_unbound.collect::<Vec<_>>().join(", ");
    if worst.len() > 5 {
        detail += &format!(", and {} more", worst.len() - 5);
    }
    if unknown > 0 {
        detail += &format!("; {unknown} unknown here");
    }
    let all = counted(slots as u64, "slot");
    let fact = format!("{} of {all} not bound yet", count(unbound as u64));
    let look = match (unbound, own) {
        _ if slots == 0 => Look::good("no slots: nothing to bind"),
        (0, _) => Look::good(format!("none left of {all}")),
        (_, 0) => Look::good(format!("{fact}, all in libraries of the system")),
        _ if is_locked => Look::good(format!("{fact}, in locked memory")),
        _ => Look::attention(
            format!("{fact}, {} its own", count(own as u64)),
            "Start it with LD_BIND_NOW=1, or link with -Wl,-z,now; whylag doctor -p PID --plt lists \
             the calls, --watch shows them as they are bound.",
        ),
    };
    Ok(look.detail(detail).passing())
}

fn program(library: Option<&Library>) -> Result<Look, String> {
    let library = library.ok_or("no code of its program file is mapped")?;
    let elf = &library.slots.as_ref().map_err(Clone::clone)?.elf;
    let kind = match elf.kind {
        Kind::Program => "at a fixed address",
        Kind::Pie => "position independent",
        Kind::Static => "static",
        Kind::StaticPie => "static, position independent",
        Kind::Library => "a library that is run",
    };
    let binding = match (elf.binding, elf.bound_at_load()) {
        (Binding::Lazy, _) => "bound at first calls",
        (Binding::Now(_), _) => "bound at load time",
        (Binding::Nothing, 0) => "nothing to bind",
        (Binding::Nothing, _) => "bound at load time, without a PLT",
    };
    let needed = match &elf.interpreter {
        Some(interpreter) => format!("{}, {interpreter}", elf.machine),
        None => elf.machine.to_string(),
    };
    Ok(Look::good(format!("{kind}, {binding}")).detail(needed))
}

fn dynamic_linker(environment: &str) -> Look {
    let values = environment.split('\0').filter_map(|variable| variable.split_once('='));
    let is_about =
        |name: &str| ["LD_AUDIT", "LD_PROFILE", "LD_PRELOAD", "LD_DEBUG"].contains(&name);
    let set: Vec<String> = values
        .filter(|(name, value)| is_about(name) && !value.is_empty())
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    match set[..] {
        [] => Look::good("nothing in between"),
        _ => Look::attention(set.join(", "), "Start it without, unless it is wanted."),
    }
}

fn deleted(libraries: &[Library]) -> Look {
    let names: Vec<&str> =
        libraries.iter().filter(|library| library.is_deleted).map(Library::name).collect();
    match names[..] {
        [] => Look::good("none"),
        _ => Look::attention(
            counted(names.len() as u64, "file"),
            "Restart it: what is measured on disk is not what runs.",
        )
        .detail(names.join(", ")),
    }
    .passing()
}

fn uprobes(is_probed: bool) -> Look {
    match is_probed {
        true => Look::attention(
            "probes are, or were, in its code",
            "bpftool link and perf list show who set them.",
        )
        .passing(),
        false => Look::good("none").passing(),
    }
}

#[cfg(test)]
mod tests {
    use model::CheckResult::{Attention, Good};

    use super::*;
    use crate::live::{Process, bindings};

    #[test]
    fn the_environment_of_the_linker() {
        assert_eq!(dynamic_linker("A=1\0LD_LIBRARY_PATH=/x\0LD_PRELOAD=\0").verdict, Good);
        assert_eq!(dynamic_linker("LD_PRELOAD=/x.so\0").fact, "LD_PRELOAD=/x.so");
        assert_eq!((uprobes(true).verdict, uprobes(false).verdict), (Attention, Good));
    }

    #[test]
    fn a_static_program_has_nothing_to_bind() {
        const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/corpus/elf/static-pie");
        let elf = crate::elf::Elf::open(FILE).unwrap().into();
        let slots = Ok(crate::live::Slots { elf, unbound: Ok(Vec::new()) });
        let own = Library { path: "/bin/own".to_owned(), is_deleted: false, base: 0, slots };
        assert_eq!(
            program(Some(&own)).unwrap().fact,
            "static, position independent, nothing to bind"
        );
        let look = lazy_binding(&[own], "/bin/own", false).unwrap();
        assert_eq!((look.verdict, look.fact.as_str()), (Good, "no slots: nothing to bind"));
    }

    #[test]
    fn what_weighs_is_calls_of_its_own_that_can_fault() {
        const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/corpus/elf/x86-lazy.so");
        let library = |path: &str, unbound: Vec<usize>| {
            let elf = crate::elf::Elf::open(FILE).unwrap().into();
            let slots = Ok(crate::live::Slots { elf, unbound: Ok(unbound) });
            Library { path: path.to_owned(), is_deleted: false, base: 0, slots }
        };
        let verdict = |path: &str, unbound: &[usize], is_locked| {
            let libc = library("/usr/lib/libc.so.6", vec![0]);
            let libraries = [libc, library(path, unbound.to_vec())];
            lazy_binding(&libraries, "/usr/lib/shop/server", is_locked).unwrap().verdict
        };
        assert_eq!(verdict("/opt/shop/librate.so", &[], false), Good);
        assert_eq!(verdict("/opt/shop/librate.so", &[0], false), Attention);
        assert_eq!(verdict("/opt/shop/librate.so", &[0], true), Good);
        assert_eq!(verdict("/usr/lib/libz.so.1", &[0], false), Good);
        assert_eq!(verdict("/usr/lib/shop/server", &[0], false), Attention);
    }

    #[test]
    fn this_process_is_judged_by_its_slots() {
        let libraries = bindings(&Process::open(std::process::id()).unwrap()).unwrap();
        let look = lazy_binding(&libraries, "", false).unwrap();
        assert!(look.fact.contains(" of "), "{look:?}");
        assert!(lazy_binding(&[], "", false).is_err());
        assert_eq!(deleted(&libraries).verdict, Good);
    }
}
