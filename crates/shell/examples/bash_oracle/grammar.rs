//! Scripts that follow the grammar, filled in from the templates in `templates.txt`.

use crate::generate::PROGRAMS;
use crate::random::Random;
use crate::tables::table;

const DEEPEST: usize = 5;
const LONGEST: usize = 700;

/// A here-document whose body comes with the next newline.
struct Pending {
    tag: &'static str,
    expands: bool,
    tabs: bool,
}

/// Writes one script.
///
/// Every script may use only a random part of each table. Small scripts about few things find more than large
/// ones about everything, because one unresolved word excuses the whole script.
pub(crate) struct Writer {
    random: Random,
    text: String,
    pending: Vec<Pending>,
    depth: usize,
    features: u64,
    density: usize,
}

impl Writer {
    pub(crate) fn new(mut random: Random) -> Self {
        let features = random.next();
        let density = [10, 30, 60, 100].get(random.below(4)).copied().unwrap_or(30);
        Self { random, text: String::new(), pending: Vec::new(), depth: 0, features, density }
    }

    pub(crate) fn script(mut self) -> String {
        for _ in 0..=self.random.below(3) {
            self.complete_command();
            self.end();
        }
        if !self.pending.is_empty() && self.random.chance(90) {
            self.newline();
        }
        self.text
    }

    /// A line of a table, from the part that this script uses.
    fn from(&mut self, name: &'static str) -> &'static str {
        let table = table(name);
        for _ in 0..40 {
            let at = self.random.below(table.len());
            let mixed = (at as u64 ^ self.features).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            if (mixed >> 32) % 100 < self.density as u64 {
                return table.get(at).map(String::as_str).unwrap_or_default();
            }
        }
        table.first().map(String::as_str).unwrap_or_default()
    }

    fn full(&self) -> bool {
        self.depth > DEEPEST || self.text.len() > LONGEST
    }

    fn fill_from(&mut self, name: &'static str) {
        let template = self.from(name);
        self.fill(template);
    }

    fn fill(&mut self, template: &str) {
        self.depth += 1;
        let mut letters = template.chars();
        while let Some(letter) = letters.next() {
            match letter {
                '%' => self.hole(letters.next().unwrap_or('%')),
                ' ' => self.blank(),
                '\n' => self.newline(),
                other => self.text.push(other),
            }
            if self.random.below(400) == 0 {
                self.text.push_str("\\\n");
            }
        }
        self.depth -= 1;
    }

    fn hole(&mut self, code: char) {
        match code {
            'w' => self.word(),
            'W' => self.words(),
            'n' => self.program(),
            's' => self.simple(),
            'l' => self.list(),
            'c' => self.command(),
            ';' => self.end(),
            'v' => self.put("variables"),
            'f' => self.put("files"),
            'L' => self.put("literals"),
            'C' => self.put("escaped"),
            'S' => self.several("singles"),
            'A' => self.several("ansi"),
            'i' => self.put("injections"),
            'g' => self.double(),
            'a' => self.nested("arithmetic", "1"),
            't' => self.nested("tests", "x"),
            'p' => self.nested("patterns", "*"),
            'r' => self.nested("redirects", ">o1"),
            'H' => self.here_document(),
            'q' => self.quoted('\'', &['\'']),
            'd' => self.quoted('"', &['"', '$', '`', '\\']),
            'k' => self.backticked(),
            other => self.text.push(other),
        }
    }

    fn put(&mut self, name: &'static str) {
        let text = self.random.pick(table(name));
        self.text.push_str(text);
    }

    fn several(&mut self, name: &'static str) {
        for _ in 0..=self.random.below(3) {
            self.put(name);
        }
    }

    fn nested(&mut self, name: &'static str, otherwise: &str) {
        if self.full() {
            self.text.push_str(otherwise);
        } else {
            self.fill_from(name);
        }
    }

    fn double(&mut self) {
        for _ in 0..=self.random.below(3) {
            // Newlines between double quotes start no here-document.
            let held = std::mem::take(&mut self.pending);
            self.nested("doubles", "x");
            self.pending.splice(0..0, held);
        }
    }

    fn blank(&mut self) {
        let blank = match self.random.below(100) {
            0..=91 => " ",
            92..=93 => "\t",
            94..=95 => "  ",
            96..=97 => " \\\n",
            _ => "\\\n ",
        };
        self.text.push_str(blank);
    }

    fn newline(&mut self) {
        if self.random.chance(3) {
            self.text.push_str(" # x 'y \\");
        }
        self.text.push('\n');
        for here in std::mem::take(&mut self.pending) {
            for _ in 0..self.random.below(3) {
                if here.tabs {
                    self.text.push('\t');
                }
                if here.expands && !self.full() {
                    self.double();
                } else {
                    self.put("singles");
                }
                self.text.push('\n');
            }
            let lead = if here.tabs && self.random.chance(70) { "\t" } else { "" };
            self.text.push_str(lead);
            self.text.push_str(here.tag);
            self.text.push('\n');
        }
    }

    fn end(&mut self) {
        match self.random.below(20) {
            0..=8 => self.text.push(';'),
            9 => self.text.push('&'),
            10 => self.text.push_str(" & "),
            11 => self.text.push_str(" ; "),
            12 => {
                self.text.push_str(" # ; a");
                self.newline();
            }
            _ => self.newline(),
        }
    }

    fn list(&mut self) {
        if self.full() {
            self.program();
            return;
        }
        self.depth += 1;
        self.complete_command();
        while self.random.chance(25) && !self.full() {
            self.end();
            self.complete_command();
        }
        if !self.pending.is_empty() && self.random.chance(85) {
            self.newline();
        }
        self.depth -= 1;
    }

    /// Pipelines joined by `&&` and `||`.
    fn complete_command(&mut self) {
        self.command();
        while self.random.chance(15) && !self.full() {
            let joint =
                self.random.pick(&[" && ", " || ", "|", " | ", "&&", "||", " |& ", " &&\n", " |\n", "|&"]);
            for letter in joint.chars() {
                if letter == '\n' { self.newline() } else { self.text.push(letter) }
            }
            self.command();
        }
    }

    fn command(&mut self) {
        if self.full() {
            return self.program();
        }
        match self.random.below(100) {
            0..=47 => self.simple(),
            48..=64 => self.fill_from("builtins"),
            65..=81 => self.fill_from("flows"),
            _ => self.fill_from("compounds"),
        }
    }

    fn simple(&mut self) {
        for _ in 0..2 {
            if self.random.chance(8) {
                self.put("variables");
                self.text.push_str(self.random.clone().pick(&["=", "=", "=", "+=", "[0]="]));
                self.random.next();
                self.word();
                if self.random.chance(20) {
                    return;
                }
                self.blank();
            }
        }
        self.maybe_redirect();
        self.program();
        for _ in 0..self.random.below(4) {
            self.maybe_redirect();
            self.blank();
            self.word();
        }
        self.maybe_redirect();
    }

    fn maybe_redirect(&mut self) {
        if self.random.chance(8) && !self.full() {
            self.blank();
            self.fill_from("redirects");
            self.blank();
        }
    }

    /// A program's name, now and then written in a way that hides it.
    fn program(&mut self) {
        let name = self.random.pick(&PROGRAMS);
        let written = match self.random.below(40) {
            0 => format!("'{name}'"),
            1 => format!("\"{name}\""),
            2 => format!("\\{name}"),
            3 => format!("$'{name}'"),
            4 => format!("{name}''"),
            5 => format!("\"\"{name}"),
            6 => format!("$''{name}"),
            7 if name.len() > 1 => {
                let (first, rest) = name.split_at(1);
                format!("{first}\\\n{rest}")
            }
            8 if name.len() > 1 => {
                let (first, rest) = name.split_at(1);
                format!("{first}'{rest}'")
            }
            9 => "f".to_owned(),
            10 => "./p".to_owned(),
            _ => name.to_owned(),
        };
        self.text.push_str(&written);
    }

    fn words(&mut self) {
        self.word();
        for _ in 0..self.random.below(3) {
            self.blank();
            self.word();
        }
    }

    fn word(&mut self) {
        if self.full() {
            return self.put("literals");
        }
        self.piece();
        while self.random.chance(25) {
            self.piece();
        }
    }

    fn piece(&mut self) {
        let name = if self.random.chance(60) { "plain" } else { "pieces" };
        self.fill_from(name);
    }

    fn here_document(&mut self) {
        let (written, tag, expands) = match self.random.below(9) {
            0 => ("'E'", "E", false),
            1 => ("\"E\"", "E", false),
            2 => ("\\E", "E", false),
            3 => ("'E F'", "E F", false),
            4 => ("E''", "E", false),
            5 => ("F", "F", true),
            6 => ("''", "", false),
            _ => ("E", "E", true),
        };
        let tabs = self.random.chance(30);
        self.text.push_str(if tabs { "<<-" } else { "<<" });
        if self.random.chance(30) {
            self.text.push(' ');
        }
        self.text.push_str(written);
        self.pending.push(Pending { tag, expands, tabs });
    }

    /// The text of a list of its own, with nothing of it in the script yet.
    fn apart(&mut self) -> String {
        let held = std::mem::take(&mut self.text);
        let pending = std::mem::take(&mut self.pending);
        self.list();
        self.pending = pending;
        std::mem::replace(&mut self.text, held)
    }

    fn quoted(&mut self, quote: char, escaped: &[char]) {
        let inner = self.apart();
        self.text.push(quote);
        for letter in inner.chars() {
            if letter == '\'' && quote == '\'' {
                self.text.push_str("'\\''");
                continue;
            }
            // Left out now and then, so that the outer shell expands what the inner was to see.
            if escaped.contains(&letter) && !self.random.chance(15) {
                self.text.push('\\');
            }
            self.text.push(letter);
        }
        self.text.push(quote);
    }

    fn backticked(&mut self) {
        let inner = self.apart();
        for letter in inner.chars() {
            if letter == '`' || (matches!(letter, '\\' | '$') && self.random.chance(60)) {
                self.text.push('\\');
            }
            self.text.push(letter);
        }
    }
}
