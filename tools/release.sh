#!/usr/bin/env bash
# Makes the files of a release in a folder, which `.github/workflows/release.yml` then publishes:
#
#     tools/release.sh FOLDER [PART]...
#
# Parts: x86_64, aarch64 (a static program and a wheel for each), page, extension, crates (a trial of publishing them). All of them
# if none is named. A part whose tools are missing is skipped with a sentence; the exit code is then 3.
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || { sed -n 's/^# \{0,1\}//p' "$0" | head -n 8; exit 2; }
mkdir -p "$1"
folder=$(cd "$1" && pwd)
shift
[ $# -gt 0 ] || set -- x86_64 aarch64 page extension crates
skipped=0

skip() {
    echo "$1 is skipped: $2" >&2
    skipped=3
}

# Whether a target of Rust is installed.
has_target() {
    rustup target list --installed 2>/dev/null | grep --quiet --line-regexp "$1"
}

sums() {
    (cd "$folder" && sha256sum "$1" > "$1.sha256")
}

program() {
    local target="$1-unknown-linux-musl"
    has_target "$target" || { skip "$1" "run \`rustup target add $target\`"; return; }
    case $1 in
        x86_64)
            command -v musl-gcc > /dev/null || { skip "$1" "install musl-tools"; return; } ;;
        aarch64)
            command -v aarch64-linux-gnu-gcc > /dev/null || { skip "$1" "install gcc-aarch64-linux-gnu and libc6-dev-arm64-cross"; return; }
            export CC_aarch64_unknown_linux_musl=aarch64-linux-gnu-gcc
            # The functions behind these instructions belong to glibc.
            export CFLAGS_aarch64_unknown_linux_musl=-mno-outline-atomics
            export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_MUSL_LINKER=rust-lld ;;
    esac
    cargo build --locked --package fencepost --profile dist --no-default-features --features cli --target "$target"
    local built="target/$target/dist" file="fencepost-$target.tar.gz"
    tar --create --gzip --file "$folder/$file" --owner=0 --group=0 --mtime=@0 --directory "$built" fencepost
    sums "$file"
    try "$1" "$built/fencepost"
    wheel "$1" "$target"
}

# Decides the tests of a folder with the new program; one for another processor runs in QEMU.
try() {
    local run=("$2")
    if [ "$1" != "$(uname -m)" ]; then
        command -v "qemu-$1-static" > /dev/null || { skip "the trial on $1" "install qemu-user-static"; return; }
        run=("qemu-$1-static" "$2")
    fi
    FENCEPOST_NO_CACHE=1 "${run[@]}" check litmus/ptx/06-causality --no-config
}

wheel() {
    command -v maturin > /dev/null || { skip "the wheel for $1" "run \`pip install maturin\`"; return; }
    (cd python && maturin build --target "$2" --compatibility manylinux2014 musllinux_1_1 --out "$folder")
    if [ "$1" = "$(uname -m)" ]; then try_wheel "$1"; fi
}

# Runs the tests of the module in an environment that has the new wheel and what tests need, and nothing else.
try_wheel() {
    local clean
    clean=$(mktemp -d)
    python3 -m venv "$clean"
    "$clean/bin/pip" install --quiet pytest mcp || { skip "the trial of the wheel" "pip finds no pytest"; return; }
    "$clean/bin/pip" install --quiet --no-index "$folder"/fencepost-*"$1".whl
    (cd "$clean" && env -i HOME="$clean" PATH="$clean/bin:/usr/bin:/bin" FENCEPOST_NO_CACHE=1 \
        python -m pytest -q -p no:cacheprovider "$OLDPWD/python/tests")
    rm -rf "$clean"
}

page() {
    has_target wasm32-unknown-unknown || { skip page "run \`rustup target add wasm32-unknown-unknown\`"; return; }
    cargo play
    if command -v node > /dev/null; then node docs/play/test.mjs; else skip "the trial of the page" "install node"; fi
    python3 tools/play.py target/play
    cp target/play/index.html "$folder/fencepost-play.html"
}

extension() {
    command -v npx > /dev/null || { skip extension "install node and npm"; return; }
    (cd editors/vscode && npm install --no-audit --no-fund &&
        npx --yes @vscode/vsce package --allow-missing-repository --skip-license --out "$folder")
}

# Packs all crates and builds them from their packages, without Z3: its download is no part of a package. Then holds the library
# against that of the last tag.
crates() {
    cargo publish --dry-run --locked --workspace --exclude fencepost-play --exclude fencepost-testkit \
        --no-default-features --features fencepost/cli
    local last
    last=$(git describe --tags --abbrev=0 HEAD^ 2> /dev/null) || { echo "there is no earlier tag to hold the library against"; return; }
    command -v cargo-semver-checks > /dev/null || { skip "the comparison of the library" "run \`cargo install cargo-semver-checks\`"; return; }
    cargo semver-checks --package fencepost --baseline-rev "$last" --only-explicit-features
}

for part in "$@"; do
    case $part in
        x86_64 | aarch64) program "$part" ;;
        page | extension | crates) "$part" ;;
        *) echo "there is no part \`$part\`: x86_64, aarch64, page, extension, crates" >&2; exit 2 ;;
    esac
done
ls -l "$folder"
exit "$skipped"
