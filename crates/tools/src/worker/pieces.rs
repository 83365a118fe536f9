//! Text and pictures in their order, within bounds.

use gripper_runtime::Block;
use serde::{Deserialize, Serialize};

/// Characters of one answer.
const MOST_CHARS: usize = 100_000;
/// Characters of base64 of all pictures of one answer.
const MOST_PICTURES: usize = 12_000_000;

/// One part of an answer.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Piece {
    Text(String),
    Image(Picture),
}

/// A picture within the limits of models.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Picture {
    pub(crate) media_type: String,
    /// The file in base64.
    pub(crate) data: String,
    pub(crate) width: u32,
    pub(crate) height: u32,
}

impl From<Piece> for Block {
    fn from(piece: Piece) -> Self {
        match piece {
            Piece::Text(text) => Block::text(text),
            Piece::Image(Picture { media_type, data, width, height }) => {
                Block::image(media_type, data, Some((width, height)))
            }
        }
    }
}

/// An answer that grows up to its bounds.
#[derive(Default)]
pub(super) struct Pieces {
    pieces: Vec<Piece>,
    chars: usize,
    pictures: usize,
}

impl Pieces {
    /// Whether so many more characters fit.
    pub(super) fn has_room(&self, chars: usize) -> bool {
        self.chars + chars <= MOST_CHARS
    }

    /// Adds text on a line of its own. What does not fit is left out, with a mark.
    pub(super) fn text(&mut self, text: &str) {
        // Some consumers would end the text at a NUL.
        let text = shortened(text, MOST_CHARS.saturating_sub(self.chars)).replace('\0', "\u{2400}");
        self.chars += text.chars().count() + 1;
        match self.pieces.last_mut() {
            Some(Piece::Text(before)) => {
                before.push('\n');
                before.push_str(&text);
            }
            _ => self.pieces.push(Piece::Text(text)),
        }
    }

    /// Adds a picture if there is room for it.
    pub(super) fn picture(&mut self, picture: Picture) -> bool {
        let fits = self.pictures + picture.data.len() <= MOST_PICTURES;
        if fits {
            self.pictures += picture.data.len();
            self.pieces.push(Piece::Image(picture));
        }
        fits
    }

    pub(super) fn done(self) -> Vec<Piece> {
        self.pieces
    }
}

/// Beginning and end of a text that has more than `most` characters.
pub(super) fn shortened(text: &str, most: usize) -> String {
    let count = text.chars().count();
    if count <= most {
        return text.to_owned();
    }
    let (head, tail) = (most - most / 4, most / 4);
    let at = |number: usize| text.char_indices().nth(number).map_or(text.len(), |(at, _)| at);
    let left_out = count - head - tail;
    format!("{}\n… {left_out} characters left out …\n{}", &text[..at(head)], &text[at(count - tail)..])
}
