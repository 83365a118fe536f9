//! Files that are not text, read through the real binary: pictures, PDF documents and notebooks.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a failed expectation is how tests fail"
)]

use std::{io::Cursor, sync::Arc, time::Duration};

use base64::{Engine, engine::general_purpose::STANDARD};
use gripper_runtime::{CallRequest, CallResult, Registry, Toolbox, erase, permissions::Policy};
use gripper_testkit::{Binary, Workspace, run_all};
use gripper_tools::{read::Read, worker::WorkerCommand};
use image::{DynamicImage, ImageFormat, Rgb, RgbImage};
use serde_json::{Value, json};

const GRIPPER: &str = env!("CARGO_BIN_EXE_gripper");

fn read(workspace: &Workspace, input: &Value) -> Value {
    let ran = Binary::new(GRIPPER, workspace).args(["tool", "Read", &input.to_string(), "--json"]).run();
    serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {}", ran.transcript()))
}

/// The words of a failure, after its code.
fn failure(workspace: &Workspace, input: &Value) -> String {
    let result = read(workspace, input);
    assert_eq!(result["is_error"], true, "{result}");
    assert_eq!(result["content"].as_array().unwrap().len(), 1, "never a block beside the words");
    format!("{}: {}", result["error_code"].as_str().unwrap(), result["content"][0]["text"].as_str().unwrap())
}

fn picture(block: &Value) -> DynamicImage {
    assert_eq!((&block["type"], &block["source"]["type"]), (&json!("image"), &json!("base64")), "{block}");
    let bytes = STANDARD.decode(block["source"]["data"].as_str().unwrap()).unwrap();
    image::load_from_memory(&bytes).unwrap()
}

fn png(width: u32, height: u32) -> Vec<u8> {
    let image = RgbImage::from_fn(width, height, |x, y| Rgb([x as u8, y as u8, (x ^ y) as u8]));
    let mut bytes = Cursor::new(Vec::new());
    image.write_to(&mut bytes, ImageFormat::Png).unwrap();
    bytes.into_inner()
}

/// A document: what each page draws, further objects (the first is number 4), and more in the trailer.
fn pdf(pages: &[&str], objects: &[Vec<u8>], trailer: &str) -> Vec<u8> {
    let first_page = 4 + objects.len();
    let kids: Vec<String> = (0..pages.len()).map(|at| format!("{} 0 R", first_page + 2 * at)).collect();
    let stream = |extra: &str, data: &[u8]| {
        let head = format!("<< /Length {}{extra} >>\nstream\n", data.len());
        [head.as_bytes(), data, b"\nendstream"].concat()
    };
    let mut all = vec![
        b"<< /Type /Catalog /Pages 2 0 R >>".to_vec(),
        format!("<< /Type /Pages /Kids [{}] /Count {} >>", kids.join(" "), pages.len()).into_bytes(),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>".to_vec(),
    ];
    all.extend(objects.iter().cloned());
    for (at, content) in pages.iter().enumerate() {
        let content_at = first_page + 2 * at + 1;
        all.push(
            format!(
                "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 300 200] /Contents {content_at} 0 R \
                 /Resources << /Font << /F1 3 0 R >> /XObject << /X 4 0 R >> >> >>"
            )
            .into_bytes(),
        );
        all.push(stream("", content.as_bytes()));
    }
    let (mut file, mut places) = (b"%PDF-1.4\n".to_vec(), String::new());
    for (at, object) in all.iter().enumerate() {
        places.push_str(&format!("{:010} 00000 n \n", file.len()));
        file.extend_from_slice(format!("{} 0 obj\n", at + 1).as_bytes());
        file.extend_from_slice(object);
        file.extend_from_slice(b"\nendobj\n");
    }
    let (start, size) = (file.len(), all.len() + 1);
    let end = format!(
        "xref\n0 {size}\n0000000000 65535 f \n{places}trailer\n<< /Size {size} /Root 1 0 R {trailer} >>\nstartxref\n{start}\n%%EOF\n"
    );
    file.extend_from_slice(end.as_bytes());
    file
}

fn saying(text: &str) -> String {
    format!("BT /F1 12 Tf 20 150 Td ({text}) Tj 0 -14 Td [(sec) -20 (ond) -600 (line)] TJ ET")
}

fn book(pages: usize) -> Vec<u8> {
    let pages: Vec<String> = (1..=pages).map(|page| saying(&format!("Hello from page {page}"))).collect();
    pdf(&pages.iter().map(String::as_str).collect::<Vec<_>>(), &[b"null".to_vec()], "")
}

#[test]
fn a_picture_is_a_block_and_people_see_a_line() {
    let workspace = Workspace::new();
    let bytes = png(64, 48);
    // The content decides, not the name.
    let path = workspace.write("dot.dat", &bytes);
    let result = read(&workspace, &json!({"file_path": path}));
    assert_eq!(result["content"].as_array().unwrap().len(), 1);
    assert_eq!(result["content"][0]["source"]["media_type"], "image/png");
    assert_eq!(result["content"][0]["source"]["data"], STANDARD.encode(&bytes));
    let structured = &result["structured"];
    assert_eq!((&structured["type"], &structured["width"]), (&json!("image"), &json!(64)));
    assert!(!structured.to_string().contains("iVBOR"), "the picture is there once");
    let shown = Binary::new(GRIPPER, &workspace).args(["tool", "Read", r#"{"file_path": "dot.dat"}"#]).run();
    assert!(shown.stdout.starts_with("[image: png 64×48, "), "{}", shown.stdout);
    assert!(shown.stdout.contains("(the relative path was taken as "), "{}", shown.stdout);
}

#[test]
fn a_large_picture_is_scaled_and_a_bad_one_is_an_error() {
    let workspace = Workspace::new();
    let path = workspace.write("large.png", png(3136, 100));
    let result = read(&workspace, &json!({"file_path": path}));
    assert_eq!(picture(&result["content"][0]).width(), 1568);
    assert_eq!(result["content"][1]["text"], "(scaled to 1568×50 from 3136×100)");

    let whole = png(64, 48);
    let path = workspace.write("cut.png", &whole[..whole.len() / 2]);
    let words = failure(&workspace, &json!({"file_path": path}));
    assert!(words.starts_with("failed: the image ") && words.contains("cut short"), "{words}");

    // A header that claims 60,000 × 60,000 pixels; its checksum is not looked at before the size.
    let mut claim = png(1, 1);
    claim[16..24].copy_from_slice(&[0, 0, 0xEA, 0x60, 0, 0, 0xEA, 0x60]);
    claim.splice(29..33, crc(&claim[12..29]).to_be_bytes());
    let path = workspace.write("bomb.png", &claim);
    let words = failure(&workspace, &json!({"file_path": path}));
    assert!(words.starts_with("too_large: ") && words.contains("60000×60000"), "{words}");

    let path = workspace.write("words.png", "only words");
    let words = failure(&workspace, &json!({"file_path": path}));
    assert!(words.starts_with("unsupported: ") && words.contains("its content is text"), "{words}");
    let text = read(&workspace, &json!({"file_path": path, "offset": 1}));
    assert_eq!(text["content"][0]["text"], "     1\tonly words");
}

fn crc(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc: u32, byte| {
        (0..8).fold(
            crc ^ u32::from(*byte),
            |crc, _| if crc & 1 == 1 { crc >> 1 ^ 0xEDB8_8320 } else { crc >> 1 },
        )
    })
}

#[test]
fn the_text_of_a_document_comes_by_page() {
    let workspace = Workspace::new();
    let path = workspace.write("short.pdf", book(2));
    let result = read(&workspace, &json!({"file_path": path}));
    let text = "--- page 1 of 2 ---\nHello from page 1\nsecond line\n--- page 2 of 2 ---\nHello from page 2\nsecond line";
    assert_eq!(result["content"][0]["text"], text);
    assert_eq!(result["structured"]["type"], "pdf");
    assert_eq!(
        (&result["structured"]["numPages"], &result["structured"]["totalPages"]),
        (&json!(2), &json!(2))
    );

    let path = workspace.write("long.pdf", book(34));
    let asked = |pages: &str| json!({"file_path": path, "pages": pages});
    let words = failure(&workspace, &json!({"file_path": path}));
    assert!(words.starts_with("too_large: ") && words.contains("it has 34 pages"), "{words}");
    let result = read(&workspace, &asked("7-"));
    assert_eq!(
        (&result["structured"]["firstPage"], &result["structured"]["numPages"]),
        (&json!(7), &json!(20))
    );
    assert!(
        result["content"][0]["text"].as_str().unwrap().ends_with("(go on with pages \"27-\")"),
        "{result}"
    );
    assert_eq!(read(&workspace, &asked("34"))["structured"]["numPages"], 1);
    assert_eq!(read(&workspace, &asked("30-90"))["structured"]["numPages"], 5);
    for (pages, expected) in [
        ("1-34", "invalid_input: the PDF "),
        ("35", "page 35 was asked for and it has 34"),
        ("5-3", "invalid_input: "),
        ("0", "invalid_input: "),
        ("all", "such as \"3\", \"1-5\" or \"7-\""),
    ] {
        let words = failure(&workspace, &asked(pages));
        assert!(words.contains(expected), "{pages}: {words}");
    }
    let other = workspace.write("a.txt", "text");
    let words = failure(&workspace, &json!({"file_path": other, "pages": "1"}));
    assert!(words.starts_with("invalid_input: `pages` is for PDF documents"), "{words}");
}

#[test]
fn a_page_that_is_a_picture_is_drawn() {
    let workspace = Workspace::new();
    let scan =
        b"<< /Type /XObject /Subtype /Image /Width 1 /Height 1 /ColorSpace /DeviceRGB /BitsPerComponent 8 \
                 /Length 3 >>\nstream\n\xFF\x00\x00\nendstream";
    let document = pdf(&["q 300 0 0 200 0 0 cm /X Do Q", &saying("words")], &[scan.to_vec()], "");
    let path = workspace.write("scan.pdf", document);
    let result = read(&workspace, &json!({"file_path": path}));
    assert_eq!(result["content"][0]["text"], "--- page 1 of 2, as a picture ---");
    let drawn = picture(&result["content"][1]).into_rgb8();
    assert_eq!((drawn.dimensions(), drawn.get_pixel(300, 200).0), ((600, 400), [255, 0, 0]));
    assert!(result["content"][2]["text"].as_str().unwrap().starts_with("--- page 2 of 2 ---\nwords"));
}

#[test]
fn a_document_that_cannot_be_read_says_why() {
    let workspace = Workspace::new();
    let key = "0123456789abcdef".repeat(4);
    let locked = format!(
        "/ID [<00> <00>] /Encrypt << /Filter /Standard /V 1 /R 2 /Length 40 /P -4 /O <{key}> /U <{key}> >>"
    );
    let whole = book(3);
    for (name, bytes, expected) in [
        ("locked.pdf", pdf(&["BT ET"], &[b"null".to_vec()], &locked), "protected by a password"),
        ("cut.pdf", whole[..whole.len() / 2].to_vec(), "it is cut short"),
        ("shell.pdf", b"%PDF-1.7\nnothing of the kind\n%%EOF\n".to_vec(), "damaged or not a PDF"),
        ("words.pdf", b"only words".to_vec(), "is no PDF, whatever its name says: its content is text"),
        ("empty.pdf", Vec::new(), "its content is nothing"),
    ] {
        let path = workspace.write(name, bytes);
        let words = failure(&workspace, &json!({"file_path": path}));
        assert!(words.contains(expected), "{name}: {words}");
    }
}

#[test]
fn notebooks_by_cell_and_broken_ones_as_raw_text() {
    let workspace = Workspace::new();
    let plot = STANDARD.encode(png(6, 5));
    let cells = json!([{"cell_type": "code", "id": "plot", "execution_count": 1, "source": ["draw()"], "metadata": {},
        "outputs": [{"output_type": "display_data", "data": {"image/png": plot}, "metadata": {}}]}]);
    let notebook = json!({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells});
    let path = workspace.write("a.ipynb", notebook.to_string());
    let result = read(&workspace, &json!({"file_path": path}));
    assert_eq!(result["content"][0]["text"], "[cell 0, id plot, code, run 1]\ndraw()");
    assert_eq!(picture(&result["content"][1]).height(), 5);
    assert_eq!(
        (&result["structured"]["type"], &result["structured"]["totalCells"]),
        (&json!("notebook"), &json!(1))
    );

    let path = workspace.write("broken.ipynb", "{\"cells\": [\n");
    let words = failure(&workspace, &json!({"file_path": path}));
    assert!(words.contains("it is not proper JSON") && words.contains("`offset` and `limit`"), "{words}");
    let raw = read(&workspace, &json!({"file_path": path, "offset": 1, "limit": 1}));
    assert_eq!(raw["content"][0]["text"].as_str().unwrap().lines().next(), Some("     1\t{\"cells\": ["));
}

/// A few bytes that unpack to gigabytes: each filter makes 64 of one, and ends where the one before it says so.
#[test]
fn a_parser_that_wants_all_memory_is_ended() {
    let workspace = Workspace::new();
    let filters = "/RunLengthDecode ".repeat(4);
    let mut end = vec![0x80];
    for length in [0, 2, 4] {
        end = [vec![length], end, vec![0x80]].concat();
    }
    let data = [vec![0x81; 512], end].concat();
    let dictionary = "/Type /XObject /Subtype /Form /BBox [0 0 9 9]";
    let head = format!("<< {dictionary} /Filter [{filters}] /Length {} >>\nstream\n", data.len());
    let bomb = [head.as_bytes(), &data, b"\nendstream"].concat();
    let path = workspace.write("bomb.pdf", pdf(&["/X Do"], &[bomb], ""));
    let words = failure(&workspace, &json!({"file_path": path}));
    assert!(words.contains("its parser ran out of memory"), "{words}");
}

/// Forms that draw forms that draw forms: ten bytes more make it ten times longer.
fn endless() -> Vec<u8> {
    let form = |number: usize| {
        let content = "/X Do ".repeat(10);
        format!(
            "<< /Type /XObject /Subtype /Form /BBox [0 0 9 9] /Resources << /XObject << /X {} 0 R >> >> /Length {} >>\n\
             stream\n{content}\nendstream",
            number + 1,
            content.len()
        )
        .into_bytes()
    };
    let mut forms: Vec<Vec<u8>> = (4..24).map(form).collect();
    forms
        .push(b"<< /Type /XObject /Subtype /Form /BBox [0 0 9 9] /Length 0 >>\nstream\n\nendstream".to_vec());
    pdf(&["/X Do"], &forms, "")
}

async fn read_with(worker: WorkerCommand, workspace: &Workspace, input: Value) -> Arc<CallResult> {
    let mut registry = Registry::default();
    registry.register(erase(Read::new(Some(worker)))).unwrap();
    let toolbox = Toolbox::builder(registry, Policy::new(workspace.project())).build();
    run_all(&toolbox, [CallRequest::new("c1", "Read", input)]).await.remove(0)
}

#[tokio::test]
async fn a_parser_that_never_ends_is_ended() {
    let workspace = Workspace::new();
    let input = json!({"file_path": workspace.write("endless.pdf", endless())});
    let worker =
        WorkerCommand { limit: Duration::from_secs(1), ..WorkerCommand::new(GRIPPER, ["worker".into()]) };
    let result = read_with(worker, &workspace, input.clone()).await;
    assert_eq!(result.error_code.unwrap().name(), "timeout", "{result}");
    let gone = read_with(WorkerCommand::new("/no/such/program", []), &workspace, input).await;
    assert!(gone.to_string().contains("no worker could be started"), "{gone}");
}
