#!/usr/bin/env bash
# new-cause.sh ID GROUP: lays down a cause of the catalogue with all that belongs to it (its file,
# its mystery and the fixed twin, its test, its page), and registers them. Afterwards everything
# compiles and every test passes but its own, cause_pages, and those that judge its recording
# (explain's needs, confidence_page), which ask for what is still to be made.
set -euo pipefail

cd "$(dirname "$0")/.."
causes=crates/explain/src/causes
tests=crates/whylag/tests/mysteries

fail() {
	echo "new-cause: $*" >&2
	exit 2
}

id=${1:-} group=${2:-}
groups=$(find $causes -mindepth 1 -maxdepth 1 -type d -printf '%f\n' | sort | tr '\n' ' ')
[[ -n $id && -n $group ]] || fail "usage: make new-cause ID=page-wait GROUP=memory; GROUP is one of: $groups"
[[ $id =~ ^[a-z][a-z0-9]*(-[a-z0-9]+)+$ ]] || fail "'$id' is no id: small letters and digits, words joined by '-', at least two"
[[ -d $causes/$group ]] || fail "there is no group '$group'; there are: $groups"
name=${id//-/_}
upper=${name^^}
! compgen -G "$causes/*/$name.rs" >/dev/null || fail "there is a cause '$id' already: $(compgen -G "$causes/*/$name.rs")"
[[ ! -e mysteries/$id ]] || fail "there is a mystery '$id' already: mysteries/$id"

# template NAME FILE: writes the template with the names of this cause.
template() {
	mkdir -p "$(dirname "$2")"
	sed "s/@ID@/$id/g; s/@NAME@/$name/g; s/@UPPER@/$upper/g; s/@GROUP@/$group/g" "scripts/new-cause/$1" >"$2"
	echo "  wrote     $2"
}

# add_sorted LINE FILE: adds the line among those like it, in order.
add_sorted() {
	local line=$1 file=$2 like=${1%% "$name"*}
	like=${like%%"$upper"*}
	awk -v line="$line" -v like="$like" '
		index($0, like) == 1 && $0 != "mod common;" && !done && $0 > line { print line; done = 1 }
		index($0, like) == 1 { seen = NR }
		{ lines[NR] = $0; print }
		END { exit !done }
	' "$file" >"$file.new" || {
		# It comes last.
		awk -v line="$line" -v like="$like" '
			{ lines[NR] = $0 }
			index($0, like) == 1 { last = NR }
			END { for (n = 1; n <= NR; n++) { print lines[n]; if (n == last) print line } }
		' "$file" >"$file.new"
	}
	mv "$file.new" "$file"
	echo "  added to  $file"
}

echo "new cause $id ($group):"
template cause.rs "$causes/$group/$name.rs"
template program.c "mysteries/$id/program.c"
template README.md "mysteries/$id/README.md"
template test.rs "$tests/$name.rs"
add_sorted "pub(crate) mod $name;" "$causes/$group/mod.rs"
add_sorted "pub(crate) const $upper: Id = Id(\"$id\");" "$causes/ids.rs"
add_sorted "mod $name;" "$tests/main.rs"
# The last entry of its group, because the order within a group is by hand.
awk -v entry="    &$group::$name::CAUSE," -v like="    &$group::" '
	{ lines[NR] = $0 }
	index($0, like) == 1 { last = NR }
	END { for (n = 1; n <= NR; n++) { print lines[n]; if (n == last) print entry } }
' crates/explain/src/catalogue.rs >crates/explain/src/catalogue.rs.new
mv crates/explain/src/catalogue.rs.new crates/explain/src/catalogue.rs
echo "  added to  crates/explain/src/catalogue.rs"
sed -i "s/^| \[healthy\](healthy) /| [$id]($id) | what the user sees | measured |\n&/" mysteries/README.md
echo "  added to  mysteries/README.md"
scripts/cargo.sh fmt --all
echo "  writing   README.md (table of causes), docs/causes/$id.md, docs/doctor.md"
echo "            from the compiled catalogue: minutes if nothing is built yet"
# Of the whole workspace, as in 'make test': for a part of it cargo would build the libraries again,
# with other features.
WHYLAG_UPDATE_DOCS=1 scripts/cargo.sh test --locked --workspace --test cause_pages --test doctor_page >/dev/null ||
	fail "the pages were not written (why: above); mend that, then:  WHYLAG_UPDATE_DOCS=1 scripts/cargo.sh test --locked --workspace --test cause_pages --test doctor_page"
cat <<END

Next:
  1. mysteries/$id/program.c: the fault, and its fix under -DFIXED; try both with
       make mysteries && mysteries/bin/$id-faulty 2 && mysteries/bin/$id-fixed 2
  2. $causes/$group/$name.rs: what the cause is, its evidence, its look-alikes;
     its tests with
       scripts/cargo.sh test --locked --workspace --lib $name
  3. see it found in the faulty program, and gone in the fixed one (as root):
       scripts/cargo.sh test --locked --workspace --test mysteries --no-run   # 'build' has other features
       target/debug/whylag record -- mysteries/bin/$id-faulty 2 && target/debug/whylag explain
       target/debug/whylag explain --why-not $id     # if it is not named
       AS_ROOT=1 WHYLAG_FIGURES=1 scripts/cargo.sh test --locked --workspace --test mysteries \\
           $name -- --nocapture
     Where the time is can be seen before the cause is written: 'whylag record' prints the accounts,
     'whylag export --format folded' the stacks of waits, 'whylag show' single ones.
     Compare what it explains with the lost_ns that the program prints: a claim is cut to the time
     of its accounts, so one that counts twice still looks right there, but not in its mechanism.
     Sleeps in blocked:other, poll, timer and the like count as waiting for work. If 'explain' says
     that nearly all is waiting for work, claim.takes_idle is to be true, and a comment says why.
  4. keep a recording of both programs (root, seconds; it does not depend on the cause, so it can be
     made as soon as the programs are right):
       WHYLAG=target/debug/whylag scripts/record-fixtures.sh $id-faulty $id-fixed
     then see that no other recorded run has the cause, and that 'needs' has what it reads and no
     more (the test of needs judges that recording and fails without it):
       INSTA_UPDATE=always scripts/cargo.sh test --locked --workspace --test recorded_runs
       git status crates/whylag/tests/fixtures       # two new .snap, and read what else changed
       scripts/cargo.sh test --locked --workspace --lib needs
  5. the rows of mysteries/README.md and mysteries/$id/README.md, a line in CHANGELOG.md; the
     pages again after each change of the cause's comment, title or fix:
       WHYLAG_UPDATE_DOCS=1 scripts/cargo.sh test --locked --workspace \\
           --test cause_pages --test doctor_page --test confidence_page
     and the same without WHYLAG_UPDATE_DOCS, which judges what was written.
'git status' shows all that was made here.
END
