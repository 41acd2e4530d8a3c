//! Hashes that must never change by accident, nor differ between the host's CPU and wasm32: workers and builds share them.

use endpoint_picker::prompt::{Blocks, Dialect, read};

/// A request and what must come of it.
struct Golden {
    block_tokens: u32,
    dialect: Dialect,
    body: &'static [u8],
    tokens: u32,
    hashes: &'static [&'static [u64]],
}

const SEED: u64 = 0x0123_4567_89AB_CDEF;

const CHAT: &[u8] = br##"{"model":"m","tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}],"messages":[{"role":"system","content":"The quick brown fox jumps over the lazy dog. "},{"role":"user","content":[{"type":"text","text":"The quick brown fox jumps over the lazy dog. "},{"type":"image_url","image_url":{"url":"https://example.com/a.png"}}]},{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{}"}}]}]}"##;

static GOLDEN: &[Golden] = &[
    Golden {
        block_tokens: 16,
        dialect: Dialect::Completions,
        body: br##"{"model":"m","prompt":"The quick brown fox jumps over the lazy dog. The quick brown fox jumps over the lazy dog. The quick brown fox jumps over the lazy dog. "}"##,
        tokens: 34,
        hashes: &[&[0x633F_1CE7_640F_93AB, 0x3A73_1FCA_4CA4_BA2F]],
    },
    Golden {
        block_tokens: 16,
        dialect: Dialect::Completions,
        body: br##"{"model":"m","cache_salt":"s","prompt":["The quick brown fox jumps over the lazy dog. The quick brown fox jumps over the lazy dog. ","The\u0020quick\u0020brown\u0020fox\u0020jumps\u0020over\u0020the\u0020lazy\u0020dog.\u0020The\u0020quick\u0020brown\u0020fox\u0020jumps\u0020over\u0020the\u0020lazy\u0020dog.\u0020\ud83d\ude00"]}"##,
        tokens: 47,
        hashes: &[&[0x6A83_CCDB_27CC_08DC], &[0x6A83_CCDB_27CC_08DC]],
    },
    Golden {
        block_tokens: 16,
        dialect: Dialect::Completions,
        body: br##"{"model":"m","prompt":[1000,4000,9000,16000,25000,36000,49000,64000,81000,100000,121000,144000,169000,196000,225000,256000,289000,324000,361000,400000,441000,484000,529000,576000,625000,676000,729000,784000,841000,900000,961000,1024000,1089000,1156000,1225000]}"##,
        tokens: 35,
        hashes: &[&[0xB41E_7474_DB30_6A87, 0xC05E_FA07_0B82_6CC7]],
    },
    Golden {
        block_tokens: 16,
        dialect: Dialect::ChatCompletions,
        body: CHAT,
        tokens: 292,
        hashes: &[&[0x4D7A_B7F2_842F_62CC, 0x2ED0_8D71_AD88_D723, 0x337C_EAE9_ACB5_3BC4, 0xB547_3BC0_5DA5_8514, 0x5720_CD71_137E_D549, 0xDFB0_F615_B4F8_01C4, 0x1964_240E_D57D_700A, 0x5830_1AD1_5878_1E5E, 0xF98B_ED09_993D_D624, 0x1313_137E_3D32_A6EC, 0xE114_F355_3E7A_1E1C, 0x30D9_2B89_86F8_C2A0, 0x7B52_B2BE_3F01_A0F4, 0x705E_28A2_697A_869E, 0x7EBD_EA63_7390_1102, 0xE75C_26BF_D302_8218, 0x7F2A_2DCF_E29F_3F24, 0x8A9B_0E13_14EA_B8E0]],
    },
    Golden {
        block_tokens: 64,
        dialect: Dialect::ChatCompletions,
        body: CHAT,
        tokens: 292,
        hashes: &[&[0xD583_6DED_9482_B729, 0x5C3B_5625_AE34_10BD, 0x193D_3C0F_B815_50DD, 0xB69D_2FD4_2649_C006]],
    },
    Golden {
        block_tokens: 16,
        dialect: Dialect::Messages,
        body: br##"{"model":"m","system":"The quick brown fox jumps over the lazy dog. ","messages":[{"role":"user","content":"The quick brown fox jumps over the lazy dog. "}]}"##,
        tokens: 29,
        hashes: &[&[0xC857_6022_11EE_923E]],
    },
    Golden {
        block_tokens: 16,
        dialect: Dialect::Responses,
        body: br##"{"model":"m","instructions":"The quick brown fox jumps over the lazy dog. ","input":"The quick brown fox jumps over the lazy dog. "}"##,
        tokens: 29,
        hashes: &[&[0xC857_6022_11EE_923E]],
    },
    Golden {
        block_tokens: 16,
        dialect: Dialect::Generate,
        body: br##"{"text":"The quick brown fox jumps over the lazy dog. The quick brown fox jumps over the lazy dog. ","lora_path":"a"}"##,
        tokens: 23,
        hashes: &[&[0x81DB_1608_7B9F_CB2D]],
    },
];

/// Reads every request of the table and compares.
pub(crate) fn check() {
    for golden in GOLDEN {
        let blocks = Blocks { tokens: golden.block_tokens, max: 2048, seed: SEED, openings: false };
        let prompt = read(golden.dialect, golden.body, None, &blocks);
        let hashes: Vec<&[u64]> = prompt.chains.iter().map(|chain| chain.hashes.as_slice()).collect();
        let body = golden.body.escape_ascii();
        assert_eq!(hashes, golden.hashes, "{body}: {hashes:#018x?}");
        assert_eq!(prompt.tokens, golden.tokens, "{body}");
    }
}
