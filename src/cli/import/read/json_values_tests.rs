//! Rows within documents, however deep, and documents that are not as they are said to be.

use super::*;

fn values(text: &str, path: &[&str], by_key: bool) -> Result<Vec<(u64, String, String)>, ImportError> {
    let path = path.iter().map(ToString::to_string).collect();
    let mut document = Document::new(text.as_bytes(), path, by_key);
    let (mut all, mut buffer) = (Vec::new(), Vec::new());
    loop {
        buffer.clear();
        let Some(Found { line, key, .. }) = document.next(&mut buffer)? else { return Ok(all) };
        all.push((line, key.unwrap_or_default(), String::from_utf8_lossy(&buffer).into_owned()));
    }
}

#[test]
fn rows_are_found_wherever_a_document_has_them() {
    let row = |line, key: &str, text: &str| (line, key.to_owned(), text.to_owned());
    for (text, path, by_key, expect) in [
        (
            "[1, {\"a\":[2]} ,\n\"x]\"]",
            &[][..],
            false,
            vec![row(1, "", "1"), row(1, "", "{\"a\":[2]}"), row(2, "", "\"x]\"")],
        ),
        ("[]", &[], false, vec![]),
        (
            "{\n \"a\": 1\n}\n{\"a\":2}",
            &[],
            false,
            vec![row(1, "", "{  \"a\": 1 }"), row(4, "", "{\"a\":2}")],
        ),
        (
            "{\"x\":[9],\"d\":{\"n\":0,\"rows\":[\n{},{}],\"m\":[1]},\"z\":null}",
            &["d", "rows"],
            false,
            vec![row(2, "", "{}"), row(2, "", "{}")],
        ),
        (
            "{\"ann\":5,\"b\\u006fb\":{\"s\":6}}",
            &[],
            true,
            vec![row(1, "ann", "5"), row(1, "bob", "{\"s\":6}")],
        ),
        ("{\"t\":{\"ann\":5}}", &["t"], true, vec![row(1, "ann", "5")]),
        ("{\"r\":[1]}\n{\"r\":[2]}", &["r"], false, vec![row(1, "", "1"), row(2, "", "2")]),
        (
            "{\"g\":[{\"n\":\"a\",\"r\":[1,2],\"m\":0},{\"r\":[]},\n{\"r\":[3]}],\"z\":[]}",
            &["g", "r"],
            false,
            vec![row(1, "", "1"), row(1, "", "2"), row(2, "", "3")],
        ),
        (
            "[{\"r\":{\"ann\":5}},{\"r\":{\"bob\":6}}]",
            &["r"],
            true,
            vec![row(1, "ann", "5"), row(1, "bob", "6")],
        ),
        ("{\"g\":[{\"r\":[1]},{\"r\":[2]},{}]}", &["g", "1", "r"], false, vec![row(1, "", "2")]),
        ("{\"g\":[[1],[2,3]]}", &["g", "1"], false, vec![row(1, "", "2"), row(1, "", "3")]),
        (
            "[{\"d\":[{\"r\":[1]},{\"r\":[2]}]},{\"d\":[{\"r\":[3]}]}]",
            &["d", "r"],
            false,
            vec![row(1, "", "1"), row(1, "", "2"), row(1, "", "3")],
        ),
        ("{\"g\":[]}", &["g", "r"], false, vec![]),
        ("{\"g\":[{\"r\":null},null,{\"r\":[1]}]}", &["g", "r"], false, vec![row(1, "", "1")]),
        ("{\"v1\":1,\"v1.0\":{\"a.b.c\":[1]}}", &["v1", "0", "a", "b", "c"], false, vec![row(1, "", "1")]),
        ("[{\"a.b\":[1]},{\"a\":{\"b\":[2]}}]", &["a", "b"], false, vec![row(1, "", "1"), row(1, "", "2")]),
    ] {
        assert_eq!(values(text, path, by_key).expect(text), expect, "{text}");
    }
}

#[test]
fn a_document_that_is_not_as_it_is_said_to_be_is_refused() {
    for (text, path, by_key, expect) in [
        ("[1", &[][..], false, "line 1: the JSON is not well-formed: the file ends within a value"),
        ("[1 2]", &[], false, "\",\" is expected"),
        ("{\"a\":1}", &["b"], false, "--rows-at b: "),
        ("[1]", &["b"], false, "--rows-at b: "),
        ("{\"a\":{\"x\":1}}", &["a"], false, "--member-from-key"),
        ("[1]", &[], true, "--member-from-key"),
        ("{\"a\":5}", &["a"], false, "--rows-at a: "),
        ("{\"g\":[{\"r\":[1]},{\"n\":2}]}", &["g", "r"], false, "has no field \"r\""),
        ("{\"g\":[1,{\"r\":[1]}]}", &["g", "r"], false, "--rows-at g.r: "),
        ("{\"r\":null}", &["r"], false, "--rows-at r: "),
        ("{\"r\":[1],\"x\":0,\"r\":[2]}", &["r"], false, "an object has \"r\" twice"),
        ("{\"a\":{\"x\":1,\"y\":[1]}}", &["a"], false, "it has: x, y; the rows may be within: --rows-at a.y"),
        ("{\"g\":[{\"r\":[1]}]}", &["g", "1", "r"], false, "--rows-at g.1.r: "),
        ("{\"g\":[{\"r\":[1]} {\"r\":[1]}]}", &["g", "r"], false, "\",\" is expected"),
    ] {
        let told = values(text, path, by_key).expect_err(text).to_string();
        assert!(told.contains(expect), "{text}: {told}");
    }
}

#[test]
fn documents_are_told_from_lines_by_their_beginning() {
    for (head, expect) in [
        ("{\"a\":1}\n{\"a\":2}\n", false),
        ("\n\n{\"a\":\"}\\\"\"}\n", false),
        ("{\"a\":1}", false),
        ("{\n\"a\":1}", true),
        ("{\n\"a\":{\n", true),
        ("{\"board\":\"b\",\n{\"member\":1}\n", false),
        ("[", true),
        ("[\"ann\",5]\n\n[\"bob\",7]\n", false),
        ("[1,\"ann\"]\r\n[2,\"bob\"]", false),
        ("[\"ann\",\"5\",\"bob\",\"7\"]\n", true),
        ("[[\"ann\",5]]\n[[\"bob\",7]]\n", true),
        ("[{\"a\":1}]\n[{\"a\":2}]\n", true),
        ("[\"ann\",\n5]\n[\"bob\",7]\n", true),
        ("", false),
    ] {
        assert_eq!(is_document(head.as_bytes()), expect, "{head:?}");
    }
}
