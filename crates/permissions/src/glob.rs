//! Wildcards: whether a text fits a pattern, and whether two patterns have a text in common.

/// One place of a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Token {
    /// Any text.
    Star,
    /// Any one letter.
    One,
    /// This letter.
    Letter(char),
}

/// Longer patterns are not compared with each other; they count as meeting.
const LONGEST: usize = 512;

/// The tokens of a pattern in which `*` is a wildcard and `\` takes its meaning away.
fn tokens(pattern: &str) -> Vec<Token> {
    let mut letters = pattern.chars();
    let mut tokens = Vec::new();
    while let Some(letter) = letters.next() {
        tokens.push(match letter {
            '*' => Token::Star,
            '\\' => Token::Letter(letters.next().unwrap_or('\\')),
            _ => Token::Letter(letter),
        });
    }
    tokens
}

/// A text as a pattern that only it fits.
pub(crate) fn escape(text: &str) -> String {
    text.replace('\\', "\\\\").replace('*', "\\*")
}

/// Whether the whole text fits the pattern.
pub(crate) fn matches(pattern: &str, text: &str) -> bool {
    if !pattern.contains(['*', '\\']) {
        return pattern == text;
    }
    // Most patterns fail in their first letters.
    let plain = pattern.find(['*', '\\']).unwrap_or(0);
    if !pattern.get(..plain).is_some_and(|start| text.starts_with(start)) {
        return false;
    }
    let pattern = tokens(pattern);
    let text: Vec<char> = text.chars().collect();
    let (mut at, mut letter) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while letter < text.len() {
        match pattern.get(at) {
            Some(Token::Star) => {
                star = Some((at, letter));
                at += 1;
            }
            Some(Token::Letter(wanted)) if Some(wanted) == text.get(letter) => {
                (at, letter) = (at + 1, letter + 1);
            }
            _ => match star {
                Some((from, taken)) => {
                    star = Some((from, taken + 1));
                    (at, letter) = (from + 1, taken + 1);
                }
                None => return false,
            },
        }
    }
    pattern.iter().skip(at).all(|token| *token == Token::Star)
}

/// Whether some text fits both patterns.
pub(crate) fn meets(left: &str, right: &str) -> bool {
    tokens_meet(&tokens(left), &tokens(right))
}

/// Whether some text fits both.
pub(crate) fn tokens_meet(left: &[Token], right: &[Token]) -> bool {
    if left.len() > LONGEST || right.len() > LONGEST {
        return true;
    }
    // `below[j]` tells of the rest of `left` after the current token and of `right` from `j`.
    let ends = |tokens: &[Token]| tokens.iter().all(|token| *token == Token::Star);
    let mut below: Vec<bool> = (0..=right.len()).map(|j| right.get(j..).is_some_and(ends)).collect();
    for (i, mine) in left.iter().enumerate().rev() {
        let mut here = vec![false; right.len() + 1];
        here[right.len()] = left.get(i..).is_some_and(ends);
        for (j, theirs) in right.iter().enumerate().rev() {
            here[j] = match (mine, theirs) {
                (Token::Star, _) | (_, Token::Star) => below[j] || here[j + 1],
                (Token::Letter(a), Token::Letter(b)) => a == b && below[j + 1],
                _ => below[j + 1],
            };
        }
        below = here;
    }
    below[0]
}

#[cfg(test)]
mod tests {
    use super::{matches, meets};

    #[test]
    fn texts_and_patterns() {
        let table = [
            ("git *", "git push", true),
            ("git *", "git", false),
            ("*", "", true),
            ("a*b*c", "a--b--c", true),
            ("a*b*c", "a--c--b", false),
            ("a\\*", "a*", true),
            ("a\\*", "ab", false),
            ("**x", "x", true),
        ];
        for (pattern, text, expected) in table {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
            assert_eq!(meets(pattern, &super::escape(text)), expected, "{pattern} {text}");
        }
        assert!(meets("a*c", "ab*"));
        assert!(!meets("a*c", "b*"));
        assert!(meets("*.env", "pro*"));
        assert!(!matches(&"*a".repeat(2000), &"a".repeat(1999)), "and in good time");
    }
}
