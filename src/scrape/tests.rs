//! What texts as servers write them, and as they should not, come to.

mod captures;

use std::fmt::Write;

use super::*;

fn auto(text: &str) -> Reading {
    read(text.as_bytes(), &EngineSpec::auto()).unwrap()
}

fn waiting(text: &str) -> Option<u32> {
    auto(text).waiting
}

fn lora(max: u32, running: &[&str], waiting: &[&str]) -> Lora {
    let names = |names: &[&str]| names.iter().map(|name| name.as_bytes().into()).collect();
    Lora { max, running: names(running), waiting: names(waiting) }
}

mod several_series {
    use super::*;

    #[test]
    fn data_parallel_ranks_are_summed_and_their_usage_averaged_whatever_the_order() {
        let lines = [
            r#"vllm:num_requests_running{engine="0",model_name="m"} 7.0"#,
            r#"vllm:num_requests_running{engine="1",model_name="m"} 0.0"#,
            r#"vllm:num_requests_waiting{engine="0",model_name="m"} 3.0"#,
            r#"vllm:num_requests_waiting{model_name="m",engine="1"} 0.0"#,
            r#"vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.9"#,
            r#"vllm:kv_cache_usage_perc{engine="1",model_name="m"} 0.1"#,
            r#"vllm:cache_config_info{block_size="16",engine="0",num_gpu_blocks="100"} 1"#,
            r#"vllm:cache_config_info{block_size="16",engine="1",num_gpu_blocks="100"} 1"#,
        ];
        let expected = Reading {
            waiting: Some(3),
            running: Some(7),
            kv_usage: Some(0.5),
            block_size: Some(16),
            num_blocks: Some(200),
            lora: None,
        };
        assert_eq!(auto(&lines.join("\n")), expected);
        assert_eq!(auto(&lines.into_iter().rev().collect::<Vec<_>>().join("\n")), expected);
    }

    #[test]
    fn a_total_beside_its_priorities_is_not_counted_twice() {
        let parts = "sglang:num_queue_reqs{priority=\"0\"} 17\nsglang:num_queue_reqs{priority=\"10\"} 3\n";
        assert_eq!(waiting(&format!("{parts}sglang:num_queue_reqs{{priority=\"\"}} 20\n")), Some(20));
        assert_eq!(waiting(parts), Some(20));
    }

    #[test]
    fn tensor_parallel_ranks_show_one_queue_and_not_several() {
        let rank = |dp, tp| format!("sglang:num_queue_reqs{{dp_rank=\"{dp}\",tp_rank=\"{tp}\"}} 5\n");
        assert_eq!(waiting(&[rank(0, 0), rank(0, 1), rank(1, 2), rank(1, 3)].concat()), Some(10));
    }

    #[test]
    fn a_line_that_is_there_twice_counts_once() {
        assert_eq!(waiting("vllm:num_requests_waiting 5\nvllm:num_requests_waiting 5\n"), Some(5));
    }

    #[test]
    fn series_beyond_the_bound_are_counted_as_cut() {
        let mut text = String::new();
        for engine in 0..300 {
            writeln!(text, "vllm:num_requests_waiting{{engine=\"{engine}\"}} 1").unwrap();
        }
        let (reading, cut) = read_counting(text.as_bytes(), &EngineSpec::auto()).unwrap();
        assert_eq!((reading.waiting, cut), (Some(256), Cut { series: 44, adapters: 0 }));
    }

    #[test]
    fn a_sum_too_large_to_be_a_count_is_unknown() {
        let text = "vllm:num_requests_waiting{engine=\"0\"} 4e9\nvllm:num_requests_waiting{engine=\"1\"} 4e9\n";
        assert_eq!(waiting(text), None);
    }
}

mod names {
    use super::*;

    #[test]
    fn the_new_name_wins_over_the_old_one_wherever_it_stands() {
        let (new, old) = ("vllm:kv_cache_usage_perc 0.25\n", "vllm:gpu_cache_usage_perc 0.75\n");
        assert_eq!(auto(&[new, old].concat()).kv_usage, Some(0.25));
        assert_eq!(auto(&[old, new].concat()).kv_usage, Some(0.25));
        assert_eq!(auto(new).kv_usage, Some(0.25));
        assert_eq!(auto(old).kv_usage, Some(0.75));
        assert_eq!(auto("vllm:num_requests_waiting 1").kv_usage, None);
    }

    #[test]
    fn a_new_name_without_a_usable_value_leaves_it_to_the_old_one() {
        let text = "vllm:kv_cache_usage_perc NaN\nvllm:gpu_cache_usage_perc 0.75\n";
        assert_eq!(auto(text).kv_usage, Some(0.75));
    }

    #[test]
    fn a_metric_whose_name_begins_with_another_is_not_taken_for_it() {
        let text = "vllm:num_requests_waiting 2\n\
            vllm:num_requests_waiting_by_reason{reason=\"capacity\"} 2\n\
            vllm:num_requests_waiting_created 1.79e+09\n\
            vllm:num_requests_waiting_total 99\n";
        assert_eq!(waiting(text), Some(2));
    }

    #[test]
    fn lmdeploy_waits_in_two_places() {
        let text = "lmdeploy:num_requests_waiting 4\nlmdeploy:num_api_requests_waiting 3\n";
        assert_eq!(waiting(text), Some(7));
    }

    #[test]
    fn a_term_of_a_sum_that_is_missing_is_not_zero() {
        for text in [
            "lmdeploy:num_requests_waiting 0\n# TYPE lmdeploy:num_api_requests_waiting gauge\n",
            "lmdeploy:num_requests_waiting 0\nlmdeploy:num_api_requests_waiting NaN\n",
            "lmdeploy:num_api_requests_waiting 3\n",
        ] {
            assert_eq!(waiting(text), None, "{text}");
        }
    }

    #[test]
    fn a_block_size_label_that_is_none_is_unknown() {
        let text = r#"vllm:cache_config_info{_block_size_resolved="True",block_size="None",num_gpu_blocks="7"} 1"#;
        assert_eq!((auto(text).block_size, auto(text).num_blocks), (None, Some(7)));
    }

    #[test]
    fn own_names_pick_series_by_labels() {
        let metric = |text| Some(MetricSpec::parse(text).unwrap());
        let spec = EngineSpec::custom(CustomSignals {
            waiting: metric(r#"queue{kind="a,\"b\"",zone=east} + backlog_total"#),
            running: metric("queue{kind=run,absent=\"\"}"),
            num_blocks: metric("info[blocks]"),
            lora: metric("adapters"),
            ..CustomSignals::default()
        });
        let text = r#"
            queue{zone="east",kind="a,\"b\""} 3
            queue{zone="west",kind="a,\"b\""} 100
            queue{kind="run"} 2
            queue{kind="run",absent="no"} 50
            backlog 1000
            backlog_total 4
            info{blocks="77"} 1
            adapters{max_lora="4",running_lora_adapters="x"} 1
        "#;
        let expected = Reading {
            waiting: Some(7),
            running: Some(2),
            num_blocks: Some(77),
            lora: Some(lora(4, &["x"], &[])),
            ..Reading::default()
        };
        assert_eq!(read(text.as_bytes(), &spec), Ok(expected));
    }
}

mod adapters {
    use super::*;

    fn info(engine: &str, running: &str, waiting: &str, at: &str) -> String {
        format!(
            "vllm:lora_requests_info{{engine=\"{engine}\",max_lora=\"4\",running_lora_adapters=\"{running}\",\
             waiting_lora_adapters=\"{waiting}\"}} {at}\n"
        )
    }

    fn read_lora(lines: &[String]) -> Lora {
        auto(&lines.concat()).lora.unwrap()
    }

    #[test]
    fn the_newest_series_wins_wherever_it_stands() {
        let lines = [
            info("", "", "", "1.7395575657589855e+09"),
            info("", "test", "", "1.7395575723949368e+09"),
            info("", "test", "test", "1.7395575717647147e+09"),
        ];
        assert_eq!(read_lora(&lines), lora(4, &["test"], &[]));
    }

    #[test]
    fn of_two_series_of_one_time_the_first_wins() {
        assert_eq!(read_lora(&[info("", "a", "", "5"), info("", "b", "", "5")]), lora(4, &["a"], &[]));
    }

    #[test]
    fn engine_cores_are_united_each_by_its_newest() {
        let lines = [
            info("0", "old", "", "1"),
            info("0", "a, b", "c", "9"),
            info("1", "c", "d,a", "2"),
            info("1", "", "", "1"),
        ];
        assert_eq!(read_lora(&lines), lora(4, &["a", "b", "c"], &["d"]));
    }

    #[test]
    fn an_empty_list_has_no_adapters() {
        assert_eq!(read_lora(&[info("", "", ",, ,", "1")]), lora(4, &[], &[]));
    }

    #[test]
    fn no_series_yet_is_unknown() {
        let text = "# TYPE vllm:lora_requests_info gauge\nvllm:lora_requests_info{max_lora=\"1\"} NaN\n";
        assert_eq!(auto(text).lora, None);
    }

    #[test]
    fn a_name_is_unescaped() {
        assert_eq!(read_lora(&[info("", r#"a\\b\"} 1"#, "", "1")]), lora(4, &[r#"a\b"} 1"#], &[]));
    }

    #[test]
    fn long_names_and_long_lists_are_counted_as_cut() {
        let many: Vec<_> = (0..70).map(|i| i.to_string()).collect();
        let text = info("", &"x".repeat(MAX_ADAPTER_NAME + 1), &many.join(","), "1");
        let (reading, cut) = read_counting(text.as_bytes(), &EngineSpec::auto()).unwrap();
        assert_eq!(reading.lora.unwrap().waiting.len(), MAX_ADAPTERS);
        assert_eq!(cut, Cut { series: 0, adapters: 7 });
    }
}

mod odd_texts {
    use super::*;

    #[test]
    fn a_value_that_cannot_be_is_unknown_and_not_zero() {
        for value in ["NaN", "+Inf", "-Inf", "-1", "1e400", "5000000000", "\"\"", "", "1x", "None"] {
            let text = format!("vllm:num_requests_waiting {value}\nvllm:num_requests_running 1\n");
            assert_eq!((waiting(&text), auto(&text).running), (None, Some(1)), "{value}");
        }
        for value in ["NaN", "+Inf", "-0.1", "61", "1e400"] {
            assert_eq!(auto(&format!("vllm:kv_cache_usage_perc {value}\n")).kv_usage, None, "{value}");
        }
        assert_eq!(auto("vllm:kv_cache_usage_perc 1.0000001").kv_usage, Some(1.0));
    }

    #[test]
    fn a_rank_that_does_not_know_makes_the_signal_unknown_and_not_smaller() {
        for value in ["NaN", "-1", "1x", "", "+Inf"] {
            let ranks = |name: &str| format!("{name}{{engine=\"0\"}} {value}\n{name}{{engine=\"1\"}} 0\n");
            assert_eq!(waiting(&ranks("vllm:num_requests_waiting")), None, "{value}");
            assert_eq!(auto(&ranks("vllm:kv_cache_usage_perc")).kv_usage, None, "{value}");
        }
    }

    #[test]
    fn a_rank_whose_line_is_malformed_makes_the_signal_unknown_and_not_smaller() {
        for bad in ["{", "{engine=\"1", "{engine=1} 5"] {
            let text = format!("vllm:num_requests_waiting{{engine=\"0\"}} 0\nvllm:num_requests_waiting{bad}\n");
            assert_eq!(waiting(&text), None, "{bad}");
        }
    }

    #[test]
    fn numbers_may_be_written_in_any_usual_way() {
        for (value, number) in [("6", 6), ("6.0", 6), ("+6", 6), ("6e0", 6), ("6e+000", 6), ("1.6e+001", 16), ("-0", 0)]
        {
            assert_eq!(waiting(&format!("vllm:num_requests_waiting {value}")), Some(number), "{value}");
        }
    }

    #[test]
    fn openmetrics_ends_exemplars_and_timestamps_are_understood() {
        let text = "# TYPE vllm:num_requests_waiting gauge\n\
            vllm:num_requests_waiting{a=\"b\"} 3 1395066363.5 # {trace_id=\"x\"} 1\n\
            # HELP vllm:num_requests_waiting twice\n\
            vllm:num_requests_running 4 # {trace_id=\"vllm:num_requests_running 9\"} 1\n\
            # EOF\n";
        assert_eq!((waiting(text), auto(text).running), (Some(3), Some(4)));
    }

    #[test]
    fn a_malformed_line_costs_only_itself() {
        for bad in ["{", "{a=\"b", "{a=b} 1", " 1 2 3x", "{} ", "{a=\"\u{fffd}\"}", "\0 1", "{a=\"b\"} 1 apples"] {
            let text = format!("vllm:num_requests_waiting{bad}\nvllm:num_requests_running 4\n");
            let reading = auto(&text);
            assert_eq!(reading.running, Some(4), "{bad}");
            if !bad.starts_with(" 1 2") {
                assert_eq!(reading.waiting, None, "{bad}");
            }
        }
    }

    #[test]
    fn bytes_that_are_not_utf8_are_data_in_labels() {
        let text = b"vllm:num_requests_waiting{model_name=\"\xff\xfe\"} 3\n\xff\xfe\n";
        assert_eq!(read(text, &EngineSpec::auto()).unwrap().waiting, Some(3));
    }

    #[test]
    fn a_text_from_something_else_is_an_error_and_no_zeros() {
        for (text, error) in [
            ("", ScrapeError::Empty),
            (" \r\n", ScrapeError::Empty),
            (r#"[{"iter":1,"kvCacheStats":{}}]"#, ScrapeError::Json),
            ("{\"error\":\n\"no\"}", ScrapeError::Json),
            ("<!doctype html><html></html>", ScrapeError::Html),
            ("upstream connect error", ScrapeError::NoKnownFamily),
            ("# TYPE python_info gauge\npython_info{version=\"3.12\"} 1.0\n", ScrapeError::NoKnownFamily),
        ] {
            assert_eq!(read(text.as_bytes(), &EngineSpec::auto()), Err(error), "{text}");
        }
    }

    #[test]
    fn metrics_described_but_not_sampled_yet_are_unknown_and_no_error() {
        assert_eq!(auto("# TYPE trtllm_num_requests_waiting gauge\n"), Reading::default());
    }

    /// Random mixtures of what the format is made of, and captured lines with random bytes changed.
    #[test]
    fn no_text_panics_and_every_reading_is_in_range() {
        let pieces: Vec<&[u8]> = include_bytes!("../../tests/data/metrics/vllm-0.32.0-lora-queued.txt")
            .split(|&byte| byte == b'\n')
            .filter(|line| {
                line.starts_with(b"vllm:lora") || line.starts_with(b"vllm:num") || line.starts_with(b"vllm:kv")
            })
            .chain([&b"vllm:num_requests_waiting"[..], b"vllm:kv_cache_usage_perc", b"vllm:lora_requests_info"])
            .chain(b"{}\",=\\ \t\r\n\n\n#0919e+-.N".iter().map(std::slice::from_ref))
            .chain([&b"NaN"[..], b"+Inf", b"priority=\"", b"1e999", b"\xff", b"\0", b"# TYPE ", b"\"} 1\n", b"\\n"])
            .collect();
        let mut state = 0x2545_f491_4f6c_dd1d_u64;
        let mut random = |below: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state % below as u64) as usize
        };
        let spec = EngineSpec::auto();
        for _ in 0..20_000 {
            let mut text: Vec<u8> = (0..random(12)).flat_map(|_| pieces[random(pieces.len())]).copied().collect();
            for _ in 0..random(4) {
                if !text.is_empty() {
                    let at = random(text.len());
                    text[at] = random(256) as u8;
                }
            }
            let reading = read(&text, &spec).unwrap_or_default();
            assert!(reading.kv_usage.is_none_or(|share| (0.0..=1.0).contains(&share)), "{:?}", text.escape_ascii());
            assert!(reading.block_size != Some(0) && reading.num_blocks != Some(0), "{:?}", text.escape_ascii());
            let lora = reading.lora.unwrap_or_default();
            assert!(lora.running.len() + lora.waiting.len() <= MAX_ADAPTERS, "{:?}", text.escape_ascii());
        }
    }
}
