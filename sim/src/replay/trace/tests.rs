use super::*;

fn malformed(result: Result<Workload, TraceError>) -> (u64, String) {
    match result {
        Err(TraceError::Malformed { line, reason }) => (line, reason),
        other => panic!("should be malformed: {other:?}"),
    }
}

#[test]
fn a_mooncake_line_is_a_prompt_in_blocks_of_512() {
    let text = concat!(
        r#"{"timestamp": 27000, "input_length": 1100, "output_length": 52, "hash_ids": [46, 47, 48]}"#,
        "\n\n",
        r#"{"timestamp": 30000, "input_length": 1200, "output_length": 26, "hash_ids": [46, 47, 49]}"#,
    );
    let workload = mooncake::read(text.as_bytes()).unwrap();

    let [first, second] = &workload.calls[..] else { panic!() };
    assert_eq!((first.start, second.start), (Start::At(0.0), Start::At(3.0)), "times count from the first");
    assert_eq!((first.engine.tokens, first.output), (1100, 52));
    assert_eq!((first.hashes().len(), second.hashes().len()), (17, 18));
    let shared = first.hashes().iter().zip(second.hashes()).take_while(|(a, b)| a == b).count();
    assert_eq!(shared, 16, "two blocks of 512");
    assert_eq!(first.prompt.opening.map(|opening| opening.whole), Some(first.hashes()[15]));
}

#[test]
fn mooncake_ids_may_be_too_few_or_too_many() {
    let line =
        |tokens, ids| format!(r#"{{"timestamp": 0, "input_length": {tokens}, "output_length": 1, "hash_ids": {ids}}}"#);
    let text = [line(2000, "[1]"), line(2000, "[1]"), line(600, "[1, 2, 3, 4]"), line(64, "[]")].join("\n");
    let calls = mooncake::read(text.as_bytes()).unwrap().calls;

    assert_eq!(calls.iter().map(|call| call.engine.tokens).collect::<Vec<_>>(), [2000, 2000, 600, 64]);
    assert_eq!(calls[0].hashes()[..8], calls[1].hashes()[..8]);
    assert_ne!(calls[0].hashes()[8], calls[1].hashes()[8], "what has no id is shared with nobody");
}

#[test]
fn a_malformed_line_is_named() {
    let good = r#"{"timestamp": 0, "input_length": 10, "output_length": 1, "hash_ids": [1]}"#;
    let (line, _) = malformed(mooncake::read(format!("{good}\n{{\"timestamp\": 5, \"inp").as_bytes()));
    assert_eq!(line, 2);
    let empty = r#"{"timestamp": 0, "input_length": 0, "output_length": 1, "hash_ids": []}"#;
    assert_eq!(malformed(mooncake::read(empty.as_bytes())), (1, "a prompt without tokens".into()));
    let negative = r#"{"timestamp": 0, "input_length": -3, "output_length": 1, "hash_ids": []}"#;
    assert!(malformed(mooncake::read(negative.as_bytes())).1.contains("-3"));

    let csv = "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.6805900,374,44\n";
    assert_eq!(malformed(azure::read(format!("{csv}yesterday,3,4\n").as_bytes())).0, 3);
    assert_eq!(malformed(azure::read(format!("{csv}2023-11-16 18:15:47,many,4\n").as_bytes())).0, 3);
    assert_eq!(malformed(azure::read(format!("{csv}2023-11-16 18:15:47,5\n").as_bytes())).0, 3);
}

#[test]
fn azure_rows_share_nothing() {
    let text = "TIMESTAMP,ContextTokens,GeneratedTokens\r\n2023-11-16 23:59:59.5000000,374,44\r\n\
                2023-11-17 00:00:01.0000000,374,0\r\n";
    let calls = azure::read(text.as_bytes()).unwrap().calls;
    assert_eq!((calls[0].start, calls[1].start), (Start::At(0.0), Start::At(1.5)));
    assert_eq!((calls[1].engine.tokens, calls[1].output), (374, 1), "an engine generates at least one token");
    assert_ne!(calls[0].hashes()[0], calls[1].hashes()[0]);
}

#[test]
fn the_next_turn_quotes_the_answer_before() {
    let workload = Chat { conversations: 20, ..Chat::default() }.generate(1);
    let (next, turn) = workload
        .calls
        .iter()
        .find_map(|call| match call.start {
            Start::After { call: before, .. } => Some((call, &workload.calls[before])),
            Start::At(_) => None,
        })
        .unwrap();
    let known = turn.engine.hashes.len();
    assert_eq!(known as u32, (turn.engine.tokens + turn.output) / ENGINE_BLOCK);
    assert_eq!(next.engine.hashes[..known], turn.engine.hashes[..]);
}

#[test]
fn a_seed_gives_the_same_workload_and_another_seed_another() {
    let digest = |seed| {
        let workload = Agents { requests: 3, ..Agents::default() }.generate(seed);
        workload.calls.iter().map(|call| (call.engine.tokens, call.output, call.start)).collect::<Vec<_>>()
            == Agents { requests: 3, ..Agents::default() }
                .generate(7)
                .calls
                .iter()
                .map(|call| (call.engine.tokens, call.output, call.start))
                .collect::<Vec<_>>()
    };
    assert!(digest(7) && !digest(8));
}
