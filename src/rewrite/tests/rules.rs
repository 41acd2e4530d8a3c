use super::*;

#[test]
fn the_rule_for_the_name_comes_before_the_one_for_all() {
    let rules = Rules(vec![rule(None, &[("any", 1)]), rule(Some("a"), &[("b", 1)])]);
    assert_eq!(rules.target(b"a", 7), Some("b"));
    assert_eq!(rules.target(b"A", 7), Some("any"));
    assert_eq!(rules.target(b"\xff", 7), Some("any"));
    let rules = Rules(vec![rule(Some("a"), &[("b", 1)])]);
    assert_eq!(rules.target(b"b", 7), None);
    assert_eq!(Rules::default().target(b"a", 7), None);
}

#[test]
fn a_request_gets_the_same_target_each_time_and_all_together_get_their_shares() {
    let rules = Rules(vec![rule(Some("m"), &[("stable", 90), ("canary", 9), ("third", 1)])]);
    let mut counts = [0; 3];
    for n in 0..20_000 {
        let id = format!("3f1c9d2e-{n:08x}-4a7b");
        let target = rules.target(b"m", draw(id.as_bytes())).unwrap();
        assert_eq!(rules.target(b"m", draw(id.as_bytes())), Some(target));
        counts[["stable", "canary", "third"].iter().position(|name| *name == target).unwrap()] += 1;
    }
    for (count, share) in counts.into_iter().zip([18_000_i32, 1_800, 200]) {
        assert!((count - share).abs() < share / 4, "{counts:?}");
    }
}

#[test]
fn the_largest_weights_do_not_overflow() {
    let many: Vec<(&str, u32)> = (0..10_000).map(|_| ("x", 1_000_000)).collect();
    let rules = Rules(vec![rule(None, &many)]);
    for draw in [0, 1, u64::MAX / 2, u64::MAX] {
        assert_eq!(rules.target(b"m", draw), Some("x"));
    }
}
