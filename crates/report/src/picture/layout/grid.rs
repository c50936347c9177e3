//! Places a scene on a grid, and converts the grid to pixels.
//!
//! # Invariants
//! - Gutters and channels have the width that their edges need, and more with each attempt.
//! - Edges stay inside their gutters and channels, so no edge crosses a box.

use super::super::escape;
use super::super::scene::{EventRole, Scene};
use super::columns::{Columns, GroupColumns};
use super::geometry::{Path, PicturePoint, Rect, at, shortened, text_width, wrapped};
use super::labels::Labels;
use super::route::{self, BoxSide, EdgeRoute, GridCell, RoutePlans};
use super::{
    CODE_LINE, EVENT_HEIGHT, EdgeLine, EventBox, FIRST_LANE, GROUP_LINE, GroupBox, INIT_HEIGHT,
    LABEL, LABEL_HEIGHT, LANE, MARGIN, MOST_CODE, MOST_PLACES, NEST, PictureLayout, SMALL, TEXT,
    TextLine,
};

/// One end of an edge.
struct EdgeEnd {
    /// The box, its side, and whether the edge is shown.
    side: (usize, BoxSide, bool),
    /// The position of the other end along the side.
    aim: f64,
    edge: usize,
    /// Whether this is the start of the edge.
    start: bool,
}

/// A scene on its grid, before measuring.
pub(super) struct SceneGrid<'a> {
    scene: &'a Scene,
    columns: Columns,
    cells: Vec<GridCell>,
    rows: usize,
    plans: RoutePlans,
}

/// The top and height of a row or channel.
type Extent = (f64, f64);

/// The measures of a grid.
struct Measures {
    /// Left edge and width of each column.
    columns: Vec<(f64, f64)>,
    /// Left and right border of each gutter.
    gutters: Vec<(f64, f64)>,
    /// Space for group borders in each gutter: for groups that end on its left, and for groups that
    /// begin.
    pads: Vec<(f64, f64)>,
    /// Top and height of each row.
    rows: Vec<(f64, f64)>,
    /// Top and height of each channel.
    channels: Vec<(f64, f64)>,
    /// Top and height of the channel of initial writes.
    init: (f64, f64),
    /// Top of the outermost groups.
    groups: f64,
    /// The boxes of initial writes.
    inits: Vec<Rect>,
    width: f64,
    height: f64,
}

impl<'a> SceneGrid<'a> {
    /// The grid of a scene.
    pub(super) fn new(scene: &'a Scene) -> SceneGrid<'a> {
        let columns = Columns::new(&scene.seats);
        let (cells, rows) = route::cells(scene, &columns.of_threads());
        let plans = route::plan(scene, &cells, columns.threads.len(), rows);
        SceneGrid {
            scene,
            columns,
            cells,
            rows,
            plans,
        }
    }

    /// Lays everything out with additional space `slack`. Also returns the shown edges without a
    /// label.
    pub(super) fn attempt(&self, slack: f64) -> (PictureLayout, Vec<usize>) {
        let m = self.measures(slack);
        let events: Vec<EventBox> = (0..self.cells.len()).map(|e| self.placed(&m, e)).collect();
        let groups: Vec<GroupBox> = self
            .columns
            .groups
            .iter()
            .map(|g| group(&m, g, self.columns.depth()))
            .collect();
        let threads: Vec<TextLine> = (0..m.columns.len()).map(|c| self.heading(&m, c)).collect();
        let paths = self.paths(&m, &events);
        let size = (m.width, m.height);
        let mut taken: Vec<Rect> = events.iter().map(|e| e.rect).collect();
        taken.extend(
            groups
                .iter()
                .map(|g| g.label.rect)
                .chain(threads.iter().map(|t| t.rect)),
        );
        let shown = |e: usize| self.scene.relations[self.scene.edges[e].relation].shown;
        let bounds = Rect {
            x: 3.0,
            y: 0.0,
            w: m.width - 6.0,
            h: m.height,
        };
        // Labels do not cover arrowheads, either.
        let arrows = (0..paths.len()).filter(|&e| shown(e)).flat_map(|e| {
            let both = self.scene.edges[e].both;
            [
                Some(paths[e].arrow(self.arrow(e))),
                both.then(|| paths[e].reversed().arrow(self.arrow(e))),
            ]
        });
        taken.extend(arrows.flatten().map(|triangle| Rect::of(&triangle)));
        let visible: Vec<(usize, &Path)> = paths
            .iter()
            .enumerate()
            .filter(|(e, _)| shown(*e))
            .collect();
        let mut labels = Labels::new(bounds, taken, &visible);
        let mut order: Vec<usize> = (0..paths.len()).collect();
        // Bold edges choose first, then those with the fewest choices; hidden edges come last.
        order.sort_by_key(|&e| {
            (
                !shown(e),
                !self.scene.edges[e].bold,
                paths[e].points(5.0).len(),
                e,
            )
        });
        let mut places: Vec<Option<Rect>> = vec![None; paths.len()];
        let mut unnamed = Vec::new();
        for e in order {
            let name = &self.scene.relations[self.scene.edges[e].relation].name;
            let width = text_width(name, LABEL) + 5.0;
            places[e] = labels.place(e, &paths[e], width, LABEL_HEIGHT);
            if places[e].is_none() && shown(e) {
                unnamed.push(e);
            }
        }
        let edges = paths.into_iter().zip(places).enumerate();
        let edges = edges.map(|(e, (path, label))| {
            let edge = &self.scene.edges[e];
            let size = self.arrow(e);
            EdgeLine {
                tip: path.arrow(size),
                tail: edge.both.then(|| path.reversed().arrow(size)),
                path,
                label,
            }
        });
        let edges = edges.collect();
        (
            PictureLayout {
                size,
                head: Vec::new(),
                groups,
                threads,
                events,
                edges,
                foot: Vec::new(),
            },
            unnamed,
        )
    }

    /// The size of an edge's arrowhead.
    fn arrow(&self, edge: usize) -> f64 {
        if self.scene.edges[edge].bold {
            13.0
        } else {
            9.0
        }
    }

    /// Lists the labels that found no room.
    pub(super) fn unnamed(&self, edges: &[usize]) -> String {
        let letter = |e: usize| {
            self.scene.events[e]
                .action
                .split(':')
                .next()
                .unwrap_or("")
                .to_owned()
        };
        let named = edges.iter().map(|&e| {
            let edge = &self.scene.edges[e];
            let name = &self.scene.relations[edge.relation].name;
            format!("{} {name} {}", letter(edge.from), letter(edge.to))
        });
        format!(
            "Edges without room for a name: {}.",
            named.collect::<Vec<_>>().join(", ")
        )
    }

    fn measures(&self, slack: f64) -> Measures {
        let plans = &self.plans;
        let columns = self.columns.threads.len();
        let names = self.label_widths();
        let pads = self.border_pads();
        let (mut at_columns, mut gutters) = (Vec::new(), Vec::new());
        let mut x = MARGIN / 2.0;
        for g in 0..=columns {
            let lanes = room(plans.lanes[g].0) + room(plans.lanes[g].1);
            let busy = plans.arcs[g] + plans.across[g];
            let name = if busy > 0 {
                names[g] + 26.0 + slack * 14.0
            } else {
                0.0
            };
            let crowd = 7.0 * plans.across[g] as f64 + 10.0 * plans.arcs[g] as f64;
            let bare = if g == 0 || g == columns { 4.0 } else { 18.0 };
            let width = bare + pads[g].0 + pads[g].1 + lanes + name + crowd.min(160.0);
            gutters.push((x, x + width));
            x += width;
            if g < columns {
                let mine = (0..self.cells.len())
                    .filter(|&e| matches!(self.cells[e], GridCell::At(c, _) if c == g));
                let heading = text_width(&self.thread_name(g), TEXT);
                let labels = self
                    .columns
                    .groups
                    .iter()
                    .filter(|s| s.first == g && s.last == g);
                let labels = widest(
                    &mut labels.map(|s| text_width(&shortened(&s.label, MOST_PLACES), SMALL)),
                );
                let width = widest(&mut mine.map(|e| self.box_width(e)))
                    .max(heading)
                    .max(labels)
                    .max(88.0);
                at_columns.push((x, width));
                x += width;
            }
        }
        let mut width = x + MARGIN / 2.0;
        // Initial writes are next to each other above the columns.
        let inits: Vec<usize> = (0..self.cells.len())
            .filter(|&e| matches!(self.cells[e], GridCell::Init(_)))
            .collect();
        let wide: Vec<f64> = inits.iter().map(|&e| self.box_width(e)).collect();
        let gap = 22.0;
        let all = wide.iter().sum::<f64>() + gap * (wide.len().max(1) - 1) as f64;
        width = width.max(all + 2.0 * MARGIN);
        // Columns narrower than the picture are centred.
        let move_by = (width - x - MARGIN / 2.0) / 2.0;
        at_columns.iter_mut().for_each(|c| c.0 += move_by);
        gutters
            .iter_mut()
            .for_each(|g| *g = (g.0 + move_by, g.1 + move_by));
        let (mut y, mut left) = (6.0, (width - all) / 2.0);
        let mut boxes = Vec::new();
        for w in &wide {
            boxes.push(Rect {
                x: left,
                y,
                w: *w,
                h: INIT_HEIGHT,
            });
            left += w + gap;
        }
        let mut init = (y, 0.0);
        if !inits.is_empty() {
            init = (
                y + INIT_HEIGHT,
                22.0 + 13.0 * plans.init_tracks as f64 + slack * 8.0,
            );
            y = init.0 + init.1;
        }
        let groups = y;
        y += GROUP_LINE * self.columns.depth() as f64 + TEXT + 8.0;
        let (rows, channels) = self.rows_and_channels(&mut y, slack);
        let nested = widest(
            &mut self
                .columns
                .groups
                .iter()
                .map(|s| NEST * (s.nest + 1) as f64),
        );
        let height = y + nested + 8.0;
        Measures {
            columns: at_columns,
            gutters,
            pads,
            rows,
            channels,
            init,
            groups,
            inits: boxes,
            width,
            height,
        }
    }

    /// The width of an event's box.
    fn box_width(&self, e: usize) -> f64 {
        let event = &self.scene.events[e];
        let code = code_lines(&event.code)
            .iter()
            .map(|l| text_width(l, SMALL))
            .fold(0.0, f64::max);
        let action = shortened(&escape::line(&event.action), MOST_PLACES);
        text_width(&action, TEXT).max(code) + 16.0
    }

    /// The space for group borders in each gutter.
    fn border_pads(&self) -> Vec<(f64, f64)> {
        (0..=self.columns.threads.len())
            .map(|g| {
                fn pad(spans: &mut dyn Iterator<Item = &GroupColumns>) -> f64 {
                    widest(&mut spans.map(|s| NEST * (s.nest + 1) as f64))
                }
                let ends = pad(&mut self.columns.groups.iter().filter(|s| s.last + 1 == g));
                let begins = pad(&mut self.columns.groups.iter().filter(|s| s.first == g));
                (ends, begins)
            })
            .collect()
    }

    /// The widest label of the edges in each gutter.
    fn label_widths(&self) -> Vec<f64> {
        let mut names = vec![0.0_f64; self.columns.threads.len() + 1];
        for (edge, plan) in self.scene.edges.iter().zip(&self.plans.plans) {
            let relation = &self.scene.relations[edge.relation];
            let width = text_width(&relation.name, LABEL) + 5.0;
            match plan.way {
                EdgeRoute::Arc { gutter } | EdgeRoute::Across { gutter } if relation.shown => {
                    names[gutter] = names[gutter].max(width);
                }
                _ => {}
            }
        }
        names
    }

    /// The top and height of each row and channel, from `y` down.
    fn rows_and_channels(&self, y: &mut f64, slack: f64) -> (Vec<Extent>, Vec<Extent>) {
        let (mut rows, mut channels) = (Vec::new(), Vec::new());
        for c in 0..=self.rows {
            let tracks = self.plans.tracks[c] as f64;
            let least = if c == 0 {
                8.0
            } else if c == self.rows {
                6.0
            } else {
                32.0
            };
            let height = least
                + if tracks > 0.0 {
                    15.0 * (tracks + 0.5)
                } else {
                    0.0
                }
                + slack * 7.0;
            channels.push((*y, height));
            *y += height;
            if c < self.rows {
                rows.push((*y, self.row_height(c)));
                *y += self.row_height(c);
            }
        }
        (rows, channels)
    }

    /// The height of a row's tallest box.
    fn row_height(&self, row: usize) -> f64 {
        let lines = (0..self.cells.len())
            .filter(|e| matches!(self.cells[*e], GridCell::At(_, r) if r == row))
            .map(|e| code_lines(&self.scene.events[e].code).len());
        EVENT_HEIGHT + CODE_LINE * lines.max().unwrap_or(0) as f64 + 2.0
    }

    fn thread_name(&self, column: usize) -> String {
        shortened(
            &escape::line(&self.scene.seats[self.columns.threads[column]].thread),
            MOST_PLACES,
        )
    }

    fn heading(&self, m: &Measures, column: usize) -> TextLine {
        let (text, (x, width)) = (self.thread_name(column), m.columns[column]);
        let y = m.groups + GROUP_LINE * self.columns.depth() as f64 + 2.0;
        let w = text_width(&text, TEXT);
        let full = &self.scene.seats[self.columns.threads[column]].thread;
        TextLine {
            rect: Rect {
                x: x + (width - w) / 2.0,
                y,
                w,
                h: TEXT + 4.0,
            },
            full: cut(&text, full),
            text,
        }
    }

    fn placed(&self, m: &Measures, e: usize) -> EventBox {
        let event = &self.scene.events[e];
        let rect = match self.cells[e] {
            GridCell::Init(i) => m.inits[i],
            GridCell::At(c, r) => Rect {
                x: m.columns[c].0,
                y: m.rows[r].0,
                w: m.columns[c].1,
                h: m.rows[r].1,
            },
        };
        let code = if event.role == EventRole::Init {
            Vec::new()
        } else {
            code_lines(&event.code)
        };
        EventBox {
            rect,
            action: shortened(&escape::line(&event.action), MOST_PLACES),
            code,
        }
    }

    /// The paths of all edges.
    fn paths(&self, m: &Measures, events: &[EventBox]) -> Vec<Path> {
        let ports = self.ports(m, events);
        (0..self.scene.edges.len())
            .map(|e| self.path(m, e, ports[e].0, ports[e].1))
            .collect()
    }

    /// The start and end of each edge. Edges at one side of a box share it, in the order of their
    /// other ends. Hidden edges share it separately.
    fn ports(&self, m: &Measures, events: &[EventBox]) -> Vec<(PicturePoint, PicturePoint)> {
        let mut ends: Vec<EdgeEnd> = Vec::new();
        for (e, (edge, plan)) in self.scene.edges.iter().zip(&self.plans.plans).enumerate() {
            let (a, b) = (events[edge.from].rect, events[edge.to].rect);
            fn middle(r: Rect) -> (f64, f64) {
                (r.x + r.w / 2.0, r.y + r.h / 2.0)
            }
            let aim = |other: Rect, side: BoxSide| match (plan.way, side) {
                (_, BoxSide::Bottom | BoxSide::Top) => middle(other).0,
                (EdgeRoute::Over { channel, track, .. }, _) => {
                    m.channels[channel].0 + m.channels[channel].1 * track
                }
                (EdgeRoute::Fall { .. }, _) => 0.0,
                _ => middle(other).1,
            };
            let shown = self.scene.relations[edge.relation].shown;
            let mut end = |event, side, other, start| {
                ends.push(EdgeEnd {
                    side: (event, side, shown),
                    aim: aim(other, side),
                    edge: e,
                    start,
                });
            };
            end(edge.from, plan.sides.0, b, true);
            end(edge.to, plan.sides.1, a, false);
        }
        ends.sort_by(|a, b| {
            a.side
                .cmp(&b.side)
                .then(a.aim.total_cmp(&b.aim))
                .then((a.edge, a.start).cmp(&(b.edge, b.start)))
        });
        let mut ports = vec![(at(0.0, 0.0), at(0.0, 0.0)); self.scene.edges.len()];
        for sharing in ends.chunk_by(|a, b| a.side == b.side) {
            for (k, end) in sharing.iter().enumerate() {
                let (event, side, _) = end.side;
                let (r, part) = (
                    events[event].rect,
                    (k as f64 + 1.0) / (sharing.len() as f64 + 1.0),
                );
                let (along_x, along_y) = (r.x + r.w * part, r.y + 3.0 + (r.h - 6.0) * part);
                let point = match side {
                    BoxSide::Left => at(r.x, along_y),
                    BoxSide::Right => at(r.right(), along_y),
                    BoxSide::Top => at(along_x, r.y),
                    BoxSide::Bottom => at(along_x, r.bottom()),
                };
                if end.start {
                    ports[end.edge].0 = point;
                } else {
                    ports[end.edge].1 = point;
                }
            }
        }
        ports
    }

    fn path(&self, m: &Measures, edge: usize, from: PicturePoint, to: PicturePoint) -> Path {
        let plan = &self.plans.plans[edge];
        match plan.way {
            // A straight line between the middles, even if other edges share the sides.
            EdgeRoute::Down => Path::from(from).line(at(from.x, to.y)),
            EdgeRoute::Across { .. } => Path::from(from).sway(to),
            EdgeRoute::Arc { gutter } => {
                let (left, right) = m.gutters[gutter];
                let span = (to.y - from.y).abs();
                let by = (16.0 + span * 0.16).min((right - left) * 0.7);
                let outwards = if plan.sides.0 == BoxSide::Right {
                    by
                } else {
                    -by
                };
                Path::from(from).bulge(to, outwards)
            }
            EdgeRoute::Over {
                out,
                channel,
                track,
                back,
            } => {
                let (top, height) = m.channels[channel];
                let y = top + height * track;
                let (out, back, rightwards) = (m.gutters[out], m.gutters[back], out < back);
                let (leave, enter) = if rightwards {
                    (out.1, back.0)
                } else {
                    (out.0, back.1)
                };
                let path = Path::from(from).sway(at(leave, y));
                path.line(at(enter, y)).sway(to)
            }
            EdgeRoute::Fall {
                track,
                gutter,
                lane,
                reversed,
            } => {
                let (init, event) = if reversed { (to, from) } else { (from, to) };
                let y = m.init.0 + m.init.1 * track;
                let x = self.lane(m, gutter, lane, event);
                let path =
                    Path::from(init).corners(&[at(init.x, y), at(x, y), at(x, event.y), event]);
                if reversed { path.reversed() } else { path }
            }
            EdgeRoute::Between { track } => {
                let y = m.init.0 + m.init.1 * track;
                Path::from(from).corners(&[at(from.x, y), at(to.x, y), to])
            }
        }
    }

    /// The position of a lane in a gutter, next to the column of `event`.
    fn lane(&self, m: &Measures, gutter: usize, lane: usize, event: PicturePoint) -> f64 {
        let (left, right) = m.gutters[gutter];
        let (ends, begins) = m.pads[gutter];
        let by = FIRST_LANE + LANE * lane as f64;
        if (event.x - right).abs() < (event.x - left).abs() {
            (right - begins - by).max(left + 2.0)
        } else {
            (left + ends + by).min(right - 2.0)
        }
    }
}

/// The largest of some widths; 0 if there are none.
fn widest(texts: &mut dyn Iterator<Item = f64>) -> f64 {
    texts.fold(0.0_f64, f64::max)
}

/// The room for lanes next to a column.
fn room(lanes: usize) -> f64 {
    if lanes == 0 {
        0.0
    } else {
        FIRST_LANE + lanes as f64 * LANE
    }
}

/// Code in lines; the last one is shortened if there are too many.
fn code_lines(code: &str) -> Vec<String> {
    let code = escape::line(code);
    if code.is_empty() {
        return Vec::new();
    }
    let mut lines = wrapped(&code, MOST_PLACES);
    if lines.len() > MOST_CODE {
        lines.truncate(MOST_CODE);
        if let Some(last) = lines.last_mut() {
            *last = format!(
                "{}\u{2026}",
                shortened(last, MOST_PLACES - 1).trim_end_matches('\u{2026}')
            );
        }
    }
    lines
}

/// The full text, if it was shortened.
fn cut(text: &str, full: &str) -> Option<String> {
    (text != escape::line(full)).then(|| full.to_owned())
}

fn group(m: &Measures, span: &GroupColumns, depth: usize) -> GroupBox {
    let pad = NEST * (span.nest + 1) as f64;
    let (x, right) = (
        m.columns[span.first].0,
        m.columns[span.last].0 + m.columns[span.last].1,
    );
    let y = m.groups + GROUP_LINE * span.depth as f64;
    let bottom = m.height - 8.0 - NEST * (depth.saturating_sub(span.nest + 1)) as f64;
    let room = ((m.columns[span.last].0 + m.columns[span.last].1 - x) / text_width("m", SMALL))
        .floor() as usize;
    let text = shortened(&escape::line(&span.label), room.min(MOST_PLACES));
    let label = Rect {
        x,
        y: y + 2.0,
        w: text_width(&text, SMALL),
        h: SMALL + 3.0,
    };
    let rect = Rect {
        x: x - pad,
        y,
        w: right - x + 2.0 * pad,
        h: bottom - y,
    };
    GroupBox {
        rect,
        label: TextLine {
            rect: label,
            full: cut(&text, &span.label),
            text,
        },
    }
}
