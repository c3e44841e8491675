//! The types of the page's data, for TypeScript: `web/src/types.ts` is written from the structs that
//! are serialized. This test fails where it is not current; to write it anew:
//!
//!     WHYLAG_UPDATE_DOCS=1 cargo test --workspace --lib types_are_those_of_the_structs

use std::any::TypeId;
use std::collections::BTreeMap;
use std::path::Path;

use ts_rs::{Config, TS, TypeVisitor};

use crate::checkup::CheckupPage;
use crate::overview::{GridPage, TrendPage};
use crate::serve::{PartAnswer, RunRow};

/// Declarations by name.
struct Declared<'a> {
    config: &'a Config,
    seen: Vec<TypeId>,
    types: BTreeMap<String, String>,
}

impl TypeVisitor for Declared<'_> {
    fn visit<T: TS + 'static + ?Sized>(&mut self) {
        if self.seen.contains(&TypeId::of::<T>()) {
            return;
        }
        self.seen.push(TypeId::of::<T>());
        // Only what is declared has a file; numbers and lists have none.
        if T::output_path().is_some() {
            let docs = T::docs().unwrap_or_default();
            let declared = format!("{docs}export {}\n", T::decl(self.config));
            self.types.insert(T::name(self.config), declared);
        }
        T::visit_dependencies(self);
        T::visit_generics(self);
    }
}

#[test]
fn types_are_those_of_the_structs() {
    // JSON has no other numbers; none of these is above 2^53.
    let config = Config::new().with_large_int("number");
    let mut declared = Declared { config: &config, seen: Vec::new(), types: BTreeMap::new() };
    declared.visit::<crate::Page>();
    declared.visit::<RunRow>();
    declared.visit::<PartAnswer>();
    declared.visit::<GridPage>();
    declared.visit::<TrendPage>();
    declared.visit::<CheckupPage>();
    let all: Vec<String> = declared.types.into_values().collect();
    let text = format!(
        "// Written from the structs of crates/page and crates/model by crates/page/src/types.rs.\n\n{}",
        all.join("\n")
    );
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("web/src/types.ts");
    if std::env::var_os("WHYLAG_UPDATE_DOCS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(found == text, "web/src/types.ts is not current: see {}", file!());
}
