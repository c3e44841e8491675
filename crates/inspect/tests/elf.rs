//! Facts of ELF files against readelf, objdump and files made for the purpose.

#![allow(clippy::unwrap_used, reason = "a test")]

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use common::built;
use inspect::elf::{Binding, Call, CallSites, Elf, ElfError, Kind, Machine, PltForm, Relro};

fn corpus(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/elf").join(name)
}

fn symbols(elf: &Elf) -> Vec<String> {
    let mut names: Vec<_> = elf.slots.iter().map(|slot| elf.symbol(slot).into_owned()).collect();
    names.sort();
    names
}

const THREE: [&str; 3] = ["getpid", "open_books", "sched_yield"];

#[test]
fn libraries_of_two_machines_and_three_linkers() {
    use Machine::{Aarch64, X86_64};
    use PltForm::{LandingPads, Plain};
    for (name, machine, binding, plt, relro) in [
        ("x86-lazy.so", X86_64, Binding::Lazy, Plain, Relro::Partial),
        ("x86-lazy-stripped.so", X86_64, Binding::Lazy, Plain, Relro::Partial),
        ("x86-no-sections.so", X86_64, Binding::Lazy, Plain, Relro::Partial),
        ("x86-ibt.so", X86_64, Binding::Lazy, LandingPads, Relro::Partial),
        ("x86-lld.so", X86_64, Binding::Lazy, Plain, Relro::Partial),
        ("x86-now.so", X86_64, Binding::Now("DF_BIND_NOW"), Plain, Relro::Full),
        ("arm-lazy.so", Aarch64, Binding::Lazy, Plain, Relro::Partial),
        ("arm-bti.so", Aarch64, Binding::Lazy, LandingPads, Relro::Partial),
        ("arm-now.so", Aarch64, Binding::Now("DF_BIND_NOW"), Plain, Relro::Full),
    ] {
        let elf = Elf::open(corpus(name)).unwrap();
        assert_eq!((elf.machine, elf.kind), (machine, Kind::Library), "{name}");
        assert_eq!((elf.binding, elf.plt, elf.relro), (binding, plt, relro), "{name}");
        assert_eq!(symbols(&elf), THREE, "{name}");
        assert_eq!(elf.soname.as_deref(), Some("librate.so"), "{name}");
        assert_eq!((&elf.interpreter, elf.is_prelinked), (&None, false), "{name}");
        // A first call goes back into the PLT.
        for slot in &elf.slots {
            assert!(
                elf.segments().iter().any(|segment| {
                    segment.is_code
                        && (segment.address..segment.address + segment.in_file)
                            .contains(&slot.initial)
                }),
                "{name}: {slot:x?}"
            );
        }
    }
    for (name, machine) in [("x86-no-plt.so", X86_64), ("arm-no-plt.so", Aarch64)] {
        let elf = Elf::open(corpus(name)).unwrap();
        assert_eq!((elf.machine, elf.binding, elf.plt), (machine, Binding::Nothing, PltForm::None));
        assert_eq!(elf.slots, []);
    }
    assert_eq!(Elf::open(corpus("static-pie")).unwrap().kind, Kind::StaticPie);
    assert_eq!(Elf::open(corpus("static")).unwrap().kind, Kind::Static);
}

#[test]
fn what_is_not_read_is_unknown_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("text");
    fs::write(&text, "#!/bin/sh\nexec sleep 1000\n").unwrap();
    let object = folder.path().join("empty.o");
    built(folder.path(), "empty.o", "int x;", &["-c"]);
    for (path, reason) in [
        (corpus("i386.so"), "unknown here: a 32-bit ELF file"),
        (corpus("arm-big-endian.so"), "unknown here: a big-endian ELF file"),
        (text, "unknown here: no ELF file"),
        (object, "unknown here: neither program nor shared library (ELF type 1)"),
        (PathBuf::from("/dev/null"), "no regular file"),
        (folder.path().join("absent"), "cannot be read: No such file"),
    ] {
        let error = Elf::open(&path).unwrap_err().to_string();
        assert!(error.contains(reason), "{}: {error}", path.display());
    }
    let mut other = fs::read(corpus("x86-lazy.so")).unwrap();
    other[18] = 243;
    assert!(
        matches!(Elf::read(&other), Err(ElfError::Unknown(why)) if why.contains("machine 243"))
    );
}

/// prelink(8) is gone from distributions; what it marked is still about. The mark takes the place
/// of an entry that no fact needs.
#[test]
fn a_prelinked_file_is_known_by_its_mark() {
    const DT_GNU_HASH: u64 = 0x6fff_fef5;
    const DT_GNU_PRELINKED: u64 = 0x6fff_fdf5;
    let mut file = fs::read(corpus("x86-lazy.so")).unwrap();
    let tag = DT_GNU_HASH.to_le_bytes();
    let at = file.windows(8).position(|bytes| bytes == tag).unwrap();
    assert!(!Elf::read(&file).unwrap().is_prelinked);
    file[at..at + 8].copy_from_slice(&DT_GNU_PRELINKED.to_le_bytes());
    assert!(Elf::read(&file).unwrap().is_prelinked);
}

#[test]
fn programs_as_this_compiler_builds_them() {
    const HELLO: &str = "#include <stdio.h>\n#include <unistd.h>\n\
                         int main(void) { printf(\"%d\\n\", getpid()); return 0; }\n";
    let folder = tempfile::tempdir().unwrap();
    for (name, options, kind, binding, relro) in [
        ("lazy", &["-Wl,-z,lazy"][..], Kind::Pie, Binding::Lazy, Relro::Partial),
        ("now", &["-Wl,-z,now"], Kind::Pie, Binding::Now("DF_BIND_NOW"), Relro::Full),
        (
            "fixed",
            &["-no-pie", "-fno-pie", "-Wl,-z,lazy"],
            Kind::Program,
            Binding::Lazy,
            Relro::Partial,
        ),
        ("norelro", &["-Wl,-z,norelro,-z,lazy"], Kind::Pie, Binding::Lazy, Relro::None),
        ("no-plt", &["-fno-plt", "-Wl,-z,lazy"], Kind::Pie, Binding::Nothing, Relro::Partial),
        ("static", &["-static"], Kind::Static, Binding::Nothing, Relro::Partial),
        ("static-pie", &["-static-pie"], Kind::StaticPie, Binding::Nothing, Relro::Partial),
    ] {
        let elf = Elf::open(built(folder.path(), name, HELLO, options)).unwrap();
        assert_eq!((elf.kind, elf.binding), (kind, binding), "{name}");
        // How static programs are protected differs between linkers.
        assert!(elf.relro == relro || matches!(kind, Kind::Static | Kind::StaticPie), "{name}");
        let is_dynamic = !matches!(kind, Kind::Static | Kind::StaticPie);
        assert_eq!(elf.interpreter.is_some(), is_dynamic, "{name}");
        assert_eq!(elf.needed.iter().any(|name| name == "libc.so.6"), is_dynamic, "{name}");
        if binding == Binding::Lazy {
            assert!(symbols(&elf).iter().any(|name| name == "getpid"), "{name}");
        }
        if name == "no-plt" {
            assert!(elf.bound_at_load() >= 2, "printf and getpid at least");
        }
    }
}

/// The same slots as readelf finds, in every library that is here.
#[test]
fn slots_agree_with_readelf() {
    if Command::new("readelf").arg("-v").output().is_err() {
        eprintln!("skipped: no readelf here (Debian: binutils)");
        return;
    }
    let mut compared = 0;
    for entry in fs::read_dir("/usr/lib/x86_64-linux-gnu").into_iter().flatten().flatten() {
        let path = entry.path();
        let Ok(elf) = Elf::open(&path) else { continue };
        if compared == 60 || elf.slots.len() < 5 {
            continue;
        }
        let output = Command::new("readelf").arg("-rW").arg(&path).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        let lines = text.lines().filter(|line| line.contains("R_X86_64_JUMP_SLO"));
        let mut expected: Vec<u64> =
            lines.map(|line| u64::from_str_radix(&line[..16], 16).unwrap()).collect();
        expected.sort_unstable();
        let found: Vec<u64> = elf.slots.iter().map(|slot| slot.address).collect();
        assert_eq!(found, expected, "{}", path.display());
        compared += 1;
    }
    assert!(compared > 10, "{compared}");
}

/// Where each of the calls returns to, as the disassembler of another project says.
#[test]
fn return_addresses_after_each_kind_of_call() {
    let at = |file: &str, address: u64| CallSites::open(corpus(file)).unwrap().at(address);
    for (file, address, expected) in [
        ("x86-lazy.so", 0x301, "x86-lazy.so:rate_timer+0xd (after call helper)"),
        ("x86-lazy.so", 0x30e, "x86-lazy.so:rate_timer+0x1a (after call open_books@plt)"),
        ("x86-lazy.so", 0x32a, "x86-lazy.so:rate_timer+0x36 (after call sched_yield@plt)"),
        ("x86-ibt.so", 0x3ce, "x86-ibt.so:rate_timer+0x3a (after call sched_yield@plt)"),
        ("x86-no-plt.so", 0x2ed, "x86-no-plt.so:rate_timer+0x39 (after call *sched_yield@got)"),
        (
            "x86-lazy-stripped.so",
            0x32a,
            "x86-lazy-stripped.so:rate_timer+0x36 (after call sched_yield@plt)",
        ),
        (
            "x86-no-sections.so",
            0x32a,
            "x86-no-sections.so:rate_timer+0x36 (after call sched_yield@plt)",
        ),
        // A place that nothing returns to.
        ("x86-lazy.so", 0x305, "x86-lazy.so:rate_timer+0x11"),
    ] {
        assert_eq!(at(file, address).to_string(), expected);
    }
    // A stripped library has no names of its own functions, but still of those it calls.
    let helper = at("x86-lazy-stripped.so", 0x301);
    assert_eq!(helper.after, Some(Call::Own(None)));
    // Nonsense addresses give nothing, and no panic.
    for address in [0, 1, 8, 0x2c0, u64::MAX, u64::MAX - 4] {
        assert_eq!(at("x86-lazy.so", address).after, None, "{address:#x}");
    }
}

/// On Arm each call of rate_timer is found by walking all of its instructions.
#[test]
fn return_addresses_on_arm() {
    for (file, suffix) in [("arm-lazy.so", "@plt"), ("arm-bti.so", "@plt"), ("arm-now.so", "@plt")]
    {
        let sites = CallSites::open(corpus(file)).unwrap();
        let code = sites.elf().segments().iter().find(|segment| segment.is_code).unwrap();
        let range = code.address..code.address + code.in_file;
        let places = range.step_by(4).map(|address| sites.at(address));
        let inside = places
            .filter(|place| place.function.as_ref().is_some_and(|(name, _)| name == "rate_timer"));
        let mut called: Vec<String> = inside
            .filter_map(|place| match place.after? {
                Call::Plt(name) => Some(format!("{name}@plt")),
                Call::Own(name) => name,
                other => panic!("{other:?}"),
            })
            .collect();
        called.sort();
        let mut expected: Vec<String> =
            THREE.iter().map(|name| format!("{name}{suffix}")).collect();
        expected.insert(1, "helper".to_owned());
        assert_eq!(called, expected, "{file}");
    }
}

/// Every call through the PLT of a real library, stripped, against objdump.
#[test]
fn calls_agree_with_objdump() {
    let folder = tempfile::tempdir().unwrap();
    let path = Path::new("/usr/lib/x86_64-linux-gnu/libstdc++.so.6");
    let Ok(output) = Command::new("objdump").args(["-d", "--no-show-raw-insn"]).arg(path).output()
    else {
        eprintln!("skipped: no objdump here (Debian: binutils)");
        return;
    };
    if !output.status.success() {
        eprintln!("skipped: no {} here", path.display());
        return;
    }
    let copy = folder.path().join("libstdc++.so.6");
    fs::copy(path, &copy).unwrap();
    assert!(Command::new("strip").arg(&copy).status().unwrap().success());
    let sites = CallSites::open(&copy).unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let mut lines = text.lines().peekable();
    let mut compared = 0;
    while let Some(line) = lines.next() {
        let Some((_, symbol)) = line.split_once("call ") else { continue };
        let Some(symbol) = symbol.split_once('<').and_then(|(_, s)| s.strip_suffix("@plt>")) else {
            continue;
        };
        let next = lines.peek().and_then(|next| next.trim().split_once(':'));
        let Some(Ok(address)) = next.map(|(at, _)| u64::from_str_radix(at, 16)) else { continue };
        let place = sites.at(address);
        let name = match &place.after {
            Some(Call::Plt(name) | Call::AtLoad(name)) => name,
            other => panic!("{address:#x}: {other:?}, not {symbol}"),
        };
        // objdump shows a version after some names.
        let symbol = symbol.split('@').next().unwrap();
        assert_eq!(name, symbol, "{address:#x}");
        compared += 1;
    }
    assert!(compared > 1000, "{compared}");
}

/// The address of a symbol, from readelf.
fn address_of(file: &Path, symbol: &str) -> u64 {
    let output = Command::new("readelf").arg("-sW").arg(file).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let line = text.lines().find(|line| line.ends_with(&format!(" {symbol}"))).unwrap();
    u64::from_str_radix(line.split_whitespace().nth(1).unwrap(), 16).unwrap()
}

#[test]
fn a_stripped_program_of_go_names_its_functions_by_its_own_table() {
    let folder = tempfile::tempdir().unwrap();
    let options = |text| ["-nostdlib", "-static", "-no-pie", text];
    let whole = common::program(folder.path(), "go_table", &options("-DTEXT=\"_start\""));
    let (push, end) = (address_of(&whole, "push"), address_of(&whole, "the_end"));
    for text in ["-DTEXT=\"_start\"", "-DTEXT=\"0\""] {
        let options = [&options(text)[..], &["-s"]].concat();
        let stripped = common::program(folder.path(), "go_table", &options);
        let mut sites = CallSites::open(&stripped).unwrap();
        assert_eq!(sites.at(push + 2).function, None);
        sites.take_go_functions();
        assert_eq!(sites.at(push + 2).function, Some(("main.(*Queue).push".to_owned(), 2)));
        assert_eq!(sites.at(push).function, Some(("_rt0_amd64_linux".to_owned(), 6)), "a call");
        assert!(!sites.is_stripped());
        assert_eq!(sites.at(end + 1).function, None, "behind the last one");
    }
}

/// A program of the real compiler, where there is one.
#[test]
fn stripping_takes_no_name_of_a_function_from_go() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("main.go");
    fs::write(&source, "package main\nimport \"os\"\nfunc main() { os.Exit(len(os.Args)) }\n")
        .unwrap();
    let built = |name: &str, options: &[&str]| {
        let file = folder.path().join(name);
        let mut go = Command::new("go");
        go.args(["build", "-o"]).arg(&file).args(options).arg(&source).env("CGO_ENABLED", "0");
        let cache = folder.path().join("cache");
        let output = go.env("GOCACHE", cache).env("GO111MODULE", "off").output().ok()?;
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Some(file)
    };
    for mode in ["-buildmode=exe", "-buildmode=pie"] {
        let Some(whole) = built("whole", &[mode]) else {
            println!("not judged: no go on this machine");
            return;
        };
        let stripped = built("stripped", &[mode, "-ldflags=-s -w"]).unwrap();
        let mut stripped = CallSites::open(stripped).unwrap();
        stripped.take_go_functions();
        let output = Command::new("readelf").arg("-sW").arg(whole).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let functions = text.lines().filter_map(|line| {
            let [_, at, size, "FUNC", _, _, _, name] =
                line.split_whitespace().collect::<Vec<_>>()[..]
            else {
                return None;
            };
            (size != "0").then(|| (u64::from_str_radix(at, 16).unwrap(), name.to_owned()))
        });
        let functions: Vec<_> = functions.collect();
        assert!(functions.len() > 1000, "{}", functions.len());
        // What is written in assembler is in the linker's table by its calling convention, too.
        let is_named = |(at, name): &&(u64, String)| {
            let name = name.trim_end_matches(".abi0").to_owned();
            stripped.at(at + 1).function == Some((name, 1))
        };
        let named = functions.iter().filter(is_named).count();
        assert!(named >= functions.len() * 99 / 100, "{mode}: {named} of {}", functions.len());
    }
}
