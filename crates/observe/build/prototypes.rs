//! The arguments that each program on a tracepoint was written for, from its own source.
//!
//! It relies on the style of bpf/: `int BPF_PROG(name, type argument, ...)` begins a line. Programs
//! that a macro makes read no argument and are not listed.

use std::fmt::Write;

/// The table in Rust: `(program, arguments)`, each argument as in `prototype::Prototype`.
pub fn in_rust(sources: &[String]) -> Result<String, String> {
    let mut rust = String::from("const PROTOTYPES: &[(&str, &[&str])] = &[\n");
    for source in sources {
        for head in source.split("\nint BPF_PROG(").skip(1) {
            let (head, _) = head.split_once(')').ok_or("a BPF_PROG has no end")?;
            let mut parts = head.split(',').map(str::trim);
            let name = parts.next().ok_or("a BPF_PROG has no name")?;
            let arguments: Result<Vec<_>, _> = parts.map(argument).collect();
            let arguments = arguments.map_err(|error| format!("{name}: {error}"))?;
            // Writing to a string does not fail.
            let _ = writeln!(rust, "    (\"{name}\", &[{}]),", arguments.join(", "));
        }
    }
    Ok(rust + "];\n")
}

/// `struct task_struct *next` or `unsigned int state`.
fn argument(declared: &str) -> Result<String, String> {
    let declared = declared.strip_prefix("const ").unwrap_or(declared);
    if let Some((pointee, _)) = declared.split_once('*') {
        let pointee = pointee.trim();
        let name = pointee.strip_prefix("struct ").unwrap_or(pointee);
        return Ok(format!("\"{name} *\""));
    }
    let (kind, _) = declared.rsplit_once([' ', '\t']).ok_or(format!("'{declared}' has no name"))?;
    Ok(match kind.trim() {
        "bool" | "u8" => "\"u8\"",
        "int" | "unsigned int" | "u32" => "\"u32\"",
        "long" | "unsigned long" | "u64" => "\"u64\"",
        other => return Err(format!("the size of '{other}' is not known here")),
    }
    .to_owned())
}
