//! jq: a tokenizer that goes into interpolated strings and knows names of fields and keys of
//! objects from names of functions.

use std::collections::HashSet;
use std::sync::LazyLock;

use super::{Cursor, FindingKind, ScriptEffects, Step, continues_name, starts_name};

/// Functions that compute from their input or print, with the words of the syntax. Those that
/// tell where jq keeps its files are left out.
const WORDS: &str = "
    __loc__ and as break catch def elif else end false foreach if label not null or reduce then true try
    IN INDEX JOIN abs acos acosh add all any arrays ascii ascii_downcase ascii_upcase asin asinh atan
    atan2 atanh booleans bsearch builtins capture cbrt ceil combinations contains copysign cos cosh date
    dateadd datesub debug del delpaths drem empty endswith erf erfc error exp exp10 exp2 explode expm1
    fabs fdim finites first flatten floor fma fmax fmin fmod format frexp from_entries fromdate
    fromdateiso8601 fromjson fromstream gamma getpath gmtime group_by gsub halt halt_error has
    have_decnum have_literal_numbers hypot implode in index indices infinite input input_filename
    input_line_number inputs inside isempty isfinite isinfinite isnan isnormal isvalid iterables j0 j1
    jn join keys keys_unsorted last ldexp leaf_paths length lgamma lgamma_r limit localtime log log10
    log1p log2 logb ltrim ltrimstr map map_values match max max_by min min_by mktime modf nan nearbyint
    nextafter nexttoward normals now nth nulls numbers objects path paths pick pow pow10 range recurse
    recurse_down remainder repeat reverse rindex rint round rtrim rtrimstr scalars scalars_or_empty
    scalb scalbln scan select setpath significand sin sinh skip sort sort_by split splits sqrt
    startswith stderr strflocaltime strftime strings strptime sub tan tanh test tgamma to_entries
    toarray toboolean todate todateiso8601 tojson tonumber tostream tostring transpose trim trimstr
    trunc truncate_stream type unique unique_by until utf8bytelength values walk while with_entries y0
    y1 yn";

/// What yq knows besides, without what loads files, evaluates text or looks at the environment.
const YQ_WORDS: &str = "
    alias all_c anchor any_c array_to_map collect column comments di documentIndex document_index
    downcase explode fi fileIndex file_index filename footComment foot_comment format_datetime from_csv
    from_json from_props from_tsv from_unix from_xml from_yaml headComment head_comment ireduce is_key
    key kind line lineComment line_comment omit parent pivot shuffle sortKeys sort_keys splitDoc
    split_doc style tag to_csv to_json to_number to_props to_string to_tsv to_unix to_xml to_yaml tz
    upcase with with_dtf";

static KNOWN: LazyLock<HashSet<&str>> =
    LazyLock::new(|| WORDS.split_ascii_whitespace().chain(YQ_WORDS.split_ascii_whitespace()).collect());

pub(super) fn check(filter: &str) -> ScriptEffects {
    let mut parser = Parser {
        cursor: Cursor::new(filter),
        effects: ScriptEffects::default(),
        open: Vec::new(),
        last: Last::Other,
        in_definition: false,
        defined: HashSet::new(),
    };
    if let Err(why) = parser.run() {
        parser.effects.give_up(filter, parser.cursor.at, why);
    }
    parser.effects
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Open {
    Parenthesis,
    Square,
    Brace,
    /// From `if` to `end`: a comma in between separates no keys of an object around it.
    If,
    /// From `\(` inside a string; the string goes on after it.
    Interpolation,
}

/// The last token, as far as it decides what a word after it is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Last {
    /// `{` or `,`: directly inside an object a key follows.
    Separator,
    Dollar,
    Other,
}

struct Parser<'a> {
    cursor: Cursor<'a>,
    effects: ScriptEffects,
    open: Vec<Open>,
    last: Last,
    /// Between `def` and its colon, where words are names and parameters being defined.
    in_definition: bool,
    defined: HashSet<&'a str>,
}

impl Parser<'_> {
    fn run(&mut self) -> Step {
        while let Some(byte) = self.cursor.peek() {
            match byte {
                b' ' | b'\t' | b'\n' | b'\r' => {
                    self.cursor.at += 1;
                    continue;
                }
                b'#' => {
                    self.comment()?;
                    continue;
                }
                b'$' => {
                    self.cursor.at += 1;
                    self.last = Last::Dollar;
                    continue;
                }
                b'"' => {
                    self.cursor.at += 1;
                    self.string()?;
                }
                b'0'..=b'9' => self.number(),
                b'.' => self.dot()?,
                b'@' => self.format()?,
                _ if starts_name(byte) => self.word()?,
                _ => {
                    self.symbol(byte)?;
                    continue;
                }
            }
            self.last = Last::Other;
        }
        if self.open.is_empty() { Ok(()) } else { Err("a bracket is not closed") }
    }

    /// Versions disagree whether a backslash continues a comment in the next line, and where a
    /// carriage return ends one.
    fn comment(&mut self) -> Step {
        let start = self.cursor.at;
        self.cursor.skip_while(|byte| byte != b'\n');
        let body = self.cursor.since(start);
        let body = body.strip_suffix('\r').unwrap_or(body);
        if body.contains('\r') || body.ends_with('\\') {
            self.cursor.at = start;
            return Err("a comment that versions of jq read differently");
        }
        Ok(())
    }

    /// The rest of a string, up to its end or to an interpolation.
    fn string(&mut self) -> Step {
        loop {
            match self.cursor.bump() {
                None => return Err("a string is not closed"),
                Some(b'"') => return Ok(()),
                Some(b'\\') => {
                    if self.cursor.bump() == Some(b'(') {
                        self.open.push(Open::Interpolation);
                        return Ok(());
                    }
                }
                Some(_) => {}
            }
        }
    }

    fn number(&mut self) {
        self.cursor.skip_while(|byte| byte.is_ascii_digit());
        self.cursor.eat(".");
        self.fraction();
    }

    fn fraction(&mut self) {
        self.cursor.skip_while(|byte| byte.is_ascii_digit());
        let sign = usize::from(matches!(self.cursor.peek_at(1), Some(b'+' | b'-')));
        let exponent = matches!(self.cursor.peek(), Some(b'e' | b'E'));
        if exponent && self.cursor.peek_at(1 + sign).is_some_and(|byte| byte.is_ascii_digit()) {
            self.cursor.at += 1 + sign;
            self.cursor.skip_while(|byte| byte.is_ascii_digit());
        }
    }

    /// A dot alone, two of them, the name of a field, or a number without a first digit.
    fn dot(&mut self) -> Step {
        self.cursor.at += 1;
        match self.cursor.peek() {
            Some(b'.') => self.cursor.at += 1,
            Some(byte) if starts_name(byte) => {
                self.cursor.skip_while(continues_name);
                if self.calls() {
                    return Err("a call behind a dot");
                }
            }
            Some(byte) if byte.is_ascii_digit() => self.fraction(),
            _ => {}
        }
        Ok(())
    }

    /// Whether arguments follow.
    fn calls(&self) -> bool {
        let mut at = 0;
        while self.cursor.peek_at(at).is_some_and(|byte| byte.is_ascii_whitespace()) {
            at += 1;
        }
        self.cursor.peek_at(at) == Some(b'(')
    }

    fn format(&mut self) -> Step {
        self.cursor.at += 1;
        let start = self.cursor.at;
        self.cursor.skip_while(continues_name);
        if self.cursor.at == start { Err("a stray at sign") } else { Ok(()) }
    }

    fn word(&mut self) -> Step {
        let start = self.cursor.at;
        self.cursor.skip_while(continues_name);
        let word = self.cursor.since(start);
        let at = start..self.cursor.at;
        if self.cursor.eat("::") {
            self.effects.add(FindingKind::Module, at, "uses a module");
            return Ok(());
        }
        if self.last == Last::Dollar {
            match word {
                "ENV" => self.effects.add(FindingKind::Environment, at, "reads the environment"),
                "__prog_args" => self.effects.add(FindingKind::Unknown, at, "an internal variable"),
                _ => {}
            }
            return Ok(());
        }
        let key = self.last == Last::Separator && self.open.last() == Some(&Open::Brace);
        // For yq a key is an expression, and may be a call.
        if key && !self.calls() && word != "envsubst" {
            return Ok(());
        }
        match word {
            "env" => self.effects.add(FindingKind::Environment, at, "reads the environment"),
            "import" | "include" | "modulemeta" | "get_search_list" => {
                self.effects.add(FindingKind::Module, at, "loads or describes modules");
            }
            "if" => self.open.push(Open::If),
            "end" => self.close(Open::If)?,
            "def" => self.in_definition = true,
            _ if self.in_definition => {
                self.defined.insert(word);
            }
            _ if KNOWN.contains(word) || self.defined.contains(word) => {}
            _ => self.effects.add(FindingKind::Unknown, at, "calls an unknown function"),
        }
        Ok(())
    }

    fn close(&mut self, expected: Open) -> Step {
        match self.open.pop() {
            Some(open) if open == expected => Ok(()),
            _ => Err("a bracket is closed that was not opened"),
        }
    }

    fn symbol(&mut self, byte: u8) -> Step {
        self.cursor.at += 1;
        self.last = if matches!(byte, b'{' | b',') { Last::Separator } else { Last::Other };
        match byte {
            b'(' => self.open.push(Open::Parenthesis),
            b'[' => self.open.push(Open::Square),
            b'{' => self.open.push(Open::Brace),
            b')' if self.open.last() == Some(&Open::Interpolation) => {
                self.open.pop();
                self.string()?;
            }
            b')' => self.close(Open::Parenthesis)?,
            b']' => self.close(Open::Square)?,
            b'}' => self.close(Open::Brace)?,
            b':' => self.in_definition = false,
            b'!' if self.cursor.eat("=") => {}
            b'?' | b'=' | b';' | b',' | b'|' | b'+' | b'-' | b'*' | b'/' | b'%' | b'<' | b'>' => {}
            _ => {
                self.cursor.at -= 1;
                return Err("an unexpected character");
            }
        }
        Ok(())
    }
}
