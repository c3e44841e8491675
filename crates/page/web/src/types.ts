// Written from the structs of crates/page and crates/model by crates/page/src/types.rs.

/**
 * What a thread was doing with a nanosecond of its wall time.
 *
 * The text form (`running:user`, `running:mmap`, `blocked:lock:mmap_lock:write`) is the same on
 * the command line, in JSON and in the store.
 */
export type Account = string;

/**
 * An account of all threads together.
 */
export type AccountRow = { 
/**
 * As in JSON.
 */
account: string, 
/**
 * The same in words.
 */
words: string, 
/**
 * Place of its class.
 */
class: number, 
/**
 * Its time.
 */
ns: number, 
/**
 * The same as people read it.
 */
time: string, 
/**
 * Its part of the wall time, as people read it.
 */
share: string, };

/**
 * Something that a thread did for a time.
 */
export type Bar = { 
/**
 * Begin, since the start of the run.
 */
from_ns: number, 
/**
 * End.
 */
to_ns: number, 
/**
 * Place of its class.
 */
class: number, 
/**
 * What it did.
 */
text: string, 
/**
 * True if the length is known and where it lies is not.
 */
somewhere: boolean, };

/**
 * A cause with its evidence that explains too little to be a finding.
 */
export type BelowBar = { 
/**
 * Id of the cause.
 */
cause: string, 
/**
 * What it explains that no finding does.
 */
lost_ns: number, 
/**
 * The same as a part of the wall time, 0 to 1.
 */
wall_share: number, 
/**
 * What that is below.
 */
because: string, };

/**
 * What the one was doing that a thread waited for, or the one that that one waited for, and so on
 * to one that did not wait for another recorded thread.
 */
export type ChainEnd = "cpu" | "run_queue" | "throttled" | "disk" | "fault" | "kernel" | "stopped" | "timer" | "timeout" | "outside" | "unwatched" | "peer" | "idle" | "unknown";

/**
 * What `whylag series` says of a change.
 */
export type Change = { 
/**
 * The first run that has it.
 */
run: RunId, 
/**
 * Names of the lines that changed.
 */
names: Array<string>, 
/**
 * In a sentence, with what changed around the program at the same time.
 */
text: string, };

/**
 * How a check came out; worse is more.
 */
export type CheckResult = "good" | "unknown" | "attention" | "bad";

/**
 * A check as people read it.
 */
export type CheckRow = { 
/**
 * Its stable name.
 */
id: string, 
/**
 * How it came out.
 */
result: CheckResult, 
/**
 * The same in a word or two.
 */
word: string, 
/**
 * What was found.
 */
fact: string, 
/**
 * Why it matters for latency.
 */
why: string, 
/**
 * What to do; empty if there is nothing to do.
 */
advice: string, 
/**
 * Where it was read.
 */
source: string, };

/**
 * Checks that are about one thing.
 */
export type CheckedSubject = { 
/**
 * Its heading.
 */
title: string, 
/**
 * Worst first.
 */
checks: Array<CheckRow>, };

/**
 * All that differs between two checkups, two runs, or a run and now; what matters for latency
 * first.
 */
export type CheckupDiff = { 
/**
 * What is compared.
 */
names: [string, string], 
/**
 * What differs.
 */
differences: Array<CheckupDifference>, 
/**
 * Checks and facts that both have.
 */
compared: number, 
/**
 * What could not be compared, in words.
 */
left_out: Array<string>, };

/**
 * A check or a fact that differs.
 */
export type CheckupDifference = { 
/**
 * Name of the check, or of the fact where no check is about it.
 */
name: string, 
/**
 * In the first.
 */
first: string, 
/**
 * In the second.
 */
second: string, 
/**
 * True if it is known to matter for latency.
 */
matters: boolean, 
/**
 * True if the second is bad, and the first is not.
 */
is_bad: boolean, };

/**
 * All checks of this host.
 */
export type CheckupPage = { 
/**
 * How many checks came out how.
 */
summary: string, 
/**
 * Checks by what they are about.
 */
subjects: Array<CheckedSubject>, 
/**
 * What is different from a run that was asked for.
 */
differences: CheckupDiff | null, };

/**
 * A class of accounts.
 */
export type ClassColors = { 
/**
 * What people read.
 */
name: string, 
/**
 * Colour on a light ground.
 */
light: string, 
/**
 * Colour on a dark ground.
 */
dark: string, };

/**
 * Repeated events come while another program runs, more often than chance would have it. That is no
 * cause yet: both may follow from a third.
 */
export type Coincidence = { 
/**
 * Name of the program.
 */
comm: string, 
/**
 * Its processes that ran: one after the other, or at once.
 */
pids: Array<number>, 
/**
 * The events, in words.
 */
events: string, 
/**
 * How many; those that follow closely count as one.
 */
n: number, 
/**
 * Of these, while the program ran.
 */
seen: number, 
/**
 * How many would be by chance.
 */
expected: number, 
/**
 * Probability that chance does as well, times the number of tests made.
 */
p: number, };

/**
 * The values that ended in one second, or in several.
 */
export type Column = { 
/**
 * Begin, since the start of the run.
 */
from_ns: number, 
/**
 * How many values.
 */
n: number, 
/**
 * The largest, exactly.
 */
max_ns: number, 
/**
 * (row, count).
 */
cells: Array<[number, number]>, };

/**
 * A command to copy.
 */
export type Command = { 
/**
 * What it shows.
 */
shows: string, 
/**
 * The command.
 */
command: string, };

/**
 * What `whylag compare` says of two runs.
 */
export type Comparison = { 
/**
 * In one sentence; or why the two cannot be compared.
 */
summary: string, 
/**
 * What makes it weaker.
 */
warnings: Array<string>, 
/**
 * How latencies that both have moved, the surest change first.
 */
shifts: Array<Shift>, 
/**
 * Stacks that differ, as one tree; none if nothing is known of both.
 */
flames: Flames | null, 
/**
 * How a stack can differ; frames of the tree name them by place.
 */
kinds: Array<MovedKind>, 
/**
 * The command that says the same.
 */
command: string, };

/**
 * When most of a cause's time was lost, as the intervals kept whole show it.
 */
export type Concentration = { 
/**
 * `97 % within 45.0 ms, at the end of the run`.
 */
text: string, 
/**
 * The part of it that was lost then, 0 to 1.
 */
share: number, 
/**
 * Its start, since the start of the run.
 */
from_ns: number, 
/**
 * Its end, since the start of the run.
 */
to_ns: number, };

/**
 * An interval in words.
 */
export type Detail = { 
/**
 * Its place in the columns.
 */
place: number, 
/**
 * Its number in `show` and `explain --outlier`: 1 is the longest.
 */
number: number, 
/**
 * What it was.
 */
text: string, 
/**
 * Who ended it, held the lock or ran meanwhile.
 */
others: Array<string>, 
/**
 * Functions, innermost first, the kernel's before the program's.
 */
stack: Array<string>, 
/**
 * The command that explains it.
 */
command: string, };

/**
 * An account in two runs.
 */
export type Difference = { 
/**
 * As in JSON.
 */
account: string, 
/**
 * Place of its class.
 */
class: number, 
/**
 * Its part of the wall time, 0 to 1: before and after.
 */
share: [number, number], 
/**
 * Its time as people read it: before and after.
 */
time: [string, string], 
/**
 * Its part as people read it: before and after.
 */
shares: [string, string], };

/**
 * A piece of evidence.
 */
export type Evidence = { 
/**
 * What was seen, with units and n.
 */
text: string, 
/**
 * Where it comes from: the probe, counter or file.
 */
source: string, };

/**
 * Another explanation that was considered and excluded, and is no cause of the catalogue.
 */
export type Excluded = { 
/**
 * What is excluded, in plain words.
 */
what: string, 
/**
 * The datum that excludes it.
 */
because: string, };

/**
 * Everything `whylag explain` says.
 */
export type Explanation = { 
/**
 * The run.
 */
run: RunId, 
/**
 * The part of it that was asked about; `None`: all of it.
 */
scope: Scope | null, 
/**
 * Wall time of all watched threads.
 */
wall_ns: number, 
/**
 * Wall time that is in no account.
 */
unaccounted_ns: number, 
/**
 * Wall time that the threads did not choose to spend.
 */
lost_ns: number, 
/**
 * Wall time waiting for work.
 */
idle_ns: number, 
/**
 * (account, ns, share of the wall time), largest first.
 */
accounts: Array<[Account, number, number]>, 
/**
 * Those through which packets were dropped, then the others, then those that struck at one
 * time only; of each first what takes the largest part of the slowest requests of a port, then
 * the largest share; empty: no known cause.
 */
findings: Array<Finding>, 
/**
 * Set where the largest account of lost time is explained by none of them: that comes first.
 */
leading_account: LeadingAccount | null, 
/**
 * Causes with evidence that are too small to be findings, the largest first.
 */
below_bar: Array<BelowBar>, 
/**
 * What the recorder itself took, which is in no finding; `None`: nothing that was seen.
 */
own_delay: OwnDelay | null, 
/**
 * What the slowest requests did, where no finding says it.
 */
slow_requests?: SlowRequests | null, 
/**
 * A thread that always had something to do, while others waited for it: it limits what all of them do.
 */
never_rests?: NeverRests | null, 
/**
 * Child processes that a process waits for, one after the other, while they compute for it.
 */
working_children?: WorkingChildren | null, 
/**
 * A short system call that is made very often.
 */
frequent_call?: FrequentCall | null, 
/**
 * The peer that each request of a process calls many times.
 */
many_calls?: ManyCalls | null, 
/**
 * Time that the threads waited for child processes which are not recorded themselves.
 */
unrecorded_children_ns: number, 
/**
 * Ports and paths of which requests were held open, those with most time first.
 */
held_open: Array<HeldOpen>, 
/**
 * Peers that have not answered what was sent to them when the recording ended, the longest first.
 */
unanswered?: Array<Unanswered>, 
/**
 * Causes that are no findings and were not looked for, by what was missing.
 */
not_looked_at: Array<NotLookedAt>, 
/**
 * Lost time that no finding explains, by account, largest first.
 */
unexplained: Array<[Account, number]>, 
/**
 * The largest stacks in these accounts, account by account; of an account that is explained
 * in part, what is explained may be among them.
 */
unexplained_stacks: Array<LostStack>, 
/**
 * Where there is no finding above the bar, and most of the time went by waiting for work: its
 * largest stacks.
 */
idle_stacks?: Array<LostStack>, 
/**
 * Tasks that wait inside of a runtime, where no thread sleeps for them.
 */
unseen_tasks?: Array<UnseenTasks>, 
/**
 * Threads that were on a CPU for most of their time, and what they ran there; of a thread that
 * was asked about, whatever it ran.
 */
on_cpu?: Array<OnCpu>, 
/**
 * Repeated events that come at a phase of some period, the surest first.
 */
rhythms: Array<Rhythm>, 
/**
 * Other programs that ran when repeated events came, the surest first.
 */
coincidences: Array<Coincidence>, 
/**
 * Count by kind.
 */
losses: { [key in string]: number }, };

/**
 * A fact of the environment.
 */
export type Fact = { 
/**
 * Stable name: `kernel.release`, `clocksource.current`, `sysctl.vm.swappiness`.
 */
name: string, 
/**
 * Its value as read.
 */
value: string, 
/**
 * Where it was read: a file, a system call.
 */
source: string, };

/**
 * A named cause.
 */
export type Finding = { 
/**
 * Id of the cause, as in `causes/`.
 */
cause: string, 
/**
 * One line for people.
 */
title: string, 
/**
 * Part of the lost time that it explains, 0 to 1.
 */
share: number, 
/**
 * The same in nanoseconds.
 */
lost_ns: number, 
/**
 * The same as a part of the wall time of all watched threads, 0 to 1; of late ticks 0.
 */
wall_share: number, 
/**
 * Whom it hurts most; `None` if no one thread or process was wanted for long enough.
 */
hurts: Hurt | null, 
/**
 * When, if nearly all of it was at one time.
 */
when: Concentration | null, 
/**
 * What it takes of the slowest requests; `None` where none are known.
 */
requests: RequestCost | null, 
/**
 * Below 1 % of the wall time, and of what any thread wanted: it is no answer to why a program
 * is slow.
 */
minor: boolean, 
/**
 * 0 to 1.
 */
confidence: number, 
/**
 * Why confidence is below 1; empty if it is not.
 */
doubts: Array<string>, 
/**
 * Symptom first.
 */
chain: Array<Link>, 
/**
 * Evidence.
 */
evidence: Array<Evidence>, 
/**
 * Of threads that go one at a time: their turns.
 */
turns: Turns | null, 
/**
 * Look-alikes.
 */
ruled_out: Array<RuledOut>, 
/**
 * Other explanations that are excluded.
 */
excluded: Array<Excluded>, 
/**
 * Look-alikes that stay possible, or are findings themselves.
 */
not_ruled_out: Array<NotRuledOut>, 
/**
 * Other explanations of which it is not known: the datum that would exclude them was not
 * recorded.
 */
not_looked_at: Array<Excluded>, 
/**
 * What to do.
 */
fix: string, 
/**
 * A command that reproduces the cause.
 */
reproduce: string, 
/**
 * A command that shows whether the fix works.
 */
verify: string, };

/**
 * The trees of a run.
 */
export type Flames = { 
/**
 * Names of frames; trees have places of this list.
 */
names: Array<string>, 
/**
 * The first is of all accounts off the CPU.
 */
trees: Array<Tree>, 
/**
 * The same from the other end: where threads slept is the root's neighbour.
 */
reversed: Array<Tree>, 
/**
 * Which part of the time off the CPU has a stack.
 */
coverage: string, };

/**
 * A system call that takes a quarter of the wall time on CPUs, and so little each time that most of that is for
 * making it at all.
 */
export type FrequentCall = { 
/**
 * Which.
 */
call: string, 
/**
 * How often it was made, by all recorded threads.
 */
count: number, 
/**
 * Not all were recorded: that is estimated from windows.
 */
is_estimate: boolean, 
/**
 * `count` for each second of the recording.
 */
per_second: number, 
/**
 * How long one took on average, with what recording it adds, ns.
 */
mean_ns: number, 
/**
 * The part of the wall time, 0 to 1.
 */
share: number, };

/**
 * Runs of one program on one host, in columns.
 */
export type Grid = { 
/**
 * What they have in common: program, host, kernel, CPUs.
 */
group: string, 
/**
 * The columns, oldest first.
 */
runs: Array<RunId>, 
/**
 * Of each run.
 */
outcomes: Array<Outcome>, 
/**
 * Causes, losses, accounts and the facts that are not the same in all runs.
 */
rows: Array<GridRow>, 
/**
 * What splits the bad runs from the clean ones, the surest first.
 */
splits: Array<Split>, 
/**
 * How many facts, causes, accounts and latencies were tried for that.
 */
tried: number, };

/**
 * What a run has in a row.
 */
export type GridCell = { "share": number } | { "count": number } | { "value": string | null };

/**
 * Runs of one program on one host, in columns.
 */
export type GridPage = { 
/**
 * What `runs --grid --json` says.
 */
grid: Grid, 
/**
 * What splits the bad runs from the clean ones, a sentence each; or why nothing does.
 */
splits: Array<string>, };

/**
 * One row.
 */
export type GridRow = { 
/**
 * `cause lazy-binding`, `loss drops`, `account blocked:futex`, `fact clocksource.current`.
 */
name: string, 
/**
 * Of each run.
 */
cells: Array<GridCell>, };

/**
 * A process, or what is summed.
 */
export type Group = { 
/**
 * Its name, and its number if it is one process.
 */
name: string, 
/**
 * How many threads were watched.
 */
threads: number, 
/**
 * Their wall time.
 */
wall_ns: number, 
/**
 * The same as people read it.
 */
wall: string, 
/**
 * Time by class, in the order of the classes.
 */
by_class: Array<number>, 
/**
 * Its largest accounts, in words.
 */
largest: string, };

/**
 * Requests that nobody worked on until they were answered: long polls and subscriptions, or waits for
 * what another request has, which looks the same.
 */
export type HeldOpen = { 
/**
 * Process that answered.
 */
tgid: number, 
/**
 * Its name.
 */
comm: string, 
/**
 * Port or path: `port 5432`.
 */
at: string, 
/**
 * Requests.
 */
count: number, 
/**
 * Their times until they were answered, together.
 */
ns: number, 
/**
 * Longest.
 */
max_ns: number, 
/**
 * `ns` as a part of the time of all requests at that port, 0 to 1.
 */
share: number, 
/**
 * That is to be shown with the findings: there is none, or they are most of that time.
 */
matters: boolean, };

/**
 * The thread or process that a cause took the largest part of what it wanted.
 */
export type Hurt = { 
/**
 * `thread worker (tid 81)`, `process server (pid 80)`.
 */
who: string, 
/**
 * What the cause took of it, if the cause is spread over an account's threads as the account is.
 */
lost_ns: number, 
/**
 * The time in which it worked or was wanted: all that was not waiting for work.
 */
wanted_ns: number, };

/**
 * A thread.
 */
export type Lane = { 
/**
 * Thread id.
 */
tid: number, 
/**
 * Its name and number; and its process, where threads of several have lanes.
 */
name: string, 
/**
 * How many intervals it has.
 */
n: number, };

/**
 * What was measured of one metric of all watched processes.
 */
export type Latency = { 
/**
 * Its name, as in JSON.
 */
metric: string, 
/**
 * How many values.
 */
n: number, 
/**
 * The same as people read it, with the largest value.
 */
about: string, 
/**
 * Length of a column.
 */
column_ns: number, 
/**
 * The lowest value of each row, and behind the last its end.
 */
rows: Array<number>, 
/**
 * In time order.
 */
columns: Array<Column>, 
/**
 * For each row which part of all values is in it or below, 0 to 1.
 */
up_to: Array<number>, 
/**
 * (quantile, value): as many as n values can tell.
 */
quantiles: Array<[number, number]>, };

/**
 * The account that most time was lost in, where no cause explains it.
 */
export type LeadingAccount = { 
/**
 * Which.
 */
account: Account, 
/**
 * The system call in which most of that time was, if one had most of it.
 */
call: string | null, 
/**
 * The time that no finding explains.
 */
ns: number, 
/**
 * The same as a part of the wall time, 0 to 1.
 */
wall_share: number, };

/**
 * A link of a chain, from the symptom to its trigger.
 */
export type Link = { 
/**
 * Where it stands in the chain.
 */
role: Role, 
/**
 * Id of the cause that it is, if that is another than the finding's.
 */
cause: string | null, 
/**
 * What it is, with its numbers.
 */
text: string, };

/**
 * Something that is missing from a time of the run.
 */
export type Loss = { 
/**
 * What.
 */
kind: string, 
/**
 * How many.
 */
n: number, 
/**
 * It lies after this moment, since the start of the run.
 */
from_ns: number, 
/**
 * And before this one.
 */
to_ns: number, };

/**
 * Where lost time was spent that no finding explains.
 */
export type LostStack = { 
/**
 * What the threads did.
 */
account: Account, 
/**
 * Intervals, or samples.
 */
count: number, 
/**
 * Their time.
 */
ns: number, 
/**
 * Functions of the kernel, innermost first; empty if not known.
 */
kernel: Array<string>, 
/**
 * Functions of the program, innermost first; empty if not known.
 */
user: Array<string>, };

/**
 * The requests of a process call the same peer ten times or more each, and that takes a tenth of their time at
 * least.
 */
export type ManyCalls = { 
/**
 * Process that calls: `gunicorn (pid 12)`.
 */
process: string, 
/**
 * Whom it calls: `127.0.0.1:6379 (redis-server, pid 81)`.
 */
peer: string, 
/**
 * Calls for each request, on average.
 */
per_request: number, 
/**
 * Mean time of a call until its answer arrived.
 */
mean_ns: number, 
/**
 * Mean time of a request until it was answered.
 */
request_ns: number, };

/**
 * How a stack differs.
 */
export type MovedKind = { 
/**
 * What people read.
 */
name: string, 
/**
 * `#rrggbb`, on a light ground and on a dark one.
 */
color: string, };

/**
 * A thread that waits for something to do for less than a tenth of its life, while at least one other sleeps
 * until it lets that one go on: for room in its queue or for what it works on, or for something to do that
 * it gives out, which looks the same. Those waits count as waiting for work.
 */
export type NeverRests = { 
/**
 * Thread.
 */
tid: number, 
/**
 * Its name.
 */
comm: string, 
/**
 * How long others waited for it.
 */
waited_ns: number, 
/**
 * The same as a part of the wall time, 0 to 1.
 */
wall_share: number, 
/**
 * The part of its life in which it had something to do, 0 to 1.
 */
busy_share: number, };

/**
 * Causes of the catalogue that were not looked for: their evidence was not recorded.
 */
export type NotLookedAt = { 
/**
 * What was missing, and why.
 */
because: string, 
/**
 * Ids of the causes.
 */
causes: Array<string>, };

/**
 * A look-alike that the evidence at hand does not exclude.
 */
export type NotRuledOut = { 
/**
 * Id of the other cause.
 */
cause: string, 
/**
 * Why it stays possible.
 */
because: string, 
/**
 * The measurement that would tell the two apart.
 */
tell_apart: string, };

/**
 * A thread on a CPU, and the functions that it was in when its CPU was sampled.
 */
export type OnCpu = { 
/**
 * Thread.
 */
tid: number, 
/**
 * Its process.
 */
tgid: number, 
/**
 * Its name.
 */
comm: string, 
/**
 * How long it was on a CPU, exactly.
 */
on_cpu_ns: number, 
/**
 * How long it lived in the recording.
 */
wall_ns: number, 
/**
 * Samples of it.
 */
samples: number, 
/**
 * What they stand for: CPUs are sampled less often later in a recording. 0 in older answers.
 */
sampled_ns: number, 
/**
 * The functions with most of that, those first.
 */
functions: Array<SampledFunction>, };

/**
 * How a run ended, by the rule of whoever asks.
 */
export type Outcome = "clean" | "recovered" | "lost";

/**
 * Time off the CPU over the run, as the intervals kept whole show it.
 */
export type OverTime = { 
/**
 * Length of a part.
 */
bin_ns: number, 
/**
 * By class, in the order of the classes: time in each part.
 */
by_class: Array<Array<number>>, 
/**
 * What these are, with n, and what is not among them.
 */
basis: string, };

/**
 * Time that the recorder itself took from the watched threads.
 */
export type OwnDelay = { 
/**
 * Watched threads were ready to run while it was on their CPU.
 */
queued_ns: number, 
/**
 * Watched threads waited for mmap_lock while it held that lock.
 */
locked_ns: number, 
/**
 * Both as a part of the wall time, 0 to 1.
 */
wall_share: number, 
/**
 * That is so much that it comes before the findings.
 */
matters: boolean, };

/**
 * All that a page shows.
 */
export type Page = { 
/**
 * Version of whylag.
 */
version: string, 
/**
 * Classes of accounts, in the order in which they are stacked. A class is known by its place here.
 */
classes: Array<ClassColors>, 
/**
 * One run, or two that are compared: the first is the one before.
 */
runs: Array<RunPage>, 
/**
 * Accounts of two runs beside each other; empty for one.
 */
differences: Array<Difference>, 
/**
 * How latencies and stacks of two runs differ; none for one.
 */
comparison: Comparison | null, 
/**
 * How their hosts and programs differ; none for one run.
 */
surroundings: CheckupDiff | null, 
/**
 * What `prove` said of these runs; none if they are in no proof.
 */
proof: ProofPage | null, };

/**
 * A part of a request.
 */
export type Part = { 
/**
 * What it is called.
 */
name: string, 
/**
 * Length.
 */
ns: number, 
/**
 * The same as people read it.
 */
time: string, 
/**
 * True until the logic began.
 */
waiting: boolean, };

/**
 * What `explain --window` says of a part of a run.
 */
export type PartAnswer = { 
/**
 * The leading cause, or that there is none.
 */
headline: string, 
/**
 * How the wall time divides.
 */
sums: string, 
/**
 * All that is said.
 */
explanation: Explanation, };

/**
 * An interval that shows a finding.
 */
export type Picture = { 
/**
 * Place of the finding.
 */
finding: number, 
/**
 * Number of the interval in `show` and `explain --outlier`.
 */
number: number, 
/**
 * The interval in words.
 */
text: string, 
/**
 * The command that explains it.
 */
command: string, 
/**
 * Its begin, since the start of the run.
 */
from_ns: number, 
/**
 * Its end.
 */
to_ns: number, 
/**
 * Who waited first, then whom it waited for, and so on.
 */
lanes: Array<PictureLane>, };

/**
 * A thread of a picture.
 */
export type PictureLane = { 
/**
 * Its name and number.
 */
name: string, 
/**
 * What it has to do with the one above.
 */
role: string, 
/**
 * What it did.
 */
bars: Array<Bar>, 
/**
 * When it let the one above go on; `None`: it is not known to have.
 */
ends_ns: number | null, };

/**
 * A proof, with its pairs to be drawn.
 */
export type ProofPage = { 
/**
 * The verdict, in one sentence.
 */
summary: string, 
/**
 * What was changed.
 */
change: string, 
/**
 * What makes it weaker.
 */
warnings: Array<string>, 
/**
 * The figure that it is about.
 */
figure: string, 
/**
 * (name, before, after, after over before, p, pairs): medians of recorded pairs, and of others.
 */
measured: Array<[string, string, string, string, string, string]>, 
/**
 * What recording cost both sides.
 */
recording: string | null, 
/**
 * Whole pairs, in the order in which they were made.
 */
pairs: Array<ProofPair>, 
/**
 * (cause, runs before, after, wall time before, after, p); first the one that it is about.
 */
causes: Array<[string, string, string, string, string, string]>, 
/**
 * (account, mean time of a run before, after, p).
 */
accounts: Array<[string, string, string, string]>, 
/**
 * (latency, p50 and p99 as after over before, n before, after).
 */
latencies: Array<[string, string, string, string, string]>, 
/**
 * What else differed, a line each.
 */
differences: Array<string>, 
/**
 * What the figures are, and of which runs.
 */
legend: string, };

/**
 * Two executions next to each other; before comes first.
 */
export type ProofPair = { 
/**
 * Its number, from 1.
 */
number: number, 
/**
 * False of the pairs without whylag.
 */
recorded: boolean, 
/**
 * The runs.
 */
runs: [number | null, number | null], 
/**
 * The figure.
 */
values: [number, number], 
/**
 * The same as people read it.
 */
words: [string, string], };

/**
 * The recorder's account of itself.
 */
export type Recorder = { 
/**
 * (what, how much).
 */
costs: Array<[string, string]>, 
/**
 * (program, runs, time), the most expensive first.
 */
probes: Array<[string, string, string]>, 
/**
 * What was lost, in time order.
 */
losses: Array<Loss>, 
/**
 * (part, why), of what was off.
 */
off: Array<[string, string]>, };

/**
 * One of them.
 */
export type Request = { 
/**
 * Its number in `show` and `explain --message`.
 */
number: number, 
/**
 * What kind, and of which process.
 */
name: string, 
/**
 * Begin, since the start of the run.
 */
from_ns: number, 
/**
 * Length.
 */
ns: number, 
/**
 * The same as people read it.
 */
time: string, 
/**
 * What it waited for, one part after the other.
 */
parts: Array<Part>, 
/**
 * The command that explains it.
 */
command: string, };

/**
 * What a cause takes of the slowest requests, or messages, of a run.
 */
export type RequestCost = { 
/**
 * The port where they were answered, or their kind: those of which it takes the largest part. `None`
 * where a run has one alone.
 */
at?: string, 
/**
 * How many of them it took a tenth of, or more.
 */
with: number, 
/**
 * How many were looked at.
 */
of: number, 
/**
 * What it took of all of them, if it is spread over an account as the account is.
 */
ns: number, 
/**
 * All their time.
 */
total_ns: number, };

/**
 * A function in which threads of requests were on a CPU.
 */
export type RequestFunction = { 
/**
 * Its name.
 */
name: string, 
/**
 * Part of the CPU time of these threads in it and in what it calls, 0 to 1.
 */
share: number, };

/**
 * A part of the time of requests.
 */
export type RequestTime = { 
/**
 * They were in the queues of their sockets, and this is what whoever read them later did; else what the
 * thread did that had read them.
 */
in_queue: boolean, 
/**
 * The account; `None`: on a CPU, or in waits too short to be kept.
 */
account: Account | null, 
/**
 * System call it was in.
 */
call: string | null, 
/**
 * Part of the time of the requests, 0 to 1.
 */
share: number, 
/**
 * Most of that ended because a time was over that the thread, or its process, had set.
 */
by_timer: boolean, };

/**
 * The slow requests of a run.
 */
export type Requests = { 
/**
 * The slowest first.
 */
rows: Array<Request>, 
/**
 * How many of how many.
 */
basis: string, };

/**
 * Repeated events that do not come at any time.
 */
export type Rhythm = { 
/**
 * Which, in words.
 */
events: string, 
/**
 * How many; those that follow closely count as one.
 */
n: number, 
/**
 * What they keep to.
 */
kind: RhythmKind, 
/**
 * Probability that events at any time would look so, times the number of tests made.
 */
p: number, };

/**
 * What repeated events keep to.
 */
export type RhythmKind = { "wall_clock": { 
/**
 * Its length.
 */
period_ns: number, 
/**
 * Mean time after its beginning.
 */
phase_ns: number, } } | { "others": { 
/**
 * Which, in words.
 */
events: string, 
/**
 * Their period.
 */
period_ns: number, 
/**
 * Mean time after them.
 */
phase_ns: number, } } | "once_per_process";

/**
 * What a link of a chain is.
 */
export type Role = "symptom" | "mechanism" | "trigger";

/**
 * A look-alike that was considered and excluded.
 */
export type RuledOut = { 
/**
 * Id of the other cause.
 */
cause: string, 
/**
 * The datum that excludes it.
 */
because: string, };

/**
 * Number of a run in its store, from 1.
 */
export type RunId = number;

/**
 * One run, as each view of the page shows it. Times are ns since its start.
 */
export type RunPage = { 
/**
 * What commands call it.
 */
name: string, 
/**
 * What was recorded.
 */
target: string, 
/**
 * Wall-clock start, ms since 1970-01-01 UTC.
 */
started_unix_ms: number, 
/**
 * Length of the recording.
 */
length_ns: number, 
/**
 * The same in words, with the number of threads and the threshold.
 */
about: string, 
/**
 * Names and values that the user gave it.
 */
labels: { [key in string]: string }, 
/**
 * The leading cause, or that there is none, in the words of `explain`.
 */
headline: string, 
/**
 * How the wall time divides, in a sentence.
 */
sums: string, 
/**
 * What `explain --json` says.
 */
explanation: Explanation, 
/**
 * For each finding that an interval shows: who waited for whom.
 */
pictures: Array<Picture>, 
/**
 * Accounts of all threads.
 */
accounts: Array<AccountRow>, 
/**
 * Accounts by process, most wall time first.
 */
groups: Array<Group>, 
/**
 * Time off the CPU by class over the run.
 */
over_time: OverTime, 
/**
 * What was measured, by metric.
 */
latencies: Array<Latency>, 
/**
 * When threads were off the CPU, by the part of a second.
 */
scope: SecondMaps, 
/**
 * Intervals kept whole.
 */
timeline: Timeline, 
/**
 * Stacks of time off the CPU.
 */
flames: Flames, 
/**
 * Slow requests and messages.
 */
requests: Requests, 
/**
 * What recording cost and lost.
 */
recorder: Recorder, 
/**
 * Host and program, by the names of the facts.
 */
facts: Array<Fact>, 
/**
 * Commands that show the same on a terminal.
 */
commands: Array<Command>, };

/**
 * A line of the list of runs.
 */
export type RunRow = { 
/**
 * Number.
 */
id: number, 
/**
 * What was recorded.
 */
target: string, 
/**
 * Wall-clock start, ms since 1970-01-01 UTC.
 */
started_unix_ms: number, 
/**
 * Length, as people read it.
 */
length: string, 
/**
 * Threads seen.
 */
threads: number, 
/**
 * The first finding's cause, if it was explained.
 */
cause: string | null, 
/**
 * Names and values that the user gave it, in a line.
 */
labels: string, };

/**
 * A function that samples ended in.
 */
export type SampledFunction = { 
/**
 * The function, then who called it, as most of these samples have it.
 */
path: Array<string>, 
/**
 * Samples that ended in it; their standard deviation is the square root.
 */
samples: number, 
/**
 * What these stand for.
 */
ns: number, };

/**
 * The part of a run that was asked about, and what is known of it.
 */
export type Scope = { 
/**
 * `outlier 3`, `the window 1.20 s..1.50 s`, `thread worker (tid 81)`.
 */
what: string, 
/**
 * Number of the outlier, if one was asked about: 1 is the longest of the run.
 */
outlier: number | null, 
/**
 * Its start, since the start of the run.
 */
from_ns: number, 
/**
 * Its end, since the start of the run.
 */
to_ns: number, 
/**
 * Threads that are in it.
 */
threads: number, 
/**
 * Intervals kept whole that are in it.
 */
intervals: number, 
/**
 * True if the accounts of its threads are complete, short intervals included.
 */
exact: boolean, 
/**
 * Time on a CPU that was between the intervals, and is estimated from the rest of the lives of
 * the threads.
 */
estimated_ns: number, 
/**
 * What the explanation rests on, and what is not in it.
 */
basis: string, };

/**
 * The map of an account.
 */
export type SecondMap = { 
/**
 * Its account, as in JSON.
 */
account: string, 
/**
 * Its time, as people read it.
 */
time: string, 
/**
 * The most time of a cell.
 */
most_ns: number, 
/**
 * (cell, time of all threads in it): cell n is row n % rows of column n / rows.
 */
cells: Array<[number, number]>, };

/**
 * Maps of a run.
 */
export type SecondMaps = { 
/**
 * Length of a column: a second, or less of a short run.
 */
column_ns: number, 
/**
 * Length of a row.
 */
row_ns: number, 
/**
 * Rows of a column.
 */
rows: number, 
/**
 * Columns of the run.
 */
columns: number, 
/**
 * Waits that can be no idleness first, and those with most time before the others.
 */
maps: Array<SecondMap>, 
/**
 * What these are, with n, and what is not among them.
 */
basis: string, };

/**
 * Which kind of figure.
 */
export type SeriesKind = "latency" | "account" | "cause";

/**
 * The shift function of a latency.
 */
export type Shift = { 
/**
 * As in JSON.
 */
metric: string, 
/**
 * n of both.
 */
about: string, 
/**
 * Quantile by quantile.
 */
points: Array<ShiftPoint>, };

/**
 * How far a quantile moved.
 */
export type ShiftPoint = { 
/**
 * Which, 0 to 1.
 */
probability: number, 
/**
 * After over before.
 */
ratio: number, 
/**
 * The 95 % band that holds for all quantiles at once: not of single runs.
 */
band: [number, number] | null, 
/**
 * The ratio, and its band, as people read them.
 */
text: string, };

/**
 * The slowest requests of a port, and what their threads did.
 */
export type SlowRequests = { 
/**
 * Its name; `None` where there is only this.
 */
at: string | null, 
/**
 * How many.
 */
of: number, 
/**
 * Mean time until they were answered.
 */
mean_ns: number, 
/**
 * What their threads did, the largest part first.
 */
times: Array<RequestTime>, 
/**
 * Where their threads were on a CPU most often, by samples, if that is most of their time.
 */
on_cpu?: RequestFunction | null, };

/**
 * Something that the bad runs have and the clean ones do not, or the other way round.
 */
export type Split = { 
/**
 * `clocksource.current = hpet`, `cause lazy-binding`, `p99 of syscall:read`.
 */
what: string, 
/**
 * Others that are there in exactly the same runs.
 */
same: Array<string>, 
/**
 * How the sides differ, for people.
 */
how: string, 
/**
 * Fisher's exact test of what is there or not, the Mann-Whitney test of what has a size; by
 * itself.
 */
p: number, 
/**
 * The same, corrected for everything that was tried (Holm): the chance that any of them looks
 * so in runs that differ in nothing.
 */
p_corrected: number, };

/**
 * Intervals kept whole, those of a thread together in time order.
 */
export type Timeline = { 
/**
 * Threads that have any, those with most of their time first.
 */
lanes: Array<Lane>, 
/**
 * The longest, and those of pictures, in words.
 */
details: Array<Detail>, 
/**
 * How many the run has.
 */
total: number, 
/**
 * What is drawn of how many.
 */
basis: string, };

/**
 * A function and the time that ended in it.
 */
export type TopRow = { 
/**
 * Its name.
 */
name: string, 
/**
 * Time, as people read it.
 */
time: string, 
/**
 * Part of the tree, as people read it.
 */
share: string, 
/**
 * Intervals.
 */
n: number, };

/**
 * A tree: its frames in the order in which one walks it, each before what it calls.
 */
export type Tree = { 
/**
 * Its account, as in JSON, or the thread that was on a CPU; empty: all off the CPU.
 */
account: string, 
/**
 * Its time and n in words.
 */
about: string, 
/**
 * Name of each frame, as a place in the names.
 */
name: Array<number>, 
/**
 * 0: the root.
 */
depth: Array<number>, 
/**
 * Time under it, itself included.
 */
ns: Array<number>, 
/**
 * Intervals, or samples, under it.
 */
n: Array<number>, 
/**
 * 0: a process or a sum; 1: a function of the program; 2: of the kernel; 3: not known. In a tree
 * of what differs 4 and the place in the kinds of the comparison.
 */
kind: Array<number>, 
/**
 * Functions with most time of their own, for those who read rather than look; not of a tree that is
 * reversed, whose first row they are.
 */
top: Array<TopRow>, };

/**
 * A figure over runs.
 */
export type TrendLine = { 
/**
 * What it is.
 */
kind: SeriesKind, 
/**
 * As in [`MetricChange::name`].
 */
name: string, 
/**
 * Of each run, in the unit of [`MetricChange::before`]; `None` where a run has no such figure.
 */
values: Array<number | null>, 
/**
 * Of latencies p99, ns, where all runs have values enough for it.
 */
p99: Array<number | null> | null, };

/**
 * Runs of one program on one host, over time.
 */
export type TrendPage = { 
/**
 * Program and host.
 */
group: string, 
/**
 * The runs, oldest first.
 */
runs: Array<RunId>, 
/**
 * When each began, ms since 1970-01-01 UTC.
 */
started_unix_ms: Array<number>, 
/**
 * Latencies, accounts and causes; those that changed come first.
 */
lines: Array<TrendLine>, 
/**
 * How many of them changed.
 */
changed: number, 
/**
 * What changed when, oldest first.
 */
changes: Array<Change>, };

/**
 * What threads do one at a time.
 */
export type Turns = { 
/**
 * What lets them in.
 */
lock: string, 
/**
 * Turns that somebody waited for.
 */
count: number, 
/**
 * The same in a second of the recording.
 */
per_second: number, 
/**
 * How long one is on average, in ns.
 */
mean_ns: number, 
/**
 * Turns of which the length is known: the next one waited from begin to end.
 */
seen_whole: number, 
/**
 * How many threads wait on average over the recording.
 */
waiting: number, 
/**
 * Turns a second that a turn half as long would allow, at most.
 */
half_as_long_per_second: number, 
/**
 * What a turn consists of, in ns: what the one did meanwhile whose turn it was.
 */
ends: { [key in ChainEnd]?: number }, };

/**
 * Connections on which a process has sent something to a peer and has had no answer for a second or more
 * when the recording ended: the peer hangs, or it has nothing to tell yet (a queue, a long poll, a log
 * that is shipped), which looks the same. Or packets of UDP to a peer that answered none of them, sent by a
 * process that asks a name server, or owes answers itself.
 */
export type Unanswered = { 
/**
 * Process that has sent.
 */
tgid: number, 
/**
 * Its name.
 */
comm: string, 
/**
 * Address of the peer; empty for sockets of AF_UNIX.
 */
to: string, 
/**
 * The process at the other end, if it was recorded.
 */
peer: number | null, 
/**
 * Its name; empty if it is not known.
 */
peer_comm: string, 
/**
 * Such connections.
 */
connections: number, 
/**
 * Of these, those on which nothing ever came.
 */
never: number, 
/**
 * Since the longest of them sent, until the end of the recording.
 */
ns: number, 
/**
 * Packets of UDP that were sent to it; 0 of connections of another kind.
 */
packets: number, 
/**
 * That is to be shown with the findings: nothing else is found, or an answer is owed.
 */
matters: boolean, };

/**
 * Waits that are not looked at: of a runtime's tasks for one another.
 */
export type UnseenTasks = { 
/**
 * Name of the runtime.
 */
runtime: string, 
/**
 * Which tasks, and what they wait for.
 */
waits: string, 
/**
 * What shows them instead.
 */
shown_by: string, };

/**
 * A process waits for child processes of one name, one after the other, which run on a CPU for most of that. What
 * they compute is its own work, done by others, so these waits count as waiting for work.
 */
export type WorkingChildren = { 
/**
 * The process that waits.
 */
tgid: number, 
/**
 * Its name.
 */
comm: string, 
/**
 * That of the children.
 */
child: string, 
/**
 * How many there were.
 */
children: number, 
/**
 * How long it waited for them.
 */
ns: number, 
/**
 * The same as a part of the recording, 0 to 1.
 */
share: number, };
