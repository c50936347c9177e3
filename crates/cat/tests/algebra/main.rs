//! Tests the algebras against the textbook definitions, node by node. It uses the node tables of
//! all shipped models and random ones, with random executed sets and leaves.
//!
//! Each property runs on [`CASES`] random candidates per table; for partial candidates,
//! [`COMPLETIONS`] completions are sampled per case. The total is 5 properties × (shipped models +
//! [`TABLES`] random tables) × `CASES`: some 5,000 cases.

mod naive;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;

use rand::{RngCore, SeedableRng};
use rand_pcg::Pcg64Mcg;

use cat::algebra::bits::Bits;
use cat::algebra::bounds::{Bound, Bounds, Truth};
use cat::algebra::circuit::{Circuit, CircuitLeaves};
use cat::algebra::companions::Companions;
use cat::algebra::gates::{Gates, Lit};
use cat::algebra::implied::{ImpliedPairs, implied, rests_on_free};
use cat::algebra::{Leaves, RelAlgebra, Reuse, Value, Values, interpret, interpret_while, needed};
use cat::model::ir::{
    Axiom, FixGroup, FreeId, FreeRel, FreeShape, Kind, Model, ModelNode, NodeId, NodeOp, Test,
};
use cat::model::signature::{BaseId, Signature};
use cat::model::{Library, load_shipped};
use cat::rel::{EventSet, Rel};
use engine::skeleton::signature::signature;
use naive::{Members, Naive, Pairs};

/// Random candidates per node table.
const CASES: u64 = 12;
/// Random node tables.
const TABLES: u64 = 80;
/// Completions sampled for each partial candidate.
const COMPLETIONS: usize = 3;

/// The knowledge about a leaf cell or the execution of an event.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Known {
    No,
    Yes,
    Open,
}

/// A partial candidate: the knowledge about events and leaves. Base sets are always known.
#[derive(Clone, Debug)]
struct Partial {
    n: usize,
    executed: Vec<Known>,
    /// By event: an earlier one that executes whenever it does, and whether they execute together.
    leader: Vec<Option<(usize, bool)>>,
    sets: BTreeMap<BaseId, Vec<bool>>,
    rels: BTreeMap<BaseId, Vec<Known>>,
    free: Vec<Vec<Known>>,
}

/// A completion: a decision for every cell and event.
#[derive(Clone, Debug)]
struct Decided {
    executed: Vec<bool>,
    sets: BTreeMap<BaseId, Vec<bool>>,
    rels: BTreeMap<BaseId, Vec<bool>>,
    free: Vec<Vec<bool>>,
}

impl Partial {
    /// A random partial candidate. `open`: the share of open cells, in percent.
    fn random(model: &Model, rng: &mut Pcg64Mcg, open: u32) -> Partial {
        // Sometimes the few possible events are spread over two words.
        let spread = rng.next_u32().is_multiple_of(16);
        let n = if spread {
            70
        } else {
            1 + (rng.next_u32() % 6) as usize
        };
        let dense = 5 + rng.next_u32() % 50;
        let mut known = |share: u32| match rng.next_u32() % 100 {
            x if x < open => Known::Open,
            _ if rng.next_u32() % 100 < share => Known::Yes,
            _ => Known::No,
        };
        let mut partial = Partial {
            n,
            executed: (0..n)
                .map(|e| {
                    if spread && e % 16 != 5 {
                        Known::No
                    } else {
                        known(80)
                    }
                })
                .collect(),
            leader: vec![None; n],
            sets: BTreeMap::new(),
            rels: BTreeMap::new(),
            free: (0..model.free.len())
                .map(|_| (0..n * n).map(|_| known(dense)).collect())
                .collect(),
        };
        for node in &model.nodes {
            let NodeOp::Base(id) = &node.op else { continue };
            match node.kind {
                Kind::Set => {
                    let members = (0..n).map(|_| known(50) == Known::Yes).collect();
                    partial.sets.insert(*id, members);
                }
                Kind::Rel => {
                    let cells = (0..n * n).map(|_| known(dense)).collect();
                    partial.rels.insert(*id, cells);
                }
            }
        }
        let is_open = |&e: &usize| partial.executed[e] == Known::Open;
        let open: Vec<usize> = (0..n).filter(is_open).collect();
        for (at, &e) in open.iter().enumerate().skip(1) {
            let chosen = rng.next_u32() as usize;
            let leader = open[chosen % at];
            partial.leader[e] =
                (!chosen.is_multiple_of(3)).then_some((leader, chosen.is_multiple_of(2)));
        }
        partial
    }

    /// The events that execute whenever an event does.
    fn companions(&self) -> Companions {
        let whole = EventSet::full(self.n);
        let mut pairs = Vec::new();
        for (e, leader) in self.leader.iter().enumerate() {
            if let &Some((leader, together)) = leader {
                pairs.push((e, leader));
                pairs.extend(together.then_some((leader, e)));
            }
        }
        Companions::new(Rel::from_pairs(self.n, pairs).plus(&whole))
    }

    fn decide(&self, rng: &mut Pcg64Mcg) -> Decided {
        let mut decide = |known: &[Known]| -> Vec<bool> {
            known
                .iter()
                .map(|k| {
                    *k == Known::Yes || (*k == Known::Open && rng.next_u32().is_multiple_of(2))
                })
                .collect()
        };
        let mut executed = decide(&self.executed);
        for (e, leader) in self.leader.iter().enumerate() {
            match *leader {
                Some((leader, true)) => executed[e] = executed[leader],
                Some((leader, false)) => executed[e] &= executed[leader],
                None => {}
            }
        }
        Decided {
            executed,
            sets: self.sets.clone(),
            rels: self.rels.iter().map(|(id, k)| (*id, decide(k))).collect(),
            free: self.free.iter().map(|k| decide(k)).collect(),
        }
    }

    fn bounds(&self) -> Bounds {
        let n = self.n;
        Bounds {
            must: EventSet::from_fn(n, |e| self.executed[e.index()] == Known::Yes),
            may: EventSet::from_fn(n, |e| self.executed[e.index()] != Known::No),
            companions: Some(Rc::new(self.companions())),
        }
    }

    fn bound(&self, cells: &[Known]) -> Bound<Rel> {
        let may = self.bounds().may;
        let rel = |f: &dyn Fn(Known) -> bool| {
            Rel::from_fn(self.n, |i, j| f(cells[i * self.n + j])).restricted(&may)
        };
        Bound {
            must: rel(&|k| k == Known::Yes),
            may: rel(&|k| k != Known::No),
        }
    }
}

impl Decided {
    fn members(&self) -> Members {
        (0..self.executed.len())
            .filter(|&e| self.executed[e])
            .collect()
    }

    fn pairs(&self, cells: &[bool]) -> Pairs {
        let n = self.executed.len();
        (0..n * n)
            .filter(|&c| cells[c])
            .map(|c| (c / n, c % n))
            .filter(|p| self.executed[p.0] && self.executed[p.1])
            .collect()
    }
}

impl Leaves<Naive> for Decided {
    fn base(&self, id: BaseId, kind: Kind) -> Value<Members, Pairs> {
        match kind {
            Kind::Set => Value::Set(
                self.members()
                    .into_iter()
                    .filter(|&e| self.sets[&id][e])
                    .collect(),
            ),
            Kind::Rel => Value::Rel(self.pairs(&self.rels[&id])),
        }
    }
    fn free(&self, id: FreeId) -> Pairs {
        self.pairs(&self.free[id.0 as usize])
    }
}

impl Leaves<Bits> for Decided {
    fn base(&self, id: BaseId, kind: Kind) -> Value<EventSet, Rel> {
        match <Decided as Leaves<Naive>>::base(self, id, kind) {
            Value::Set(s) => Value::Set(EventSet::from_fn(self.executed.len(), |e| {
                s.contains(&e.index())
            })),
            Value::Rel(r) => Value::Rel(Rel::from_pairs(self.executed.len(), r)),
        }
    }
    fn free(&self, id: FreeId) -> Rel {
        Rel::from_pairs(
            self.executed.len(),
            <Decided as Leaves<Naive>>::free(self, id),
        )
    }
}

impl Leaves<Bounds> for Partial {
    fn base(&self, id: BaseId, kind: Kind) -> Value<Bound<EventSet>, Bound<Rel>> {
        match kind {
            Kind::Set => {
                let s = EventSet::from_fn(self.n, |e| {
                    self.sets[&id][e.index()] && self.executed[e.index()] != Known::No
                });
                Value::Set(Bound {
                    must: s.clone(),
                    may: s,
                })
            }
            Kind::Rel => Value::Rel(self.bound(&self.rels[&id])),
        }
    }
    fn free(&self, id: FreeId) -> Bound<Rel> {
        self.bound(&self.free[id.0 as usize])
    }
}

/// Inputs of a circuit: one per open event and open cell.
#[derive(Default)]
struct Inputs {
    executed: BTreeMap<usize, Lit>,
    rels: BTreeMap<(BaseId, usize, usize), Lit>,
    free: BTreeMap<(u32, usize, usize), Lit>,
}

impl CircuitLeaves for Inputs {
    fn executes(&mut self, gates: &mut Gates, event: usize) -> Lit {
        *self.executed.entry(event).or_insert_with(|| gates.input())
    }
    fn base(&mut self, gates: &mut Gates, id: BaseId, i: usize, j: usize) -> Lit {
        *self.rels.entry((id, i, j)).or_insert_with(|| gates.input())
    }
    fn free(&mut self, gates: &mut Gates, id: FreeId, i: usize, j: usize) -> Lit {
        *self
            .free
            .entry((id.0, i, j))
            .or_insert_with(|| gates.input())
    }
}

fn all(model: &Model) -> Vec<bool> {
    needed(model, (0..model.nodes.len() as u32).map(NodeId))
}

fn run<A: RelAlgebra>(model: &Model, algebra: &A, leaves: &impl Leaves<A>) -> Values<A> {
    interpret(model, algebra, leaves, &all(model), Reuse::none(), None).expect("no deadline")
}

fn textbook(model: &Model, candidate: &Decided) -> (Naive, Values<Naive>) {
    let naive = Naive {
        executed: candidate.members(),
    };
    let values = run(model, &naive, candidate);
    (naive, values)
}

fn get<S: Clone, R: Clone>(values: &[Option<Rc<Value<S, R>>>], id: usize) -> Value<S, R> {
    values[id]
        .as_deref()
        .expect("all nodes are computed")
        .clone()
}

const TESTS: [Test; 3] = [Test::Acyclic, Test::Irreflexive, Test::Empty];

/// The tests that apply to a node of that kind.
fn tests(kind: Kind) -> impl Iterator<Item = Test> {
    TESTS
        .into_iter()
        .filter(move |t| kind == Kind::Rel || *t == Test::Empty)
}

fn bits_are_textbook(model: &Model, rng: &mut Pcg64Mcg) {
    let partial = Partial::random(model, rng, 30);
    let n = partial.n;
    let candidate = partial.decide(rng);
    let (naive, expected) = textbook(model, &candidate);
    let bits = Bits {
        executed: EventSet::from_fn(n, |e| candidate.executed[e.index()]),
    };
    let found = run(model, &bits, &candidate);
    for (i, node) in model.nodes.iter().enumerate() {
        let (want, have) = (get(&expected, i), get(&found, i));
        let same = match (&want, &have) {
            (Value::Set(a), Value::Set(b)) => a.iter().copied().eq(b.iter()),
            (Value::Rel(a), Value::Rel(b)) => a.iter().copied().eq(b.iter()),
            _ => false,
        };
        assert!(
            same,
            "node {i} {:?}: {want:?} but bits say {have:?}",
            node.op
        );
        for test in tests(node.kind) {
            assert_eq!(
                naive.holds(test, &want),
                bits.holds(test, &have),
                "{:?} of node {}",
                test,
                i
            );
        }
    }
    let last = rng.next_u32() as usize % model.nodes.len();
    stops_where_it_is_told(model, &bits, &candidate, &found, last)
}

/// The observer of values may stop the run. The values computed until then are a valid start for
/// another run.
fn stops_where_it_is_told<A: RelAlgebra>(
    model: &Model,
    algebra: &A,
    leaves: &impl Leaves<A>,
    whole: &Values<A>,
    last: usize,
) where
    Value<A::Set, A::Rel>: PartialEq,
{
    let mut more = |node: NodeId, _: &Value<A::Set, A::Rel>| node.index() != last;
    let part = interpret_while(
        model,
        algebra,
        leaves,
        &all(model),
        Reuse::none(),
        &|| false,
        &mut more,
    );
    let part = part.expect("nothing ends it");
    let group = model
        .groups
        .iter()
        .find(|group| group.range.contains(&(last as u32)));
    let end = group.map_or(last + 1, |group| group.range.end as usize);
    assert!(
        part[..end] == whole[..end] && part[end..].iter().all(Option::is_none),
        "not until node {}",
        last
    );
    let reuse = Reuse {
        known: &[],
        before: &part,
    };
    let again = interpret(model, algebra, leaves, &all(model), reuse, None).expect("no deadline");
    assert!(again == *whole, "another run after node {}", last);
}

/// Whether the exact value lies between the bounds, for executed events.
fn between(
    bound: &Value<Bound<EventSet>, Bound<Rel>>,
    exact: &Value<Members, Pairs>,
    executed: &Members,
) -> bool {
    match (bound, exact) {
        (Value::Set(b), Value::Set(x)) => executed
            .iter()
            .all(|e| (!b.must.has(*e) || x.contains(e)) && (b.may.has(*e) || !x.contains(e))),
        (Value::Rel(b), Value::Rel(x)) => executed.iter().all(|&i| {
            executed.iter().all(|&j| {
                (!b.must.has(i, j) || x.contains(&(i, j)))
                    && (b.may.has(i, j) || !x.contains(&(i, j)))
            })
        }),
        _ => false,
    }
}

fn bounds_are_sound(model: &Model, rng: &mut Pcg64Mcg) {
    let open = rng.next_u32() % 60;
    let partial = Partial::random(model, rng, open);
    let algebra = partial.bounds();
    let bounds = run(model, &algebra, &partial);
    for _ in 0..COMPLETIONS {
        let candidate = partial.decide(rng);
        let (naive, exact) = textbook(model, &candidate);
        for (i, node) in model.nodes.iter().enumerate() {
            let (bound, exact) = (get(&bounds, i), get(&exact, i));
            assert!(
                between(&bound, &exact, &naive.executed),
                "node {i} {:?}: {exact:?} is not within {bound:?}",
                node.op
            );
            for test in tests(node.kind) {
                let truth = algebra.holds(test, &bound);
                let contradicted = if naive.holds(test, &exact) {
                    Truth::No
                } else {
                    Truth::Yes
                };
                assert_ne!(truth, contradicted, "{:?} of node {}", test, i);
            }
        }
    }
}

/// Facts derived from a test hold in every completion in which the test succeeds. `said_of` counts
/// the derivations.
fn what_is_implied_holds(model: &Model, rng: &mut Pcg64Mcg, said_of: &Cell<usize>) {
    let open = rng.next_u32() % 60;
    let partial = Partial::random(model, rng, open);
    let algebra = partial.bounds();
    let bounds = run(model, &algebra, &partial);
    let completions: Vec<_> = (0..4 * COMPLETIONS)
        .map(|_| partial.decide(rng))
        .map(|candidate| (textbook(model, &candidate), candidate))
        .collect();
    for (i, node) in model.nodes.iter().enumerate() {
        for test in tests(node.kind) {
            let mut all_said = Vec::new();
            let mut hear =
                |node: NodeId, said: &ImpliedPairs| all_said.push((node.index(), said.clone()));
            implied(
                model,
                &rests_on_free(model),
                &algebra,
                &bounds,
                test,
                NodeId(i as u32),
                &mut hear,
            );
            for ((naive, exact), candidate) in &completions {
                if !naive.holds(test, &get(exact, i)) {
                    continue;
                }
                for (f, said) in &all_said {
                    let value = get(exact, *f);
                    let pairs = value.rel();
                    let executed =
                        |&(a, b): &(usize, usize)| candidate.executed[a] && candidate.executed[b];
                    for pair in said.never.iter().flat_map(Rel::iter).filter(executed) {
                        assert!(
                            !pairs.contains(&pair),
                            "{test:?} of node {i}: {pair:?} is never in {f:?}"
                        );
                        said_of.update(|n| n + 1);
                    }
                    for pair in said.always.iter().flat_map(Rel::iter).filter(executed) {
                        assert!(
                            pairs.contains(&pair),
                            "{test:?} of node {i}: {pair:?} is always in {f:?}"
                        );
                        said_of.update(|n| n + 1);
                    }
                }
            }
        }
    }
}

fn bounds_are_exact_when_all_is_known(model: &Model, rng: &mut Pcg64Mcg) {
    let partial = Partial::random(model, rng, 0);
    let algebra = partial.bounds();
    let bounds = run(model, &algebra, &partial);
    let (naive, exact) = textbook(model, &partial.decide(rng));
    for (i, node) in model.nodes.iter().enumerate() {
        let (bound, exact) = (get(&bounds, i), get(&exact, i));
        assert!(
            between(&bound, &exact, &naive.executed),
            "node {i} {:?}",
            node.op
        );
        let tight = match &bound {
            Value::Set(b) => b.must == b.may,
            Value::Rel(b) => b.must == b.may,
        };
        assert!(tight, "node {i} {:?}: {bound:?}", node.op);
        for test in tests(node.kind) {
            let expected = if naive.holds(test, &exact) {
                Truth::Yes
            } else {
                Truth::No
            };
            assert_eq!(
                algebra.holds(test, &bound),
                expected,
                "{:?} of node {}",
                test,
                i
            );
        }
    }
}

fn circuits_are_textbook(model: &Model, rng: &mut Pcg64Mcg) {
    let open = rng.next_u32() % 50;
    let partial = Partial::random(model, rng, open);
    let n = partial.n;
    let algebra = Rc::new(partial.bounds());
    let bounds = Rc::new(run(model, &*algebra, &partial));
    let mut gates = Gates::default();
    let mut circuit = Circuit::new(model, algebra, bounds, Inputs::default());
    // Nodes inside a fixpoint group have no separate value, except its bodies.
    let inside = |i: usize| model.groups.iter().any(|g| g.range.contains(&(i as u32)));
    let outside: Vec<usize> = (0..model.nodes.len()).filter(|&i| !inside(i)).collect();
    let bodies = model
        .groups
        .iter()
        .flat_map(|g| g.bodies.iter().map(|b| b.index()));
    let asked: Vec<usize> = outside.into_iter().chain(bodies).collect();
    let mut cells: Vec<(usize, usize, usize, Lit)> = Vec::new();
    let mut answers: Vec<(usize, Test, Lit)> = Vec::new();
    let may: Vec<usize> = (0..n)
        .filter(|&e| partial.executed[e] != Known::No)
        .collect();
    for &i in &asked {
        for &a in &may {
            match model.nodes[i].kind {
                Kind::Set => cells.push((i, a, a, circuit.member(&mut gates, NodeId(i as u32), a))),
                Kind::Rel => {
                    for &b in &may {
                        cells.push((i, a, b, circuit.cell(&mut gates, NodeId(i as u32), a, b)));
                    }
                }
            }
        }
        for test in tests(model.nodes[i].kind) {
            answers.push((i, test, circuit.test(&mut gates, test, NodeId(i as u32))));
        }
    }
    assert!(!circuit.failed, "a recursive definition was given up");
    let inputs = circuit.leaves;
    for _ in 0..COMPLETIONS {
        let candidate = partial.decide(rng);
        let mut values: BTreeMap<usize, bool> = BTreeMap::new();
        for (&e, l) in &inputs.executed {
            values.insert(l.gate(), candidate.executed[e]);
        }
        for ((id, i, j), l) in &inputs.rels {
            values.insert(l.gate(), candidate.rels[id][i * n + j]);
        }
        for (&(f, i, j), l) in &inputs.free {
            values.insert(l.gate(), candidate.free[f as usize][i * n + j]);
        }
        let gate_values = gates.evaluate(|g| values[&g]);
        let holds = |l: Lit| gate_values[l.gate()] != l.negated();
        let (naive, exact) = textbook(model, &candidate);
        for &(i, a, b, lit) in &cells {
            if !candidate.executed[a] || !candidate.executed[b] {
                continue;
            }
            let expected = match get(&exact, i) {
                Value::Set(s) => s.contains(&a),
                Value::Rel(r) => r.contains(&(a, b)),
            };
            assert_eq!(
                holds(lit),
                expected,
                "node {} {:?} at {},{}",
                i,
                model.nodes[i].op,
                a,
                b
            );
        }
        for &(i, test, lit) in &answers {
            assert_eq!(
                holds(lit),
                naive.holds(test, &get(&exact, i)),
                "{:?} of node {}",
                test,
                i
            );
        }
    }
}

/// A random node table in which every operator can occur. Fixpoint groups contain only monotone
/// operators.
fn table(rng: &mut Pcg64Mcg) -> Model {
    let mut below = |n: usize| (rng.next_u32() as usize) % n;
    let node = |op: NodeOp, kind: Kind| ModelNode {
        op,
        kind,
        is_static: false,
        name: None,
        span: Default::default(),
    };
    let mut nodes: Vec<ModelNode> = Vec::new();
    for i in 0..3 {
        nodes.push(node(NodeOp::Base(BaseId(2 * i)), Kind::Set));
        nodes.push(node(NodeOp::Base(BaseId(2 * i + 1)), Kind::Rel));
    }
    for i in 0..2 {
        nodes.push(node(NodeOp::Free(FreeId(i)), Kind::Rel));
    }
    for kind in [Kind::Set, Kind::Rel] {
        nodes.push(node(NodeOp::Empty, kind));
    }
    nodes.push(node(NodeOp::Universe, Kind::Set));
    let mut groups: Vec<FixGroup> = Vec::new();
    let mut hidden: Vec<usize> = Vec::new(); // inside groups, except bodies
    let steps = 4 + below(16);
    for _ in 0..steps {
        let group = below(6) == 0;
        let first = nodes.len();
        if group {
            let members = 1 + below(2);
            for m in 0..members {
                let kind = if below(4) == 0 { Kind::Set } else { Kind::Rel };
                nodes.push(node(NodeOp::Var(groups.len() as u32, m as u32), kind));
            }
            let (mut bodies, mut inner) = (Vec::new(), 0);
            let vars: Vec<usize> = (first..nodes.len()).collect();
            let mut latest: Vec<usize> = vars.clone();
            let size = members + 1 + below(3);
            while inner < size || bodies.len() < members {
                // Each node uses one that depends on a variable, and maybe one from outside.
                let own = latest[below(latest.len())];
                let visible: Vec<usize> = (0..first)
                    .filter(|i| !hidden.contains(i))
                    .chain(latest.iter().copied())
                    .collect();
                let want = if inner >= size {
                    Some(nodes[vars[bodies.len()]].kind)
                } else {
                    None
                };
                let other = |kind: Kind, at: usize, nodes: &[ModelNode]| {
                    let fits: Vec<usize> = visible
                        .iter()
                        .copied()
                        .filter(|&i| nodes[i].kind == kind)
                        .collect();
                    NodeId(fits[at % fits.len()] as u32)
                };
                let (x, at) = (NodeId(own as u32), below(64));
                let (op, kind) = match (nodes[own].kind, below(8)) {
                    (Kind::Set, 0) => (NodeOp::IdentityOn(x), Kind::Rel),
                    (Kind::Set, 1) => (NodeOp::Product(x, other(Kind::Set, at, &nodes)), Kind::Rel),
                    (Kind::Set, 2) => (NodeOp::Inter(x, other(Kind::Set, at, &nodes)), Kind::Set),
                    (Kind::Set, _) => (NodeOp::Union(x, other(Kind::Set, at, &nodes)), Kind::Set),
                    (Kind::Rel, 0) => (NodeOp::Inverse(x), Kind::Rel),
                    (Kind::Rel, 1) => (NodeOp::Domain(x), Kind::Set),
                    (Kind::Rel, 2) => (NodeOp::Range(x), Kind::Set),
                    (Kind::Rel, 3) => (NodeOp::Seq(other(Kind::Rel, at, &nodes), x), Kind::Rel),
                    (Kind::Rel, 4) => (NodeOp::Plus(x), Kind::Rel),
                    (Kind::Rel, 5) => (NodeOp::Inter(x, other(Kind::Rel, at, &nodes)), Kind::Rel),
                    (Kind::Rel, _) => (NodeOp::Union(other(Kind::Rel, at, &nodes), x), Kind::Rel),
                };
                let id = NodeId(nodes.len() as u32);
                nodes.push(node(op, kind));
                latest.push(id.index());
                inner += 1;
                if want == Some(kind) {
                    bodies.push(id);
                } else if inner > 200 {
                    // Uses the variable itself, which has the right kind, as a body.
                    let v = NodeId(vars[bodies.len()] as u32);
                    let kind = nodes[v.index()].kind;
                    bodies.push(NodeId(nodes.len() as u32));
                    nodes.push(node(NodeOp::Union(v, v), kind));
                }
            }
            hidden.extend((first..nodes.len()).filter(|&i| !bodies.contains(&NodeId(i as u32))));
            groups.push(FixGroup {
                names: (0..members).map(|m| format!("f{m}")).collect(),
                vars: vars.iter().map(|&v| NodeId(v as u32)).collect(),
                bodies,
                range: first as u32..nodes.len() as u32,
            });
            continue;
        }
        let pick = |kind: Kind, at: usize, nodes: &[ModelNode]| {
            let fits: Vec<usize> = (0..nodes.len())
                .filter(|i| nodes[*i].kind == kind && !hidden.contains(i))
                .collect();
            NodeId(fits[fits.len() - 1 - at * at / 64 % fits.len()] as u32)
        };
        let kind = if below(4) == 0 { Kind::Set } else { Kind::Rel };
        let (x, y) = (below(64), below(64));
        let op = match (kind, below(9)) {
            (Kind::Set, 0 | 1) => NodeOp::Domain(pick(Kind::Rel, x, &nodes)),
            (Kind::Set, 2 | 3) => NodeOp::Range(pick(Kind::Rel, x, &nodes)),
            (Kind::Rel, 0) => NodeOp::IdentityOn(pick(Kind::Set, x, &nodes)),
            (Kind::Rel, 1) => {
                NodeOp::Product(pick(Kind::Set, x, &nodes), pick(Kind::Set, y, &nodes))
            }
            (Kind::Rel, 2) => NodeOp::Inverse(pick(Kind::Rel, x, &nodes)),
            (Kind::Rel, 3) => NodeOp::Plus(pick(Kind::Rel, x, &nodes)),
            (Kind::Rel, 4 | 5) => {
                NodeOp::Seq(pick(Kind::Rel, x, &nodes), pick(Kind::Rel, y, &nodes))
            }
            (kind, 6) => NodeOp::Union(pick(kind, x, &nodes), pick(kind, y, &nodes)),
            (kind, 7) => NodeOp::Inter(pick(kind, x, &nodes), pick(kind, y, &nodes)),
            (kind, _) => NodeOp::Diff(pick(kind, x, &nodes), pick(kind, y, &nodes)),
        };
        nodes.push(node(op, kind));
    }
    let free = |name: &str| FreeRel {
        name: name.to_string(),
        shape: FreeShape::Order,
        within: NodeId(1),
        containing: None,
        covering: None,
        span: Default::default(),
    };
    Model {
        name: "random".to_string(),
        language: String::new(),
        title: String::new(),
        header: String::new(),
        nodes,
        groups,
        free: vec![free("f"), free("g")],
        values: FreeId(0),
        finals: FreeId(1),
        axioms: Vec::<Axiom>::new(),
        flags: Vec::new(),
        lets: Vec::new(),
        shows: Vec::new(),
        drawn: Vec::new(),
        options: Vec::new(),
        signature: Signature::default(),
        files: Vec::new(),
    }
}

/// Checks a property on all shipped models and on random tables.
fn check(property: impl Fn(&Model, &mut Pcg64Mcg)) {
    let mut models: Vec<Model> = Library::names()
        .into_iter()
        .map(|name| {
            load_shipped(name, &signature())
                .expect("listed")
                .expect("shipped models are valid")
        })
        .collect();
    models.extend((0..TABLES).map(|i| table(&mut Pcg64Mcg::seed_from_u64(i))));
    for (m, model) in models.iter().enumerate() {
        for case in 0..CASES {
            let mut rng = Pcg64Mcg::seed_from_u64(1_000 + m as u64 * CASES + case);
            let held = catch_unwind(AssertUnwindSafe(|| property(model, &mut rng)));
            if let Err(panic) = held {
                eprintln!(
                    "case {case} of model {} (number {m}): {:?}",
                    model.name, model.groups
                );
                model
                    .nodes
                    .iter()
                    .enumerate()
                    .for_each(|(i, n)| eprintln!("{i}: {:?}", n.op));
                resume_unwind(panic);
            }
        }
    }
}

#[test]
fn bits() {
    check(bits_are_textbook);
}

#[test]
fn bounds() {
    check(bounds_are_sound);
}

#[test]
fn implications() {
    let said_of = Cell::new(0);
    check(|model, rng| what_is_implied_holds(model, rng, &said_of));
    assert!(said_of.get() > 10_000, "{said_of:?}");
}

#[test]
fn bounds_of_known_cells() {
    check(bounds_are_exact_when_all_is_known);
}

#[test]
fn circuits() {
    check(circuits_are_textbook);
}
