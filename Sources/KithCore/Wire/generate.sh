#!/usr/bin/env bash
# Makes Generated/kith.pb.swift anew from kith.proto. Needs protoc (Debian: protobuf-compiler) and
# builds the plugin of the swift-protobuf version that Package.swift asks for.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
package=$(cd "$here/../../.." && pwd)
if ! command -v protoc >/dev/null; then
  apt-get update -q >&2
  apt-get install -qy protobuf-compiler >&2
fi
swift build --package-path "$package" --scratch-path "$package/.build-protoc" \
  -c release --product protoc-gen-swift >&2
plugin=$(swift build --package-path "$package" --scratch-path "$package/.build-protoc" \
  -c release --show-bin-path)/protoc-gen-swift
protoc --plugin=protoc-gen-swift="$plugin" --proto_path="$here" \
  --swift_opt=Visibility=Internal --swift_opt=UseAccessLevelOnImports=true \
  --swift_out="$here/Generated" "$here/kith.proto"
