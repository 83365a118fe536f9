//! Finding deferred tools by words: BM25 over the fields of each tool, with its name counting most.
//!
//! Everything that depends only on the tools is worked out when the index is built, so a query adds up
//! stored numbers and allocates nothing per tool.

#[cfg(test)]
mod tests;
mod words;

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap};

use words::{fold, for_each_word};

/// Longest query looked at, in characters; the rest is ignored.
const MAX_QUERY_CHARS: usize = 400;
const MAX_QUERY_WORDS: usize = 32;
/// Name parts that one prefix may stand for.
const MAX_PREFIX_PARTS: usize = 64;
const MIN_PREFIX_CHARS: usize = 2;

/// The fields in the order of [`Document::fields`]: how much a hit counts, and how much a long field
/// lessens it (the `b` of BM25).
const FIELDS: [(f32, f32); 5] = [(6.0, 0.3), (3.0, 0.3), (2.5, 0.3), (2.5, 0.5), (1.0, 0.75)];
const NAME: usize = 0;
const SERVER: usize = 2;
/// How soon repeating a word stops helping (the `k1` of BM25).
const SATURATION: f32 = 1.2;
/// A part of the name that only begins with the word.
const PREFIX_WEIGHT: f32 = 1.5;
/// The query is the whole name.
const WHOLE_NAME_SCORE: f32 = 100.0;
/// A `+word` was found; keeps such a tool above nothing even when no other word matches.
const REQUIRED_SCORE: f32 = 1.0;

/// What is searched of one tool.
#[derive(Clone, Debug, Default)]
pub struct Document {
    /// The tool's name, such as `WebFetch` or `mcp__github__create_issue`.
    pub name: String,
    /// Former names.
    pub aliases: Vec<String>,
    /// The MCP server it comes from.
    pub server: Option<String>,
    /// A few words on what it is for.
    pub hint: String,
    /// The whole description.
    pub description: String,
}

impl Document {
    /// The text of each of [`FIELDS`]. The server in an MCP tool's name counts as server, not as name.
    fn fields(&self) -> [Vec<&str>; 5] {
        let mcp = self.name.strip_prefix("mcp__").and_then(|rest| rest.split_once("__"));
        let (server, name) = match mcp {
            Some((server, name)) => (Some(server), name),
            None => (self.server.as_deref(), self.name.as_str()),
        };
        let aliases = self.aliases.iter().map(String::as_str).collect();
        [vec![name], aliases, server.into_iter().collect(), vec![&self.hint], vec![&self.description]]
    }
}

/// One tool found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hit {
    /// The tool's place in the list the index was built from.
    pub document: usize,
    /// Higher is better; only comparable within one answer.
    pub score: f32,
}

/// What a query found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// The best tools first; those of a selection in the order asked.
    pub hits: Vec<Hit>,
    /// How many tools matched, those beyond the maximum included.
    pub matched: usize,
    /// Names of a selection that no tool has.
    pub missing: Vec<String>,
}

/// A query taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Query {
    /// `select:A,B`: these names.
    Select(Vec<String>),
    /// Words to rank by, and those (`+word`) the name must contain.
    Words {
        /// All words, required ones included.
        ranked: Vec<String>,
        /// In lower case.
        required: Vec<String>,
    },
}

impl Query {
    /// Reads a query; never fails, an empty one finds nothing.
    pub fn parse(text: &str) -> Self {
        let end = text.char_indices().nth(MAX_QUERY_CHARS).map_or(text.len(), |(end, _)| end);
        let text = text[..end].trim();
        let prefix = text.get(.."select:".len()).filter(|prefix| prefix.eq_ignore_ascii_case("select:"));
        if let Some(prefix) = prefix {
            let mut names: Vec<String> = Vec::new();
            for name in text[prefix.len()..].split(',').map(str::trim).filter(|name| !name.is_empty()) {
                if !names.iter().any(|known| known == name) {
                    names.push(name.to_owned());
                }
            }
            return Self::Select(names);
        }
        let (mut ranked, mut required) = (Vec::new(), Vec::new());
        for word in text.split_whitespace().take(MAX_QUERY_WORDS) {
            let bare = word.strip_prefix('+').unwrap_or(word);
            if bare.len() < word.len() && !bare.is_empty() {
                required.push(bare.to_lowercase());
            }
            ranked.push(bare.to_owned());
        }
        Self::Words { ranked, required }
    }
}

/// Where a word occurs and what that is worth.
struct Posting {
    document: u32,
    weight: f32,
}

/// An index over tools; rebuilt when the set of tools changes.
pub struct ToolIndex {
    /// Names in lower case, separated by line ends, so that one scan finds a word in any of them.
    names: String,
    /// Where each name starts in `names`.
    starts: Vec<usize>,
    /// Names and aliases in lower case, with the tools that have them and how they spell them.
    by_name: HashMap<String, Vec<(u32, String)>>,
    /// The place of each tool in the order of names; decides between equal scores.
    order: Vec<u32>,
    postings: HashMap<String, Vec<Posting>>,
    /// Parts of names, for prefixes.
    parts: BTreeMap<String, Vec<Posting>>,
}

impl ToolIndex {
    /// Builds the index.
    pub fn build(docs: Vec<Document>) -> Self {
        let mut index = Self {
            names: String::new(),
            starts: Vec::with_capacity(docs.len()),
            by_name: HashMap::new(),
            order: name_order(&docs),
            postings: HashMap::new(),
            parts: BTreeMap::new(),
        };
        // Names come before aliases, so that an alias never hides a tool of that name.
        for (document, doc) in (0..).zip(&docs) {
            index.starts.push(index.names.len());
            let lower = doc.name.to_lowercase().replace('\n', " ");
            index.names.push_str(&lower);
            index.names.push('\n');
            index.by_name.entry(doc.name.to_lowercase()).or_default().push((document, doc.name.clone()));
        }
        for (document, doc) in (0..).zip(&docs) {
            for alias in &doc.aliases {
                index.by_name.entry(alias.to_lowercase()).or_default().push((document, alias.clone()));
            }
        }
        index.add_postings(&docs);
        index
    }

    /// The number of tools.
    pub fn len(&self) -> usize {
        self.starts.len()
    }

    /// Whether there are no tools.
    pub fn is_empty(&self) -> bool {
        self.starts.is_empty()
    }

    /// The best `max` tools for a query in any of its forms.
    pub fn query(&self, text: &str, max: usize) -> Vec<Hit> {
        self.answer(&Query::parse(text), max).hits
    }

    /// Like [`Self::query`], with how many matched and which selected names were not found.
    pub fn answer(&self, query: &Query, max: usize) -> Answer {
        let mut answer = match query {
            Query::Select(names) => self.select(names),
            Query::Words { ranked, required } => self.rank(ranked, required, max),
        };
        answer.hits.truncate(max);
        answer
    }

    fn select(&self, names: &[String]) -> Answer {
        let mut answer = Answer::default();
        for name in names {
            let Some(named) = self.by_name.get(&name.to_lowercase()) else {
                answer.missing.push(name.clone());
                continue;
            };
            let exact = named.iter().find(|(_, spelled)| spelled == name).or(named.first());
            let Some(&(document, _)) = exact else { continue };
            let hit = Hit { document: document as usize, score: WHOLE_NAME_SCORE };
            if !answer.hits.contains(&hit) {
                answer.hits.push(hit);
            }
        }
        answer.matched = answer.hits.len();
        answer
    }

    fn rank(&self, ranked: &[String], required: &[String], max: usize) -> Answer {
        let mut scores = vec![0.0; self.len()];
        let mut folded = Vec::new();
        for written in ranked {
            for_each_word(written, &mut |word| self.score_word(word, &mut folded, &mut scores));
        }
        if let [only] = ranked {
            for (document, _) in self.by_name.get(&only.to_lowercase()).into_iter().flatten() {
                scores[*document as usize] += WHOLE_NAME_SCORE;
            }
        }
        for word in required {
            self.require(word, &mut scores);
        }
        let mut hits: Vec<Hit> = (scores.iter().enumerate())
            .filter(|(_, score)| **score > 0.0)
            .map(|(document, score)| Hit { document, score: *score })
            .collect();
        let matched = hits.len();
        if max > 0 && max < hits.len() {
            hits.select_nth_unstable_by(max - 1, |a, b| self.better(a, b));
            hits.truncate(max);
        }
        hits.sort_unstable_by(|a, b| self.better(a, b));
        Answer { hits, matched, missing: Vec::new() }
    }

    fn score_word(&self, word: &str, folded: &mut Vec<String>, scores: &mut [f32]) {
        let term = fold(word);
        if folded.contains(&term) || folded.len() >= MAX_QUERY_WORDS {
            return;
        }
        let whole = self.postings.get(&term).into_iter().flatten();
        whole.for_each(|posting| scores[posting.document as usize] += posting.weight);
        if word.chars().count() >= MIN_PREFIX_CHARS {
            let from =
                self.parts.range::<str, _>((std::ops::Bound::Excluded(word), std::ops::Bound::Unbounded));
            let longer = from.take_while(|(part, _)| part.starts_with(word)).take(MAX_PREFIX_PARTS);
            // A plural is not a prefix match: the folded word has counted it already.
            let longer = longer.filter(|(part, _)| fold(part) != term);
            let postings = longer.flat_map(|(_, postings)| postings);
            postings.for_each(|posting| scores[posting.document as usize] += posting.weight);
        }
        folded.push(term);
    }

    /// Leaves a score only to the tools whose name contains `word`.
    fn require(&self, word: &str, scores: &mut [f32]) {
        let mut kept = 0;
        for (at, _) in self.names.match_indices(word) {
            let document = self.starts.partition_point(|start| *start <= at) - 1;
            if document >= kept {
                scores[kept..document].fill(f32::NEG_INFINITY);
                scores[document] += REQUIRED_SCORE;
                kept = document + 1;
            }
        }
        scores[kept..].fill(f32::NEG_INFINITY);
    }

    fn better(&self, a: &Hit, b: &Hit) -> Ordering {
        b.score.total_cmp(&a.score).then_with(|| self.order[a.document].cmp(&self.order[b.document]))
    }

    fn add_postings(&mut self, docs: &[Document]) {
        let mut counted = Counted::default();
        for (document, doc) in (0..).zip(docs) {
            counted.add(document, doc);
        }
        let all = docs.len() as f32;
        let averages = counted.average_lengths();
        for (term, found) in counted.terms {
            let rarity = rarity(all, found.len());
            let postings = found.into_iter().map(|Occurrence { document, times }| {
                let lengths = &counted.lengths[document as usize];
                let fields = FIELDS.iter().zip(times).zip(lengths.iter().zip(&averages));
                let weight = fields.map(|((&(weight, b), times), (length, average))| {
                    let times = f32::from(times);
                    let length = 1.0 - b + b * f32::from(*length) / average;
                    weight * times / (times + SATURATION * length)
                });
                Posting { document, weight: rarity * weight.sum::<f32>() }
            });
            self.postings.insert(term, postings.collect());
        }
        for (part, found) in counted.parts {
            let weight = PREFIX_WEIGHT * rarity(all, found.len());
            self.parts.insert(part, found.into_iter().map(|document| Posting { document, weight }).collect());
        }
    }
}

/// How much a word says that `found` of `all` tools have.
fn rarity(all: f32, found: usize) -> f32 {
    let found = found as f32;
    (1.0 + (all - found + 0.5) / (found + 0.5)).ln()
}

fn name_order(docs: &[Document]) -> Vec<u32> {
    let mut sorted: Vec<usize> = (0..docs.len()).collect();
    sorted.sort_by(|a, b| (&docs[*a].name, a).cmp(&(&docs[*b].name, b)));
    let mut order = vec![0; docs.len()];
    for (place, document) in (0..).zip(sorted) {
        order[document] = place;
    }
    order
}

/// How often a word occurs in each field of a tool.
struct Occurrence {
    document: u32,
    times: [u8; FIELDS.len()],
}

/// The words of all tools, counted.
#[derive(Default)]
struct Counted {
    terms: HashMap<String, Vec<Occurrence>>,
    parts: BTreeMap<String, Vec<u32>>,
    /// Words in each field of each tool.
    lengths: Vec<[u16; FIELDS.len()]>,
}

impl Counted {
    fn add(&mut self, document: u32, doc: &Document) {
        let mut lengths = [0u16; FIELDS.len()];
        for (field, texts) in doc.fields().iter().enumerate() {
            for text in texts {
                for_each_word(text, &mut |word| {
                    lengths[field] = lengths[field].saturating_add(1);
                    self.count(document, field, fold(word));
                    if field == NAME || field == SERVER {
                        self.add_part(document, word);
                    }
                });
            }
        }
        // `webfetch` finds WebFetch.
        let joined: String = doc.fields()[NAME][0]
            .chars()
            .filter(|c| c.is_alphanumeric())
            .flat_map(char::to_lowercase)
            .collect();
        if lengths[NAME] > 1 {
            self.count(document, NAME, fold(&joined));
            self.add_part(document, &joined);
        }
        self.lengths.push(lengths);
    }

    fn count(&mut self, document: u32, field: usize, term: String) {
        let found = self.terms.entry(term).or_default();
        if found.last().is_none_or(|last| last.document != document) {
            found.push(Occurrence { document, times: [0; FIELDS.len()] });
        }
        if let Some(last) = found.last_mut() {
            last.times[field] = last.times[field].saturating_add(1);
        }
    }

    fn add_part(&mut self, document: u32, part: &str) {
        let found = self.parts.entry(part.to_owned()).or_default();
        if found.last() != Some(&document) {
            found.push(document);
        }
    }

    fn average_lengths(&self) -> [f32; FIELDS.len()] {
        let mut sums = [0.0; FIELDS.len()];
        for lengths in &self.lengths {
            sums.iter_mut().zip(lengths).for_each(|(sum, length)| *sum += f32::from(*length));
        }
        sums.map(|sum| (sum / self.lengths.len().max(1) as f32).max(1.0))
    }
}
