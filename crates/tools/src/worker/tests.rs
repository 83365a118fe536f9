use std::io::Cursor;

use base64::{Engine, engine::general_purpose::STANDARD};
use image::{DynamicImage, Frame, ImageFormat, RgbImage, RgbaImage, codecs::gif::GifEncoder};
use rstest::rstest;
use serde_json::{Value, json};

use super::{Found, Piece, Why, image::fitted, notebook};

/// A picture that no format packs well, so that every byte of its file counts.
fn noise(width: u32, height: u32) -> DynamicImage {
    let mut state = 7_u32;
    RgbImage::from_fn(width, height, |_, _| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        image::Rgb([(state >> 24) as u8, (state >> 16) as u8, (state >> 8) as u8])
    })
    .into()
}

fn file(image: &DynamicImage, format: ImageFormat) -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    image.write_to(&mut bytes, format).unwrap();
    bytes.into_inner()
}

fn animation() -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut encoder = GifEncoder::new(&mut bytes);
    for _ in 0..3 {
        encoder.encode_frame(Frame::new(noise(40, 30).to_rgba8())).unwrap();
    }
    drop(encoder);
    bytes
}

#[rstest]
#[case::png(file(&noise(60, 40), ImageFormat::Png), "image/png")]
#[case::jpeg(file(&noise(60, 40), ImageFormat::Jpeg), "image/jpeg")]
#[case::gif(file(&noise(60, 40), ImageFormat::Gif), "image/gif")]
#[case::webp(file(&noise(60, 40), ImageFormat::WebP), "image/webp")]
#[case::animation(animation(), "image/gif")]
fn a_sound_picture_stays_as_it_is_and_one_cut_anywhere_is_refused(
    #[case] bytes: Vec<u8>,
    #[case] kind: &str,
) {
    let (picture, size) = fitted(&bytes).unwrap();
    assert_eq!((&*picture.media_type, size), (kind, (picture.width, picture.height)));
    assert_eq!(STANDARD.decode(&picture.data).unwrap(), bytes);
    for cut in (8..bytes.len() - 8).step_by(bytes.len() / 25).chain([bytes.len() - 2]) {
        assert!(fitted(&bytes[..cut]).is_err(), "cut at {cut} of {}", bytes.len());
    }
}

#[rstest]
#[case::photograph(noise(1600, 800), ImageFormat::Jpeg, "image/jpeg", (1568, 784))]
#[case::drawing(RgbaImage::new(400, 1600).into(), ImageFormat::Png, "image/png", (392, 1568))]
#[case::too_many_bytes(noise(1300, 1000), ImageFormat::Png, "image/jpeg", (1300, 1000))]
#[case::a_strip(RgbImage::new(20_000, 3).into(), ImageFormat::Png, "image/png", (1568, 1))]
fn large_pictures_are_brought_down(
    #[case] image: DynamicImage,
    #[case] format: ImageFormat,
    #[case] kind: &str,
    #[case] expected: (u32, u32),
) {
    let (picture, original) = fitted(&file(&image, format)).unwrap();
    assert_eq!((&*picture.media_type, (picture.width, picture.height)), (kind, expected));
    assert_eq!(original, (image.width(), image.height()));
    let decoded = image::load_from_memory(&STANDARD.decode(&picture.data).unwrap()).unwrap();
    assert_eq!((decoded.width(), decoded.height()), expected);
    assert!(picture.data.len() <= 5_000_000);
}

#[test]
fn a_photograph_that_lies_on_its_side_is_turned() {
    let mut jpeg = file(&noise(60, 40), ImageFormat::Jpeg);
    // The Exif block with the one entry that says "turn it by a quarter".
    let exif = b"\xFF\xE1\0\x22Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0";
    jpeg.splice(2..2, exif.iter().copied());
    let (picture, original) = fitted(&jpeg).unwrap();
    assert_eq!(((picture.width, picture.height), original), ((40, 60), (60, 40)));
}

fn cells(cells: &Value) -> (Found, Vec<Piece>) {
    let whole = json!({"nbformat": 4, "nbformat_minor": 5, "metadata": {"language_info": {"name": "python"}}, "cells": cells});
    let parsed = notebook::parse(whole.to_string().as_bytes()).unwrap();
    (parsed.found, parsed.pieces)
}

fn text(pieces: &[Piece]) -> String {
    pieces.iter().map(|piece| if let Piece::Text(text) = piece { text } else { "[picture]" }).collect()
}

#[test]
fn every_kind_of_output_is_shown() {
    let png = STANDARD.encode(file(&noise(4, 3), ImageFormat::Png));
    let (found, pieces) = cells(&json!([
        {"cell_type": "markdown", "id": "intro", "source": ["# Title\n", "words"]},
        {"cell_type": "code", "id": "c2", "execution_count": 3, "source": "plot()", "outputs": [
            {"output_type": "stream", "name": "stderr", "text": ["careful\n"]},
            {"output_type": "display_data", "data": {"image/png": png, "text/plain": "<Figure>"}, "metadata": {}},
            {"output_type": "display_data", "data": {"image/png": "AAAA"}, "metadata": {}},
            {"output_type": "execute_result", "data": {"text/html": "<b>"}, "metadata": {}, "execution_count": 3},
            {"output_type": "error", "ename": "E", "evalue": "v", "traceback": ["\u{1b}[31mE\u{1b}[0m: v"]},
        ]},
    ]));
    assert_eq!(found, Found::Notebook { language: Some("python".into()), num_cells: 2, total_cells: 2 });
    assert_eq!(
        text(&pieces),
        "[cell 0, id intro, markdown]\n# Title\nwords\n\n[cell 1, id c2, code, run 3]\nplot()\n[stderr]\ncareful\n\
         [result]\n<Figure>[picture][image left out: The image format could not be \
         determined]\n[result]\n(text/html)\n[error]\nE: v\n"
    );
}

#[test]
fn long_outputs_are_shortened_and_cells_that_do_not_fit_are_counted() {
    let long = json!({"cell_type": "code", "source": "x", "outputs": [
        {"output_type": "stream", "name": "stdout", "text": "y".repeat(50_000)}]});
    let (found, pieces) = cells(&Value::Array(vec![long; 30]));
    let Found::Notebook { num_cells, total_cells: 30, .. } = found else { panic!("{found:?}") };
    let shown = text(&pieces);
    assert!(shown.contains("… 40000 characters left out …"), "{}", &shown[..20_000]);
    assert!((5..15).contains(&num_cells) && shown.chars().count() <= 100_000, "{num_cells}");
    assert!(shown.contains(&format!("(cells {num_cells} to 29 did not fit: ")));
}

#[rstest]
#[case::not_json("{\"cells\": [", Why::Damaged, "it is not proper JSON (EOF")]
#[case::other_json("{\"a\": 1}", Why::Damaged, "no `nbformat`")]
#[case::old("{\"nbformat\": 3, \"worksheets\": []}", Why::Unsupported, "nbformat 3")]
#[case::wrong_form("{\"nbformat\": 4, \"cells\": 5}", Why::Damaged, "not in the form of a notebook")]
fn broken_notebooks_say_what_is_wrong(#[case] text: &str, #[case] why: Why, #[case] words: &str) {
    let refusal = notebook::parse(text.as_bytes()).unwrap_err();
    assert_eq!(refusal.why, why);
    assert!(refusal.words.contains(words) && refusal.words.contains("`offset`"), "{}", refusal.words);
}
