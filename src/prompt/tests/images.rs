use super::*;

/// Blocks of the frame before the first picture: role, marks and the kind of part.
const FRAME: usize = 5;

const QUESTION: &str = r#"{"type":"text","text":"What is in this picture, and what does it mean?"}"#;

fn parts(parts: &[&str]) -> Prompt {
    chat(format!(r#"{{"model":"m","messages":[{{"role":"user","content":[{}]}}]}}"#, parts.join(",")))
}

fn image(data: &str) -> String {
    format!(r#"{{"type":"image_url","image_url":{{"url":"data:image/png;base64,{data}"}}}}"#)
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let bit = |at: usize| bytes.get(at / 8).map_or(0, |byte| usize::from(byte >> (7 - at % 8) & 1));
    (0..bytes.len() * 8).step_by(6).map(|at| char::from(DIGITS[(0..6).fold(0, |d, i| d << 1 | bit(at + i))])).collect()
}

#[test]
fn p50_pictures_are_told_apart_and_text_before_them_still_matches() {
    let (a, b) = (image("AAAA"), image("BBBB"));
    assert_eq!(shared(&parts(&[&a, QUESTION]), &parts(&[&b, QUESTION])), FRAME, "nothing after the picture");
    let text = parts(&[QUESTION]).blocks();
    let before = shared(&parts(&[QUESTION, &a]), &parts(&[QUESTION, &b]));
    assert!(before + 1 >= text && before <= text + FRAME, "{before} blocks of {text}");
    assert_eq!(parts(&[QUESTION, &a]), parts(&[QUESTION, &a]));
}

#[test]
fn p50_long_data_differs_by_length_and_either_end() {
    let long = "A".repeat(100_000);
    let variants = [
        image(&long),
        image(&format!("{long}A")),
        image(&long.replacen('A', "B", 1)),
        image(&format!("{}B", "A".repeat(99_999))),
    ];
    for (i, one) in variants.iter().enumerate() {
        for other in &variants[i + 1..] {
            assert_eq!(shared(&parts(&[one]), &parts(&[other])), FRAME);
        }
    }
    assert_eq!(parts(&[&image(&long)]).tokens, parts(&[&image("AAAA")]).tokens, "base64 is not counted as text");
    let slashes = long.replace("AAAA", "A/AA");
    assert_eq!(parts(&[&image(&slashes)]), parts(&[&image(&slashes.replace('/', "\\/"))]), "escaped or not");
}

#[test]
fn p50_sounds_files_and_unknown_parts_are_told_apart() {
    for template in [
        r#"{"type":"image_url","image_url":"https://host/@.png"}"#,
        r#"{"type":"input_audio","input_audio":{"data":"@","format":"wav"}}"#,
        r#"{"type":"video_url","video_url":{"url":"https://host/@.mp4"}}"#,
        r#"{"type":"file","file":{"file_id":"@"}}"#,
        r#"{"type":"file","file":{"file_data":"data:application/pdf;base64,@","filename":"a.pdf"}}"#,
        r#"{"type":"image","source":{"type":"base64","media_type":"image/png","data":"@"}}"#,
        r#"{"type":"input_image","file_id":"@"}"#,
        r#"{"type":"image","image":"@"}"#,
        r#"{"type":"hologram","rays":["@"]}"#,
    ] {
        let with = |data: &str| parts(&[&template.replace('@', data), QUESTION]);
        assert!(shared(&with("AAAA"), &with("BBBB")) < 15, "{template}");
        assert_eq!(with("AAAA"), with("AAAA"));
    }
    let huge = format!(r#"{{"type":"hologram","rays":["{}"]}}"#, "A".repeat(50_000));
    assert!(parts(&[&huge]).tokens < 300);
}

#[test]
fn a_picture_takes_the_tokens_of_its_size() {
    let size = |header: &[u8]| parts(&[&image(&base64(header))]).tokens - parts(&[QUESTION]).tokens + 12;
    let png = |width: u32, height: u32| {
        let mut header = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
        header.extend_from_slice(&width.to_be_bytes());
        header.extend_from_slice(&height.to_be_bytes());
        header
    };
    let default = size(b"GIF89a");
    assert_eq!(size(&png(640, 360)), default);
    assert_eq!(size(&png(1024, 1024)), default - 225 + 1024);
    assert_eq!(size(&png(u32::MAX, u32::MAX)), default - 225 + 16384, "a header can claim anything");
    assert_eq!(size(&png(0, 5)), default);
    assert_eq!(size(&png(640, 360)[..20]), default, "cut short");
    let jpeg = b"\xff\xd8\xff\xe0\x00\x10JFIF\0\x01\x01\0\0\x01\0\x01\0\0\xff\xc0\x00\x11\x08\x02\x00\x04\x00\x03";
    assert_eq!(size(jpeg), default - 225 + 512, "1024 x 512");
}

#[test]
fn a_body_cut_inside_a_picture_does_not_count_the_rest_of_it_as_text() {
    let body = format!(
        r#"{{"model":"m","messages":[{{"role":"user","content":[{QUESTION},{}]}}]}}"#,
        image(&"A".repeat(9000))
    );
    let cut = read(Dialect::ChatCompletions, &body.as_bytes()[..5000], Some(5_000_000), &FINE);
    assert!((225..300).contains(&cut.tokens), "{}", cut.tokens);
    assert_prefix(&cut, &chat(&body), &"cut in a picture");
}
