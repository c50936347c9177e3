//! Lowers the operations of thread groups: barriers of blocks, warps, clusters and grids, votes,
//! and the masks of warps.
//!
//! # Invariants
//! - A barrier of a group orders every access that precedes it in the group before every access
//!   that follows, for all memory.
//!
//! # Sources
//! - CUDA C++ Programming Guide, *Synchronization Functions*: `__syncthreads` and its votes,
//!   `__syncwarp`.
//! - CUDA C++ Programming Guide, *Cooperative Groups*: `thread_block::sync` is `__syncthreads`. The
//!   `sync` of a tile is `__syncwarp` of its threads.
//!
//! # Where we differ
//! - The threads of a launch are one grid.
//! - A vote adds to a counter of the block between two barriers. The two barriers serve no other
//!   purpose.

use std::ops::Range;

use super::ast::{Expr as Tree, ExprKind};
use super::coordinates::{is_shape, of_groups};
use super::function::Args;
use super::lanes::Handed;
use super::lower::Lowering;
use super::scope::{Binding, GroupLanes, ThreadGroup};
use super::types::{Value, folded};
use super::words::group_word;
use crate::isa::ptx::{
    ALONE, LaneSet, NO_LANES, SAY_WARP, ShuffleMode, away_by, of_some_rank, stride,
};
use program::{
    Access, Barrier, BarrierAction, BarrierNaming, BinOp, CmpOp, Expr, Op, Scope, Space, Tag, Tags,
    Ty, Update,
};

/// The resources of unlabelled barriers, one per group and kind. PTX has its own.
pub(super) const WORK_GROUP_BARRIER: i64 = -3;
pub(super) const SUB_GROUP_BARRIER: i64 = -4;
const VOTE_BARRIER: i64 = -5;
pub(super) const CLUSTER_BARRIER: i64 = -6;
const GRID_BARRIER: i64 = -7;

/// The counter of a block's votes, and the register in which each thread keeps its last value.
pub(crate) const VOTES: &str = "__votes";
const VOTES_BEFORE: &str = "$votes";

/// Functions of tiles that pass values to the other threads, and their numbers of arguments (CUDA
/// C++ Programming Guide, *Thread Block Tile*).
const OF_TILES: &[(&str, Handed, usize)] = &[
    ("shfl", Handed::Shuffle(ShuffleMode::Idx), 2),
    ("shfl_up", Handed::Shuffle(ShuffleMode::Up), 2),
    ("shfl_down", Handed::Shuffle(ShuffleMode::Down), 2),
    ("shfl_xor", Handed::Shuffle(ShuffleMode::Bfly), 2),
    ("all", Handed::All, 1),
    ("any", Handed::Any, 1),
    ("ballot", Handed::Ballot, 1),
    ("match_any", Handed::Same, 1),
];

/// The function objects of reductions (CUDA C++ Programming Guide, *Cooperative Groups*, reduce).
const REDUCTIONS: [(&str, BinOp); 6] = [
    ("plus", BinOp::Add),
    ("less", BinOp::Min),
    ("greater", BinOp::Max),
    ("bit_and", BinOp::And),
    ("bit_or", BinOp::Or),
    ("bit_xor", BinOp::Xor),
];

/// Whether a name is that of a function object of reductions.
pub(super) fn is_reduction(word: &str) -> bool {
    REDUCTIONS.iter().any(|row| row.0 == group_word(word))
}

/// The combination of the threads' predicates in a vote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Vote {
    /// The number of predicates that are not 0.
    Count,
    /// Whether all are not 0.
    And,
    /// Whether at least one is not 0.
    Or,
}

impl Lowering<'_, '_> {
    /// A mask of lanes; the inner `None`: the whole warp.
    pub(super) fn mask(&mut self, tree: &Tree) -> Option<Option<Expr>> {
        let all = self.env.warp.all();
        let mask = self.scalar(tree).expr;
        if LaneSet::names_strangers(self.env.warp, &mask) {
            self.error("unplaced-lanes", &tree.range, ALONE, |d| {
                d.label(NO_LANES).help(SAY_WARP)
            });
            return None;
        }
        match LaneSet::new(Scope::Warp, self.env.warp, mask).mask {
            Expr::Const(0) => {
                let last = self.env.warp.of.saturating_sub(1);
                self.error(
                    "unsupported-mask",
                    &tree.range,
                    "this mask names no thread of the warp",
                    |d| d.label(format!("the lanes of this warp are 0 to {last}")),
                );
                None
            }
            mask => Some(Some(mask).filter(|mask| *mask != Expr::Const(all))),
        }
    }

    /// The thread group that an expression denotes; `None`: the expression denotes no group.
    pub(super) fn group_of(&mut self, tree: &Tree) -> Option<ThreadGroup> {
        if !self.env.language.cpp {
            return None;
        }
        match &tree.kind {
            ExprKind::Name => match self.binding(tree) {
                Some(Binding::Group(group)) => Some(*group),
                _ => None,
            },
            ExprKind::Call(name, args) => {
                let word = self.str(name);
                let bare = self.group_function(word)?;
                fn group(domain: Scope) -> Option<ThreadGroup> {
                    Some(ThreadGroup::of_scope(domain))
                }
                match bare {
                    "this_thread_block" => group(Scope::Cta),
                    "this_cluster" => group(Scope::Cluster),
                    "this_grid" => group(Scope::Grid),
                    "tiled_partition" => self.tile(tree, args),
                    "coalesced_threads" if args.is_empty() => Some(self.coalesced(&tree.range)),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// A function of thread groups without its namespace, which `using namespace` may have made
    /// superfluous; `None`: the name is another one.
    fn group_function<'w>(&self, word: &'w str) -> Option<&'w str> {
        let bare = group_word(word);
        let made = [
            "this_thread_block",
            "this_cluster",
            "this_grid",
            "tiled_partition",
            "coalesced_threads",
            "synchronize",
            "reduce",
        ];
        (bare != word || made.contains(&word)).then_some(bare)
    }

    fn tile(&mut self, tree: &Tree, args: &[Tree]) -> Option<ThreadGroup> {
        let of = args.get(1).and_then(|of| self.group_of(of));
        if of.is_some_and(|of| of.coalesced && of.lanes != GroupLanes::All) {
            let message = "a tile of lanes that happen to run together is not supported";
            self.error("unsupported-group", &tree.range, message, |d| {
                d.label("expected a tile of the block")
            });
            return of;
        }
        let size = match args {
            [size, _] => of.and_then(|_| self.eval(size).constant()),
            _ => None,
        };
        let Some(size) = size.filter(|n| (1..=32).contains(n) && n.count_ones() == 1) else {
            self.error(
                "wrong-operands",
                &tree.range,
                "this is not a tile of a group",
                |d| {
                    d.label(
                        "expected a size of 1 to 32, a power of two, as in \
                        `cg::tiled_partition<4>(block)`",
                    )
                },
            );
            return Some(ThreadGroup::of_scope(Scope::Warp));
        };
        let size = size as u32;
        let first = self.env.warp.rank / size * size;
        let named = if size == 32 {
            u32::MAX
        } else {
            ((1u32 << size) - 1) << first
        };
        let all = self.env.warp.all() as u32;
        Some(ThreadGroup {
            domain: Scope::Warp,
            lanes: match named & all {
                some if some == all => GroupLanes::All,
                some => GroupLanes::Some(some),
            },
            size,
            coalesced: false,
            of_block: of.is_some_and(|of| of.domain == Scope::Cta),
        })
    }

    /// A call such as `block.sync()`.
    pub(super) fn group_method(
        &mut self,
        group: ThreadGroup,
        tree: &Tree,
        name: &Range<usize>,
        args: &[Tree],
    ) -> Value {
        const METHODS: &[&str] = &["sync", "barrier_arrive", "barrier_wait", "map_shared_rank"];
        let word = self.str(name);
        let of_cluster = group.domain == Scope::Cluster;
        if let ("map_shared_rank", true, [pointer, rank]) = (word, of_cluster, args) {
            return self.of_block(pointer, rank);
        }
        // A launch makes these groups; the code makes tiles of a warp.
        let implicit = group.domain != Scope::Warp;
        let handed = OF_TILES
            .iter()
            .find(|row| row.0 == word)
            .filter(|row| group.domain == Scope::Warp && !(group.coalesced && row.0 == "shfl_xor"));
        if let Some(&(_, handed, arguments)) = handed {
            return self.hand_in_tile(group, tree, handed, arguments, args);
        }
        match word {
            // The engine checks that arrivals and waits alternate. So the phase in the token is
            // that of the last arrival.
            "barrier_wait" if implicit && args.len() == 1 => {
                self.eval(&args[0]);
                self.sync(group, BarrierAction::Wait);
            }
            _ if !args.is_empty() => {
                self.error(
                    "wrong-operands",
                    &tree.range,
                    format!("`{word}` takes no argument here"),
                    |d| d.label(format!("expected `{word}()`")),
                );
            }
            "sync" => self.sync(group, BarrierAction::Sync),
            "barrier_arrive" if implicit => self.sync(group, BarrierAction::Arrive),
            "barrier_wait" if of_cluster => self.sync(group, BarrierAction::Wait),
            "barrier_wait" if implicit => {
                let message = "the barrier of this group waits for a token";
                self.error("wrong-operands", &tree.range, message, |d| {
                    d.label(
                        "expected `barrier_wait(std::move(token))`, with what \
                        `barrier_arrive()` has returned",
                    )
                });
            }
            "meta_group_rank" | "meta_group_size" if group.of_block => {
                return self.tile_of_block(group, word, &tree.range);
            }
            _ if of_groups().any(|function| function == word) => {
                return self.rank(group, &tree.range, word);
            }
            _ => {
                let message = format!("`{word}` of this group of threads is not supported");
                self.error("unknown-function", name, message, |d| {
                    d.label("expected `sync`")
                        .did_you_mean(word, METHODS.iter().copied().chain(of_groups()))
                });
            }
        }
        Value::int(0)
    }

    /// `map_shared_rank`: maps a pointer to shared memory to the block with that rank in the
    /// cluster.
    fn of_block(&mut self, pointer: &Tree, rank: &Tree) -> Value {
        let (range, value, rank) = (&pointer.range, self.scalar(pointer), self.scalar(rank));
        let addr = self.counted_from_the_start(value.expr.clone(), range);
        let Some(loc) = addr.base().filter(|_| value.target().is_some()) else {
            self.untold(range);
            return self.nothing();
        };
        if self.in_space(&addr, Space::Shared, range).is_none() {
            return self.nothing();
        }
        let stride = stride(self.symbols, loc);
        let cluster = &self.env.cluster;
        let expr = match rank.constant() {
            None => of_some_rank(cluster, &rank.fit(Ty::U32), &addr, stride),
            Some(n) => match usize::try_from(n).ok().and_then(|n| cluster.get(n)) {
                Some(away) => away_by(addr, away * stride),
                None => {
                    let message = format!("the cluster has no block of rank {n}");
                    let count = cluster.len();
                    self.error("out-of-range", range, message, |d| {
                        d.label(format!(
                            "expected a rank below {count}: blocks are counted in the order of \
                            their numbers"
                        ))
                    });
                    return self.nothing();
                }
            },
        };
        Value::new(expr, value.ty)
    }

    /// `tile.shfl_down(v, 1)`: acts as `__shfl_down_sync` on the lanes of the tile or coalesced
    /// group. All of these lanes must arrive. Tiles are sections of the warp.
    fn hand_in_tile(
        &mut self,
        group: ThreadGroup,
        tree: &Tree,
        handed: Handed,
        arguments: usize,
        args: &[Tree],
    ) -> Value {
        if args.len() != arguments {
            let message = format!(
                "this function of a tile takes {arguments} arguments, {} given",
                args.len()
            );
            self.error("wrong-operands", &tree.range, message, |d| {
                d.label("expected a value, and of a shuffle a rank")
            });
            return Value::int(0);
        }
        self.in_any_order(args, &tree.range);
        let mut given = Args::default();
        let value = self.scalar(&args[0]);
        given.value = Some(self.kept(value));
        given.lane = args.get(1).map(|lane| self.scalar(lane));
        given.width = Some(i64::from(group.size));
        given.lanes = Some(self.lanes_of(group.lanes));
        given.collective = true;
        let handed = match handed {
            Handed::Shuffle(mode) if group.coalesced => {
                given.lane = given
                    .lane
                    .map(|lane| self.source_in_group(group, mode, lane));
                Handed::Shuffle(ShuffleMode::Idx)
            }
            handed => handed,
        };
        let Some(result) = self.hands(handed, Scope::Warp, tree, given) else {
            return Value::int(0);
        };
        if !matches!(handed, Handed::Ballot | Handed::Same) {
            return result;
        }
        if group.coalesced {
            return self.as_ranks(group, result.expr);
        }
        // Bit positions are ranks in the tile.
        let first = self.env.warp.rank / group.size * group.size;
        let shifted = Expr::Bin(
            BinOp::Shr,
            Ty::U32,
            result.expr.into(),
            Expr::Const(i64::from(first)).into(),
        );
        Value::of(shifted, Ty::U32)
    }

    /// The number of a tile in its block, or the number of such tiles (CUDA C++ Programming Guide,
    /// *Thread Block Tile*).
    fn tile_of_block(&mut self, group: ThreadGroup, word: &str, range: &Range<usize>) -> Value {
        let (of_block, more) = match word {
            "meta_group_rank" => ("thread_rank", 0),
            _ => ("num_threads", i64::from(group.size) - 1),
        };
        let block = self.rank(ThreadGroup::of_scope(Scope::Cta), range, of_block);
        let size = Expr::Const(i64::from(group.size));
        let sum = Expr::Bin(
            BinOp::Add,
            Ty::U32,
            block.expr.into(),
            Expr::Const(more).into(),
        );
        let number = Expr::Bin(BinOp::Div, Ty::U32, folded(sum).into(), size.into());
        Value::of(folded(number), Ty::U32)
    }

    /// `cg::reduce(tile, v, cg::plus<int>())`: combines the values of the tile's threads; `None`:
    /// the call is another one.
    fn reduce(&mut self, tree: &Tree, args: &[Tree]) -> Option<Value> {
        let [group, value, by] = args else {
            return None;
        };
        let group = self.group_of(group)?;
        let found = match &by.kind {
            ExprKind::Scoped(of, name, Some(_)) => {
                let op = REDUCTIONS
                    .iter()
                    .find(|row| row.0 == group_word(self.str(name)));
                op.map(|row| row.1).zip(self.named_type(of))
            }
            _ => None,
        };
        let given = self.unevaluated(value).ty;
        let fits = found.as_ref().is_some_and(|(_, of)| of.ty == given);
        let (Some((op, _)), true, Scope::Warp) = (found, fits, group.domain) else {
            self.error(
                "unsupported",
                &by.range,
                "this reduction is not supported",
                |d| {
                    d.label("expected `cg::plus<T>()` or its like, with the type of the values")
                        .note("a tile or a coalesced group reduces")
                },
            );
            return Some(Value::int(0));
        };
        let values = std::slice::from_ref(value);
        Some(self.hand_in_tile(group, tree, Handed::Reduced(op), 1, values))
    }

    /// The rank of the thread in a group, or the number of threads in it.
    pub(super) fn rank(&mut self, group: ThreadGroup, range: &Range<usize>, word: &str) -> Value {
        let value = match group.domain {
            Scope::Warp => {
                let ranks = self.ranks(group.lanes);
                let rank = &ranks[self.env.warp.rank as usize];
                let count = match word {
                    "thread_rank" => Some(rank),
                    "num_threads" | "size" => ranks.last(),
                    _ => None,
                };
                count.map(|count| Value::of(count.clone(), Ty::U32))
            }
            domain => self.place_in_group(domain, word),
        };
        if let Some(value) = value {
            return value;
        }
        let shape = is_shape(word);
        self.error(
            "unknown-name",
            range,
            format!("`{word}` of this group has no value here"),
            |d| {
                d.label("only groups of a `[kernel]`, and tiles, have such values").help(if shape {
                "of three numbers, write the one that is meant: `block.thread_index().x`"
            } else {
                "a block has `thread_rank`, `num_threads`; clusters and grids also `block_rank`, \
                `num_blocks`"
            })
            },
        );
        Value::int(0)
    }

    /// `cg::sync(group)`, `init(&bar, n)`: functions of groups and objects; `None`: no such
    /// function.
    pub(super) fn group_call(
        &mut self,
        tree: &Tree,
        name: &Range<usize>,
        args: &[Tree],
    ) -> Option<Value> {
        let word = self.str(name);
        if let ("__cluster_map_shared_rank", true, [pointer, rank]) =
            (word, self.env.language.cpp, args)
        {
            return Some(self.of_block(pointer, rank));
        }
        if !self.env.language.cpp {
            return None;
        }
        let bare = self.group_function(word)?;
        if let ("sync" | "synchronize", [group]) = (bare, args)
            && let Some(group) = self.group_of(group)
        {
            self.sync(group, BarrierAction::Sync);
            return Some(Value::int(0));
        }
        if bare == "reduce"
            && let Some(value) = self.reduce(tree, args)
        {
            return Some(value);
        }
        if self.group_of(tree).is_some() {
            self.error(
                "wrong-operand",
                &tree.range,
                "a group of threads is not a value here",
                |d| d.label("expected a call such as `.sync()` behind it"),
            );
            return Some(Value::int(0));
        }
        if self.refused_function(name, word) {
            return Some(Value::int(0));
        }
        let message = format!("`{word}` is not supported");
        self.error("unknown-function", name, message, |d| {
            let names = [
                "this_thread_block",
                "this_cluster",
                "this_grid",
                "tiled_partition",
                "coalesced_threads",
                "sync",
            ];
            d.label("expected a group of threads")
                .did_you_mean(bare, names)
        });
        Some(Value::int(0))
    }

    /// Lowers a barrier of a group.
    pub(super) fn sync(&mut self, group: ThreadGroup, action: BarrierAction) {
        let id = match group.domain {
            Scope::Cta => WORK_GROUP_BARRIER,
            Scope::Cluster => CLUSTER_BARRIER,
            Scope::Grid => GRID_BARRIER,
            _ => SUB_GROUP_BARRIER,
        };
        let arrive = Tags::of(&[Tag::Barrier, Tag::BarrierArrive, Tag::Collective]);
        let sets = self.possible_lanes(group);
        if sets.is_empty() {
            return self.meet(group, id, action, arrive);
        }
        // A barrier for each set: the lanes of one barrier are then constant.
        for set in sets {
            let mask = self.lanes_of(group.lanes);
            let set = GroupLanes::Some(set);
            let other = self.lanes_of(set);
            let differs = Expr::Cmp(CmpOp::Ne, Ty::U32, mask.into(), other.into());
            let skip = self.branch(differs);
            let lanes = ThreadGroup {
                lanes: set,
                ..group
            };
            self.meet(lanes, id, action, arrive);
            self.patch(skip, self.code.len());
        }
    }

    fn meet(&mut self, group: ThreadGroup, id: i64, action: BarrierAction, mut arrive: Tags) {
        let wait = Tags::of(&[Tag::Barrier, Tag::BarrierWait]);
        if group.domain == Scope::Cta {
            // In PTX this barrier is `bar.sync`.
            arrive.insert(Tag::Aligned);
        }
        let naming = BarrierNaming::Counted {
            id: Expr::Const(id),
            count: None,
        };
        let domain = group.domain;
        let lanes = (group.lanes != GroupLanes::All).then(|| self.lanes_of(group.lanes));
        self.push(Op::Barrier(Barrier {
            action,
            domain,
            lanes,
            naming,
            arrive,
            wait,
            scope: None,
        }));
    }

    /// `__syncthreads_count` and similar functions.
    pub(super) fn vote(&mut self, tree: &Tree, vote: Vote, predicate: Value) -> Value {
        let Some(votes) = self.symbols.find(VOTES) else {
            // Each test with such a call declares the counter.
            self.error(
                "unknown-function",
                &tree.range,
                "votes are not supported here",
                |d| d.label("a vote"),
            );
            return Value::int(0);
        };
        let block = ThreadGroup::of_scope(Scope::Cta);
        let before = self.hidden(VOTES_BEFORE, Ty::S32);
        let op = if vote == Vote::And {
            CmpOp::Eq
        } else {
            CmpOp::Ne
        };
        let counts = Expr::Cmp(
            op,
            predicate.word(),
            predicate.expr.into(),
            Expr::Const(0).into(),
        );
        fn half(rmw: bool) -> Access {
            let mut tags = Tags::of(&[Tag::Atomic, Tag::Relaxed, Tag::Object]);
            if rmw {
                tags.insert(Tag::Rmw);
            }
            Access {
                tags,
                scope: Some(Scope::Cta),
                ty: Ty::S32,
            }
        }
        let addr = Expr::Address(votes);
        let update = Update::Apply(BinOp::Add, counts);
        self.push(Op::Rmw {
            dst: None,
            addr: addr.clone(),
            update,
            read: half(true),
            write: half(true),
        });
        self.meet(
            block,
            VOTE_BARRIER,
            BarrierAction::Sync,
            Tags::of(&[Tag::Barrier, Tag::BarrierArrive]),
        );
        let now = self.temporary(Ty::S32);
        self.push(Op::Load {
            dst: now,
            addr,
            access: half(false),
        });
        self.meet(
            block,
            VOTE_BARRIER,
            BarrierAction::Sync,
            Tags::of(&[Tag::Barrier, Tag::BarrierArrive]),
        );
        let result = self.temporary(Ty::S32);
        let count = Expr::Bin(
            BinOp::Sub,
            Ty::S32,
            Expr::Reg(now).into(),
            Expr::Reg(before).into(),
        );
        let value = match vote {
            Vote::Count => count,
            Vote::And => Expr::Cmp(CmpOp::Eq, Ty::S32, count.into(), Expr::Const(0).into()),
            Vote::Or => Expr::Cmp(CmpOp::Ne, Ty::S32, count.into(), Expr::Const(0).into()),
        };
        self.push(Op::Assign { dst: result, value });
        self.push(Op::Assign {
            dst: before,
            value: Expr::Reg(now),
        });
        Value::of(Expr::Reg(result), Ty::S32)
    }
}
