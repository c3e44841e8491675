//! Very many slots, and very many addresses.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

use inspect::live::{Places, Process, Watch, bindings};

use crate::common::{Running, built, program};
use crate::{look, of, ten};

/// Story 1's question, asked of the real thing: 300 libraries with 170 imports each.
#[test]
fn three_hundred_libraries_with_51000_slots() {
    let folder = tempfile::tempdir().unwrap();
    let functions: String = (0..170).map(|n| format!("void g{n}(void) {{}}\n")).collect();
    built(folder.path(), "libtarget.so", &functions, &["-shared", "-fPIC"]);
    let declared: String = (0..170).map(|n| format!("void g{n}(void);\n")).collect();
    let calls: String = (0..170).map(|n| format!("if (n == {n}) g{n}();\n")).collect();
    // touch() calls 20 of the 170.
    let source = format!(
        "{declared}void pick(int n) {{\n{calls}}}\n\
         void touch(void) {{ for (int n = 0; n < 20; n++) pick(n * 8); }}\n"
    );
    let place = format!("-L{}", folder.path().display());
    let run_path = format!("-Wl,-rpath,{}", folder.path().display());
    let options = ["-O1", "-shared", "-fPIC", "-fvisibility=hidden", "-Wl,-z,lazy"];
    let source =
        source.replace("void touch", "__attribute__((visibility(\"default\"))) void touch");
    let one = built(
        folder.path(),
        "libone.so",
        &source,
        &[&options[..], &[&place, "-ltarget", &run_path]].concat(),
    );
    // Another file is another library to the dynamic linker.
    let libraries: Vec<PathBuf> = (0..300)
        .map(|n| {
            let copy = folder.path().join(format!("lib{n}.so"));
            fs::copy(&one, &copy).unwrap();
            copy
        })
        .collect();
    let program = program(folder.path(), "loader", &["-O1", "-pthread", "-Wl,-z,lazy"]);
    let running = Running::start(Command::new(&program).args(["0", "0"]).args(&libraries));

    let began = Instant::now();
    let found = look(running.pid());
    let took = began.elapsed();
    let copies = found
        .iter()
        .filter(|library| libraries.iter().any(|path| path.to_str() == Some(&library.path)));
    let mut all = (0, 0, 0);
    for library in copies {
        assert_eq!(library.counts(), Some((170, 150)), "{}", library.path);
        let names: Vec<String> = library.unbound().collect();
        assert!(!names.contains(&"g8".to_owned()) && names.contains(&"g9".to_owned()));
        all = (all.0 + 1, all.1 + 170, all.2 + 150);
    }
    assert_eq!(all, (300, 51_000, 45_000));
    println!("{} libraries, {} slots, {} unbound: {took:?}", found.len(), all.1, all.2);
    let mut watch = Watch::new(Process::open(running.pid()).unwrap()).unwrap();
    let began = Instant::now();
    assert_eq!(watch.look().unwrap(), []);
    println!("a look at {} slots: {:?}", all.2, began.elapsed());
}

/// 10,000 return addresses of a live process, and what each follows.
#[test]
fn return_addresses_of_a_live_process() {
    let folder = tempfile::tempdir().unwrap();
    let program = ten(folder.path(), &["-Wl,-z,lazy"]);
    let running = Running::start(Command::new(&program).arg("1"));
    let process = Process::open(running.pid()).unwrap();
    let places = Places::of(&process).unwrap();
    let libraries = bindings(&process).unwrap();
    let base = of(&libraries, "calls").base;
    let elf = inspect::elf::Elf::open(&program).unwrap();
    let code = elf.segments().iter().find(|segment| segment.is_code).unwrap();
    // Every address of the program's code; those after a call of f0 ... f9 are among them.
    let inside = (0..code.in_file).map(|at| base + code.address + at);
    let found: Vec<String> = inside.filter_map(|at| Some(places.at(at)?.to_string())).collect();
    for n in 0..10 {
        let call = format!("(after call f{n}@plt)");
        let hits: Vec<&String> = found.iter().filter(|place| place.contains(&call)).collect();
        assert_eq!(hits.len(), 1, "{hits:?}");
        assert!(hits[0].starts_with("calls:"), "{hits:?}");
    }
    assert!(places.at(0).is_none() && places.at(u64::MAX).is_none());

    let libc = of(&libraries, "libc.so.6");
    let elf = &libc.slots.as_ref().unwrap().elf;
    let code = elf.segments().iter().find(|segment| segment.is_code).unwrap();
    let began = Instant::now();
    let known = (0..10_000).filter(|n| {
        let address = libc.base + code.address + n * code.in_file / 10_000;
        places.at(address).is_some()
    });
    assert_eq!(known.count(), 10_000);
    println!("10,000 addresses: {:?}", began.elapsed());
}
