//! Routes each edge on the grid: columns, rows, gutters between columns, and channels between rows.
//!
//! Gutter `g` is left of column `g`; the last gutter is right of the last column. Channel `c` is
//! above row `c`; the last channel is below the last row. The channel of initial writes lies
//! between them and all rows.
//!
//! # Invariants
//! - No route crosses a box: curves stay inside gutters, horizontal lines inside channels.
//! - Routes of hidden edges take no space.

use super::super::scene::{EventRole, Scene};

/// The cell of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GridCell {
    /// Among the initial writes.
    Init(usize),
    /// Its column and row.
    At(usize, usize),
}

/// A side of a box.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum BoxSide {
    Left,
    Right,
    Top,
    Bottom,
}

/// A route.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum EdgeRoute {
    /// From one row to the next.
    Down,
    /// Out into a gutter and back into the same column.
    Arc { gutter: usize },
    /// Through the gutter between two columns.
    Across { gutter: usize },
    /// Into a gutter, through a channel, out of another gutter.
    Over {
        out: usize,
        channel: usize,
        track: f64,
        back: usize,
    },
    /// From an initial write through its channel, and down a lane of a gutter.
    Fall {
        track: f64,
        gutter: usize,
        lane: usize,
        reversed: bool,
    },
    /// From one initial write to another.
    Between { track: f64 },
}

/// The route of one edge, and the sides of boxes at its ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct RoutePlan {
    pub way: EdgeRoute,
    pub sides: (BoxSide, BoxSide),
}

/// All routes, and the space that they need.
#[derive(Clone, Debug)]
pub(super) struct RoutePlans {
    /// For each edge.
    pub plans: Vec<RoutePlan>,
    /// For each gutter: arcs on either side, and edges across.
    pub arcs: Vec<usize>,
    pub across: Vec<usize>,
    /// For each gutter: lanes next to the column on its left, and next to the column on its right.
    pub lanes: Vec<(usize, usize)>,
    /// For each channel.
    pub tracks: Vec<usize>,
    /// For the channel of initial writes.
    pub init_tracks: usize,
}

/// The cells of a scene's events, given the column of each thread; and the number of rows.
pub(super) fn cells(scene: &Scene, column_of: &[usize]) -> (Vec<GridCell>, usize) {
    let mut next = vec![0; column_of.len()];
    let mut init = 0;
    let mut cells = Vec::with_capacity(scene.events.len());
    for event in &scene.events {
        cells.push(match event.thread {
            None => {
                init += 1;
                GridCell::Init(init - 1)
            }
            Some(t) => {
                next[t] += 1;
                GridCell::At(column_of[t], next[t] - 1)
            }
        });
    }
    // The final states of threads share one row below all events.
    let is_end = |e: usize| scene.events[e].role == EventRole::End;
    let rows = (0..cells.len())
        .filter(|&e| !is_end(e))
        .filter_map(|e| match cells[e] {
            GridCell::At(_, row) => Some(row + 1),
            GridCell::Init(_) => None,
        });
    let rows = rows.max().unwrap_or(0);
    let mut any_end = 0;
    for e in (0..cells.len()).filter(|&e| is_end(e)) {
        if let GridCell::At(column, _) = cells[e] {
            cells[e] = GridCell::At(column, rows);
            any_end = 1;
        }
    }
    (cells, rows + any_end)
}

/// Plans the routes of all edges, shown ones first.
pub(super) fn plan(scene: &Scene, cells: &[GridCell], columns: usize, rows: usize) -> RoutePlans {
    let mut planner = RoutePlanner {
        shown: true,
        arcs: vec![0; columns + 1],
        across: vec![0; columns + 1],
        lanes: vec![(0, 0); columns + 1],
        tracks: vec![0; rows + 1],
        init_tracks: 0,
        unseen: 0,
    };
    let mut plans = vec![None; scene.edges.len()];
    let shown = |e: usize| scene.relations[scene.edges[e].relation].shown;
    for e in (0..plans.len()).filter(|&e| shown(e)) {
        plans[e] = Some(planner.way(scene, cells, e));
    }
    let room = planner.clone();
    planner.shown = false;
    for e in (0..plans.len()).filter(|&e| !shown(e)) {
        plans[e] = Some(planner.way(scene, cells, e));
    }
    // Spreads the numbered tracks evenly over their channels.
    fn spread(track: f64, tracks: usize) -> f64 {
        (track + 1.0) / (tracks as f64 + 1.0)
    }
    let plans = plans
        .into_iter()
        .flatten()
        .enumerate()
        .map(|(e, mut plan)| {
            if shown(e) {
                match &mut plan.way {
                    EdgeRoute::Over { channel, track, .. } => {
                        *track = spread(*track, room.tracks[*channel])
                    }
                    EdgeRoute::Fall { track, .. } | EdgeRoute::Between { track } => {
                        *track = spread(*track, room.init_tracks)
                    }
                    EdgeRoute::Down | EdgeRoute::Arc { .. } | EdgeRoute::Across { .. } => {}
                }
            }
            plan
        });
    RoutePlans {
        plans: plans.collect(),
        arcs: room.arcs,
        across: room.across,
        lanes: room.lanes,
        tracks: room.tracks,
        init_tracks: room.init_tracks,
    }
}

#[derive(Clone)]
struct RoutePlanner {
    shown: bool,
    arcs: Vec<usize>,
    across: Vec<usize>,
    lanes: Vec<(usize, usize)>,
    tracks: Vec<usize>,
    init_tracks: usize,
    unseen: usize,
}

impl RoutePlanner {
    fn way(&mut self, scene: &Scene, cells: &[GridCell], edge: usize) -> RoutePlan {
        let edge = &scene.edges[edge];
        match (cells[edge.from], cells[edge.to]) {
            (GridCell::At(a, i), GridCell::At(b, j)) if a == b => {
                let po = scene.relations[edge.relation].kind.class == "po";
                if po && j == i + 1 {
                    return RoutePlan {
                        way: EdgeRoute::Down,
                        sides: (BoxSide::Bottom, BoxSide::Top),
                    };
                }
                self.arc(a)
            }
            (GridCell::At(a, _), GridCell::At(b, _)) if a.abs_diff(b) == 1 => {
                let gutter = a.max(b);
                self.across[gutter] += 1;
                RoutePlan {
                    way: EdgeRoute::Across { gutter },
                    sides: towards(a, b),
                }
            }
            (GridCell::At(a, i), GridCell::At(b, j)) => {
                let (out, back) = if a < b { (a + 1, b) } else { (a, b + 1) };
                let channel = self.channel(i, j);
                let track = Self::track(self.shown, &mut self.tracks[channel], &mut self.unseen);
                self.across[out] += 1;
                self.across[back] += 1;
                RoutePlan {
                    way: EdgeRoute::Over {
                        out,
                        channel,
                        track,
                        back,
                    },
                    sides: towards(a, b),
                }
            }
            (GridCell::Init(_), GridCell::At(b, _)) => self.fall(b, false),
            (GridCell::At(a, _), GridCell::Init(_)) => self.fall(a, true),
            (GridCell::Init(_), GridCell::Init(_)) => {
                let track = Self::track(self.shown, &mut self.init_tracks, &mut self.unseen);
                RoutePlan {
                    way: EdgeRoute::Between { track },
                    sides: (BoxSide::Bottom, BoxSide::Bottom),
                }
            }
        }
    }

    /// An arc next to a column, on the side with fewer edges.
    fn arc(&mut self, column: usize) -> RoutePlan {
        let load = |gutter: usize| 2 * self.across[gutter] + self.arcs[gutter];
        let right = load(column + 1) <= load(column);
        let (gutter, side) = if right {
            (column + 1, BoxSide::Right)
        } else {
            (column, BoxSide::Left)
        };
        self.arcs[gutter] += 1;
        RoutePlan {
            way: EdgeRoute::Arc { gutter },
            sides: (side, side),
        }
    }

    /// A channel for a route between two rows: close to both, and with few tracks.
    fn channel(&self, i: usize, j: usize) -> usize {
        let (low, high) = (i.min(j), i.max(j) + 1);
        let middle = (low + high) as f64 / 2.0;
        let cost = |c: usize| 2.0 * self.tracks[c] as f64 + (c as f64 - middle).abs();
        (low..=high)
            .min_by(|&a, &b| cost(a).total_cmp(&cost(b)))
            .unwrap_or(low)
    }

    /// A route from an initial write into a column.
    fn fall(&mut self, column: usize, reversed: bool) -> RoutePlan {
        let track = Self::track(self.shown, &mut self.init_tracks, &mut self.unseen);
        let left = self.lanes[column].1 <= self.lanes[column + 1].0;
        let (gutter, side) = if left {
            (column, BoxSide::Left)
        } else {
            (column + 1, BoxSide::Right)
        };
        let lanes = if left {
            &mut self.lanes[gutter].1
        } else {
            &mut self.lanes[gutter].0
        };
        let lane = *lanes;
        *lanes += 1;
        let sides = if reversed {
            (side, BoxSide::Bottom)
        } else {
            (BoxSide::Bottom, side)
        };
        RoutePlan {
            way: EdgeRoute::Fall {
                track,
                gutter,
                lane,
                reversed,
            },
            sides,
        }
    }

    /// The next track: a number to spread later; for hidden routes, a final position.
    fn track(shown: bool, tracks: &mut usize, unseen: &mut usize) -> f64 {
        if shown {
            *tracks += 1;
            return (*tracks - 1) as f64;
        }
        *unseen += 1;
        // Multiples of the golden ratio stay apart for any number of routes.
        0.1 + 0.8 * (*unseen as f64 * 0.618_033_988_749_895).fract()
    }
}

fn towards(a: usize, b: usize) -> (BoxSide, BoxSide) {
    if a < b {
        (BoxSide::Right, BoxSide::Left)
    } else {
        (BoxSide::Left, BoxSide::Right)
    }
}
