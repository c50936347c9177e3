//! Where everything goes: rectangles and curves on a grid, without a word of any format.
//!
//! Columns are threads, side by side by their place in the scope tree; time runs down, initial writes on top. Edges go
//! through gutters and channels ([`route`](self)), names are put where they cover nothing ([`labels`](self)); where there is
//! no room for one, everything is laid out again with more.
//!
//! # Invariants
//! - Boxes, headings and labels do not overlap each other ([`Layout::solid`]).
//! - Every edge that is shown has its label, or [`Layout::foot`] says what the label would have said.

pub mod geometry;

mod columns;
mod labels;
mod route;

use super::escape;
use super::scene::{Role, Scene};
use columns::{Columns, Span};
use geometry::{Path, Point, Rect, at, shortened, text_width, wrapped};
use labels::Labels;
use route::{Cell, Plans, Side, Way};

/// Size of what an event did, of code and labels, of the title.
pub const TEXT: f64 = 13.0;
/// Size of code, and of what is said around the picture.
pub const SMALL: f64 = 11.0;
/// Size of labels.
pub const LABEL: f64 = 12.0;
/// Size of the title.
pub const TITLE: f64 = 17.0;

const EVENT_HEIGHT: f64 = 40.0;
const INIT_HEIGHT: f64 = 26.0;
const LABEL_HEIGHT: f64 = 15.0;
const GROUP_LINE: f64 = 18.0;
const MARGIN: f64 = 14.0;
/// Distance of the borders of nested groups.
const NEST: f64 = 8.0;
/// Distance of lanes.
const LANE: f64 = 8.0;
/// Code is cut at so many places, headings of threads at so many.
const MOST_CODE: usize = 38;
/// Lines around the picture are at least this long.
const LEAST_WIDTH: f64 = 440.0;
/// How often everything is laid out again with more room.
const ATTEMPTS: usize = 12;

/// A line of text.
#[derive(Clone, Debug)]
pub struct Text {
    /// Where it is.
    pub rect: Rect,
    /// What it says.
    pub text: String,
    /// The whole of it, if it was cut.
    pub full: Option<String>,
}

/// A box of a group.
#[derive(Clone, Debug)]
pub struct Group {
    /// The box.
    pub rect: Rect,
    /// What it is called.
    pub label: Text,
}

/// The box of an event.
#[derive(Clone, Debug)]
pub struct Placed {
    /// The box.
    pub rect: Rect,
    /// What it did, cut if it must be.
    pub action: String,
    /// Its code, cut if it must be.
    pub code: String,
}

/// An edge.
#[derive(Clone, Debug)]
pub struct Drawn {
    /// Its line.
    pub path: Path,
    /// The arrow at its end.
    pub tip: [Point; 3],
    /// The arrow at its start, if it holds in both directions.
    pub tail: Option<[Point; 3]>,
    /// Where its name is.
    pub label: Option<Rect>,
}

/// A picture.
#[derive(Clone, Debug)]
pub struct Layout {
    /// Width and height.
    pub size: (f64, f64),
    /// The title and the lines below it.
    pub head: Vec<Text>,
    /// Groups, outer ones first.
    pub groups: Vec<Group>,
    /// Headings of columns.
    pub threads: Vec<Text>,
    /// By event of the scene.
    pub events: Vec<Placed>,
    /// By edge of the scene.
    pub edges: Vec<Drawn>,
    /// Lines below the picture.
    pub foot: Vec<Text>,
}

impl Layout {
    /// Lays out a scene.
    pub fn of(scene: &Scene) -> Layout {
        let columns = Columns::new(&scene.seats);
        let (cells, rows) = route::cells(scene, &columns.of_threads());
        let plans = route::plan(scene, &cells, columns.threads.len(), rows);
        let grid = Grid { scene, columns, cells, rows, plans };
        let mut attempt = 0;
        loop {
            let (mut layout, unnamed) = grid.attempt(attempt as f64);
            attempt += 1;
            if unnamed.is_empty() || attempt == ATTEMPTS {
                let said = (!unnamed.is_empty()).then(|| grid.unnamed(&unnamed));
                layout.write_around(scene, said);
                return layout;
            }
        }
    }

    /// Everything that must not overlap: boxes of events, headings, labels of shown edges, text around the picture.
    pub fn solid(&self) -> Vec<Rect> {
        let texts = self.head.iter().chain(&self.threads).chain(&self.foot).map(|t| t.rect);
        let groups = self.groups.iter().map(|g| g.label.rect);
        let labels = self.edges.iter().filter_map(|e| e.label);
        texts.chain(groups).chain(self.events.iter().map(|e| e.rect)).chain(labels).collect()
    }

    /// Adds what is said above and below, and moves the picture down accordingly.
    fn write_around(&mut self, scene: &Scene, more: Option<String>) {
        let width = self.size.0.max(LEAST_WIDTH);
        let places = |size: f64| ((width - 2.0 * MARGIN) / text_width("m", size)).floor() as usize;
        let mut y = MARGIN;
        let line = |text: &str, size: f64, y: &mut f64| {
            let rect = Rect { x: MARGIN, y: *y, w: text_width(text, size), h: size + 5.0 };
            *y += size + 6.0;
            Text { rect, text: text.to_owned(), full: None }
        };
        for part in wrapped(&escape::line(&scene.title), places(TITLE)) {
            self.head.push(line(&part, TITLE, &mut y));
        }
        for fact in &scene.facts {
            for part in wrapped(&escape::line(fact), places(LABEL)) {
                self.head.push(line(&part, LABEL, &mut y));
            }
        }
        let down = y + 4.0;
        self.shift(down);
        let mut y = self.size.1 + down;
        for said in scene.says.iter().chain(more.iter()) {
            for part in wrapped(&escape::line(said), places(LABEL)) {
                self.foot.push(line(&part, LABEL, &mut y));
            }
            y += 4.0;
        }
        self.size = (width, y + MARGIN / 2.0);
    }

    fn shift(&mut self, dy: f64) {
        let point = |p: &mut Point| p.y += dy;
        for rect in (self.groups.iter_mut().flat_map(|g| [&mut g.rect, &mut g.label.rect]))
            .chain(self.threads.iter_mut().map(|t| &mut t.rect))
            .chain(self.events.iter_mut().map(|e| &mut e.rect))
        {
            rect.y += dy;
        }
        for edge in &mut self.edges {
            point(&mut edge.path.start);
            for piece in &mut edge.path.pieces {
                match piece {
                    geometry::Piece::Line(p) => point(p),
                    geometry::Piece::Curve(a, b, p) => [a, b, p].into_iter().for_each(point),
                }
            }
            edge.tip.iter_mut().chain(edge.tail.iter_mut().flatten()).for_each(point);
            if let Some(label) = &mut edge.label {
                label.y += dy;
            }
        }
    }
}

/// A scene on its grid, before it has measures.
struct Grid<'a> {
    scene: &'a Scene,
    columns: Columns,
    cells: Vec<Cell>,
    rows: usize,
    plans: Plans,
}

/// The measures of a grid.
struct Measures {
    /// Left edge and width of each column.
    columns: Vec<(f64, f64)>,
    /// Left and right border of each gutter.
    gutters: Vec<(f64, f64)>,
    /// Room for borders of groups in each gutter: of those that end left of it, of those that begin.
    pads: Vec<(f64, f64)>,
    /// Top of each row.
    rows: Vec<f64>,
    /// Top and height of each channel.
    channels: Vec<(f64, f64)>,
    /// Top and height of the channel of initial writes.
    init: (f64, f64),
    /// Top of the outermost groups.
    groups: f64,
    /// Boxes of initial writes.
    inits: Vec<Rect>,
    width: f64,
    height: f64,
}

impl Grid<'_> {
    /// Lays everything out; gives the shown edges without a label too. `slack` is how much more room there is.
    fn attempt(&self, slack: f64) -> (Layout, Vec<usize>) {
        let m = self.measures(slack);
        let events: Vec<Placed> = (0..self.cells.len()).map(|e| self.placed(&m, e)).collect();
        let groups: Vec<Group> = self.columns.groups.iter().map(|g| group(&m, g, self.columns.depth())).collect();
        let threads: Vec<Text> = (0..m.columns.len()).map(|c| self.heading(&m, c)).collect();
        let paths = self.paths(&m, &events);
        let size = (m.width, m.height);
        let mut taken: Vec<Rect> = events.iter().map(|e| e.rect).collect();
        taken.extend(groups.iter().map(|g| g.label.rect).chain(threads.iter().map(|t| t.rect)));
        let shown = |e: usize| self.scene.relations[self.scene.edges[e].relation].shown;
        let bounds = Rect { x: 3.0, y: 0.0, w: m.width - 6.0, h: m.height };
        let visible: Vec<(usize, &Path)> = paths.iter().enumerate().filter(|(e, _)| shown(*e)).collect();
        let mut labels = Labels::new(bounds, taken, &visible);
        let mut order: Vec<usize> = (0..paths.len()).collect();
        // Bold edges choose first, then those with the least choice; edges that are not shown take what is left.
        let length = |e: usize| paths[e].points(5.0).len();
        order.sort_by_key(|&e| (!shown(e), !self.scene.edges[e].bold, length(e), e));
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
            let size = if edge.bold { 13.0 } else { 9.0 };
            Drawn { tip: path.arrow(size), tail: edge.both.then(|| path.reversed().arrow(size)), path, label }
        });
        let edges = edges.collect();
        (Layout { size, head: Vec::new(), groups, threads, events, edges, foot: Vec::new() }, unnamed)
    }

    fn unnamed(&self, edges: &[usize]) -> String {
        let letter = |e: usize| self.scene.events[e].action.split(':').next().unwrap_or("").to_owned();
        let named = edges.iter().map(|&e| {
            let edge = &self.scene.edges[e];
            let name = &self.scene.relations[edge.relation].name;
            format!("{} {name} {}", letter(edge.from), letter(edge.to))
        });
        format!("Edges without room for a name: {}.", named.collect::<Vec<_>>().join(", "))
    }

    fn measures(&self, slack: f64) -> Measures {
        let (scene, plans) = (self.scene, &self.plans);
        let columns = self.columns.threads.len();
        let widest = |texts: &mut dyn Iterator<Item = f64>| texts.fold(0.0_f64, f64::max);
        let box_width = |e: usize| {
            let event = &scene.events[e];
            let code = shortened(&escape::line(&event.code), MOST_CODE);
            let action = shortened(&escape::line(&event.action), MOST_CODE);
            text_width(&action, TEXT).max(text_width(&code, SMALL)) + 16.0
        };
        // Labels of the ways through each gutter.
        let mut names = vec![0.0_f64; columns + 1];
        for (edge, plan) in scene.edges.iter().zip(&plans.plans) {
            let relation = &scene.relations[edge.relation];
            let width = text_width(&relation.name, LABEL) + 5.0;
            match plan.way {
                Way::Arc { gutter } | Way::Across { gutter } if relation.shown => {
                    names[gutter] = names[gutter].max(width);
                }
                _ => {}
            }
        }
        let pads: Vec<(f64, f64)> = (0..=columns)
            .map(|g| {
                let pad = |spans: &mut dyn Iterator<Item = &Span>| {
                    widest(&mut spans.map(|s| NEST * (s.nest + 1) as f64))
                };
                let ends = pad(&mut self.columns.groups.iter().filter(|s| s.last + 1 == g));
                let begins = pad(&mut self.columns.groups.iter().filter(|s| s.first == g));
                (ends, begins)
            })
            .collect();
        let (mut at_columns, mut gutters) = (Vec::new(), Vec::new());
        let mut x = MARGIN / 2.0;
        for g in 0..=columns {
            let lanes = (plans.lanes[g].0 + plans.lanes[g].1) as f64 * LANE;
            let busy = plans.arcs[g] + plans.across[g];
            let name = if busy > 0 { names[g] + 26.0 + slack * 14.0 } else { 0.0 };
            let crowd = 7.0 * plans.across[g] as f64 + 10.0 * plans.arcs[g] as f64;
            let bare = if g == 0 || g == columns { 4.0 } else { 18.0 };
            let width = bare + pads[g].0 + pads[g].1 + lanes + name + crowd.min(160.0);
            gutters.push((x, x + width));
            x += width;
            if g < columns {
                let mine = (0..self.cells.len()).filter(|&e| matches!(self.cells[e], Cell::At(c, _) if c == g));
                let heading = text_width(&self.thread_name(g), TEXT);
                let labels = self.columns.groups.iter().filter(|s| s.first == g && s.last == g);
                let labels = widest(&mut labels.map(|s| text_width(&shortened(&s.label, MOST_CODE), SMALL)));
                let width = widest(&mut mine.map(box_width)).max(heading).max(labels).max(88.0);
                at_columns.push((x, width));
                x += width;
            }
        }
        let mut width = x + MARGIN / 2.0;
        // Initial writes, side by side over the columns.
        let inits: Vec<usize> =
            (0..self.cells.len()).filter(|&e| matches!(self.cells[e], Cell::Init(_))).collect();
        let wide: Vec<f64> = inits.iter().map(|&e| box_width(e)).collect();
        let gap = 22.0;
        let all = wide.iter().sum::<f64>() + gap * (wide.len().max(1) - 1) as f64;
        width = width.max(all + 2.0 * MARGIN);
        // Columns that leave room are moved to the middle.
        let move_by = (width - x - MARGIN / 2.0) / 2.0;
        at_columns.iter_mut().for_each(|c| c.0 += move_by);
        gutters.iter_mut().for_each(|g| *g = (g.0 + move_by, g.1 + move_by));
        let (mut y, mut left) = (6.0, (width - all) / 2.0);
        let mut boxes = Vec::new();
        for w in &wide {
            boxes.push(Rect { x: left, y, w: *w, h: INIT_HEIGHT });
            left += w + gap;
        }
        let mut init = (y, 0.0);
        if !inits.is_empty() {
            init = (y + INIT_HEIGHT, 22.0 + 13.0 * plans.init_tracks as f64 + slack * 8.0);
            y = init.0 + init.1;
        }
        let groups = y;
        y += GROUP_LINE * self.columns.depth() as f64 + TEXT + 8.0;
        let (mut rows, mut channels) = (Vec::new(), Vec::new());
        for c in 0..=self.rows {
            let tracks = plans.tracks[c] as f64;
            let least = if c == 0 {
                8.0
            } else if c == self.rows {
                6.0
            } else {
                32.0
            };
            let height = least + if tracks > 0.0 { 15.0 * (tracks + 0.5) } else { 0.0 } + slack * 7.0;
            channels.push((y, height));
            y += height;
            if c < self.rows {
                rows.push(y);
                y += EVENT_HEIGHT;
            }
        }
        let nested = widest(&mut self.columns.groups.iter().map(|s| NEST * (s.nest + 1) as f64));
        let height = y + nested + 8.0;
        Measures { columns: at_columns, gutters, pads, rows, channels, init, groups, inits: boxes, width, height }
    }

    fn thread_name(&self, column: usize) -> String {
        shortened(&escape::line(&self.scene.seats[self.columns.threads[column]].thread), MOST_CODE)
    }

    fn heading(&self, m: &Measures, column: usize) -> Text {
        let (text, (x, width)) = (self.thread_name(column), m.columns[column]);
        let y = m.groups + GROUP_LINE * self.columns.depth() as f64 + 2.0;
        let w = text_width(&text, TEXT);
        let full = &self.scene.seats[self.columns.threads[column]].thread;
        Text { rect: Rect { x: x + (width - w) / 2.0, y, w, h: TEXT + 4.0 }, full: cut(&text, full), text }
    }

    fn placed(&self, m: &Measures, e: usize) -> Placed {
        let event = &self.scene.events[e];
        let rect = match self.cells[e] {
            Cell::Init(i) => m.inits[i],
            Cell::At(c, r) => Rect { x: m.columns[c].0, y: m.rows[r], w: m.columns[c].1, h: EVENT_HEIGHT },
        };
        let short = |text: &str| shortened(&escape::line(text), MOST_CODE);
        let code = if event.role == Role::Init { String::new() } else { short(&event.code) };
        Placed { rect, action: short(&event.action), code }
    }

    /// The lines of all edges.
    fn paths(&self, m: &Measures, events: &[Placed]) -> Vec<Path> {
        let ports = self.ports(m, events);
        (0..self.scene.edges.len()).map(|e| self.path(m, e, ports[e])).collect()
    }

    /// Where each edge begins and ends: the edges at one side of a box share it, in the order of where they come from.
    fn ports(&self, m: &Measures, events: &[Placed]) -> Vec<(Point, Point)> {
        let mut ends: Vec<(usize, Side, f64, usize, bool)> = Vec::new();
        for (e, (edge, plan)) in self.scene.edges.iter().zip(&self.plans.plans).enumerate() {
            let (a, b) = (events[edge.from].rect, events[edge.to].rect);
            let middle = |r: Rect| (r.x + r.w / 2.0, r.y + r.h / 2.0);
            let aim = |other: Rect, side: Side| match (plan.way, side) {
                (_, Side::Bottom | Side::Top) => middle(other).0,
                (Way::Over { channel, track, .. }, _) => m.channels[channel].0 + m.channels[channel].1 * track,
                (Way::Fall { .. }, _) => 0.0,
                _ => middle(other).1,
            };
            ends.push((edge.from, plan.sides.0, aim(b, plan.sides.0), e, true));
            ends.push((edge.to, plan.sides.1, aim(a, plan.sides.1), e, false));
        }
        ends.sort_by(|a, b| {
            (a.0, a.1).cmp(&(b.0, b.1)).then(a.2.total_cmp(&b.2)).then((a.3, a.4).cmp(&(b.3, b.4)))
        });
        let mut ports = vec![(at(0.0, 0.0), at(0.0, 0.0)); self.scene.edges.len()];
        let mut i = 0;
        while i < ends.len() {
            let count = ends[i..].iter().take_while(|e| (e.0, e.1) == (ends[i].0, ends[i].1)).count();
            for (k, &(event, side, _, edge, start)) in ends[i..i + count].iter().enumerate() {
                let (r, part) = (events[event].rect, (k as f64 + 1.0) / (count as f64 + 1.0));
                let (along_x, along_y) = (r.x + r.w * part, r.y + 3.0 + (r.h - 6.0) * part);
                let point = match side {
                    Side::Left => at(r.x, along_y),
                    Side::Right => at(r.right(), along_y),
                    Side::Top => at(along_x, r.y),
                    Side::Bottom => at(along_x, r.bottom()),
                };
                if start {
                    ports[edge].0 = point;
                } else {
                    ports[edge].1 = point;
                }
            }
            i += count;
        }
        ports
    }

    fn path(&self, m: &Measures, edge: usize, (from, to): (Point, Point)) -> Path {
        let plan = &self.plans.plans[edge];
        match plan.way {
            // From one middle to the other, also where other edges share the sides.
            Way::Down => Path::from(from).line(at(from.x, to.y)),
            Way::Across { .. } => Path::from(from).sway(to),
            Way::Arc { gutter } => {
                let (left, right) = m.gutters[gutter];
                let span = (to.y - from.y).abs();
                let by = (16.0 + span * 0.16).min((right - left) * 0.7);
                let outwards = if plan.sides.0 == Side::Right { by } else { -by };
                Path::from(from).bulge(to, outwards)
            }
            Way::Over { out, channel, track, back } => {
                let (top, height) = m.channels[channel];
                let y = top + height * track;
                let far = |gutter: usize, from_left: bool| {
                    let (left, right) = m.gutters[gutter];
                    if from_left { right } else { left }
                };
                let rightwards = out < back;
                let path = Path::from(from).sway(at(far(out, rightwards), y));
                path.line(at(far(back, !rightwards), y)).sway(to)
            }
            Way::Fall { track, gutter, lane, reversed } => {
                let (init, event) = if reversed { (to, from) } else { (from, to) };
                let y = m.init.0 + m.init.1 * track;
                let x = self.lane(m, gutter, lane, event);
                let path = Path::from(init).corners(&[at(init.x, y), at(x, y), at(x, event.y), event]);
                if reversed { path.reversed() } else { path }
            }
            Way::Between { track } => {
                let y = m.init.0 + m.init.1 * track;
                Path::from(from).corners(&[at(from.x, y), at(to.x, y), to])
            }
        }
    }

    /// Where a lane of a gutter is, beside the column that `event` is in.
    fn lane(&self, m: &Measures, gutter: usize, lane: usize, event: Point) -> f64 {
        let (left, right) = m.gutters[gutter];
        let (ends, begins) = m.pads[gutter];
        let by = 5.0 + LANE * lane as f64;
        if (event.x - right).abs() < (event.x - left).abs() {
            (right - begins - by).max(left + 2.0)
        } else {
            (left + ends + by).min(right - 2.0)
        }
    }
}

/// The whole text, if it was cut.
fn cut(text: &str, full: &str) -> Option<String> {
    (text != escape::line(full)).then(|| full.to_owned())
}

fn group(m: &Measures, span: &Span, depth: usize) -> Group {
    let pad = NEST * (span.nest + 1) as f64;
    let (x, right) = (m.columns[span.first].0, m.columns[span.last].0 + m.columns[span.last].1);
    let y = m.groups + GROUP_LINE * span.depth as f64;
    let bottom = m.height - 8.0 - NEST * (depth.saturating_sub(span.nest + 1)) as f64;
    let room = ((m.columns[span.last].0 + m.columns[span.last].1 - x) / text_width("m", SMALL)).floor() as usize;
    let text = shortened(&escape::line(&span.label), room.min(MOST_CODE));
    let label = Rect { x, y: y + 2.0, w: text_width(&text, SMALL), h: SMALL + 3.0 };
    let rect = Rect { x: x - pad, y, w: right - x + 2.0 * pad, h: bottom - y };
    Group { rect, label: Text { rect: label, full: cut(&text, &span.label), text } }
}
