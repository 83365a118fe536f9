//! Where the parts of a JSON text stand, so that one can be replaced while the rest stays byte for byte.
//!
//! The parser gives every value as the piece of text it was read from; pieces are told apart by where they
//! begin. It skips over values without recursion, so no depth of nesting does harm.

use std::{fmt, ops::Range};

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// What JSON takes for white space.
pub(super) const BLANK: [char; 4] = [' ', '\t', '\r', '\n'];

/// Where `part`, a piece of `whole`, stands in it.
pub(super) fn span(whole: &str, part: &str) -> Range<usize> {
    let start = part.as_ptr().addr() - whole.as_ptr().addr();
    start..start + part.len()
}

/// The text with one range replaced.
pub(super) fn spliced(text: &str, range: Range<usize>, replacement: &str) -> String {
    [&text[..range.start], replacement, &text[range.end..]].concat()
}

/// The text a JSON string stands for; other values and halves of characters are taken as they are written.
pub(super) fn decoded(raw: &str) -> String {
    serde_json::from_str(raw).unwrap_or_else(|_| raw.to_owned())
}

/// An object, its members in their order.
pub(super) struct Object<'a> {
    text: &'a str,
    members: Vec<(String, &'a str)>,
}

struct Members<'a>(Vec<(String, &'a str)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;

        impl<'de> Visitor<'de> for InOrder {
            type Value = Members<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some((key, value)) = map.next_entry::<String, &'de RawValue>()? {
                    members.push((key, value.get()));
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(InOrder)
    }
}

impl<'a> Object<'a> {
    /// Reads the object that is the whole of `text`.
    pub(super) fn parse(text: &'a str) -> serde_json::Result<Self> {
        let Members(members) = serde_json::from_str(text)?;
        Ok(Self { text: text.trim_matches(BLANK), members })
    }

    /// The object as it is written.
    pub(super) fn text(&self) -> &'a str {
        self.text
    }

    /// The value of a member as it is written.
    pub(super) fn get(&self, key: &str) -> Option<&'a str> {
        self.members.iter().find(|(name, _)| name == key).map(|(_, value)| *value)
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = &str> {
        self.members.iter().map(|(key, _)| key.as_str())
    }

    /// A key that is there twice, of which no reader can tell which one counts.
    pub(super) fn repeated(&self) -> Option<&str> {
        let mut keys: Vec<&str> = self.keys().collect();
        keys.sort_unstable();
        keys.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0])
    }

    /// The members with their keys, as a list.
    pub(super) fn list(&self) -> List<'a> {
        let mut end = 1;
        let items = self.members.iter().map(|(_, value)| {
            // Between a value and the next key there is nothing but white space and a comma.
            let key = self.text[end..].find('"').map_or(end, |quote| end + quote);
            end = span(self.text, value).end;
            key..end
        });
        List { items: items.collect(), text: self.text }
    }

    /// The text between a key and its value, such as `: `.
    fn colon(&self) -> Option<&'a str> {
        let value = span(self.text, self.members.first()?.1).start;
        let key = self.text[..value].rfind('"')? + 1;
        Some(&self.text[key..value])
    }

    /// The text of the object with a member set; a new one comes after those that `order` names before it.
    pub(super) fn with(&self, key: &str, value: &str, order: &[&str]) -> String {
        if let Some(old) = self.get(key) {
            return spliced(self.text, span(self.text, old), value);
        }
        let before = order.split(|name| *name == key).next().unwrap_or_default();
        let place = self.keys().zip(1..).filter(|(name, _)| before.contains(name)).map(|(_, place)| place);
        let list = self.list();
        let (at, text) = list.insertion(
            place.max().unwrap_or(0),
            &format!("\"{key}\"{}{value}", self.colon().unwrap_or(": ")),
            &list.layout(", "),
        );
        spliced(self.text, at, &text)
    }

    /// The text of the object without a member.
    pub(super) fn without(&self, key: &str) -> String {
        match self.keys().position(|name| name == key) {
            Some(at) => spliced(self.text, self.list().removal(at), ""),
            None => self.text.to_owned(),
        }
    }
}

/// An array or an object as a sequence of items between brackets.
pub(super) struct List<'a> {
    text: &'a str,
    items: Vec<Range<usize>>,
}

/// The text around the items of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Layout {
    /// After the opening bracket.
    pub(super) open: String,
    /// Between two items, the comma included.
    pub(super) between: String,
    /// Before the closing bracket.
    pub(super) close: String,
}

impl Layout {
    /// How a list inside this one would be laid out: one step deeper, or on one line as well.
    pub(super) fn nested(&self) -> Self {
        let Some(step) = self.open.strip_prefix(&self.close).filter(|_| self.open.contains('\n')) else {
            return self.clone();
        };
        let open = format!("{}{step}", self.open);
        Self { between: format!(",{open}"), open, close: self.open.clone() }
    }

    /// The items between brackets.
    pub(super) fn render(&self, brackets: [char; 2], items: &[String]) -> String {
        if items.is_empty() {
            return brackets.iter().collect();
        }
        format!("{}{}{}{}{}", brackets[0], self.open, items.join(&self.between), self.close, brackets[1])
    }
}

impl<'a> List<'a> {
    /// Reads the array that is the whole of `text`.
    pub(super) fn parse(text: &'a str) -> serde_json::Result<Self> {
        let values: Vec<&RawValue> = serde_json::from_str(text)?;
        Ok(Self { items: values.iter().map(|value| span(text, value.get())).collect(), text })
    }

    /// The list as it is written.
    pub(super) fn text(&self) -> &'a str {
        self.text
    }

    /// The items as they are written.
    pub(super) fn items(&self) -> impl ExactSizeIterator<Item = &'a str> {
        self.items.iter().map(|range| &self.text[range.clone()])
    }

    /// The text around the items. What a list of one item leaves open is `separator`; an empty list tells
    /// nothing.
    pub(super) fn layout(&self, separator: &str) -> Layout {
        let [first, .., last] = self.items.as_slice() else {
            let (open, close) = match self.items.first() {
                Some(only) => (&self.text[1..only.start], &self.text[only.end..self.text.len() - 1]),
                None => ("", ""),
            };
            let between = if open.contains('\n') { format!(",{open}") } else { separator.to_owned() };
            return Layout { open: open.to_owned(), between, close: close.to_owned() };
        };
        Layout {
            open: self.text[1..first.start].to_owned(),
            between: self.text[first.end..self.items[1].start].to_owned(),
            close: self.text[last.end..self.text.len() - 1].to_owned(),
        }
    }

    /// What to replace by what, so that `item` becomes number `at`.
    pub(super) fn insertion(&self, at: usize, item: &str, layout: &Layout) -> (Range<usize>, String) {
        match (at.checked_sub(1).and_then(|before| self.items.get(before)), self.items.first()) {
            (Some(before), _) => (before.end..before.end, format!("{}{item}", layout.between)),
            (None, Some(first)) => (first.start..first.start, format!("{item}{}", layout.between)),
            (None, None) => (1..self.text.len() - 1, format!("{}{item}{}", layout.open, layout.close)),
        }
    }

    /// What to take out so that item number `at` is gone, its comma with it.
    pub(super) fn removal(&self, at: usize) -> Range<usize> {
        match (at.checked_sub(1), self.items.get(at + 1)) {
            (Some(before), _) => self.items[before].end..self.items[at].end,
            (None, Some(next)) => self.items[at].start..next.start,
            (None, None) => 1..self.text.len() - 1,
        }
    }
}
