//! The syntax tree: what was written, with its quoting and its place, and nothing decided yet.

use crate::span::Span;

/// Commands in order, as they stand between two keywords or brackets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct List {
    /// The chains, each ended by `;`, `&` or a newline.
    pub items: Vec<Item>,
}

impl List {
    /// The commands of all its pipelines, in order; those inside of compound commands not.
    pub fn commands(&self) -> impl Iterator<Item = &Command> {
        let pipelines = self.items.iter().flat_map(|item| {
            std::iter::once(&item.chain.first).chain(item.chain.rest.iter().map(|(_, pipeline)| pipeline))
        });
        pipelines.flat_map(|pipeline| &pipeline.stages).map(|stage| &stage.command)
    }
}

/// One chain of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// What runs.
    pub chain: Chain,
    /// Ended by `&`.
    pub background: bool,
}

/// Pipelines joined by `&&` and `||`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chain {
    /// The first pipeline.
    pub first: Pipeline,
    /// The others, each with what stands before it.
    pub rest: Vec<(Connector, Pipeline)>,
}

/// What joins two pipelines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Connector {
    /// `&&`
    And,
    /// `||`
    Or,
}

/// Commands joined by `|` or `|&`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pipeline {
    /// An odd number of `!` stands before it.
    pub negated: bool,
    /// `time` or `time -p` stands before it.
    pub timed: bool,
    /// The commands; empty only for a bare `!` or `time`.
    pub stages: Vec<Stage>,
    /// Where it stands.
    pub span: Span,
}

/// One command of a pipeline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stage {
    /// The command.
    pub command: Command,
    /// Followed by `|&`: its errors go down the pipe too.
    pub errors_too: bool,
}

/// A command with its redirections.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// What kind of command.
    pub kind: CommandKind,
    /// Redirections in the order written.
    pub redirects: Vec<Redirect>,
    /// Where it stands, redirections included, here-document bodies not.
    pub span: Span,
}

/// The kinds of commands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandKind {
    /// Assignments and words.
    Simple(Simple),
    /// `{ …; }`
    Group(List),
    /// `( … )`
    Subshell(List),
    /// `if … then … elif … else … fi`
    If {
        /// Conditions with their bodies.
        branches: Vec<(List, List)>,
        /// The `else` part.
        otherwise: Option<List>,
    },
    /// `while … do … done`, `until … do … done`
    While {
        /// `until`: runs as long as the condition fails.
        until: bool,
        /// Run before each turn.
        condition: List,
        /// The body.
        body: List,
    },
    /// `for name in words; do … done`
    For {
        /// The loop variable.
        name: String,
        /// What it runs over; none means the positional parameters.
        words: Option<Vec<Word>>,
        /// The body.
        body: List,
    },
    /// `for ((…; …; …)); do … done`
    ForArithmetic {
        /// The three expressions, any of them may be empty.
        header: [Arithmetic; 3],
        /// The body.
        body: List,
    },
    /// `select name in words; do … done`
    Select {
        /// The loop variable.
        name: String,
        /// What is offered; none means the positional parameters.
        words: Option<Vec<Word>>,
        /// The body.
        body: List,
    },
    /// `case word in … esac`
    Case {
        /// What is compared.
        subject: Word,
        /// The arms.
        arms: Vec<Arm>,
    },
    /// `name() command`, `function name command`
    Function {
        /// The function's name.
        name: String,
        /// Its body, a compound command.
        body: Box<Command>,
    },
    /// `[[ … ]]`
    Test(Test),
    /// `(( … ))`
    Arithmetic(Arithmetic),
    /// `coproc command`
    Coprocess {
        /// The name given, if any.
        name: Option<String>,
        /// The command.
        body: Box<Command>,
    },
}

/// Assignments and words.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Simple {
    /// Assignments before the first word.
    pub assignments: Vec<Assignment>,
    /// The command's name and its arguments.
    pub words: Vec<Word>,
}

/// `name=value`, `name+=value`, `name[subscript]=value`, `name=(…)`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assignment {
    /// The variable.
    pub name: String,
    /// Between the brackets, expansions parsed.
    pub subscript: Option<Arithmetic>,
    /// `+=`
    pub append: bool,
    /// What is assigned.
    pub value: AssignedValue,
    /// Where it stands.
    pub span: Span,
}

/// The right side of an assignment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AssignedValue {
    /// One word, possibly empty.
    Scalar(Word),
    /// `( … )`: each element as written; `[subscript]=` stays part of the word.
    Array(Vec<Word>),
}

/// One arm of a `case`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arm {
    /// The patterns between `|`.
    pub patterns: Vec<Word>,
    /// What runs.
    pub body: List,
    /// How it ends.
    pub end: ArmEnd,
}

/// The end of a `case` arm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArmEnd {
    /// `;;`, or nothing before `esac`.
    Break,
    /// `;&`
    FallThrough,
    /// `;;&`
    TestNext,
}

/// An expression of `[[ … ]]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Test {
    /// A word alone: true when not empty.
    Word(Word),
    /// `-f word`
    Unary {
        /// The operator, with its dash.
        operator: String,
        /// The operand.
        operand: Word,
    },
    /// `a == b`
    Binary {
        /// Left operand.
        left: Word,
        /// `=`, `==`, `!=`, `=~`, `<`, `>`, `-eq`, `-nt`, …
        operator: String,
        /// Right operand; a pattern or regular expression for some operators.
        right: Word,
    },
    /// `! …`
    Not(Box<Test>),
    /// `… && …`
    And(Box<Test>, Box<Test>),
    /// `… || …`
    Or(Box<Test>, Box<Test>),
    /// `( … )`
    Group(Box<Test>),
}

/// An arithmetic expression: its text with expansions parsed, quotes taken as in double quotes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Arithmetic {
    /// The text and the expansions in it.
    pub pieces: Vec<Piece>,
    /// Where it stands, brackets not included.
    pub span: Span,
    /// It was written in the old form, `$[…]`.
    pub brackets: bool,
}

impl Arithmetic {
    /// The pieces of an expression, and where they stand.
    pub fn of(pieces: Vec<Piece>, span: Span) -> Self {
        Self { pieces, span, brackets: false }
    }
}

/// A word as written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Word {
    /// Its pieces; an empty word such as `x=` has none.
    pub pieces: Vec<Piece>,
    /// Where it stands.
    pub span: Span,
}

/// A piece of a word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// What it is.
    pub kind: PieceKind,
    /// Where it stands, quotes included.
    pub span: Span,
}

/// The kinds of pieces. Line continuations are gone; nothing else is taken out or decoded
/// but what the variant says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PieceKind {
    /// Unquoted text. Tildes, braces and glob characters in it still mean something.
    /// Inside double quotes, arithmetic and here-documents: plain text.
    Literal(String),
    /// `\x` outside quotes, or one of the escapes double quotes know: the character it stands for.
    Escaped(char),
    /// `'…'`
    Single(String),
    /// `"…"`
    Double(Vec<Piece>),
    /// `$'…'`, decoded. `raw` bytes that are not UTF-8 make the parser give up instead.
    AnsiC(String),
    /// `$"…"`
    Locale(Vec<Piece>),
    /// `$x`, `${x…}`
    Parameter(Box<Parameter>),
    /// `$( … )`, `` `…` ``
    Command(Box<Substitution>),
    /// `$(( … ))`, `$[ … ]`
    Arithmetic(Arithmetic),
    /// `<( … )`, `>( … )`
    Process {
        /// `>( … )`: the command reads what is written.
        output: bool,
        /// The commands.
        list: List,
    },
    /// `( … )` after `name=` in an argument of `declare`, `local`, `export`, …
    Array(Vec<Word>),
}

/// A command substitution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Substitution {
    /// Written with backticks.
    pub backticks: bool,
    /// The commands. For backticks the spans point at the text between them as far as it is the same text;
    /// where escapes were taken out they all cover the whole substitution.
    pub list: List,
}

/// A parameter expansion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter {
    /// The parameter: a name, digits, or one of `@ * # ? - $ ! _ 0`.
    pub name: String,
    /// `${#x}`
    pub length: bool,
    /// `${!x}`
    pub indirect: bool,
    /// `${x[…]}`
    pub subscript: Option<Arithmetic>,
    /// What is done with it.
    pub operation: Option<Operation>,
}

/// What an expansion does with the value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operation {
    /// `${x:-word}`, `${x-word}`
    Default(Word),
    /// `${x:=word}`, `${x=word}`
    Assign(Word),
    /// `${x:?word}`, `${x?word}`
    Error(Word),
    /// `${x:+word}`, `${x+word}`
    Alternative(Word),
    /// `${x#p}`, `${x##p}`, `${x%p}`, `${x%%p}`
    Trim {
        /// The operator as written.
        operator: String,
        /// The pattern.
        pattern: Word,
    },
    /// `${x/p/r}` and its forms.
    Replace {
        /// `/`, `//`, `/#` or `/%`.
        operator: String,
        /// The pattern.
        pattern: Word,
        /// What it becomes, if given.
        replacement: Option<Word>,
    },
    /// `${x^p}`, `${x^^p}`, `${x,p}`, `${x,,p}`, `${x~p}`
    Case {
        /// The operator as written.
        operator: String,
        /// The pattern, possibly empty.
        pattern: Word,
    },
    /// `${x:offset}`, `${x:offset:length}`
    Substring {
        /// From where.
        offset: Arithmetic,
        /// How much.
        length: Option<Arithmetic>,
    },
    /// `${x@Q}` and its forms.
    Transform(char),
    /// `${!prefix*}`, `${!prefix@}`
    Names,
}

/// A redirection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redirect {
    /// The descriptor written before it.
    pub descriptor: Option<Descriptor>,
    /// The operator.
    pub operator: RedirectOperator,
    /// What follows.
    pub target: RedirectTarget,
    /// Where it stands, a here-document's body not included.
    pub span: Span,
}

/// What stands before a redirection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Descriptor {
    /// `2>`
    Number(u32),
    /// `{name}>`
    Variable(String),
}

/// The redirection operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RedirectOperator {
    /// `<`
    Read,
    /// `>`
    Write,
    /// `>>`
    Append,
    /// `>|`
    Clobber,
    /// `<>`
    ReadWrite,
    /// `<&`
    DuplicateIn,
    /// `>&`
    DuplicateOut,
    /// `&>`
    Both,
    /// `&>>`
    BothAppend,
    /// `<<`, `<<-`
    HereDocument,
    /// `<<<`
    HereString,
}

/// What a redirection leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RedirectTarget {
    /// A word.
    Word(Word),
    /// A here-document.
    HereDocument(HereDocument),
}

/// A here-document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HereDocument {
    /// The tag after quote removal.
    pub tag: String,
    /// The tag was quoted: the body is plain data.
    pub quoted: bool,
    /// `<<-`: leading tabs were taken out.
    pub strip_tabs: bool,
    /// The body; one `Literal` piece when quoted.
    pub body: Word,
}
