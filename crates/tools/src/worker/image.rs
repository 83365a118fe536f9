//! Pictures: proven sound, and brought down to what models take.

use std::io::Cursor;

use base64::{Engine, engine::general_purpose::STANDARD};
use fast_image_resize::Resizer;
use image::{
    AnimationDecoder, DynamicImage, GenericImageView, ImageDecoder, ImageError, ImageFormat, ImageReader,
    Limits, Rgb, RgbImage,
    codecs::{gif::GifDecoder, jpeg::JpegEncoder, webp::WebPDecoder},
    metadata::Orientation,
};
use memchr::memmem;

use super::{Found, Parsed, Piece, Refusal, Why, pieces::Picture};

/// The longest side, in pixels; larger pictures are scaled down by models anyway.
pub(super) const LONGEST_SIDE: u32 = 1568;
/// Characters of base64 that models take.
const MOST_DATA: usize = 5_000_000;
/// What is decoded at all: a few bytes can claim any number of pixels.
const MOST_PIXELS: u64 = 100_000_000;
/// Memory for a decoder, which says so when it is not enough.
const MOST_MEMORY: u64 = 640 * 1024 * 1024;
const JPEG_QUALITY: u8 = 85;

pub(super) fn parse(bytes: &[u8]) -> Result<Parsed, Refusal> {
    let (picture, (original_width, original_height)) = fitted(bytes)?;
    let found = Found::Image {
        media_type: picture.media_type.clone(),
        width: picture.width,
        height: picture.height,
        original_width,
        original_height,
    };
    Ok(Parsed { found, pieces: vec![Piece::Image(picture)] })
}

/// The picture within the limits, and the size it has in the file. One that is within them already stays as
/// it is, byte for byte.
pub(super) fn fitted(bytes: &[u8]) -> Result<(Picture, (u32, u32)), Refusal> {
    let format = image::guess_format(bytes).map_err(refused)?;
    let (image, orientation) = decoded(bytes, format)?;
    if !has_end(bytes, format) {
        return Err(Refusal::new(Why::Damaged, "the data ends too early; get a complete copy"));
    }
    let (width, height) = image.dimensions();
    let fits = width.max(height) <= LONGEST_SIDE && bytes.len().div_ceil(3) * 4 <= MOST_DATA;
    if fits && orientation == Orientation::NoTransforms {
        let media_type = format.to_mime_type().to_owned();
        return Ok((Picture { media_type, data: STANDARD.encode(bytes), width, height }, (width, height)));
    }
    let mut image = scaled(image)?;
    image.apply_orientation(orientation);
    Ok((encoded(&image, format, MOST_DATA)?, (width, height)))
}

/// Decodes all of it. A header may promise what the data does not keep.
fn decoded(bytes: &[u8], format: ImageFormat) -> Result<(DynamicImage, Orientation), Refusal> {
    let mut limits = Limits::default();
    limits.max_alloc = Some(MOST_MEMORY);
    let mut reader = ImageReader::with_format(Cursor::new(bytes), format);
    reader.limits(limits);
    let mut decoder = reader.into_decoder().map_err(refused)?;
    let (width, height) = decoder.dimensions();
    if u64::from(width) * u64::from(height) > MOST_PIXELS {
        let most = MOST_PIXELS / 1_000_000;
        let words = format!(
            "it has {width}×{height} pixels, more than the {most} million that are decoded; scale it down first"
        );
        return Err(Refusal::new(Why::TooLarge, words));
    }
    let orientation = decoder.orientation().unwrap_or(Orientation::NoTransforms);
    let image = DynamicImage::from_decoder(decoder).map_err(refused)?;
    match format {
        ImageFormat::Gif => sound(GifDecoder::new(Cursor::new(bytes)).map_err(refused)?)?,
        ImageFormat::WebP => {
            let decoder = WebPDecoder::new(Cursor::new(bytes)).map_err(refused)?;
            if decoder.has_animation() {
                sound(decoder)?;
            }
        }
        _ => {}
    }
    Ok((image, orientation))
}

/// Whether every frame can be decoded.
fn sound<'a>(decoder: impl AnimationDecoder<'a>) -> Result<(), Refusal> {
    decoder.into_frames().try_for_each(|frame| frame.map(drop)).map_err(refused)
}

/// Whether the format's end mark is there; decoders fill up what is missing before it.
fn has_end(bytes: &[u8], format: ImageFormat) -> bool {
    match format {
        ImageFormat::Png => memmem::rfind(bytes, b"IEND\xAE\x42\x60\x82").is_some(),
        ImageFormat::Jpeg => {
            // A thumbnail before the picture has an end mark too: skip to the first scan.
            let mut at = 2;
            while let Some([0xFF, marker, high, low]) =
                bytes.get(at..at + 4).and_then(|four| four.first_chunk())
            {
                at += 2 + usize::from(u16::from_be_bytes([*high, *low]));
                if *marker == 0xDA {
                    return bytes.get(at..).is_some_and(|scan| memmem::rfind(scan, b"\xFF\xD9").is_some());
                }
            }
            // Fill bytes between segments are rare, and the decoder did not mind them.
            memmem::rfind(bytes, b"\xFF\xD9").is_some()
        }
        _ => true,
    }
}

fn scaled(image: DynamicImage) -> Result<DynamicImage, Refusal> {
    let (width, height) = image.dimensions();
    let longest = width.max(height);
    let small = if longest <= LONGEST_SIDE {
        image
    } else {
        let side =
            |side: u32| (u64::from(side) * u64::from(LONGEST_SIDE)).div_ceil(u64::from(longest)) as u32;
        let mut small = DynamicImage::new(side(width), side(height), image.color());
        Resizer::new()
            .resize(&image, &mut small, None)
            .map_err(|error| Refusal::new(Why::Damaged, format!("it could not be scaled down ({error})")))?;
        small
    };
    let alpha = small.color().has_alpha();
    Ok(if alpha { small.into_rgba8().into() } else { small.into_rgb8().into() })
}

/// The picture as a file: like the original if that is small enough, as JPEG otherwise.
pub(super) fn encoded(image: &DynamicImage, format: ImageFormat, most: usize) -> Result<Picture, Refusal> {
    let (width, height) = image.dimensions();
    let picture = |media_type: &str, bytes: &[u8]| Picture {
        media_type: media_type.to_owned(),
        data: STANDARD.encode(bytes),
        width,
        height,
    };
    if format != ImageFormat::Jpeg {
        let mut png = Cursor::new(Vec::new());
        image.write_to(&mut png, ImageFormat::Png).map_err(refused)?;
        if png.get_ref().len().div_ceil(3) * 4 <= most {
            return Ok(picture("image/png", png.get_ref()));
        }
    }
    let mut jpeg = Vec::new();
    JpegEncoder::new_with_quality(&mut jpeg, JPEG_QUALITY).encode_image(&on_white(image)).map_err(refused)?;
    Ok(picture("image/jpeg", &jpeg))
}

/// JPEG has no transparency.
fn on_white(image: &DynamicImage) -> RgbImage {
    if !image.color().has_alpha() {
        return image.to_rgb8();
    }
    let image = image.to_rgba8();
    RgbImage::from_fn(image.width(), image.height(), |x, y| {
        let [red, green, blue, alpha] = image.get_pixel(x, y).0.map(u16::from);
        Rgb([red, green, blue].map(|part| ((part * alpha + 255 * (255 - alpha)) / 255) as u8))
    })
}

fn refused(error: ImageError) -> Refusal {
    match error {
        ImageError::Limits(_) => {
            Refusal::new(Why::TooLarge, "decoding it takes too much memory; scale it down first")
        }
        ImageError::Unsupported(what) => Refusal::new(Why::Unsupported, what.to_string()),
        other => {
            Refusal::new(Why::Damaged, format!("it is damaged or cut short ({other}); get a complete copy"))
        }
    }
}
