//! Checks that lowering preserves meaning. Random models are evaluated twice over random events:
//! from the syntax tree with textbook definitions, and from the node table. The two evaluators
//! share only the number of events.

use std::collections::{BTreeMap, BTreeSet};

use fencepost::diag::SourceFile;
use fencepost::model::ast::{CatExpr, CatExprKind, CatStmtKind, ChainOp, LetBinding, UnaryOp};
use fencepost::model::ir::{Kind, Model, NodeOp};
use fencepost::model::{Shipped, load, parse};
use fencepost::skeleton::signature::signature;

const EVENTS: u8 = 4;

type Set = BTreeSet<u8>;
type Rel = BTreeSet<(u8, u8)>;

#[derive(Clone, Debug, PartialEq)]
enum Value {
    Set(Set),
    Rel(Rel),
}

use Value::{Rel as R, Set as S};

fn all() -> Set {
    (0..EVENTS).collect()
}

fn product(a: &Set, b: &Set) -> Rel {
    a.iter()
        .flat_map(|&x| b.iter().map(move |&y| (x, y)))
        .collect()
}

fn identity(a: &Set) -> Rel {
    a.iter().map(|&x| (x, x)).collect()
}

fn seq(a: &Rel, b: &Rel) -> Rel {
    a.iter()
        .flat_map(|&(x, y)| b.iter().filter(move |p| p.0 == y).map(move |p| (x, p.1)))
        .collect()
}

fn plus(a: &Rel) -> Rel {
    let mut closed = a.clone();
    loop {
        let next: Rel = closed.union(&seq(&closed, a)).copied().collect();
        if next == closed {
            return closed;
        }
        closed = next;
    }
}

/// Union, intersection or difference of two values of one kind.
fn boolean(op: ChainOp, a: Value, b: Value) -> Value {
    fn on<T: Ord + Copy>(op: ChainOp, a: &BTreeSet<T>, b: &BTreeSet<T>) -> BTreeSet<T> {
        match op {
            ChainOp::Union => a.union(b).copied().collect(),
            ChainOp::Inter => a.intersection(b).copied().collect(),
            _ => a.difference(b).copied().collect(),
        }
    }
    match (a, b) {
        (S(a), S(b)) => S(on(op, &a, &b)),
        (R(a), R(b)) => R(on(op, &a, &b)),
        mixed => panic!("ill-typed: {mixed:?}"),
    }
}

type Env = BTreeMap<String, Value>;

fn rel(value: Value) -> Rel {
    match value {
        R(r) => r,
        S(s) => identity(&s),
    }
}

fn set(value: Value) -> Set {
    match value {
        S(s) => s,
        R(r) => panic!("a relation where a set belongs: {r:?}"),
    }
}

/// The textbook meaning of an expression.
fn meaning(e: &CatExpr, env: &Env) -> Value {
    match &e.kind {
        CatExprKind::Name(name) if name == "id" => R(identity(&all())),
        CatExprKind::Name(name) => env[name].clone(),
        CatExprKind::Universe => S(all()),
        CatExprKind::EmptySet => S(Set::new()),
        CatExprKind::Zero => R(Rel::new()),
        CatExprKind::Unary(op, inner) => {
            let inner = meaning(inner, env);
            match (op, inner) {
                (UnaryOp::Not, S(s)) => boolean(ChainOp::Diff, S(all()), S(s)),
                (UnaryOp::Not, R(r)) => boolean(ChainOp::Diff, R(product(&all(), &all())), R(r)),
                (UnaryOp::Identity, v) => R(identity(&set(v))),
                (UnaryOp::Inverse, v) => R(rel(v).into_iter().map(|(x, y)| (y, x)).collect()),
                (UnaryOp::Optional, v) => boolean(ChainOp::Union, R(rel(v)), R(identity(&all()))),
                (UnaryOp::Plus, v) => R(plus(&rel(v))),
                (UnaryOp::Star, v) => {
                    boolean(ChainOp::Union, R(plus(&rel(v))), R(identity(&all())))
                }
            }
        }
        CatExprKind::Chain(op, list) => {
            let mut values = list.iter().map(|e| meaning(e, env));
            let first = values.next().expect("chains are not empty");
            values.fold(first, |a, b| match op {
                ChainOp::Seq => R(seq(&rel(a), &rel(b))),
                ChainOp::Product => R(product(&set(a), &set(b))),
                op => boolean(*op, a, b),
            })
        }
        CatExprKind::Call(name, args) => {
            let arg = rel(meaning(&args[0], env));
            match name.name.as_str() {
                "domain" => S(arg.into_iter().map(|p| p.0).collect()),
                "range" => S(arg.into_iter().map(|p| p.1).collect()),
                other => panic!("unexpected call of {other}"),
            }
        }
        other => panic!("not generated: {other:?}"),
    }
}

/// The least fixpoint, by iteration from the empty relation.
fn fixpoint(bindings: &[LetBinding], kinds: &[Kind], env: &Env) -> Env {
    let mut now = env.clone();
    for (binding, kind) in bindings.iter().zip(kinds) {
        let empty = if *kind == Kind::Set {
            S(Set::new())
        } else {
            R(Rel::new())
        };
        now.insert(binding.name.name.clone(), empty);
    }
    loop {
        let mut next = now.clone();
        for binding in bindings {
            next.insert(binding.name.name.clone(), meaning(&binding.body, &now));
        }
        if next == now {
            return now;
        }
        now = next;
    }
}

/// The value of every node of a table.
fn run(model: &Model, leaves: &Env) -> Vec<Value> {
    let mut values: Vec<Value> = Vec::new();
    let mut at = 0;
    while at < model.nodes.len() {
        match model.groups.iter().find(|g| g.range.start as usize == at) {
            Some(group) => {
                let mut vars: Vec<Value> = group
                    .vars
                    .iter()
                    .map(|v| {
                        if model.node(*v).kind == Kind::Set {
                            S(Set::new())
                        } else {
                            R(Rel::new())
                        }
                    })
                    .collect();
                loop {
                    values.truncate(at);
                    values.extend(vars.iter().cloned());
                    for inner in at + vars.len()..group.range.end as usize {
                        values.push(node(model, inner, &values, leaves));
                    }
                    let next: Vec<Value> = group
                        .bodies
                        .iter()
                        .map(|b| values[b.index()].clone())
                        .collect();
                    if next == vars {
                        break;
                    }
                    vars = next;
                }
                at = group.range.end as usize;
            }
            None => {
                values.push(node(model, at, &values, leaves));
                at += 1;
            }
        }
    }
    values
}

fn node(model: &Model, at: usize, values: &[Value], leaves: &Env) -> Value {
    let node = &model.nodes[at];
    let v = |id: &fencepost::model::ir::NodeId| values[id.index()].clone();
    match &node.op {
        NodeOp::Base(id) => leaves[model.base(*id).name].clone(),
        NodeOp::Free(free) => leaves[&model.free[free.0 as usize].name].clone(),
        NodeOp::Var(..) => panic!("variables are set by their group"),
        NodeOp::Empty if node.kind == Kind::Set => S(Set::new()),
        NodeOp::Empty => R(Rel::new()),
        NodeOp::Universe => S(all()),
        NodeOp::IdentityOn(a) => R(identity(&set(v(a)))),
        NodeOp::Product(a, b) => R(product(&set(v(a)), &set(v(b)))),
        NodeOp::Union(a, b) => boolean(ChainOp::Union, v(a), v(b)),
        NodeOp::Inter(a, b) => boolean(ChainOp::Inter, v(a), v(b)),
        NodeOp::Diff(a, b) => boolean(ChainOp::Diff, v(a), v(b)),
        NodeOp::Seq(a, b) => R(seq(&rel(v(a)), &rel(v(b)))),
        NodeOp::Inverse(a) => R(rel(v(a)).into_iter().map(|(x, y)| (y, x)).collect()),
        NodeOp::Plus(a) => R(plus(&rel(v(a)))),
        NodeOp::Domain(a) => S(rel(v(a)).into_iter().map(|p| p.0).collect()),
        NodeOp::Range(a) => S(rel(v(a)).into_iter().map(|p| p.1).collect()),
    }
}

/// xorshift64: the tests must repeat.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }

    fn pick(&mut self, list: &[String]) -> String {
        list[self.below(list.len() as u64) as usize].clone()
    }

    fn leaves(&mut self) -> Env {
        let mut env = Env::new();
        for name in ["R", "W", "F", "IW"] {
            env.insert(
                name.into(),
                S((0..EVENTS).filter(|_| self.below(2) == 0).collect()),
            );
        }
        for name in ["po", "loc", "rf", "co", "ext", "rmw", "syncbar"] {
            let pairs = product(&all(), &all());
            env.insert(
                name.into(),
                R(pairs.into_iter().filter(|_| self.below(3) == 0).collect()),
            );
        }
        env
    }

    fn set(&mut self, depth: u32, sets: &[String], rels: &[String]) -> String {
        if depth == 0 {
            return if self.below(6) == 0 {
                "_".into()
            } else {
                self.pick(sets)
            };
        }
        let d = depth - 1;
        match self.below(7) {
            0 => format!(
                "({} | {})",
                self.set(d, sets, rels),
                self.set(d, sets, rels)
            ),
            1 => format!(
                "({} & {})",
                self.set(d, sets, rels),
                self.set(d, sets, rels)
            ),
            2 => format!(
                "({} \\ {})",
                self.set(d, sets, rels),
                self.set(d, sets, rels)
            ),
            3 => format!("~{}", self.set(d, sets, rels)),
            4 => format!("domain({})", self.rel(d, sets, rels)),
            5 => format!("range({})", self.rel(d, sets, rels)),
            _ => self.pick(sets),
        }
    }

    fn rel(&mut self, depth: u32, sets: &[String], rels: &[String]) -> String {
        if depth == 0 {
            return match self.below(12) {
                0 => "id".into(),
                1 => "0".into(),
                2 => "(_ * _)".into(),
                _ => self.pick(rels),
            };
        }
        let d = depth - 1;
        match self.below(16) {
            0 | 1 => format!(
                "({} | {})",
                self.rel(d, sets, rels),
                self.rel(d, sets, rels)
            ),
            2 | 3 => format!(
                "({} & {})",
                self.rel(d, sets, rels),
                self.rel(d, sets, rels)
            ),
            4 | 5 => format!(
                "({} \\ {})",
                self.rel(d, sets, rels),
                self.rel(d, sets, rels)
            ),
            6 | 7 => format!(
                "({} ; {})",
                self.rel(d, sets, rels),
                self.rel(d, sets, rels)
            ),
            8 => format!("[{}]", self.set(d, sets, rels)),
            9 => format!(
                "([{}] ; {} ; [{}])",
                self.set(d, sets, rels),
                self.rel(d, sets, rels),
                self.set(d, sets, rels)
            ),
            10 => format!(
                "({} * {})",
                self.set(d, sets, rels),
                self.set(d, sets, rels)
            ),
            11 => format!("({})^-1", self.rel(d, sets, rels)),
            12 => format!("({})+", self.rel(d, sets, rels)),
            13 => format!("({})*", self.rel(d, sets, rels)),
            14 => format!("({})?", self.rel(d, sets, rels)),
            _ => format!(
                "~({} | {})",
                self.rel(d, sets, rels),
                self.rel(d, sets, rels)
            ),
        }
    }

    /// A body that grows with `vars`.
    fn growing(&mut self, depth: u32, vars: &[String], sets: &[String], rels: &[String]) -> String {
        if depth == 0 {
            return if self.below(2) == 0 {
                self.pick(vars)
            } else {
                self.rel(1, sets, rels)
            };
        }
        let d = depth - 1;
        match self.below(9) {
            0..=2 => {
                format!(
                    "({} | {})",
                    self.growing(d, vars, sets, rels),
                    self.growing(d, vars, sets, rels)
                )
            }
            3 | 4 => {
                format!(
                    "({} ; {})",
                    self.growing(d, vars, sets, rels),
                    self.growing(d, vars, sets, rels)
                )
            }
            5 => format!(
                "({} & {})",
                self.growing(d, vars, sets, rels),
                self.rel(1, sets, rels)
            ),
            6 => format!(
                "({} \\ {})",
                self.growing(d, vars, sets, rels),
                self.rel(1, sets, rels)
            ),
            7 => {
                let v = self.pick(vars);
                format!(
                    "({} | {v} ; {} ; {v})",
                    self.rel(1, sets, rels),
                    self.rel(1, sets, rels)
                )
            }
            _ => {
                let v = self.pick(vars);
                format!(
                    "({} | {} ; {v} | {v} ; {v})",
                    self.rel(1, sets, rels),
                    self.rel(1, sets, rels)
                )
            }
        }
    }

    fn model(&mut self) -> String {
        let mut sets: Vec<String> = ["R", "W", "F"].map(String::from).to_vec();
        let mut rels: Vec<String> = ["po", "loc", "rf", "co", "ext"].map(String::from).to_vec();
        let mut text = String::from(
            "free rf : function within po free co : order within po values rf final co\n",
        );
        for n in 0..6 {
            match self.below(4) {
                0 => {
                    let body = self.set(3, &sets, &rels);
                    text.push_str(&format!("let s{n} = {body}\n"));
                    sets.push(format!("s{n}"));
                }
                1 | 2 => {
                    // Sometimes a definition shadows a base or free name.
                    let name = if self.below(4) == 0 {
                        self.pick(&rels)
                    } else {
                        format!("r{n}")
                    };
                    let body = self.rel(4, &sets, &rels);
                    text.push_str(&format!("let {name} = {body}\n"));
                    if !rels.contains(&name) {
                        rels.push(name);
                    }
                }
                _ => {
                    let vars: Vec<String> =
                        (0..=self.below(3)).map(|i| format!("x{n}-{i}")).collect();
                    let bodies: Vec<String> = vars
                        .iter()
                        .map(|v| format!("{v} = {}", self.growing(2, &vars, &sets, &rels)))
                        .collect();
                    text.push_str(&format!("let rec {}\n", bodies.join(" and ")));
                    rels.extend(vars);
                }
            }
        }
        text
    }
}

/// The value of every definition, directly from the tree.
fn expected(text: &str, leaves: &Env) -> Vec<(String, Value)> {
    let (tree, errors) = parse::parse(&SourceFile::new("m", text));
    assert!(errors.is_empty(), "{text}");
    let mut env = leaves.clone();
    let mut list = Vec::new();
    for statement in &tree.statements {
        let CatStmtKind::Let {
            recursive,
            bindings,
        } = &statement.kind
        else {
            continue;
        };
        if *recursive {
            env = fixpoint(bindings, &vec![Kind::Rel; bindings.len()], &env);
        } else {
            let value = meaning(&bindings[0].body, &env);
            env.insert(bindings[0].name.name.clone(), value);
        }
        list.extend(
            bindings
                .iter()
                .map(|b| (b.name.name.clone(), env[&b.name.name].clone())),
        );
    }
    list
}

#[test]
fn the_table_means_what_the_text_says() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut groups = 0;
    for _ in 0..2_000 {
        let text = random.model();
        let leaves = random.leaves();
        let model = match load(
            SourceFile::new("m", text.clone()),
            "m",
            &Shipped,
            &signature(),
            None,
        ) {
            Ok(model) => model,
            Err(list) => panic!("{text}\n{}", list[0]),
        };
        groups += model.groups.len();
        let values = run(&model, &leaves);
        let expected = expected(&text, &leaves);
        assert_eq!(model.lets.len(), expected.len());
        for ((name, id, _), (wanted_name, wanted)) in model.lets.iter().zip(&expected) {
            assert_eq!(name, wanted_name);
            assert_eq!(&values[id.index()], wanted, "{name} in\n{text}");
        }
    }
    assert!(groups > 500, "too few fixpoint groups were met: {groups}");
}
