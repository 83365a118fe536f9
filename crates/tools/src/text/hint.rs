//! Saying why a text was not found: the places that are most like it, and how they differ.

use std::cmp::Reverse;

use super::change::lines_in_words;
use super::fold::Folded;

/// How many places are shown.
const SHOWN: usize = 3;
/// Places looked at closely, of which the best are shown.
const CANDIDATES: usize = 12;
/// How much of a text is searched; the error of an edit should not take longer than the edit.
const SEARCHED: usize = 16 * 1024 * 1024;
/// How many lines of the wanted text are looked for and compared.
const ANCHORS: usize = 3;
const COMPARED: usize = 200;
/// Places less alike than this are no help, nor are those well behind the best.
const ALIKE: f32 = 0.45;
const BEHIND: f32 = 0.75;
/// The characters of a line that are shown.
const WIDTH: usize = 160;

/// What may be wrong with the wanted text itself: the text mended, if it can be, and what to say when that is
/// found.
type Mending = (fn(&str) -> Option<String>, &'static str);
const MENDINGS: &[Mending] = &[
    (without_numbers, "without the line numbers that Read puts before lines it is found; leave them out"),
    (
        unescaped,
        "it spells out escapes such as \\n, \\t or \\\" with a backslash where the file has the characters \
         themselves; write those",
    ),
    (
        escaped,
        "the file has escapes such as \\n or \\\" spelt out with a backslash where it has the characters",
    ),
    (inner, "without the empty lines before or after it it is found; leave them out"),
];

/// What may differ between the file and the wanted text: what is left of a line when that does not count, and
/// what to say. Indentation comes first and has words of its own.
type Fold = (fn(&str) -> String, &'static str);
const FOLDS: &[Fold] = &[
    (|line| line.trim_start().to_owned(), ""),
    (|line| line.trim_end().to_owned(), "the spaces at the end of a line differ"),
    (|line| line.split_whitespace().collect(), "the white space inside a line differs"),
    (str::to_lowercase, "upper and lower case differ"),
    (|line| Folded::of(line).text().to_owned(), "quotes or the form of accented characters differ"),
    (
        |line| Folded::of(&line.to_lowercase()).text().split_whitespace().collect(),
        "several things differ, but only white space, case, quotes or accents",
    ),
];

/// Why `old` is not in the text, as far as can be told, and what to do.
pub(super) fn nearest(text: &str, old: &str) -> String {
    for (mend, message) in MENDINGS {
        if let Some(mended) = mend(old).filter(|mended| mended != old && !mended.trim().is_empty())
            && let Some(at) = text.find(&mended)
        {
            let line = text[..at].matches('\n').count() + 1;
            return format!("{message} ({})", lines_in_words(&[line], 1));
        }
    }
    let searched = &text[..text.floor_char_boundary(SEARCHED)];
    let lines: Vec<&str> = searched.split('\n').collect();
    let wanted: Vec<&str> = old.split('\n').collect();
    let places = alike(&lines, &wanted);
    if places.is_empty() {
        return "nothing in it is like it: read the file again, it may be another one or have changed"
            .to_owned();
    }
    let mut out = "the places most like it are".to_owned();
    for place in places {
        let here = &lines[place..(place + wanted.len()).min(lines.len())];
        out.push_str(&format!("\n- {}", described(place, here, &wanted)));
    }
    out + "\ncopy the text exactly as it is in the file, without line numbers"
}

/// The first lines of the places that are most like the wanted lines, the best first.
fn alike(lines: &[&str], wanted: &[&str]) -> Vec<usize> {
    let mut anchors: Vec<(usize, Pairs)> =
        wanted.iter().take(COMPARED).map(|line| Pairs::of(line)).enumerate().collect();
    let all: Vec<Pairs> = anchors.iter().map(|(_, pairs)| pairs.clone()).collect();
    anchors.sort_by_key(|(_, pairs)| Reverse(pairs.count));
    anchors.truncate(ANCHORS);
    anchors.retain(|(_, pairs)| pairs.count > 0);
    let mut candidates: Vec<(f32, usize)> = Vec::new();
    for (number, line) in lines.iter().enumerate() {
        let best = anchors.iter().map(|(index, pairs)| (pairs.score(line), *index));
        let Some((score, index)) = best.max_by(|one, other| one.0.total_cmp(&other.0)) else {
            return Vec::new();
        };
        let worst = candidates.last().map_or(0.0, |(score, _)| *score);
        let Some(place) = number.checked_sub(index) else { continue };
        if score < ALIKE
            || (candidates.len() == CANDIDATES && score <= worst)
            || candidates.iter().any(|(_, known)| *known == place)
        {
            continue;
        }
        candidates.truncate(CANDIDATES - 1);
        candidates.insert(candidates.partition_point(|(known, _)| *known >= score), (score, place));
    }
    for (score, place) in &mut candidates {
        let compared = all.iter().enumerate();
        let sum: f32 = compared
            .map(|(index, pairs)| lines.get(*place + index).map_or(0.0, |line| pairs.score(line)))
            .sum();
        *score = sum / all.len() as f32;
    }
    candidates.sort_by(|one, other| other.0.total_cmp(&one.0));
    let limit = candidates.first().map_or(0.0, |(best, _)| (best * BEHIND).max(ALIKE));
    candidates.into_iter().filter(|(score, _)| *score >= limit).take(SHOWN).map(|(_, place)| place).collect()
}

/// The pairs of neighbouring bytes in a line, white space and case aside: a cheap measure of likeness.
#[derive(Clone)]
struct Pairs {
    set: Vec<u64>,
    count: usize,
}

impl Pairs {
    fn of(line: &str) -> Self {
        let mut pairs = Self { set: vec![0; 1 << 10], count: 0 };
        for pair in byte_pairs(line) {
            pairs.set[pair >> 6] |= 1 << (pair & 63);
            pairs.count += 1;
        }
        pairs
    }

    /// From 0 to 1. A line that has more than is wanted is less alike, but not much less.
    fn score(&self, line: &str) -> f32 {
        if self.count == 0 {
            return f32::from(u8::from(byte_pairs(line).next().is_none()));
        }
        let (mut shared, mut count) = (0, 0);
        for pair in byte_pairs(line) {
            shared += usize::from(self.set[pair >> 6] >> (pair & 63) & 1 == 1);
            count += 1;
        }
        shared.min(self.count) as f32 / self.count.max(count.min(self.count * 2)) as f32
    }
}

fn byte_pairs(line: &str) -> impl Iterator<Item = usize> {
    let mut bytes =
        line.bytes().filter(|byte| !byte.is_ascii_whitespace()).map(|byte| byte.to_ascii_lowercase());
    let mut before = bytes.next();
    bytes.filter_map(move |byte| {
        let pair = usize::from(before?) << 8 | usize::from(byte);
        before = Some(byte);
        Some(pair)
    })
}

/// One place in words: where, what differs, and the first line that does in both forms.
fn described(place: usize, here: &[&str], wanted: &[&str]) -> String {
    let same: fn(&str) -> String = str::to_owned;
    let differs = (0..wanted.len()).find(|index| !fits(here, wanted, *index, same)).unwrap_or(0);
    let (file, old) = (here.get(differs).copied().unwrap_or_default(), wanted[differs]);
    let fold = FOLDS.iter().find(|(fold, _)| (0..wanted.len()).all(|index| fits(here, wanted, index, *fold)));
    let what = match fold {
        _ if differs >= here.len() => "the file ends before old_string does".to_owned(),
        Some((_, "")) => indentation(file, old),
        Some((_, message)) => (*message).to_owned(),
        None => first_difference(file, old, differs == 0),
    };
    let line = place + differs + 1;
    format!("line {line}: {what}\n  file:       {}\n  old_string: {}", shown(file), shown(old))
}

/// Whether a line fits when what `fold` removes does not count; the wanted text may begin and end inside a line.
fn fits(here: &[&str], wanted: &[&str], index: usize, fold: fn(&str) -> String) -> bool {
    let Some(file) = here.get(index).map(|line| fold(line)) else { return false };
    let old = fold(wanted[index]);
    match (index == 0, index + 1 == wanted.len()) {
        (true, true) => file.contains(&old),
        (true, false) => file.ends_with(&old),
        (false, true) => file.starts_with(&old),
        (false, false) => file == old,
    }
}

fn indentation(file: &str, old: &str) -> String {
    let [file, old] = [file, old].map(|line| &line[..line.len() - line.trim_start().len()]);
    match (file.contains('\t'), old.contains('\t')) {
        (true, false) if !old.is_empty() => "the file indents with tabs, old_string with spaces".to_owned(),
        (false, true) if !file.is_empty() => "the file indents with spaces, old_string with tabs".to_owned(),
        _ => format!(
            "the indentation differs: {} in the file, {} in old_string",
            characters(file.chars().count()),
            characters(old.chars().count())
        ),
    }
}

fn characters(count: usize) -> String {
    if count == 1 { "1 character".to_owned() } else { format!("{count} characters") }
}

fn first_difference(file: &str, old: &str, may_begin_inside: bool) -> String {
    let common = |rest: &str| rest.chars().zip(old.chars()).take_while(|(file, old)| file == old).count();
    let starts = file.char_indices().map(|(at, _)| at).take(if may_begin_inside { 2_000 } else { 1 });
    let best = starts.map(|at| (common(&file[at..]), at)).min_by_key(|(common, _)| Reverse(*common));
    let (common, at) = best.unwrap_or((0, 0));
    let column = file[..at].chars().count() + common + 1;
    let [file, old] = [file[at..].chars().nth(common), old.chars().nth(common)].map(named);
    format!("at column {column} the file has {file}, old_string {old}")
}

fn named(character: Option<char>) -> String {
    match character {
        None => "the end of the line".to_owned(),
        Some(' ') => "a space".to_owned(),
        Some('\t') => "a tab".to_owned(),
        Some(character) if character.is_ascii_graphic() => format!("'{character}'"),
        Some(character) => format!("'{}' (U+{:04X})", character.escape_debug(), u32::from(character)),
    }
}

/// A line in quotes, so that spaces and tabs can be seen.
fn shown(line: &str) -> String {
    let cut = line.char_indices().nth(WIDTH).map_or(line.len(), |(cut, _)| cut);
    format!("{:?}{}", &line[..cut], if cut < line.len() { "…" } else { "" })
}

fn without_numbers(old: &str) -> Option<String> {
    let mut out = String::with_capacity(old.len());
    for line in old.split_inclusive('\n') {
        let rest = line.trim_start().trim_start_matches(|character: char| character.is_ascii_digit());
        let numbered = rest.len() < line.trim_start().len();
        match rest.strip_prefix(['\t', '→']).filter(|_| numbered) {
            Some(rest) => out.push_str(rest),
            None if line.trim().is_empty() => out.push_str(line),
            None => return None,
        }
    }
    Some(out)
}

const ESCAPES: &[(&str, &str)] =
    &[("\\n", "\n"), ("\\t", "\t"), ("\\\"", "\""), ("\\'", "'"), ("\\\\", "\\")];

fn unescaped(old: &str) -> Option<String> {
    let mut out = String::with_capacity(old.len());
    let mut rest = old;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let (taken, plain) =
            ESCAPES.iter().find(|(escape, _)| rest.starts_with(escape)).unwrap_or(&("\\", "\\"));
        out.push_str(plain);
        rest = &rest[taken.len()..];
    }
    Some(out + rest)
}

fn escaped(old: &str) -> Option<String> {
    let spelt = ESCAPES
        .iter()
        .take(3)
        .fold(old.replace('\\', "\\\\"), |text, (escape, plain)| text.replace(plain, escape));
    Some(spelt)
}

fn inner(old: &str) -> Option<String> {
    Some(old.trim_matches('\n').to_owned())
}

#[cfg(test)]
#[path = "hint_tests.rs"]
mod tests;
