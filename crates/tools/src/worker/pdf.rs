//! PDF: the text of each page, and the page as a picture where it is one.

use hayro::{
    PixmapSettings, RenderCache, RenderSettings,
    hayro_interpret::{
        BlendMode, ClipPath, Context, Device, DrawMode, DrawProps, Image, ImageDrawProps, InterpreterCache,
        InterpreterSettings, SoftMask, TransformExt,
        font::{Glyph, GlyphRun},
        hayro_cmap::BfString,
        interpret_page,
    },
    hayro_syntax::{DecryptionError, LoadPdfError, Pdf, page::Page},
    kurbo::{Affine, BezPath, Point, Rect},
    vello_cpu::{color::palette::css::WHITE, peniko::ImageAlphaType},
};
use image::{DynamicImage, ImageFormat, RgbaImage};
use memchr::memmem;

use super::{
    Found, PageRange, Parsed, Refusal, Why,
    image::{LONGEST_SIDE, encoded},
    pieces::{Picture, Pieces},
};

/// Pages that are read without being asked for.
const MOST_UNASKED: usize = 10;
/// Pages of one call.
const MOST_PAGES: usize = 20;
/// A page with fewer letters may be a picture.
const FEW_LETTERS: usize = 40;
/// A drawing has at least so many lines and areas; fewer are rules and frames.
const DRAWING: usize = 20;
/// Pixels per point: about what is needed to read small print.
const SCALE: f32 = 2.0;
/// Characters of base64 from which on a page is better sent as JPEG.
const LARGE_PAGE: usize = 1_000_000;
/// How far from its end a document has its end mark; some have a little more behind it.
const END: usize = 2048;
/// Bytes of text kept of one page.
const LONGEST_PAGE: usize = 500_000;
/// Glyphs are laid out on a square of this side.
const EM: f64 = 1000.0;

pub(super) fn parse(bytes: Vec<u8>, wanted: Option<PageRange>) -> Result<Parsed, Refusal> {
    if memmem::find(&bytes[bytes.len().saturating_sub(END)..], b"%%EOF").is_none() {
        return Err(Refusal::new(
            Why::Damaged,
            "it is cut short: its end mark is missing; get a complete copy",
        ));
    }
    let pdf = Pdf::new(bytes).map_err(refused)?;
    let pages = pdf.pages();
    let total = pages.len();
    let (first, last) = chosen(wanted, total)?;
    let cache = InterpreterCache::new();
    let mut pieces = Pieces::default();
    let mut num_pages = 0;
    for (number, page) in (1..).zip(pages.iter()).skip(first - 1).take(last + 1 - first) {
        let text = PageText::of(page, &cache);
        // One page that is too long by itself is cut; others wait for the next call.
        if num_pages > 0 && !pieces.has_room(text.text.chars().count() + 200) {
            break;
        }
        num_pages += 1;
        show(&mut pieces, &format!("page {number} of {total}"), page, &text);
    }
    let end = first + num_pages - 1;
    if end < last || (end < total && wanted.is_none_or(|range| range.last.is_none())) {
        pieces.text(&format!("(go on with pages \"{}-\")", end + 1));
    }
    let found = Found::Pdf { first_page: first, num_pages, total_pages: total };
    Ok(Parsed { found, pieces: pieces.done() })
}

fn refused(error: LoadPdfError) -> Refusal {
    match error {
        LoadPdfError::Decryption(DecryptionError::PasswordProtected) => Refusal::new(
            Why::Unsupported,
            "it is protected by a password; make a copy without one, such as with qpdf --decrypt",
        ),
        LoadPdfError::Decryption(_) => {
            Refusal::new(Why::Unsupported, "its encryption is broken or of a kind that is not known")
        }
        LoadPdfError::Invalid => {
            Refusal::new(Why::Damaged, "it is damaged or not a PDF at all; get a complete copy")
        }
    }
}

/// The first and last page to read.
fn chosen(wanted: Option<PageRange>, total: usize) -> Result<(usize, usize), Refusal> {
    let example = format!("such as \"1-5\", at most {MOST_PAGES} pages a call");
    if total == 0 {
        return Err(Refusal::new(Why::Damaged, "it has no pages"));
    }
    let Some(PageRange { first, last }) = wanted else {
        if total > MOST_UNASKED {
            let words =
                format!("it has {total} pages, more than {MOST_UNASKED}; say in `pages` which, {example}");
            return Err(Refusal::new(Why::TooLarge, words));
        }
        return Ok((1, total));
    };
    if first > total {
        let words = format!("page {first} was asked for and it has {total}; use `pages` {example}");
        return Err(Refusal::new(Why::Range, words));
    }
    let end = last.unwrap_or(first + MOST_PAGES - 1).min(total);
    if end - first >= MOST_PAGES {
        let words = format!("{} pages were asked for; use `pages` {example}", end - first + 1);
        return Err(Refusal::new(Why::Range, words));
    }
    Ok((first, end))
}

fn show(pieces: &mut Pieces, heading: &str, page: &Page<'_>, found: &PageText) {
    let text = found.text.trim();
    let note = if !found.is_picture() {
        if text.is_empty() { ", empty" } else { "" }
    } else {
        match rendered(page) {
            Err(_) => ", a picture that could not be drawn",
            Ok(picture) => {
                pieces.text(&format!("--- {heading}, as a picture ---"));
                if pieces.picture(picture) {
                    if !text.is_empty() {
                        pieces.text(text);
                    }
                    return;
                }
                ", a picture that did not fit; ask for this page alone"
            }
        }
    };
    pieces.text(&format!("--- {heading}{note} ---"));
    if !text.is_empty() {
        pieces.text(text);
    }
}

fn rendered(page: &Page<'_>) -> Result<Picture, Refusal> {
    let (width, height) = page.render_dimensions();
    let scale = (LONGEST_SIDE as f32 / width.max(height)).min(SCALE);
    // A strip would vanish: it becomes one pixel wide.
    let along = |side: f32| scale.max(1.0 / side);
    if !(width * height).is_normal() || !scale.is_normal() {
        return Err(Refusal::new(Why::Damaged, "it has no size"));
    }
    let settings = PixmapSettings { x_scale: along(width), y_scale: along(height), bg_color: WHITE };
    let (cache, interpreter) = (RenderCache::new(), InterpreterSettings::default());
    let pixmap = hayro::render(page, &cache, &interpreter, &RenderSettings::default(), &settings);
    let (width, height) = (u32::from(pixmap.width()), u32::from(pixmap.height()));
    let pixels = pixmap.take_rgba8(ImageAlphaType::Alpha);
    let image = RgbaImage::from_raw(width, height, pixels).map(DynamicImage::from);
    let image = image.ok_or_else(|| Refusal::new(Why::Damaged, "it has no size"))?;
    // The background is opaque, and a file without transparency is smaller.
    encoded(&image.into_rgb8().into(), ImageFormat::Png, LARGE_PAGE)
}

/// A device that draws nothing and writes down the text, in the order in which it is drawn.
#[derive(Default)]
struct PageText {
    text: String,
    letters: usize,
    /// Glyphs that stand for no character anybody knows.
    unknown: usize,
    images: usize,
    shapes: usize,
    /// Where the last glyph ended.
    pen: Option<Point>,
}

impl PageText {
    fn of<'a>(page: &'a Page<'a>, cache: &InterpreterCache<'a>) -> Self {
        let (width, height) = page.render_dimensions();
        let bounds = Rect::new(0.0, 0.0, f64::from(width), f64::from(height));
        let transform = page.initial_transform(true).to_kurbo();
        let settings = InterpreterSettings::default();
        let mut context = Context::new(transform, bounds, cache, page.xref(), settings);
        let mut device = Self::default();
        interpret_page(page, &mut context, &mut device);
        device
    }

    /// Whether what the page says is in a picture of it.
    fn is_picture(&self) -> bool {
        let few = self.letters < FEW_LETTERS;
        few && (self.images > 0 || self.shapes >= DRAWING) || self.unknown > self.letters
    }

    /// Adds what lies between the pen and the next glyph: nothing, a space or a line end.
    fn move_to(&mut self, transform: Affine) {
        let [a, b, c, d, ..] = transform.as_coeffs();
        let (em, start) = (EM * c.hypot(d), transform * Point::ZERO);
        let Some(pen) = self.pen.filter(|_| em.is_normal()) else { return };
        // Seen along the line of writing, wherever that leads on the page.
        let (moved, length) = (start - pen, a.hypot(b).max(f64::MIN_POSITIVE));
        let along = (moved.x * a + moved.y * b) / length / em;
        let across = (moved.y * a - moved.x * b) / length / em;
        let blank = self.text.is_empty() || self.text.ends_with([' ', '\n']);
        if across.abs() > 0.5 || along < -1.0 {
            self.text.truncate(self.text.trim_end_matches(' ').len());
            self.text.push_str(if across.abs() > 1.9 { "\n\n" } else { "\n" });
        } else if along > 0.18 && !blank {
            self.text.push(' ');
        }
    }
}

impl Device<'_> for PageText {
    fn draw_glyph_run(&mut self, run: &GlyphRun<'_, '_>, props: DrawProps<'_>, _: &DrawMode) {
        // Nobody reads more of one page, and a document made for it has no end.
        if self.text.len() > LONGEST_PAGE {
            return;
        }
        for glyph in run.glyphs() {
            let transform = props.transform * glyph.transform();
            self.move_to(transform);
            let advance = match &**glyph {
                Glyph::Outline(outline) => outline.advance_width(),
                Glyph::Type3(drawn) => drawn.advance_width(),
            };
            self.pen = Some(transform * Point::new(advance.map_or(EM / 2.0, f64::from), 0.0));
            let start = self.text.len();
            match glyph.as_unicode() {
                Some(BfString::Char(character)) => self.text.push(character),
                Some(BfString::String(text)) => self.text.push_str(&text),
                None => {
                    self.text.push(char::REPLACEMENT_CHARACTER);
                    self.unknown += 1;
                }
            }
            self.letters +=
                self.text[start..].chars().filter(|character| character.is_alphanumeric()).count();
        }
    }

    fn draw_image(&mut self, _: Image<'_, '_>, _: ImageDrawProps<'_>) {
        self.images += 1;
    }

    fn draw_path(&mut self, _: &BezPath, _: DrawProps<'_>, _: &DrawMode) {
        self.shapes += 1;
    }

    fn push_clip_path(&mut self, _: &ClipPath) {}
    fn push_transparency_group(&mut self, _: f32, _: Option<SoftMask<'_>>, _: BlendMode) {}
    fn pop_clip(&mut self) {}
    fn pop_transparency_group(&mut self) {}
}
