//! The lines of a stream of events that carry data. Servers add others, of which some are not even well formed; whoever
//! reads events is to pass over them.

/// What the lines that count begin with.
const FIELD: &[u8] = b"data:";
/// May stand before the first line.
const MARK: &[u8] = b"\xEF\xBB\xBF";

/// Lets data and blank lines through, whatever pieces they come in.
#[derive(Default)]
pub(super) struct Fields {
    at: At,
    /// The beginning of a line of which it is not known yet whether it counts.
    start: Vec<u8>,
    /// The first line has begun.
    begun: bool,
}

#[derive(Default)]
enum At {
    #[default]
    Start,
    /// Within a line that counts.
    Data,
    /// Within one that does not.
    Other,
    /// Behind the first half of the end of such a line, perhaps.
    OtherEnd,
}

impl Fields {
    /// What counts of a piece.
    pub(super) fn of(&mut self, piece: &[u8]) -> Vec<u8> {
        let mut kept = Vec::with_capacity(piece.len() + FIELD.len());
        for byte in piece {
            let ends = matches!(byte, b'\n' | b'\r');
            match self.at {
                At::Data => {
                    kept.push(*byte);
                    self.at = if ends { At::Start } else { At::Data };
                }
                At::Other if !ends => {}
                At::Other => self.leave(*byte),
                At::OtherEnd if *byte == b'\n' => self.at = At::Start,
                At::Start | At::OtherEnd if ends => self.end(*byte, &mut kept),
                At::Start | At::OtherEnd => self.begin(*byte, &mut kept),
            }
        }
        kept
    }

    fn begin(&mut self, byte: u8, kept: &mut Vec<u8>) {
        self.at = At::Start;
        self.start.push(byte);
        if !std::mem::replace(&mut self.begun, self.start.len() >= MARK.len()) && self.start == MARK {
            self.start.clear();
        }
        if self.start.len() == FIELD.len() {
            self.at = if self.start == FIELD { At::Data } else { At::Other };
            kept.extend_from_slice(if self.start == FIELD { FIELD } else { b"" });
            self.start.clear();
        }
    }

    /// A line ends that is blank, or too short to say anything.
    fn end(&mut self, byte: u8, kept: &mut Vec<u8>) {
        self.begun = true;
        if std::mem::take(&mut self.start).is_empty() {
            kept.push(byte);
            self.at = At::Start;
        } else {
            self.leave(byte);
        }
    }

    fn leave(&mut self, byte: u8) {
        self.at = if byte == b'\r' { At::OtherEnd } else { At::Start };
    }
}
