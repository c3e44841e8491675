//! Takes the comment at the top of each cause's file, for its page (`src/page.rs`).

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let causes = Path::new("src/causes");
    println!("cargo::rerun-if-changed={}", causes.display());
    let mut files = Vec::new();
    collect(causes, &mut files)?;
    files.sort();

    let mut table = "const COMMENTS: &[(&str, &str)] = &[\n".to_owned();
    for file in files {
        let text = fs::read_to_string(&file)?;
        if text.contains("pub const CAUSE: Cause") {
            let id = file.file_stem().unwrap_or_default().to_string_lossy().replace('_', "-");
            writeln!(table, "    ({id:?}, {:?}),", comment(&text)).map_err(io::Error::other)?;
        }
    }
    table += "];\n";
    let out = env::var_os("OUT_DIR").map(PathBuf::from).ok_or(io::ErrorKind::NotFound)?;
    fs::write(out.join("comments.rs"), table)
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}

/// The `//!` lines, without their mark.
fn comment(text: &str) -> String {
    let lines = text.lines().map_while(|line| line.strip_prefix("//!"));
    lines.map(|line| line.strip_prefix(' ').unwrap_or(line)).collect::<Vec<_>>().join("\n")
}
